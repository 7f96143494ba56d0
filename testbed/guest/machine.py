"""A guest as a machine for one command, which runs as root there and changes nothing of the host.

`machine.c` says what the command finds: the host's files, which it may change as long as the
guest lasts, and the programs in `programs/` before the host's own. What it wrote in its folder,
its output and how it went are in a folder of results afterwards.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.engine import ProcessOutcome
from testbed.errors import TestbedError, UsageError
from testbed.guest import kernels
from testbed.guest.boot import (
    LEFT_BY_GUESTS,
    MAX_GUEST_OUTPUT_BYTES,
    VIRTUAL_TIME,
    Boot,
    GuestHung,
    boot,
    guest_options,
    run_in_guest,
)
from testbed.guest.worker import HIDDEN, reserve_core
from testbed.machine import safe_files
from testbed.machine.compiled import LIBRARIES, require_built
from testbed.machine.journal import core_locks
from testbed.machine.trees import TREE, Rule
from testbed.runner.programme import BOOT_NS, NS
from testbed.store.names import (
    CAPTURES_FOLDER,
    GUEST_ENVIRONMENT,
    GUEST_INPUT,
    GUEST_JUDGE,
    GUEST_NOTES,
    GUEST_OBSERVED,
    GUEST_PROGRAM,
    GUEST_REPORT,
    GUEST_ROOT,
    GUEST_SAMPLED,
    GUEST_STATUS,
    MACHINE_FILES,
)
from testbed.store.records import DAMAGED

MACHINE = LIBRARIES / "testbed-machine"  # built from machine.c
PROGRAMS = Path(__file__).resolve().parent / "programs"
MACHINE_MEMORY_MB = 1024
MAX_PROCESSES = 3000  # however large the memory: each takes one of the host's
# the machine's age when the command starts: Open vSwitch needs one of at least 10 s
MACHINE_AGE_S = 20
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SAMPLES_MS = 100  # between two samples of queues and sockets, where packets are captured
CAPTURE_VARIABLE = "TESTBED_CAPTURE"  # what programs/capture_interfaces.py reads
PROGRAMS_PATH = "/run/programs"  # where the guest has PROGRAMS
SECOND_IMAGE = (  # what is said before it is built
    "whole programs need a second image of Linux {} (netfilter, bridges, overlays), which is built "
    "now, once: two to four minutes on two idle cores"
)
OVERLAYS = "CONFIG_OVERLAY_FS=y"  # a line of the configuration of kernels that can be a machine
CONSOLE = ("con0=fd:0,fd:1",)  # the kernel's option, instead of those of virtual time
LEFT_BY_PROGRAMS = (  # what the guest of a whole program may leave
    *LEFT_BY_GUESTS,
    Rule(GUEST_REPORT, 4096),
    Rule(GUEST_NOTES, 65536),
    Rule(GUEST_OBSERVED, 1 << 26),
    Rule(GUEST_SAMPLED, 1 << 30),
    Rule(f"{CAPTURES_FOLDER}/*.pcapng", MAX_GUEST_OUTPUT_BYTES, 10_000),
    Rule(f"{MACHINE_FILES}/{TREE}", 1 << 30, 500_000),
)


KEPT = frozenset(rule.path for rule in LEFT_BY_PROGRAMS) - {GUEST_STATUS}


@dataclass(frozen=True)
class MachineProgram:
    """A command to run in a separate guest, and what it starts from."""

    words: Sequence[str]
    folder: Path  # its working folder; only what it writes there is brought back
    environment: Mapping[str, str]
    input: Path | None = None
    seed: int = 1
    memory_mb: int = MACHINE_MEMORY_MB
    limit_s: int = 3600  # of virtual time
    patience_s: float = 3600  # of wall time
    at_terminal: bool = False  # in real time, with our terminal as its own
    shown: Sequence[Path] = ()  # folders below /tmp and the like that it sees, besides its own
    captured: Sequence[str] = ()  # interfaces of Mininet's, its nodes, their ports, or `all`
    judge: Sequence[str] = ()  # a command that judges what is observed: it ends at a finding
    root: Path | None = None  # the folder that it has in place of the host's files
    observed: bool = True  # what it sets up is written down: no process of many is fast then

    @property
    def most_processes(self) -> int:
        """The number of processes at once with which it is ended: a fork bomb's do not fit."""
        return min(self.memory_mb, MAX_PROCESSES)


@dataclass(frozen=True)
class MachineEnd:
    """The end of a command."""

    status: int  # as a shell has it
    took_s: float  # of virtual time
    at_limit: bool  # of time: it was ended
    too_many_processes: bool  # it was ended
    at_finding: bool  # of its judge: it was ended
    charged_s: float  # virtual time for loops without system calls, which depends on the host
    files: int  # that it left in its folder, besides `skipped` links, devices and files over 1 GiB
    total_bytes: int
    skipped: int
    notes: Sequence[str]  # from the programs in PROGRAMS
    warnings: Sequence[str]


