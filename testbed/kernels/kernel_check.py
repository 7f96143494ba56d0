"""What a change of a kernel breaks: Linux's own tests on the changed tree, and on what was before.

All of them run on the changed kernel, and those that fail there on the other one, too.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import UsageError
from testbed.guest import kernels
from testbed.guest.machine import machine_kernel
from testbed.kernels.kernel_tests import KUNIT, TC_TESTING, SuiteEnd, run_kunit, run_queue_tests
from testbed.kernels.packetdrill import (
    PACKETDRILL,
    PACKETDRILL_TESTS,
    PacketdrillTool,
    run_scripts,
    script_runs,
)
from testbed.kernels.selftest_builds import (
    FLAVOUR_FOLDER,
    Selftest,
    built_tests,
    chosen_tests,
    data_lines,
    source_of_tree,
)
from testbed.kernels.selftest_runs import (
    SelftestEnd,
    SelftestLimits,
    SelftestRuns,
    SelftestStatus,
    missing_symbols,
)
from testbed.kernels.selftests import SELFTESTS
from testbed.machine.process import run
from testbed.runs.suite_results import TEST_FAILED

QUEUE_FOLDER = "net/sched/"
NOT_THE_KERNEL = ("Documentation/", "tools/", "MAINTAINERS")
# What is wrong with each test, or nothing, on a kernel: of all tests, or of those that are named.
Tests = Callable[[str, Collection[str]], Mapping[str, str]]


@dataclass(frozen=True)
class CheckedTests:
    """Tests of a kind on the changed kernel, beside the other one."""

    kind: str
    count: int
    new: Mapping[str, str]  # that fail, and did not before, or otherwise: why
    old: Sequence[str]  # that failed before in the same way


def changed_files(tree: Path, commit: str) -> list[str]:
    """Return the files of the kernel that a tree has changed since a commit."""
    names = run(["git", "-C", str(tree), "diff", "--name-only", commit]).stdout.splitlines()
    changed = [name for name in names if not name.startswith(NOT_THE_KERNEL)]
    if not changed:
        raise UsageError(f"{tree}: no file of the kernel differs from {commit[:12]}", "git diff")
    return changed


def reached(files: Sequence[str], tests: Sequence[Selftest]) -> list[Selftest]:
    """Return the tests that a change of files can reach, as kernel/selftests/reach has it."""
    rows = [line.split() for line in data_lines(FLAVOUR_FOLDER / "reach")]
    patterns = {pattern for name in files for pattern in _patterns(name, rows)}
    return [
        test
        for test in tests
        if test.suite in patterns
        or any(fnmatch.fnmatch(test.full_name, pattern) for pattern in patterns)
    ]


def _patterns(name: str, rows: Sequence[Sequence[str]]) -> Sequence[str]:
    return next((patterns for begin, *patterns in rows if name.startswith(begin)), ["*"])


def checked(kind: str, tests: Tests, before: str, after: str) -> CheckedTests:
    """Run the tests of a kind on the kernel `after`, and on `before` those that fail."""
    ends = tests(after, ())
    failed = {name: why for name, why in ends.items() if why}
    ends_before = tests(before, failed) if failed else {}
    new = {name: why for name, why in failed.items() if ends_before.get(name) != why}
    return CheckedTests(kind, len(ends), new, [name for name in failed if name not in new])


@dataclass(frozen=True)
class TreeTests:
    """The tests that a tree brings, and how they run."""

    tree: Path
    files: Sequence[str]  # that were changed
    asked: Sequence[str]  # names of selftests, or nothing: all that the files can reach
    limits: SelftestLimits
    out: Path
    jobs: int | None
    say: kernels.Progress

    def kunit(self, kernel: str, _names: Collection[str]) -> Mapping[str, str]:
        """Run KUnit's suites, which a kernel has built in."""
        return dict(_failures(run_kunit(kernel, self.say)))

    def queues(self, kernel: str, _names: Collection[str]) -> Mapping[str, str]:
        """Run tdc's tests of the queues whose files were changed."""
        tests = self.tree / SELFTESTS / TC_TESTING
        return dict(_failures(run_queue_tests([kernel], self.changed_queues(), tests, self.say)))

    def changed_queues(self) -> list[str]:
        """Return the queue disciplines whose files were changed and that have tests."""
        folder = self.tree / SELFTESTS / TC_TESTING / "tc-tests" / "qdiscs"
        begin = f"{QUEUE_FOLDER}sch_"
        names = [Path(name).stem[4:] for name in self.files if name.startswith(begin)]
        return [name for name in names if (folder / f"{name}.json").exists()]

    def packetdrill(
        self, tool: PacketdrillTool, kernel: str, names: Collection[str]
    ) -> Mapping[str, str]:
        """Run packetdrill's scripts."""
        runs = script_runs([self.tree / SELFTESTS / PACKETDRILL_TESTS], [kernel])
        some = [each for each in runs if not names or _script_name(each.name) in names]
        ends = run_scripts(some, tool, self.out / PACKETDRILL / kernel, self.say, self.jobs)
        return {_script_name(end.run.name): "" if end.passed else end.reason for end in ends}

    def selftests(self, kernel: str, names: Collection[str]) -> Mapping[str, str]:
        """Run the tests of the network that the changed files can reach."""
        folder, userland = machine_kernel(kernel, self.say), kernels.userland(self.say)
        tests = built_tests(source_of_tree(self.tree), userland, folder, self.say)
        some = chosen_tests(reached(self.files, tests), self.asked)
        wanted = [test for test in some if not names or test.full_name in names]
        runs = SelftestRuns(
            userland,
            kernel,
            folder,
            self.limits,
            self.out / kernel,
            lacks=missing_symbols(folder / "config"),
        )
        failures = {}
        for end in runs.run([(test, 1) for test in wanted], self.jobs):
            self.say(f"{kernel} {end.test.full_name}: {end.status}, {end.wall_s:.0f} s")
            failures[end.test.full_name] = _why_failed(end)
        return failures


def _why_failed(end: SelftestEnd) -> str:
    """Return which subtests failed: others than before are another failure."""
    if end.status.reported != SelftestStatus.FAILED:
        return ""
    names = [name for name, outcome in end.outcomes if outcome == TEST_FAILED]
    return "; ".join(names) or end.reason


def _script_name(name: str) -> str:
    """Return the name of a script's run without its kernel's."""
    return name.partition(" ")[2]


def _failures(ends: Iterator[SuiteEnd] | Sequence[SuiteEnd]) -> Iterator[tuple[str, str]]:
    for end in ends:
        for test in end.tests:
            why = "" if test.passed else (test.said or ("it failed",))[-1]
            yield f"{end.suite.removeprefix(KUNIT).strip()} {test.name}", why
