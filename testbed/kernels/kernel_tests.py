"""Linux's own tests in guests, and their results in KTAP, the kernel's test protocol.

KUnit's tests are built into a kernel and run when it boots; those of queue disciplines are tdc's,
of tools/testing/selftests/tc-testing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from testbed.errors import TestbedError, UsageError, nearest
from testbed.guest import kernels
from testbed.guest.boot import LEFT_BY_GUESTS, Boot, boot, guest_options, run_in_guest
from testbed.guest.debug_kernel import first_report
from testbed.guest.machine import (
    MachineProgram,
    machine_kernel,
    root_environment,
    run_on_machine,
)
from testbed.guest.worker import reserve_core
from testbed.machine import atomic, safe_files
from testbed.machine.journal import core_locks
from testbed.scenario.queues import DISCIPLINES
from testbed.store.names import GUEST_ERRORS, GUEST_OUTPUT

KTAP_VERSION = "KTAP version 1"  # the line that begins a list of tests
_NESTED = "    "


@dataclass(frozen=True)
class KernelTest:
    """The result of a test."""

    name: str
    passed: bool
    skipped: bool
    said: tuple[str, ...]  # about a failure


@dataclass(frozen=True)
class SuiteEnd:
    """The results of a suite of tests on a kernel."""

    kernel: str
    suite: str
    tests: tuple[KernelTest, ...]

    @property
    def passed(self) -> bool:
        """Whether none failed."""
        return all(test.passed for test in self.tests)


def ktap_plan(count: int) -> Iterator[str]:
    """Yield the lines before the results of `count` tests or suites."""
    yield KTAP_VERSION
    yield f"1..{count}"


def ktap_result(
    number: int, name: str, passed: bool, diagnosis: Iterable[str] = (), *, skipped: bool = False
) -> Iterator[str]:
    """Yield the lines of a test's or a suite's result, after what was said about it."""
    yield from (f"# {line}" for line in diagnosis)
    yield f"{'ok' if passed else 'not ok'} {number} {name}{' # SKIP' if skipped else ''}"


def ktap_suite(number: int, end: SuiteEnd) -> Iterator[str]:
    """Yield the lines of a suite: its tests, and its own result."""
    yield from (f"{_NESTED}{line}" for line in ktap_plan(len(end.tests)))
    for position, test in enumerate(end.tests, 1):
        lines = ktap_result(position, test.name, test.passed, test.said, skipped=test.skipped)
        yield from (f"{_NESTED}{line}" for line in lines)
    yield from ktap_result(number, f"{end.kernel} {end.suite}", end.passed)


KUNIT = "kunit"  # the word for all its suites
BUILT_IN = "CONFIG_KUNIT=y"  # a line of the configuration of kernels that have it
ENABLED = ("kunit.enable=1", "kunit.autorun=1")  # on the kernel's command line; 7.3 needs both
KUNIT_MEMORY_MB = 1024
KUNIT_PATIENCE_S = 600.0  # of wall time
_SUITE_RESULT = re.compile(r"(not )?ok \d+ (?:- )?(?P<name>[^#\n]+?)(?P<skipped> # SKIP.*)?$")
_TEST_RESULT = re.compile(r" {4}(not )?ok \d+ (?:- )?(?P<name>[^#\n]+?)(?P<skipped> # SKIP.*)?$")


def run_kunit(name: str, progress: kernels.Progress) -> list[SuiteEnd]:
    """Run all suites of a kernel: of Debian's, in the image that looks for the kernel's errors."""
    kernel = kernels.debug_name(name) if name in kernels.versions() else name
    kernels.build_missing([kernel], progress)
    folder = kernels.built_folder(kernel)
    if problem := kernels.why_unusable(kernel, folder):
        raise TestbedError(problem)
    assert folder is not None
    if BUILT_IN not in (folder / "config").read_text().splitlines():
        raise UsageError(
            f"kernel {name} has no KUnit", f"build it with --config {kernels.DEBUG_CONFIG}"
        )
    suites = list(read_suites(name, _boot_log(folder)))
    if not suites:
        raise TestbedError(f"kernel {name} ran no tests of KUnit", "are any built in?")
    return suites


def _boot_log(folder: Path) -> str:
    """Return what a kernel says from its boot on."""
    options = [*guest_options(1, KUNIT_MEMORY_MB), *ENABLED]
    with atomic.workplace(KUNIT) as place, reserve_core(core_locks()) as core:
        cancelled = threading.Event().is_set
        guest = Boot(folder, core, options, KUNIT_PATIENCE_S, cancelled, runs_programs=True)
        argv = ["/bin/dmesg", "--notime"]
        run_in_guest(place, argv, lambda: boot(guest, place, LEFT_BY_GUESTS), (GUEST_OUTPUT,))
        return safe_files.tail(place / GUEST_OUTPUT, safe_files.LONG_TAIL_BYTES)


def read_suites(kernel: str, log: str) -> Iterator[SuiteEnd]:
    """Yield the suites in a kernel's log; a test during which it reported an error has failed."""
    lines = log.partition(f"{KTAP_VERSION}\n")[2].splitlines()
    tests: list[KernelTest] = []
    notes: list[str] = []
    for line in lines:
        if result := _TEST_RESULT.match(line):
            passed = not result[1] and not any(map(first_report, notes))
            diagnosis = () if passed else tuple(notes)
            tests.append(KernelTest(result["name"], passed, bool(result["skipped"]), diagnosis))
            notes = []
        elif result := _SUITE_RESULT.match(line):
            yield SuiteEnd(kernel, f"{KUNIT} {result['name']}", tuple(tests))
            tests, notes = [], []
        elif line.strip() != KTAP_VERSION:
            notes.append(line.strip())


