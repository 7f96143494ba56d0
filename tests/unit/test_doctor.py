"""`testbed columns`, and the parts of `testbed doctor` that run no trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cli import doctor
from testbed.cli.entry import main


def test_a_column_has_its_unit_and_its_definition(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["columns", "jitter"]) == 0
    assert "  jitter_ms (ms): the interarrival jitter" in capsys.readouterr().out
    assert main(["columns", "gooput_mbps"]) == 2
    assert "did you mean 'goodput_mbps'?" in capsys.readouterr().err


def test_a_folder_has_the_size_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"x" * 8192)
    assert doctor._size(tmp_path) >= 8192