def machine_kernel(
    name: str, progress: kernels.Progress, flavour: str = kernels.MACHINE_FLAVOUR
) -> Path:
    """Return the folder of a kernel on which whole programs run, and build it if it is Debian's."""
    name = name or kernels.default_kernel()
    folder = kernels.built_folder(name, flavour)
    if name in kernels.versions() and not (folder and kernels.is_whole(folder)):
        progress(SECOND_IMAGE.format(name))
        folder = kernels.build_version(name, progress, flavour)
    if folder is None:
        raise kernels.not_built(name)
    if problem := kernels.why_unusable(name, folder):
        raise TestbedError(problem)
    if OVERLAYS not in (folder / "config").read_text().splitlines():
        raise TestbedError(
            f"kernel {name} lacks what programs need, such as overlays",
            f"build it with --config {kernels.MACHINE_CONFIG}",
        )
    return folder


def root_environment(home: Path, more: Mapping[str, str], path: Iterable[str]) -> dict[str, str]:
    """Return the environment of root's command: the same on each machine, but for `more`.

    The folders in `path` come behind the system's.
    """
    folders = dict.fromkeys((PROGRAMS_PATH, *SYSTEM_PATH.split(":"), *path))
    return {
        "PATH": ":".join(folders),
        "HOME": str(home),
        "USER": "root",
        "LOGNAME": "root",
        "SHELL": "/bin/bash",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "MPLBACKEND": "Agg",  # matplotlib's, without a screen
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",  # output that is seen while the program runs
        **more,
    }


def run_on_machine(
    program: MachineProgram, kernel: Path, place: Path, cancelled: Callable[[], bool]
) -> MachineEnd:
    """Run a command in a guest whose results go to a folder, and wait for its end.

    The folder gets `files/` and the command's output, which grows while it runs. `cancelled` is
    called many times a second.
    """
    require_built(MACHINE)
    _check_folder(program.folder)
    (place / GUEST_PROGRAM).write_bytes(_packed(program.words))
    more = {CAPTURE_VARIABLE: ",".join(program.captured)} if program.captured else {}
    variables = (f"{name}={value}" for name, value in {**program.environment, **more}.items())
    (place / GUEST_ENVIRONMENT).write_bytes(_packed(variables))
    if program.captured:
        (place / CAPTURES_FOLDER).mkdir()
    if program.input:
        shutil.copyfile(program.input, place / GUEST_INPUT)
    if program.judge:
        (place / GUEST_JUDGE).write_bytes(_packed(program.judge))
    if program.root:
        (place / GUEST_ROOT).write_bytes(os.fsencode(program.root))
    begin_ns = BOOT_NS + MACHINE_AGE_S * NS
    samples_ms = SAMPLES_MS if program.captured else 0
    numbers = (begin_ns, program.limit_s, program.most_processes, samples_ms)
    argv = [str(MACHINE), str(program.folder), str(PROGRAMS), *map(str, numbers)]
    argv += ["terminal"] if program.at_terminal else [] if program.observed else ["unobserved"]
    time = CONSOLE if program.at_terminal else VIRTUAL_TIME
    options = guest_options(program.seed, program.memory_mb, time)
    with reserve_core(core_locks()) as core:
        guest = Boot(
            kernel,
            core,
            options,
            program.patience_s,
            cancelled,
            shown=(program.folder, *program.shown, *((program.root,) if program.root else ())),
            runs_programs=True,
            at_terminal=program.at_terminal,
        )
        try:
            boot_it = functools.partial(boot, guest, place, LEFT_BY_PROGRAMS)
            outcome = run_in_guest(place, argv, boot_it, KEPT, strict=False)
        except GuestHung as error:
            raise TestbedError(
                f"it had not ended after {program.patience_s:.0f} s of wall time",
                "--timeout SECONDS gives it more; --limit, in virtual time, ends what never ends",
            ) from error
    return _end(place, outcome)


def _check_folder(folder: Path) -> None:
    if folder in (Path("/"), *map(Path, HIDDEN)):
        raise UsageError(f"a program cannot run in {folder} itself", "make a folder for it")
    if "\n" in str(folder):
        raise UsageError("the folder's name has a line break", "rename it")


def _packed(arguments: Iterable[str]) -> bytes:
    return b"".join(word.encode(errors="surrogateescape") + b"\0" for word in arguments)


def _end(place: Path, outcome: ProcessOutcome) -> MachineEnd:
    """Read the guest's report, and remove it."""
    report, notes = place / GUEST_REPORT, place / GUEST_NOTES
    if not report.exists():
        began = outcome.status < 128 and outcome.errors
        raise TestbedError(began or "the guest's machine was ended by what ran in it")
    lines = safe_files.tail(notes).splitlines()
    try:
        numbers = dict(line.split() for line in safe_files.tail(report).splitlines())
        end = MachineEnd(
            outcome.status,
            int(numbers["took_ns"]) / NS,
            numbers["at_limit"] == "1",
            numbers["too_many_processes"] == "1",
            numbers["at_finding"] == "1",
            int(numbers["charged_ms"]) / 1000,
            int(numbers["files"]),
            int(numbers["bytes"]),
            int(numbers["skipped"]),
            tuple(dict.fromkeys(lines)),
            outcome.warnings,
        )
    except (*DAMAGED, OverflowError) as error:
        raise TestbedError("what ran in the guest has changed the machine's report") from error
    report.unlink()
    notes.unlink(missing_ok=True)
    taken = outcome.taken
    if not taken.refused and (taken.files, taken.total_bytes) != (end.files, end.total_bytes):
        raise TestbedError(
            f"{taken.files} of {end.files} files came back", "is the disk of the results full?"
        )
    return end