TC_TESTING = "tc-testing"
QUEUE_TESTS = "tc-tests/qdiscs"
_RESULT = re.compile(
    r"(not )?ok \d+ (?P<id>\w+) - (?P<title>[^\t]*?)(?P<skipped> # skipped.*)?(\t.*)?$"
)


def queues_with_tests(tests: Path, names: Sequence[str]) -> list[str]:
    """Return the named queue disciplines, or those of scenarios; raise if one has no tests."""
    known = sorted(path.stem for path in (tests / QUEUE_TESTS).glob("*.json"))
    for name in names:
        if name not in known:
            raise UsageError(f"kernel test {name}: no such tests", nearest(name, known))
    return list(names) or [name for name in known if name in DISCIPLINES]


def run_queue_tests(
    on_kernels: Sequence[str], queues: Sequence[str], tests: Path, progress: kernels.Progress
) -> Iterator[SuiteEnd]:
    """Run the tests of each queue discipline on each kernel, each in a separate guest.

    Kernels are there, or built, before the first result is asked for.
    """
    folders = {name: machine_kernel(name, progress) for name in on_kernels}
    return (
        _test_queue(kernel, folder, queue, tests)
        for kernel, folder in folders.items()
        for queue in queues
    )


def _test_queue(kernel: str, folder: Path, queue: str, tests: Path) -> SuiteEnd:
    with atomic.workplace(TC_TESTING) as place:
        argv = ["python3", "tdc.py", "-f", f"{QUEUE_TESTS}/{queue}.json"]
        program = MachineProgram(argv, tests, root_environment(Path.home(), {}, ()))
        run_on_machine(program, folder, place, lambda: False)
        output = safe_files.tail(place / GUEST_OUTPUT, safe_files.LONG_TAIL_BYTES)
        results = tuple(read_results(output))
        if not results:
            *_, why = safe_files.tail(place / GUEST_ERRORS).strip().split("\n")
            # a module that is missing is said where results should be
            lines = output.strip().split("\n")
            why = why or lines[0] or "they said nothing"
            raise TestbedError(
                f"the tests of {queue} did not run on kernel {kernel}: {why}",
                "install what they miss, or name another version's: --selftests VERSION",
            )
    return SuiteEnd(kernel, queue, results)


def read_results(text: str) -> Iterator[KernelTest]:
    """Yield the tests in tdc's output, whose results are TAP."""
    lines = text.split("All test results:")[-1].splitlines()
    starts = [number for number, line in enumerate(lines) if _RESULT.match(line)]
    for start, end in pairwise([*starts, len(lines)]):
        result = _RESULT.match(lines[start])
        if result is not None:
            notes = tuple(filter(None, map(str.strip, lines[start + 1 : end])))
            name = f"{result['id']} - {result['title']}"
            yield KernelTest(name, not result[1], bool(result["skipped"]), notes)
