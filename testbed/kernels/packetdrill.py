"""packetdrill's scripts in guests: each run alone on a machine of its own, in virtual time.

The options are those of Linux's own runner (tools/testing/selftests/net/packetdrill/ksft_runner.sh)
and of packetdrill's run_all.py.
"""

from __future__ import annotations

import itertools
import re
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.engine import Cancelled
from testbed.errors import TestbedError, UsageError, printable
from testbed.guest import kernels
from testbed.guest.machine import (
    MachineEnd,
    MachineProgram,
    machine_kernel,
    root_environment,
    run_on_machine,
)
from testbed.guest.worker import HIDDEN
from testbed.kernels.side_by_side import side_by_side
from testbed.machine import atomic, safe_files
from testbed.machine.compiled import LIBRARIES, require_built
from testbed.store.names import GUEST_ERRORS, GUEST_OUTPUT, MACHINE_FILES

PACKETDRILL = "packetdrill"
WHERE_TO_GET_IT = (
    "Debian has no package of it: build it from github.com/google/packetdrill, and name it with "
    "--packetdrill FILE"
)
PACKETDRILL_CALLS = LIBRARIES / "testbed-packetdrill.so"  # built from packetdrill_calls.c
SCRIPT_SUFFIX = ".pkt"
PACKETDRILL_TESTS = "net/packetdrill"  # of Linux's selftests
PATIENCE_S = 600.0  # of wall time
CAPTURE = "capture.pcap"
ALL_PACKETS = "packets.txt"  # packetdrill's output with --verbose
SCRIPT_MEMORY_MB = 512
# tcpdump listens before the command, packetdrill, has made its interface
WITH_CAPTURE = (
    f'tcpdump -i any --immediate-mode -U -Z root -w {CAPTURE} 2>/dev/null & sleep 0.5; exec "$@"'
)
_OVER_IPV4 = (
    "--local_ip=192.168.0.1",
    "--gateway_ip=192.168.0.1",
    "--netmask_ip=255.255.0.0",
    "--remote_ip=192.0.2.1",
    *("-D", "TFO_COOKIE=3021b9d889017eeb"),
    *("-D", "TFO_COOKIE_ZERO=b7c12350a90dc8f5"),
    *("-D", "CODE=host_unreachable"),
)
_IPV4_ERRORS = ("-D", "CMSG_LEVEL_IP=SOL_IP", "-D", "CMSG_TYPE_RECVERR=IP_RECVERR")
_IPV6_ERRORS = ("-D", "CMSG_LEVEL_IP=SOL_IPV6", "-D", "CMSG_TYPE_RECVERR=IPV6_RECVERR")
FAMILIES = {  # packetdrill's options by the version of IP
    "ipv4": (*_OVER_IPV4, *_IPV4_ERRORS),
    "ipv6": (
        "--mtu=1520",
        "--local_ip=fd3d:0a0b:17d6::1",
        "--gateway_ip=fd3d:0a0b:17d6:8888::1",
        "--remote_ip=fd3d:fa7b:d17d::1",
        *("-D", "TFO_COOKIE=c1d1e9742a47a9bc"),
        *("-D", "TFO_COOKIE_ZERO=82af1a8f9a205c34"),
        *_IPV6_ERRORS,
    ),
    "ipv4-mapped-ipv6": (*_OVER_IPV4, *_IPV6_ERRORS),
}
_AT_LINE = re.compile(r"\S+:\d+: ")
MAX_SCRIPT_BYTES = 1 << 22
_ONE_FAMILY = re.compile(r"^--ip_version=(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class ScriptRun:
    """A script over one version of IP on one kernel."""

    kernel: str
    script: Path
    shown_name: str  # the script's, below the folder that the user gave
    family: str

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.kernel} {self.shown_name} {self.family}"


@dataclass(frozen=True)
class ScriptEnd:
    """The end of a script's run: `said` is packetdrill's output if it failed."""

    run: ScriptRun
    passed: bool
    took_s: float  # of virtual time
    said: tuple[str, ...] = ()
    kept: Path | None = None  # a failed run's output with all packets, and its capture

    @property
    def reason(self) -> str:
        """The line that begins with a place in the script: its commands may print others before."""
        at_lines = (line for line in self.said if _AT_LINE.match(line))
        return next(at_lines, self.said[-1] if self.said else "it printed nothing")


@dataclass(frozen=True)
class PacketdrillTool:
    """The program, and by how much a packet's time may be off (None: as the script says)."""

    program: Path
    tolerance_us: int | None = None

    def words(self, script_run: ScriptRun, *more: str) -> list[str]:
        """Return the command of a run, which starts in the folder of its script."""
        options = [f"--ip_version={script_run.family}", *FAMILIES[script_run.family], *more]
        if self.tolerance_us is not None:
            options.append(f"--tolerance_usecs={self.tolerance_us}")
        preload = f"LD_PRELOAD={PACKETDRILL_CALLS}"
        return ["env", preload, str(self.program), *options, script_run.script.name]


def find_packetdrill(given: Path | None) -> Path:
    """Return the program's path; raise an error that says where to get it."""
    program = shutil.which(str(given.absolute()) if given else PACKETDRILL)
    if program is None:
        what = f"--packetdrill {given}: no program" if given else "packetdrill is not installed"
        raise UsageError(what, WHERE_TO_GET_IT)
    require_built(PACKETDRILL_CALLS)
    return Path(program).resolve()


