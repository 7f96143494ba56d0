"""Numbers of a script's run, read from its results folder and held to a file of expectations."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from analysis.metrics import program_output
from testbed.errors import UsageError
from testbed.programs import expectations
from testbed.programs.expectations import Expectation, measure, read_expectations
from testbed.programs.network_script import read_network
from testbed.scenario.program_numbers import Take
from testbed.store.names import MACHINE_ERRORS, MACHINE_FILES, MACHINE_OUTPUT
from tests.pcap_writer import Endpoints, udp, write_pcap

COURSE = Path(__file__).resolve().parents[2] / "experiments" / "course"
WEB = Endpoints("10.0.0.1", 5000, "10.0.0.2", 80)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    files = tmp_path / MACHINE_FILES
    files.mkdir()
    (tmp_path / MACHINE_OUTPUT).write_text("rate 5.5 Mbit/s\nrate 7 Mbit/s\n")
    (tmp_path / MACHINE_ERRORS).write_text("lost 3\nlost nan\n")
    (files / "queue.csv").write_text("time,packets\n0,4\n1,8\n2,\n")
    (files / "queue-2.csv").write_text("time,packets\n0,30\n")
    return tmp_path


@pytest.mark.parametrize(
    ("take", "value"),
    [("first", 5.5), ("last", 7), ("min", 5.5), ("max", 7), ("mean", 6.25), ("sum", 12.5)],
)
def test_one_number_of_several(run: Path, take: str, value: float) -> None:
    expectation = Expectation("rate", at_least=value, pattern="rate (.*) M", take=Take(take))
    assert measure(expectation, run).value == value


@pytest.mark.parametrize(
    ("low", "high", "holds", "beyond"),
    [
        (3, 3, True, (False, False)),
        (None, 2.9, False, (False, True)),
        (3.1, None, False, (True, False)),
    ],
)
def test_ranges_are_closed(
    run: Path, low: float | None, high: float | None, holds: bool, beyond: tuple[bool, bool]
) -> None:
    number = measure(Expectation("lost", low, high, pattern=r"lost (\d)"), run)
    assert (number.value, number.holds, (number.too_low, number.too_high)) == (3, holds, beyond)


@pytest.mark.parametrize(
    ("expectation", "why"),
    [
        (Expectation("a", 1, pattern="rate (.*) M"), "2 numbers match: `take` says which"),
        (Expectation("a", 1, pattern="nowhere (.*)"), "nothing matches"),
        (Expectation("a", 1, pattern="lost (n.*)"), "no number: 'nan'"),
        (Expectation("a", 1, file="b.txt", pattern="(1)"), "there is no b.txt"),
        (
            Expectation("a", 1, file="queue.csv", column="packet", take=Take.MAX),
            "queue.csv has no column 'packet': did you mean 'packets'?",
        ),
        (Expectation("a", 1, file="queue.csv", column="packets", take=Take.MAX), "no number: ''"),
    ],
)
def test_a_number_that_is_missing_fails(run: Path, expectation: Expectation, why: str) -> None:
    number = measure(expectation, run)
    assert (number.missing, number.holds) == (why, False)


def test_columns_of_files_by_pattern_of_their_names(run: Path) -> None:
    (run / MACHINE_FILES / "queue.csv").write_text("packets\n4\n8\n")
    expectation = Expectation("a", 1, file="queue*.csv", column="packets", take=Take.SUM)
    assert measure(expectation, run).value == 42
    counted = Expectation("a", 1, file="queue*.csv", pattern="^packets", take=Take.COUNT)
    assert measure(counted, run).value == 1


def test_flows_of_captures_by_their_ends(run: Path) -> None:
    frames = [udp(WEB, 10**9 + n, payload=90, ip_id=n) for n in range(3)]
    frames += [udp(WEB.back, 2 * 10**9, payload=80, ip_id=3)]
    others = (("10.0.0.3", "10.0.0.2"), ("10.0.0.3", "10.0.0.4"))
    for number, (src, dst) in enumerate(others, 4):
        frames += [udp(Endpoints(src, 5000, dst, 80), number * 10**9, payload=90, ip_id=number)]
    write_pcap(run / MACHINE_FILES / "h1.pcap", frames, 144)
    expectation = Expectation("a", 1, file="*.pcap", column="sent_packets", src="10.0.0.1:*")
    assert measure(expectation, run).value == 3
    every = dataclasses.replace(expectation, src="*", dst="10.0.0.2:80", take=Take.SUM)
    assert measure(every, run).value == 4
    none = dataclasses.replace(expectation, src="10.0.0.9:*")
    assert measure(none, run).missing == "nothing matches"


FAULTY = """
arguments = ["-v"]
[[expect]]
what = "bounds"
pattern = '(a)'
at_least = 3
at_most = 2
[[expect]]
what = "neither"
at_most = 2
[[expect]]
what = "groups"
pattern = '(a)(b)'
at_most = 2
[[expect]]
what = "column"
file = "a.pcap"
column = "goodput_mbp"
at_most = 2
[[expect]]
what = "outside"
file = "../a"
pattern = '(a'
"""


def test_all_faults_of_a_file_at_once(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(FAULTY)
    with pytest.raises(UsageError) as caught:
        read_expectations(tmp_path / "lab.toml")
    for fault in (
        "expect[0].at_least: 3 is more than at_most 2",
        "expect[1]: give a pattern or a column",
        "expect[2].pattern: 2 groups",
        "expect[3].column: unknown column 'goodput_mbp': did you mean 'goodput_mbps'?",
        "expect[4]: give at_least, at_most or both",
        "expect[4].pattern: missing )",
        "expect[4].file: not in the script's folder",
    ):
        assert fault in caught.value.message


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("expect = 3", "expect: expected a valid array, got 3"),
        ("expect = [", "not TOML: "),
        ("expect = []", "nothing is expected"),
        ("expects = []", "expects: unknown field: did you mean 'expect'?"),
        (
            "[[expect]]\nwhat = 'a'\npattern = '(a)'\nat_most = inf",
            "inf is not a bound: leave it out",
        ),
        ("[[expect]]\nwhat = 'a'\npattern = '(a)'\nat_most = 2026-01-01", "expect[0].at_most: "),
        ("[[expect]]\nwhat = 'a'\npattern = '(a)'\nat_most = 1\ntake = 'median'", "'median'"),
        (
            "[[expect]]\nwhat = 'a'\npattern = '([[])'\nat_most = 1",
            "expect[0].pattern: Possible nested set at position 2: put a backslash before",
        ),
    ],
)
def test_a_file_that_is_not_of_expectations(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "lab.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_expectations(tmp_path / "lab.toml")
    assert fault in caught.value.message


def test_a_file_that_is_missing_has_an_option(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file") as caught:
        read_expectations(tmp_path / "lab.toml")
    assert "--expect FILE" in str(caught.value.hint)


def test_every_laboratory_has_expectations() -> None:
    laboratories = [script for script in COURSE.glob("*.py") if script.stem != "dumbbell"]
    assert len(laboratories) == 6
    for script in laboratories:
        assert len(read_expectations(script.with_suffix(".toml")).expect) >= 3


def test_what_cannot_be_read_whole_is_a_line(run: Path, tmp_path: Path) -> None:
    """A script may leave a gigabyte of zeros, which are one line, and pipes are not waited for."""
    large = run / MACHINE_FILES / "large.csv"
    large.touch()
    os.truncate(large, 1 << 30)
    number = measure(Expectation("x", at_most=1, file="large.csv", pattern="(1)"), run)
    assert number.missing == "large.csv: larger than 64 MiB"
    os.truncate(large, program_output.MAX_MEASURED_LINE + 1)
    for pattern, column in (("(1)", ""), ("", "x")):
        wanted = Expectation("x", at_most=1, file="large.csv", pattern=pattern, column=column)
        number = measure(wanted, run)
        assert number.missing == "large.csv: a line of more than 1,048,576 characters"
    os.mkfifo(tmp_path / "lab.toml")
    with pytest.raises(OSError, match="not a plain file"):
        read_expectations(tmp_path / "lab.toml")
    with pytest.raises(OSError, match="not a plain file"):
        read_network(tmp_path / "lab.toml")


@pytest.mark.parametrize("line", ["a" + ".a" * 20_000 + " = 1", "x = {a" + ".a" * 20_000 + " = 1}"])
def test_keys_of_thousands_of_parts_are_not_parsed(tmp_path: Path, line: str) -> None:
    """40 kB of them would take 1.5 GB, and half a minute."""
    (tmp_path / "lab.toml").write_text(line)
    with pytest.raises(UsageError, match="more than 200 dots in a line"):
        read_expectations(tmp_path / "lab.toml")


@pytest.mark.parametrize("pattern", [r"rtt .* = [\d.]+/([\d.]+)/", r"(?:(?:1|1)+)+(x)"])
def test_a_pattern_that_tries_for_ever_is_a_missing_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.setattr(expectations, "MAX_MATCHING_S", 0.3)
    (tmp_path / MACHINE_OUTPUT).write_text("rtt  = " * 100_000 + "1." * 100_000 + "1" * 100)
    (tmp_path / MACHINE_ERRORS).write_text("")
    found = measure(Expectation("rtt", 1.0, pattern=pattern), tmp_path)
    assert found.missing == "the pattern was still tried after 0.3 s"
    quick = Expectation("1s", 1.0, pattern="^(rtt)  = ", take=Take.COUNT)
    assert measure(quick, tmp_path).value == 1
