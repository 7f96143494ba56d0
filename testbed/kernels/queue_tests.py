"""Linux's tests of its queue disciplines (tdc, of tools/testing/selftests/tc-testing) in guests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from testbed.errors import TestbedError, UsageError, nearest
from testbed.guest import kernels
from testbed.guest.machine import (
    MachineProgram,
    machine_kernel,
    root_environment,
    run_on_machine,
)
from testbed.kernels.kernel_tests import KernelTest, SuiteEnd
from testbed.machine import atomic, safe_files
from testbed.scenario.queues import DISCIPLINES
from testbed.store.names import GUEST_ERRORS, GUEST_OUTPUT

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
    """Run the tests of each queue discipline on each kernel, each in a guest of its own.

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
        words = ["python3", "tdc.py", "-f", f"{QUEUE_TESTS}/{queue}.json"]
        program = MachineProgram(words, tests, root_environment(Path.home(), {}, ()))
        run_on_machine(program, folder, place, lambda: False)
        output = safe_files.tail(place / GUEST_OUTPUT, safe_files.LONG_TAIL_BYTES)
        found = tuple(read_results(output))
        if not found:
            *_, why = safe_files.tail(place / GUEST_ERRORS).strip().split("\n")
            # a module that is missing is said where results should be
            said = output.strip().split("\n")
            why = why or said[0] or "they said nothing"
            raise TestbedError(
                f"the tests of {queue} did not run on kernel {kernel}: {why}",
                "install what they miss, or name another version's: --selftests VERSION",
            )
    return SuiteEnd(kernel, queue, found)


def read_results(text: str) -> Iterator[KernelTest]:
    """Yield the tests in tdc's output, whose results are TAP."""
    lines = text.split("All test results:")[-1].splitlines()
    starts = [number for number, line in enumerate(lines) if _RESULT.match(line)]
    for start, end in pairwise([*starts, len(lines)]):
        result = _RESULT.match(lines[start])
        if result is not None:
            said = tuple(filter(None, map(str.strip, lines[start + 1 : end])))
            name = f"{result['id']} - {result['title']}"
            yield KernelTest(name, not result[1], bool(result["skipped"]), said)
