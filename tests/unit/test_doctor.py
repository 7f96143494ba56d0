"""`testbed columns`, and the parts of `testbed doctor` that run no trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.statistics.table_layout import as_latex, blocks, narrowed, width_of
from analysis.statistics.text_tables import TextTable
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


TABLE = TextTable(
    ("queue", "goodput Mbit/s", "retrans.", "status"),
    (("codel", "1.0 ± 0.1", "0", "ok"), ("red_a", "2.0 ± 0.1", "0", "ok")),
    "a note",
)


def test_columns_of_one_value_go_into_the_note() -> None:
    assert narrowed(TABLE, 200) is TABLE
    found = narrowed(TABLE, 20)
    assert found.header == ("queue", "goodput Mbit/s")
    assert found.note == "in all rows: retrans. 0, status ok; a note"


def test_a_table_that_is_too_wide_comes_in_parts_with_its_keys() -> None:
    parts = blocks(TABLE, 20)
    assert [part.header[0] for part in parts] == ["queue"] * len(parts)
    assert [head for part in parts for head in part.header[1:]] == list(TABLE.header[1:])
    assert all(width_of(part) <= 20 for part in parts)
    assert [part.note for part in parts] == [""] * (len(parts) - 1) + ["a note"]


def test_latex_obeys_nothing_of_a_cell() -> None:
    lines = as_latex(TABLE).splitlines()
    assert lines[0] == "% a note"
    assert r"\begin{tabular}{lrrl}" in lines
    assert r"    red\_a & 2.0 $\pm$ 0.1 & 0 & ok \\" in lines
