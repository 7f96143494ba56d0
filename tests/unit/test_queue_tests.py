"""`testbed kernel test`: which tests run, and what tdc's output says."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cli.entry import main
from testbed.errors import UsageError
from testbed.guest import kernels
from testbed.kernels.kernel_tests import QUEUE_TESTS, queues_with_tests, read_results

SAID = """Test 8b6e: Create RED with no flags
ok 1 0000 - not a result

All test results: 

1..3
ok 1 8b6e - Create RED with no flags
not ok 2 342e - Create RED with adaptive flag\tCommands executed in this test case:
\t\t$TC qdisc add dev $DUMMY root red adaptive

\tCommand exited with 2, expected 0
ok 3 2d4b - Needs a device # skipped - no device
"""  # noqa: W291


def test_queues_are_named_or_those_of_scenarios(tmp_path: Path) -> None:
    (tmp_path / QUEUE_TESTS).mkdir(parents=True)
    for name in ("red", "codel", "teql"):
        (tmp_path / QUEUE_TESTS / f"{name}.json").touch()
    assert queues_with_tests(tmp_path, []) == ["codel", "red"]
    assert queues_with_tests(tmp_path, ["teql", "red"]) == ["teql", "red"]
    with pytest.raises(UsageError, match="kernel test read: no such tests") as caught:
        queues_with_tests(tmp_path, ["read"])
    assert "red" in caught.value.hint


def test_no_source_of_any_kernel_is_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernels, "source_archive", lambda _version: None)
    assert main(["kernel", "test", "6.1"]) == 2
    newest = kernels.versions()[-1]
    said = " ".join(capsys.readouterr().err.split())
    assert f"--selftests {newest}: its source is not here" in said
    assert f"testbed kernel build {newest}" in said


def test_the_results_of_tdc() -> None:
    first, second, third = read_results(SAID)
    assert (first.name, first.passed, first.said) == ("8b6e - Create RED with no flags", True, ())
    assert (second.name, second.passed) == ("342e - Create RED with adaptive flag", False)
    assert second.said[-1] == "Command exited with 2, expected 0"
    assert (third.name, third.passed, third.skipped) == ("2d4b - Needs a device", True, True)
    assert not list(read_results("Traceback (most recent call last):"))
