"""Booting a guest for one command: what trials and whole programs share."""

from __future__ import annotations

import errno
import functools
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.engine import Cancelled, ProcessOutcome
from testbed.errors import TestbedError, UsageError
from testbed.guest.worker import (
    FULL_DISK_BYTES,
    GUEST_PATH,
    HIDDEN,
    guest_command,
    wait_for_guest,
)
from testbed.machine import safe_files
from testbed.machine.atomic import workplace
from testbed.machine.compiled import LIBRARIES, require_built
from testbed.machine.journal import JOURNAL
from testbed.machine.process import Process, end, run, start
from testbed.machine.trees import GuestFolder, Rule, Taken
from testbed.runner.programme import BOOT_NS
from testbed.store.names import (
    GUEST_COMMAND,
    GUEST_CONSOLE,
    GUEST_ERRORS,
    GUEST_FILES,
    GUEST_MEMORY,
    GUEST_OUTPUT,
    GUEST_PATHS,
    GUEST_STATUS,
)

NO_PTRACE = "in a container: --cap-add SYS_PTRACE, or --security-opt seccomp=unconfined"
UNCONFINED = "--unconfined"  # the option of verbs that run programs
CONFINE_PAUSES_S = (0.0, 0.1, 0.5)  # before each try to confine a guest
PASSING_ERRORS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR)
NAMESPACE_LIMITS = Path("/proc/sys/user")
_does_without = threading.Event()
PROJECT_FOLDER = Path(__file__).resolve().parents[2]
CONFINE = LIBRARIES / "testbed-confine"  # built from confine.c, which says what a guest may do
REFUSED_CALL = re.compile(
    r"^testbed-confine: refused (system call \d{1,4}(?: \w{1,30})?)$", re.MULTILINE
)
VIRTUAL_TIME = ("time-travel=inf-cpu", f"time-travel-start={BOOT_NS}")
MAX_GUEST_OUTPUT_BYTES = 1 << 36  # of a program, or of a capture
LEFT_BY_GUESTS = (  # what every guest may leave
    Rule(GUEST_STATUS, 16),
    Rule(GUEST_OUTPUT, MAX_GUEST_OUTPUT_BYTES),
    Rule(GUEST_ERRORS, MAX_GUEST_OUTPUT_BYTES),
)


@dataclass(frozen=True)
class GuestEnd:
    """The end of a guest, before its folder is looked at."""

    status: int
    peak_mb: float
    taken: Taken  # of what it left
    warnings: tuple[str, ...] = ()
    waited_s: float = 0.0  # for a worker, and for files to go there and back


@dataclass(frozen=True)
class Boot:
    """A guest that is to be booted on this machine."""

    kernel: Path  # its folder
    core: int  # the processor to which it is pinned
    options: Sequence[str]  # of the kernel
    patience_s: float  # wall time after which it counts as hung
    cancelled: Callable[[], bool]
    shown: Sequence[Path] = ()  # besides the project's folders: those that it has to see
    launcher: Sequence[str] = ()  # begins a command that runs the kernel
    runs_programs: bool = False  # others than the testbed's own: it must be confined
    # what is done with the process that has been started, whose child the guest is
    started: Callable[[Process], None] = lambda _process: None
    at_terminal: bool = False  # its console is our terminal


def boot(guest: Boot, folder: Path, rules: Sequence[Rule]) -> GuestEnd:
    """Run a guest until it ends; it gets what is in the folder, and its command with it.

    What it leaves is in the folder afterwards, as far as the rules allow it.
    """
    (folder / GUEST_PATHS).write_text("".join(f"{path}\n" for path in _hidden_paths(guest.shown)))
    (folder / GUEST_MEMORY).mkdir()
    why_not = why_not_confined()
    if guest.runs_programs:
        require_confined()
    confine = () if why_not else (str(CONFINE), GUEST_MEMORY)
    fixed = keeps_addresses_fixed()
    with GuestFolder(folder) as place:
        process = start(
            guest_command(guest.kernel, guest.core, guest.options, confine, fixed, guest.launcher),
            stderr=folder / GUEST_CONSOLE,
            env={"PATH": GUEST_PATH, "TMPDIR": GUEST_MEMORY, **JOURNAL.marker},
            cwd=place.start_path,
            at_terminal=guest.at_terminal,
        )
        try:
            guest.started(process)
            peak_mb = _wait(process, guest)
        except BaseException:
            end(process)
            raise
        finally:
            taken = place.take(rules)
    warnings = (*guest_warnings(why_not, fixed), *refused_calls(folder))
    return GuestEnd(process.returncode, peak_mb, taken, warnings)


def run_in_guest(
    folder: Path,
    argv: Sequence[str],
    boot: Callable[[], GuestEnd],
    kept: Container[str],
    *,
    strict: bool = True,
) -> ProcessOutcome:
    """Run one command in a guest that finds in its working directory what is in the folder.

    Of the guest's own files, those that are to be kept stay. If it leaves anything but plain files,
    that is an error if `strict`, and otherwise a warning.
    """
    (folder / GUEST_COMMAND).write_text("".join(f"{word}\n" for word in argv))
    ended = boot()
    status, errors = _status(folder), _last_error_line(folder)
    for file in folder.glob(GUEST_FILES):
        if file.name not in kept:
            file.unlink()
    if ended.taken.refused and strict:
        raise TestbedError(
            str(ended.taken), "is there a program in the trial that you do not trust?"
        )
    if status is None:
        if shutil.disk_usage(folder).free < FULL_DISK_BYTES:
            raise TestbedError(
                f"{folder.resolve().parent}: the disk is full",
                "make room, or name another folder: --out, or TMPDIR for temporary ones",
            )
        if errors.startswith("check_ptrace"):
            raise TestbedError(
                "the guest cannot start: no process may trace another here", NO_PTRACE
            )
        why = errors or f"it ended with status {ended.status} and no message"
        raise TestbedError(f"the guest died: {why}", "`testbed check` boots a test guest")
    warnings = (*ended.warnings, *filter(None, [str(ended.taken)]))
    return ProcessOutcome(status, ended.peak_mb, errors, warnings, ended.waited_s, ended.taken)


