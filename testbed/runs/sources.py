"""The project's sources that influence a trial's packets, and the trials that they influence."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.compiled import IN_WHEEL, LIBRARIES, require_built
from testbed.machine.process import GUARD
from testbed.plan.plan import Plan
from testbed.runner.recorded_netlink import NETLINK_RECORDER, TC
from testbed.runs.source_meaning import meaning_of
from testbed.scenario.model import FlowKind
from testbed.traffic.call.call_flow import BUILT_CALL
from testbed.traffic.iperf3.iperf3_flow import CONTROL_BY_IPV4, IPERF3, ON_OFF, PRELOAD
from testbed.traffic.workload.workload_flow import BUILT_PROGRAM
from testbed.trial.make import RUNNER
from testbed.trial.parts.radio import MEDIUM

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class CompiledProgram:
    """A program or preloaded library in C that runs in trials."""

    file: Path
    patterns: tuple[str, ...]  # of the sources, relative to the project's folder
    runs_in: Callable[[Plan], bool]

    def sources(self) -> list[Path]:
        """Return the program's source files, sorted by name."""
        return _files(self.patterns)

    def is_stale(self) -> bool:
        """Return whether a source is newer than the compiled file; in a wheel, none is."""
        if IN_WHEEL:
            return False
        built = self.file.stat().st_mtime
        return any(path.stat().st_mtime > built for path in self.sources())


IPERF3S = "testbed/traffic/iperf3"
BUILT = (
    CompiledProgram(RUNNER, ("testbed/runner/*.[ch]", f"{IPERF3S}/*.h"), lambda _plan: True),
    CompiledProgram(NETLINK_RECORDER, ("testbed/runner/preload/*.c",), lambda _plan: True),
    CompiledProgram(TC, ("foreign/iproute2.list",), lambda _plan: True),
    CompiledProgram(
        IPERF3,
        ("foreign/iperf3.list", "foreign/iperf3/*"),
        lambda plan: any(f.flow.kind in (FlowKind.TCP, FlowKind.CBR) for f in plan.flows),
    ),
    CompiledProgram(
        GUARD,  # in a trial it starts browsers
        ("testbed/machine/guard.c",),
        lambda plan: any(f.flow.video for f in plan.flows),
    ),
    CompiledProgram(
        PRELOAD,
        tuple(f"{IPERF3S}/{name}" for name in ("pace.c", "combined_calls.c", "template.c", "*.h")),
        lambda plan: any(f.flow.kind in (FlowKind.TCP, FlowKind.CBR) for f in plan.flows),
    ),
    CompiledProgram(
        ON_OFF,
        (f"{IPERF3S}/on_off.c",),
        lambda plan: any(f.flow.on_s for f in plan.flows),
    ),
    CompiledProgram(
        CONTROL_BY_IPV4,
        (f"{IPERF3S}/control.c",),
        lambda plan: any(f.flow.kind is FlowKind.TCP and f.is_ipv6 for f in plan.flows),
    ),
    CompiledProgram(
        BUILT_PROGRAM,
        ("testbed/traffic/workload/*.[ch]",),
        lambda plan: any(f.flow.workload for f in plan.flows),
    ),
    CompiledProgram(
        BUILT_CALL,
        ("testbed/traffic/call/*.c",),
        lambda plan: any(f.flow.call for f in plan.flows),
    ),
    CompiledProgram(
        LIBRARIES / "testbed-openssl.so",
        ("testbed/guest/openssl*", "testbed/traffic/video/*.pem"),
        lambda plan: any(f.flow.video or f.flow.command for f in plan.flows),
    ),
    CompiledProgram(MEDIUM, ("testbed/trial/medium/*.[ch]",), lambda plan: plan.radio is not None),
)


# What writes a trial's programme, boots its guest, and runs in it beside what is compiled. A plan's
# values identify a trial by themselves, but for its network, which the scenario says.
PYTHON_PARTS = {
    "python": (
        "testbed/trial/**/*.py",
        "testbed/runner/*.py",
        "testbed/traffic/*.py",
        "testbed/traffic/*/*_flow.py",
        "testbed/plan/network.py",
        "testbed/guest/boot.py",
        "testbed/guest/engine.py",
    ),
    "python video": ("testbed/traffic/video/*.py", "testbed/traffic/video/*.js"),
}
ADDED_TO_KERNEL = ("kernel/queues/sch_*.c", "kernel/congestion/tcp_*.c")
KERNEL_PATTERNS = ("guest.config", "initramfs.list", "*.c", "build.sh")


def parts_of(plan: Plan, kernel: str = "") -> dict[str, str]:
    """Return a hash of each part of our code that makes the trial's packets, by the part's name.

    They are the same on every machine. `kernel` is the version of the guest's kernel, which has
    sources of ours; queue disciplines and congestion controls that we add to it concern only the
    trials that use them.
    """
    python = {name: patterns for name, patterns in PYTHON_PARTS.items() if name == "python"}
    if any(each.flow.video for each in plan.flows):
        python = PYTHON_PARTS
    return {
        **{b.file.name: _state(b.patterns, PROJECT) for b in compiled_for(plan)},
        **{name: _state(patterns, PROJECT) for name, patterns in python.items()},
        **{_name(path): _state((_name(path),), PROJECT) for path in _added(plan)},
        **({f"kernel {kernel}": _kernel_state(kernel, PROJECT)} if kernel else {}),
    }


def kernel_sources(version: str) -> dict[str, Path]:
    """Return what a version of the guest's kernel is built from, by its names in a recipe."""
    kernel = PROJECT / "kernel"
    of_version = kernel / version
    patches = [*(kernel / "patches").glob("*.patch"), *(of_version / "patches").glob("*.patch")]
    named = {f"patches/{path.name}": path for path in patches}  # one of a name replaces the other
    named |= {path.name: path for each in KERNEL_PATTERNS for path in kernel.glob(each)}
    return named | {f"{version}/{path.name}": path for path in of_version.glob("*.config")}


def _added(plan: Plan) -> list[Path]:
    """Return the sources of what we add to the kernel and the plan uses."""
    modules = {f"sch_{each.kind}" for each in plan.tc_objects}
    modules |= {each.module for each in plan.needs}
    return [path for path in _added_to_kernel(PROJECT) if path.stem in modules]


@functools.cache
def _added_to_kernel(_project: Path) -> list[Path]:
    return _files(ADDED_TO_KERNEL)


def _files(patterns: Iterable[str]) -> list[Path]:
    return sorted({path for pattern in patterns for path in PROJECT.glob(pattern)})


def _name(path: Path) -> str:
    return str(path.relative_to(PROJECT))


@functools.cache  # this process runs the code that it began with
def _state(patterns: tuple[str, ...], _project: Path) -> str:
    return _hash_of({_name(path): path for path in _files(patterns)})


@functools.cache
def _kernel_state(version: str, _project: Path) -> str:
    return _hash_of(kernel_sources(version))


def _hash_of(named: Mapping[str, Path]) -> str:
    text = "".join(f"{name} {meaning_of(path)}\n" for name, path in sorted(named.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def compiled_for(plan: Plan) -> list[CompiledProgram]:
    """Return the compiled programs that run in the trial."""
    return [each for each in BUILT if each.runs_in(plan)]


def require_compiled(programs: Iterable[CompiledProgram]) -> None:
    """Raise an error if one of them is missing, damaged, or older than its sources."""
    for each in programs:
        require_built(each.file)
        if each.is_stale():
            raise TestbedError(f"{each.file} is older than its sources", "./setup.sh compiles it")
