"""`testbed grade`, and the laboratories of experiments/course held to their expectations."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.store.names import GRADE_RECORD

COURSE = Path(__file__).resolve().parents[2] / "experiments" / "course"
QUICK = ("bufferbloat", "routing")
LAB = """
echo "seed $(od -An -N1 -tu1 /dev/urandom)"
echo "$1,3" >numbers.csv
echo wrong >&2
exit 4
"""
EXPECTED = """
arguments = ["packets"]
status = 4
[[expect]]
what = "packets"
file = "numbers.csv"
pattern = '^packets,(.*)'
at_most = 3
[[expect]]
what = "seed's byte"
pattern = 'seed +(\\d+)'
at_least = 0
"""


def grade(script: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Grade a script, and return what that printed."""
    command = (sys.executable, "-m", "experiments", "grade", str(script), f"--out={out}", *options)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_row_for_each_number_and_a_column_for_each_seed(tmp_path: Path) -> None:
    script, expected, out = (tmp_path / name for name in ("lab.sh", "lab.toml", "out"))
    script.write_text(LAB)
    expected.write_text(EXPECTED)
    done = grade(script, out, "--seeds", "5,6")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["exit", "status", "4", "4", "4", "passed"] in lines
    assert ["packets", "≤", "3", "3", "3", "passed"] in lines
    record = json.loads((out / GRADE_RECORD).read_text())
    assert record["holds"] and [each["seed"] for each in record["seeds"]] == [5, 6]
    assert len({each["numbers"][1]["value"] for each in record["seeds"]}) == 2  # the seeds differ


def test_each_kind_of_fault_fails(tmp_path: Path) -> None:
    script, expected = tmp_path / "lab.sh", tmp_path / "other.toml"
    script.write_text(LAB)
    text = EXPECTED.replace("status = 4", "").replace("at_most = 3", "at_most = 2.5")
    expected.write_text(text.replace("'seed ", "'seeds "))
    done = grade(script, tmp_path / "out", "--expect", str(expected))
    assert done.returncode == 1
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["exit", "status", "0", "4", "failed"] in lines
    assert ["packets", "≤", "2.5", "3", "high", "failed"] in lines
    assert ["seed's", "byte", "≥", "0", "none", "failed"] in lines
    assert "seed's byte: nothing matches (seed 1)" in done.stdout
    assert "    wrong" in done.stderr.splitlines()  # its last lines say why it failed


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("script", sorted(COURSE.glob("*.toml")), ids=lambda path: path.stem)
def test_the_laboratories_show_what_they_have_to(script: Path, tmp_path: Path, full: bool) -> None:
    if not full and script.stem not in QUICK:
        pytest.skip("with --full")
    done = grade(
        script.with_suffix(".py"), tmp_path, "--check", f"--seeds={'1,2,3' if full else 1}"
    )
    assert done.returncode == 0, done.stdout + done.stderr


FIVE_WHAT = "tc qdisc add dev lo root netem delay 5"
NO_NUMBER = "[[expect]]\nwhat = 'a'\npattern = 'a'\ntake = 'count'\nat_most = 0\n"


@pytest.mark.slow
def test_with_check_a_faulty_laboratory_fails(tmp_path: Path) -> None:
    script, expected = tmp_path / "lab.sh", tmp_path / "lab.toml"
    script.write_text(FIVE_WHAT)
    expected.write_text(NO_NUMBER)
    for options, status in (((), 0), (("--check",), 1)):
        done = grade(script, tmp_path / "out", *options)
        assert done.returncode == status, done.stdout + done.stderr
        assert "delay 5" in done.stderr
    row = "wrong with the laboratory 0 1 failed".split()
    assert row in [line.split() for line in done.stdout.splitlines()]
