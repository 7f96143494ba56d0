"""Guests whose kernel looks for its own errors: what it reports, and which of its lines ran."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from testbed.engine import Cancelled
from testbed.errors import TestbedError, printable
from testbed.machine import safe_files
from testbed.store.names import COVERAGE_FOLDER, GUEST_CONSOLE, GUEST_SCRIPT, KERNEL_LOG

KERNEL_CHECKS = frozenset(
    {"CONFIG_KASAN", "CONFIG_PROVE_LOCKING", "CONFIG_DEBUG_KMEMLEAK", "CONFIG_GCOV_KERNEL"}
)
# What a kernel says of its own errors: KASAN's and others' begin with BUG, those of lockdep and RCU
# with WARNING, or with INFO.
_REPORT = re.compile(
    r"^(\[[ .\d]+\] )?"
    r"(?P<line>(BUG|WARNING|INFO|Oops): .*|Kernel panic.*|unreferenced object .*)$",
    re.MULTILINE,
)
_WITH_LOG = Path(__file__).with_name("with_log.sh")


def looks_for_errors(config: Collection[str]) -> bool:
    """Return whether a kernel has one of the checks, by the symbols that are on."""
    return not KERNEL_CHECKS.isdisjoint(config)


def with_log(folder: Path, argv: Sequence[str]) -> list[str]:
    """Return a command that runs another, and brings the kernel's log and counts after it."""
    (folder / GUEST_SCRIPT).write_bytes(_WITH_LOG.read_bytes())
    return ["/bin/sh", GUEST_SCRIPT, KERNEL_LOG, COVERAGE_FOLDER, *argv]


@contextlib.contextmanager
def reports_raised(folder: Path) -> Iterator[None]:
    """Keep the log of a guest's kernel, and raise its first report, however the guest ends.

    A kernel that did not live to write its log has said on the console why.
    """
    try:
        yield
    except Cancelled:
        raise
    except TestbedError:
        _raise_report(folder)
        raise
    else:
        _raise_report(folder)
    finally:
        (folder / GUEST_CONSOLE).unlink(missing_ok=True)


def _raise_report(folder: Path) -> None:
    log, console = folder / KERNEL_LOG, folder / GUEST_CONSOLE
    if not log.exists() and console.exists():
        console.rename(log)
    report = first_report(safe_files.tail(log, safe_files.LONG_TAIL_BYTES))
    if report:
        raise TestbedError(f"the kernel reported: {report}", f"{KERNEL_LOG} in the trial's folder")


def first_report(log: str) -> str:
    """Return the first line in which a kernel reports an error of its own, or nothing."""
    report = _REPORT.search(log)
    return printable(report["line"]).strip() if report else ""
