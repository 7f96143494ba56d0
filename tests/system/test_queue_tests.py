"""Linux's tests of queue disciplines in a guest, with a script in place of tdc."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.guest.kernels import default_kernel
from testbed.runs.queue_tests import QUEUE_TESTS, run_queue_tests

TDC = """
import json, pathlib, subprocess, sys
wanted = json.loads(pathlib.Path(sys.argv[2]).read_text())
done = subprocess.run(["tc", "qdisc", "replace", "dev", "lo", "root", *wanted])
pathlib.Path("left-behind").touch()
print("All test results:")
print("ok" if done.returncode == 0 else "not ok", "1 0001 - replace")
"""


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    folder = tmp_path / "tc-testing"
    (folder / QUEUE_TESTS).mkdir(parents=True)
    (folder / "tdc.py").write_text(TDC)
    for queue, words in (("red", '["pfifo"]'), ("codel", '["nonsense"]'), ("pie", "no JSON")):
        (folder / QUEUE_TESTS / f"{queue}.json").write_text(words)
    return folder


def test_each_queue_is_tested_in_a_guest(tests: Path) -> None:
    """As root, and the tests' folder stays as it is."""
    before = sorted(tests.rglob("*"))
    ends = list(run_queue_tests([default_kernel()], ["red", "codel"], tests, print))
    assert [(end.suite, end.passed) for end in ends] == [("red", True), ("codel", False)]
    assert sorted(tests.rglob("*")) == before


def test_tests_that_say_nothing_are_an_error(tests: Path) -> None:
    with pytest.raises(TestbedError, match=r"the tests of pie did not run on kernel .*JSON"):
        list(run_queue_tests([default_kernel()], ["pie"], tests, print))
