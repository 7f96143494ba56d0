"""Results of tests, as the runner of a suite prints or writes them, and what differs in repeats.

What a guest printed and wrote is anybody's: lines are matched one by one, and files of JUnit are
read up to a limit and without entities.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from testbed.errors import TestbedError
from testbed.machine import safe_files

TEST_PASSED, TEST_FAILED, TEST_SKIPPED = TEST_OUTCOMES = ("passed", "failed", "skipped")
_WORDS = {
    TEST_PASSED: ("ok", "OK", "PASS", "PASSED", "XFAIL", "XPASS", "expected failure"),
    TEST_FAILED: ("not ok", "FAIL", "FAILED", "ERROR", "unexpected success"),
    TEST_SKIPPED: ("SKIP", "SKIPPED", "skipped", "ignored"),
}
_OUTCOME_OF = {word: outcome for outcome, its_words in _WORDS.items() for word in its_words}
_FORMS = (
    # go test -v: `    --- PASS: TestDial/udp (0.01s)`
    re.compile(r"\s*--- (?P<word>PASS|FAIL|SKIP): (?P<name>\S+) \("),
    # TAP and KTAP: `    not ok 3 - name # SKIP why`
    re.compile(
        r"\s*(?P<word>ok|not ok) \d+ (?:- )?(?P<name>[^#]*?)\s*(?:(?P<skip># (?:SKIP|skip))|#|$)"
    ),
    # Linux's scripts: `TEST: ping out    [ OK ]`
    re.compile(r"\s*TEST: (?P<name>.*?)\s+\[ ?(?P<word>OK|PASS|FAIL|SKIP|XFAIL|XPASS)\s*\]"),
    # cargo test: `test net::dial ... ok`
    re.compile(r"test (?P<name>\S.*?) \.\.\. (?P<word>ok|FAILED|ignored)\b"),
    # pytest -v: `tests/test_dial.py::test_udp[4] PASSED   [ 10%]`
    re.compile(r"(?P<name>\S+::\S.*?) (?P<word>PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS)\b"),
    # unittest -v: `test_udp (test_dial.Dial.test_udp) ... ok`
    re.compile(
        r"(?P<name>\w+ \([\w.]+\))(?:.*?) \.\.\. "
        r"(?P<word>ok|FAIL|ERROR|skipped|expected failure|unexpected success)\b"
    ),
)
MAX_TEST_LINE = 1000  # characters of a line that names a test: patterns take their time with more
MAX_JUNIT_BYTES, MAX_JUNIT_FILES = 1 << 24, 1000
TEST_FORMATS = "go test -v, cargo test, pytest -v, unittest -v, TAP, KTAP, and JUnit's files"


@dataclass(frozen=True)
class SuiteRun:
    """One repeat of a suite: its seed, its exit status, its times, and its tests' outcomes."""

    seed: int
    status: int
    virtual_s: float
    wall_s: float
    outcomes: Mapping[str, str]

    def count(self, outcome: str) -> int:
        """Return how many tests ended so."""
        return sum(each == outcome for each in self.outcomes.values())


def printed_outcomes(text: str) -> Iterator[tuple[str, str]]:
    """Yield the tests that an output names with their outcomes; the last of a name counts."""
    for line in text.splitlines():
        for form in _FORMS if len(line) <= MAX_TEST_LINE else ():
            if (match := form.match(line)) and match["name"]:
                skipped = match.groupdict().get("skip")
                yield match["name"], TEST_SKIPPED if skipped else _OUTCOME_OF[match["word"]]
                break


def junit_outcomes(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the test cases of a file, if it is one of JUnit's."""
    cases: list[list[str]] = []

    def start(tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "testcase":
            name = (attributes.get("classname", ""), attributes.get("name", ""))
            cases.append([".".join(filter(None, name)), TEST_PASSED])
        elif cases and tag in ("failure", "error", "skipped"):
            cases[-1][1] = TEST_SKIPPED if tag == "skipped" else TEST_FAILED

    def refuse(*_declaration: object) -> None:
        raise ValueError("a file of test results declares no entities")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EntityDeclHandler = start, refuse
    try:
        parser.Parse(safe_files.read_bytes(path, MAX_JUNIT_BYTES), True)
    except (expat.ExpatError, ValueError, TestbedError):
        return
    yield from ((name, outcome) for name, outcome in cases)


def unlike(runs: Sequence[SuiteRun]) -> Iterator[str]:
    """Yield a line for each test that failed, or that had other outcomes with other seeds."""
    names = dict.fromkeys(name for run in runs for name in run.outcomes)
    for name in names:
        seeds: dict[str, list[str]] = {}
        for run in runs:
            seeds.setdefault(run.outcomes.get(name, "not run"), []).append(str(run.seed))
        if len(seeds) > 1:
            by = (f"{outcome} with seed {', '.join(some)}" for outcome, some in seeds.items())
            yield f"differs: {name}: {'; '.join(by)}"
        elif TEST_FAILED in seeds:
            yield f"fails with every seed: {name}"