def script_runs(places: Sequence[Path], on_kernels: Sequence[str]) -> list[ScriptRun]:
    """Return the runs of scripts and of those in folders, on each kernel."""
    scripts = [script for place in places for script in _scripts(place)]
    return [
        ScriptRun(kernel, script, shown_name, family)
        for kernel, (script, shown_name) in itertools.product(on_kernels, scripts)
        for family in _families(script)
    ]


def _scripts(place: Path) -> list[tuple[Path, str]]:
    """Return a folder's scripts with their names below it, or a script with its file's name.

    The names are fit for KTAP's lines and for XML.
    """
    if place.is_file():
        return [(place.resolve(), printable(place.name))]
    paths = sorted(path for path in place.rglob(f"*{SCRIPT_SUFFIX}") if path.is_file())
    if not paths:
        what = "no *.pkt in it" if place.is_dir() else "no such script or folder"
        raise UsageError(f"{place}: {what}", "testbed packetdrill SCRIPT.pkt, or a folder of them")
    return [(path.resolve(), printable(str(path.relative_to(place)))) for path in paths]


def _families(script: Path) -> Sequence[str]:
    """Return the versions of IP that a script is run over: all, unless it names one."""
    named = _ONE_FAMILY.search(safe_files.read_text(script, MAX_SCRIPT_BYTES))
    return (named[1],) if named and named[1] in FAMILIES else tuple(FAMILIES)


def run_scripts(
    runs: Sequence[ScriptRun],
    tool: PacketdrillTool,
    out: Path,
    progress: kernels.Progress,
    jobs: int | None = None,
) -> Iterator[ScriptEnd]:
    """Run scripts side by side, and yield how they ended, in the order given.

    A failed run is repeated, with its packets in `out`.
    """
    folders = {name: machine_kernel(name, progress) for name in {run.kernel for run in runs}}
    machines = _Machines(tool, folders, out)
    yield from side_by_side(runs, machines.run, jobs)


class _Machines:
    """Runs scripts, each on a machine of its own; `out` gets the packets of those that fail."""

    def __init__(self, tool: PacketdrillTool, folders: Mapping[str, Path], out: Path) -> None:
        self._tool, self._folders, self._out = tool, folders, out

    def run(self, script_run: ScriptRun, stopped: threading.Event) -> ScriptEnd:
        """Run a script, and again if it fails, with all packets recorded."""
        try:
            return self._run(script_run, stopped)
        except (Cancelled, UsageError):
            raise
        except TestbedError as error:  # of this guest: others run
            return ScriptEnd(script_run, False, 0.0, (error.message,))

    def _run(self, script_run: ScriptRun, stopped: threading.Event) -> ScriptEnd:
        with atomic.workplace(PACKETDRILL) as place:
            argv = ["unshare", "-n", *self._tool.words(script_run)]
            end = self._on_machine(script_run, argv, place, stopped)
            if end.status == 0:
                return ScriptEnd(script_run, True, end.took_s)
            lines = output_lines(script_run, place)
        kept = self._keep_packets(script_run, stopped)
        return ScriptEnd(script_run, False, end.took_s, lines, kept)

    def _keep_packets(self, script_run: ScriptRun, stopped: threading.Event) -> Path:
        tool = self._tool.words(script_run, "--verbose")
        safe_files.make_folder(self._out)
        kept = self._out / re.sub(r"[^\w.-]", "-", script_run.name)
        with atomic.workplace(PACKETDRILL) as place, atomic.whole_folder(kept, private=True) as new:
            argv = ["unshare", "-n", "sh", "-c", WITH_CAPTURE, "sh", *tool]
            self._on_machine(script_run, argv, place, stopped)
            lines = output_lines(script_run, place)
            (new / ALL_PACKETS).write_text("".join(f"{line}\n" for line in lines))
            if (place / MACHINE_FILES / CAPTURE).exists():
                shutil.copyfile(place / MACHINE_FILES / CAPTURE, new / CAPTURE)
        return kept

    def _on_machine(
        self, script_run: ScriptRun, argv: Sequence[str], place: Path, stopped: threading.Event
    ) -> MachineEnd:
        folder = script_run.script.parent
        shown = map(_folder_to_show, (folder, self._tool.program))
        program = MachineProgram(
            argv,
            folder,
            root_environment(Path.home(), {}, ()),
            memory_mb=SCRIPT_MEMORY_MB,
            patience_s=PATIENCE_S,
            shown=tuple({path for path in shown if path}),
        )
        kernel = self._folders[script_run.kernel]
        return run_on_machine(program, kernel, place, stopped.is_set)


def output_lines(script_run: ScriptRun, place: Path) -> tuple[str, ...]:
    """Return the lines that packetdrill printed, without the script's folder."""
    texts = (
        safe_files.tail(place / name, safe_files.LONG_TAIL_BYTES)
        for name in (GUEST_OUTPUT, GUEST_ERRORS)
    )
    lines = (printable(line.expandtabs()).rstrip() for text in texts for line in text.splitlines())
    return tuple(line.replace(f"{script_run.script.parent}/", "") for line in lines if line)


def _folder_to_show(path: Path) -> Path | None:
    """Return the uppermost folder over a path that guests do not see by themselves, if any.

    It is shown as a whole: scripts refer to files in folders above theirs (../common/defaults.sh).
    """
    for above in map(Path, HIDDEN):
        if path.is_relative_to(above) and path != above:
            return above / path.relative_to(above).parts[0]
    return None