@functools.cache
def why_not_confined() -> str:
    """Return why this host does not let us confine a guest, or nothing if it does.

    The guest's kernel is an ordinary program: what is read-only in its mount table is read-only
    only as long as that kernel is intact. A reason that may pass is an error, and not remembered.
    """
    require_built(CONFINE)
    for pause_s in CONFINE_PAUSES_S:
        time.sleep(pause_s)
        with workplace("confine") as folder:
            (folder / GUEST_MEMORY).mkdir()
            done = run([str(CONFINE), GUEST_MEMORY, "true"], check=False, cwd=folder)
        why_not = done.stderr.strip().removeprefix("testbed-confine: ") if done.status else ""
        if not _may_pass(why_not):
            return why_not
    raise TestbedError(
        f"the guest cannot be confined at the moment: {why_not}",
        "too many processes, namespaces or files are in use here: end some, and run it again",
    )


def _may_pass(why_not: str) -> bool:
    """Return whether this keeps a guest from being confined at the moment only."""
    if why_not.endswith(os.strerror(errno.ENOSPC)):  # too many namespaces
        return not any(
            path.read_text() == "0\n" for path in NAMESPACE_LIMITS.glob("max_*_namespaces")
        )
    return why_not.endswith(tuple(map(os.strerror, PASSING_ERRORS)))


def require_confined() -> None:
    """Raise unless guests are confined, or the user does without it."""
    if not does_without_confinement() and (why_not := why_not_confined()):
        raise UsageError(
            f"programs could change files of the host: their guest cannot be confined: {why_not}",
            f"{UNCONFINED} runs them all the same; `testbed check` says when it is not needed",
        )


def does_without_confinement() -> bool:
    """Return whether programs may run in guests that cannot be confined."""
    return _does_without.is_set()


def do_without_confinement() -> None:
    """Let this process run programs in guests that cannot be confined: the user asked for it."""
    _does_without.set()


@functools.cache
def keeps_addresses_fixed() -> bool:
    """Return whether address randomisation can be switched off; containers' seccomp forbids it."""
    return not run(["setarch", "-R", "true"], check=False).status


def guest_warnings(why_not: str, fixed: bool) -> tuple[str, ...]:
    """Return what a machine's limits mean for its guests."""
    unconfined = (f"the guest was not confined: {why_not}",) if why_not else ()
    # at a random distance from the program, its heap takes room that the guest's memory then lacks
    random = "the guest had up to 32 MB less memory, by chance: setarch -R is refused (seccomp)"
    return unconfined if fixed else (*unconfined, random)


def refused_calls(folder: Path) -> Iterator[str]:
    """Yield the confinement's lines about system calls that it refused the guest's kernel."""
    console = safe_files.tail(folder / GUEST_CONSOLE, safe_files.LONG_TAIL_BYTES)
    for call in REFUSED_CALL.findall(console):
        yield f"the guest's kernel was refused {call}"


def guest_options(seed: int, memory_mb: int, time: Sequence[str] = VIRTUAL_TIME) -> list[str]:
    """Return the options of the guest's kernel."""
    return [f"mem={memory_mb}M", f"um_seed={seed}", *time, "stderr=1", "quiet"]


def _hidden_paths(others: Sequence[Path]) -> list[Path]:
    """Return those of the project's and of other folders that the guest's own mounts would hide."""
    needed = {PROJECT_FOLDER, Path(sys.prefix).resolve(), *others}
    return sorted(path for path in needed if any(path.is_relative_to(hidden) for hidden in HIDDEN))


def _wait(process: Process, guest: Boot) -> float:
    """Wait for the guest to end and return its peak memory in MB."""
    peak_mb, reason = wait_for_guest(process, guest.patience_s, guest.cancelled)
    if reason:
        raise Cancelled(reason) if guest.cancelled() else guest_hung(guest.patience_s)
    return peak_mb


class GuestHung(TestbedError):
    """A guest did not end within its limit of wall time."""


def guest_hung(patience_s: float) -> GuestHung:
    """Return the error of a guest that did not end."""
    return GuestHung(f"the guest hung: no end after {patience_s:.0f} s of wall time")


def _status(folder: Path) -> int | None:
    try:
        return int(safe_files.tail(folder / GUEST_STATUS))
    except (OSError, ValueError):
        return None


def _last_error_line(folder: Path) -> str:
    """Return the last line of the guest's console or, without one, of the trial's errors.

    A refused call's only if there is no other: it comes after the reason of the end.
    """
    for name in (GUEST_CONSOLE, GUEST_ERRORS):
        lines = [line.strip() for line in safe_files.tail(folder / name).splitlines()]
        lines.sort(key=lambda line: bool(line) + bool(line and not REFUSED_CALL.match(line)))
        if lines and lines[-1]:
            return lines[-1]
    return ""
