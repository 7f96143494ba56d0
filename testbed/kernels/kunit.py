"""Linux's KUnit tests of the network, which are built into a kernel and run when it boots."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

from testbed.errors import TestbedError, UsageError
from testbed.guest import kernels
from testbed.guest.boot import LEFT_BY_GUESTS, Boot, boot, guest_options, run_in_guest
from testbed.guest.debug_kernel import first_report
from testbed.guest.worker import reserve_core
from testbed.kernels.kernel_tests import KTAP_VERSION, KernelTest, SuiteEnd
from testbed.machine import atomic, safe_files
from testbed.machine.journal import core_locks
from testbed.store.names import GUEST_OUTPUT

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
    found = list(read_suites(name, _boot_log(folder)))
    if not found:
        raise TestbedError(f"kernel {name} ran no tests of KUnit", "are any built in?")
    return found


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
    said: list[str] = []
    for line in lines:
        if result := _TEST_RESULT.match(line):
            passed = not result[1] and not any(map(first_report, said))
            about = () if passed else tuple(said)
            tests.append(KernelTest(result["name"], passed, bool(result["skipped"]), about))
            said = []
        elif result := _SUITE_RESULT.match(line):
            yield SuiteEnd(kernel, f"{KUNIT} {result['name']}", tuple(tests))
            tests, said = [], []
        elif line.strip() != KTAP_VERSION:
            said.append(line.strip())
