"""Linux's own tests of the network, each in a separate guest: how they run, and how they end."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from testbed.engine import Cancelled
from testbed.errors import TestbedError, UsageError, printable
from testbed.guest.debug_kernel import first_report
from testbed.guest.machine import (
    PROGRAMS_PATH,
    MachineEnd,
    MachineProgram,
    root_environment,
    run_on_machine,
)
from testbed.kernels.selftest_builds import (
    FLAVOUR_FOLDER,
    Selftest,
    data_lines,
)
from testbed.kernels.side_by_side import side_by_side
from testbed.machine import atomic, safe_files
from testbed.runs.suite_results import TEST_FAILED, printed_outcomes
from testbed.store.names import (
    CAPTURES_FOLDER,
    GUEST_ERRORS,
    GUEST_OUTPUT,
    KERNEL_LOG,
    MACHINE_FILES,
)

TEST_MEMORY_MB = 1024
SKIPPED_STATUS, EXPECTED_STATUS = 4, 2  # of kselftest
TEST_OUTPUT = "output.txt"
MAX_LAST_LINES = 12
# As Linux's own runner starts them: one that is ended has printed its last line, in its place.
RUN_TEST = f"""
folder=$PWD
mount -t configfs none /sys/kernel/config 2>/dev/null # as systemd does: netconsole's tests
cd "$1"
[ -x "$2" ] || by=$(sed -n '1s/^#! *//p' "$2") # a script that nobody may execute
stdbuf -oL $by "./$2" 2>&1
status=$?
dmesg --notime >"$folder/{KERNEL_LOG}"
exit $status
"""
# A namespace that `ip` makes is captured from then on, with all devices that it ever has.
CAPTURING = f"""
ip=$(command -v ip) captures=$PWD/{CAPTURES_FOLDER}
mkdir "$captures"
cat >{PROGRAMS_PATH}/ip <<WRAPPER
#!/bin/bash
$ip "\\$@" || exit
[[ \\$* != "netns add "* ]] ||
    $ip netns exec "\\$3" tcpdump -i any -U -Z root -w "$captures/\\$3.pcap" \\
        >/dev/null 2>&1 </dev/null &
