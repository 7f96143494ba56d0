"""Linux's tests of queue disciplines in a guest, with a script in place of tdc."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.guest.kernels import default_kernel
from testbed.kernels.kernel_tests import QUEUE_TESTS, run_queue_tests

TDC = """
import json, pathlib, subprocess, sys
if "cake" in sys.argv[2]:
    print("Unable to import the scapy python module.")
    sys.exit(1)
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


@pytest.mark.parametrize(("queue", "why"), [("pie", "JSON"), ("cake", "import the scapy")])
def test_tests_that_say_nothing_are_an_error(tests: Path, queue: str, why: str) -> None:
    """The reason is their last error; a module that they miss is named on standard output."""
    with pytest.raises(TestbedError, match=f"the tests of {queue} did not run on kernel .*{why}"):
        list(run_queue_tests([default_kernel()], [queue], tests, print))