exit 0
WRAPPER
chmod 755 {PROGRAMS_PATH}/ip
tcpdump -i any -U -Z root -w "$captures/host.pcap" >/dev/null 2>&1 </dev/null &
"""


class SelftestStatus(StrEnum):
    """How a test ended."""

    PASSED = "pass"
    FAILED = "fail"
    SKIPPED = "skip"
    EXPECTED = "xfail"  # it failed, and says that this is expected
    AT_LIMIT = "limit"  # of virtual time
    HUNG = "hang"  # no end within the limit of wall time
    CRASHED = "crash"  # of the guest's kernel

    @property
    def reported(self) -> str:
        """The word for it among the three that others know."""
        if self is SelftestStatus.EXPECTED:  # as Linux's own runner has it
            return SelftestStatus.PASSED
        ended = self in (SelftestStatus.PASSED, SelftestStatus.SKIPPED)
        return self if ended else SelftestStatus.FAILED


@dataclass(frozen=True)
class SelftestLimits:
    """How long a test may take."""

    virtual_s: int
    wall_s: float


@dataclass(frozen=True)
class SelftestEnd:
    """The end of a test."""

    test: Selftest
    kernel: str
    seed: int
    status: SelftestStatus
    reason: str = ""  # of all but a pass
    virtual_s: float = 0.0
    wall_s: float = 0.0
    outcomes: Sequence[tuple[str, str]] = ()  # of the subtests that it names, in their order
    said: Sequence[str] = ()  # its last lines, unless it passed
    report: str = ""  # an error that the kernel reported meanwhile
    charged_s: float = 0.0
    results: Path | None = None

    def count(self, outcome: str) -> int:
        """Return how many of its subtests ended so."""
        return Counter(each for _name, each in self.outcomes)[outcome]


def missing_symbols(config: Path) -> Mapping[str, str]:
    """Return why a kernel lacks what a test needs, by the names of the tests that need it."""
    symbols = set(safe_files.read_text(config).splitlines())
    reasons = dict(line.split(" ", 1) for line in data_lines(FLAVOUR_FOLDER / "cannot"))
    needs = (line.split() for line in data_lines(FLAVOUR_FOLDER / "needs"))
    return {
        test: f"it needs CONFIG_{symbol}: {reasons[symbol]}"
        for test, symbol in needs
        if f"CONFIG_{symbol}=y" not in symbols
    }


@dataclass(frozen=True)
class SelftestRuns:
    """Tests on one kernel, and where their results go."""

    userland: Path
    kernel: str
    kernel_folder: Path
    limits: SelftestLimits
    out: Path
    captured: bool = False  # a test that fails runs again, with its packets captured
    lacks: Mapping[str, str] = field(default_factory=dict)

    def run(self, tests: Sequence[tuple[Selftest, int]], jobs: int | None) -> Iterator[SelftestEnd]:
        """Run tests side by side, each with a seed, and yield how they ended, in this order."""
        return side_by_side(tests, self._run_one, jobs)

    def _run_one(self, item: tuple[Selftest, int], stopped: threading.Event) -> SelftestEnd:
        test, seed = item
        if lack := self.lacks.get(test.full_name):
            return SelftestEnd(test, self.kernel, seed, SelftestStatus.SKIPPED, lack)
        name = re.sub(r"[^\w.-]", "-", test.full_name) + (f"-{seed}" if seed > 1 else "")
        folder = self.out / name
        safe_files.make_folder(self.out)
        began, why = time.monotonic(), ""
        with atomic.workplace("selftest") as place, atomic.whole_folder(folder, private=True) as to:
            try:
                end = self._on_machine(test, seed, RUN_TEST, place, stopped)
            except (Cancelled, UsageError):
                raise
            except TestbedError as error:  # of this guest: others run
                end = None
                why = error.message
            wall_s = time.monotonic() - began
            text = _output(place)
            (to / TEST_OUTPUT).write_text(text)
            log = safe_files.tail(place / MACHINE_FILES / KERNEL_LOG, safe_files.LONG_TAIL_BYTES)
            (to / KERNEL_LOG).write_text(log)
        status, reason = status_of(end, text, why)
        if self.captured and status is SelftestStatus.FAILED:
            self._capture(test, seed, folder, stopped)
        return SelftestEnd(
            test,
            self.kernel,
            seed,
            status,
            reason,
            end.took_s if end else 0.0,
            wall_s,
            tuple(printed_outcomes(text)),
            () if status is SelftestStatus.PASSED else tuple(text.splitlines()[-MAX_LAST_LINES:]),
            first_report(log),
            end.charged_s if end else 0.0,
            folder,
        )

    def _capture(self, test: Selftest, seed: int, folder: Path, stopped: threading.Event) -> None:
        with atomic.workplace("selftest") as place:
            self._on_machine(test, seed, f"{CAPTURING}{RUN_TEST}", place, stopped)
            if (captures := place / MACHINE_FILES / CAPTURES_FOLDER).is_dir():
                with atomic.whole_folder(folder / CAPTURES_FOLDER, private=True) as new:
                    shutil.copytree(captures, new, dirs_exist_ok=True)

    def _on_machine(
        self, test: Selftest, seed: int, script: str, place: Path, stopped: threading.Event
    ) -> MachineEnd:
        environment = root_environment(Path("/root"), {}, ())
        program = MachineProgram(
            ["/bin/bash", "-c", script, "sh", test.suite, test.name],
            test.built,
            environment,
            seed=seed,
            memory_mb=TEST_MEMORY_MB,
            limit_s=self.limits.virtual_s,
            patience_s=self.limits.wall_s,
            root=self.userland,
            observed=False,
        )
        return run_on_machine(program, self.kernel_folder, place, stopped.is_set)


def _output(place: Path) -> str:
    """Return what a test printed, with its errors behind."""
    names = (GUEST_OUTPUT, GUEST_ERRORS)
    texts = (safe_files.tail(place / name, safe_files.LONG_TAIL_BYTES) for name in names)
    lines = (printable(line.expandtabs()).rstrip() for text in texts for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines)


_SKIP = re.compile(r"SKIP\b[\]:]*\s*(?P<why>.*)")
_FAILED_LINE = re.compile(r"not ok \d|\bFAIL|\b[Ee]rror\b|\bfailed\b")


def status_of(end: MachineEnd | None, text: str, why: str) -> tuple[SelftestStatus, str]:
    """Return a test's status and its reason, from its exit status and its output."""
    lines = [line for line in text.splitlines() if line.strip()]
    if end is None:
        hung = "had not ended" in why
        return (SelftestStatus.HUNG if hung else SelftestStatus.CRASHED), printable(why)
    if end.at_limit or end.too_many_processes:
        what = "the limit of virtual time" if end.at_limit else "too many processes"
        return SelftestStatus.AT_LIMIT, f"{what}, after: {lines[-1] if lines else 'no output'}"
    if end.status == 0:
        return SelftestStatus.PASSED, ""
    if end.status == SKIPPED_STATUS:
        reasons = [match["why"] for line in lines if (match := _SKIP.search(line)) and match["why"]]
        return SelftestStatus.SKIPPED, (reasons or lines[-1:] or ["it says not why"])[0]
    if end.status == EXPECTED_STATUS:
        reasons = [line.strip() for line in lines if "XFAIL" in line]
        return SelftestStatus.EXPECTED, (reasons or lines[-1:] or ["it says not why"])[0]
    names = [name for name, outcome in printed_outcomes(text) if outcome == TEST_FAILED]
    telling = [line.strip() for line in lines if _FAILED_LINE.search(line)]
    reason = (names or telling or lines[-1:] or ["no output"])[0]
    return SelftestStatus.FAILED, f"{reason} (exit status {end.status})"
