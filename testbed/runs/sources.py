"""The project's non-Python sources that influence a trial's packets, and their users."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.compiled import LIBRARIES, require_built
from testbed.machine.file_hashes import hash_of
from testbed.machine.process import GUARD
from testbed.plan.plan import Plan
from testbed.runner.spoken import SPOKEN_NETLINK
from testbed.scenario.model import BASE_KERNEL, FlowKind
from testbed.traffic.call.call_flow import BUILT_CALL
from testbed.traffic.iperf3.iperf3_flow import CONTROL_BY_IPV4, LIMIT, ON_OFF, PRELOAD
from testbed.traffic.workload.workload_flow import BUILT_PROGRAM
from testbed.trial.make import RUNNER
from testbed.trial.parts.radio import MEDIUM

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Built:
    """A program or preloaded library in C that runs in trials."""

    file: Path
    patterns: tuple[str, ...]  # of the sources, relative to the project's folder
    runs_in: Callable[[Plan], bool]
    everywhere: bool = True  # False if some machines need none, which then have no such file

    def sources(self) -> list[Path]:
        """Its source files, sorted by name."""
        return sorted(path for pattern in self.patterns for path in PROJECT.glob(pattern))

    def is_stale(self) -> bool:
        """Return whether a source is newer than the compiled file."""
        built = self.file.stat().st_mtime
        return any(path.stat().st_mtime > built for path in self.sources())


IPERF3 = "testbed/traffic/iperf3"
BUILT = (
    Built(RUNNER, ("testbed/runner/*.[ch]", f"{IPERF3}/*.h"), lambda _plan: True),
    Built(SPOKEN_NETLINK, ("testbed/runner/preload/*.c",), lambda _plan: True),
    Built(
        GUARD,  # in a trial it starts browsers
        ("testbed/machine/guard.c",),
        lambda plan: any(f.flow.video for f in plan.flows),
    ),
    Built(
        PRELOAD,
        tuple(f"{IPERF3}/{name}" for name in ("pace.c", "combined_calls.c", "template.c", "*.h")),
        lambda plan: any(f.flow.kind in (FlowKind.TCP, FlowKind.CBR) for f in plan.flows),
    ),
    Built(
        ON_OFF,
        (f"{IPERF3}/on_off.c",),
        lambda plan: any(f.flow.on_s for f in plan.flows),
    ),
    Built(
        CONTROL_BY_IPV4,
        (f"{IPERF3}/control.c",),
        lambda plan: any(f.flow.kind is FlowKind.TCP and f.is_ipv6 for f in plan.flows),
    ),
    Built(
        LIMIT,
        (f"{IPERF3}/limit.c",),
        lambda plan: any(f.flow.bytes for f in plan.flows),
        everywhere=False,
    ),
    Built(
        BUILT_PROGRAM,
        ("testbed/traffic/workload/*.[ch]",),
        lambda plan: any(f.flow.workload for f in plan.flows),
    ),
    Built(
        BUILT_CALL,
        ("testbed/traffic/call/*.c",),
        lambda plan: any(f.flow.call for f in plan.flows),
    ),
    Built(
        LIBRARIES / "testbed-openssl.so",
        ("testbed/guest/openssl*", "testbed/traffic/video/*.pem"),
        lambda plan: any(f.flow.video or f.flow.command for f in plan.flows),
    ),
    Built(MEDIUM, ("testbed/trial/medium/*.[ch]",), lambda plan: plan.radio is not None),
)


def used_by(plan: Plan) -> Mapping[str, str]:
    """Return the sha256 of each source file that the trial uses, the same on every machine.

    These include queue disciplines that we add to the kernel.
    """
    compiled = [path for each in compiled_for(plan) if each.everywhere for path in each.sources()]
    return dict(_hashes([*compiled, *_added(plan)]))


def used_here(plan: Plan) -> Mapping[str, str]:
    """Return the sha256 of the sources that the trial uses here, but not on all machines."""
    only_here = [b for b in compiled_for(plan) if not b.everywhere and b.file.exists()]
    return dict(_hashes(path for each in only_here for path in each.sources()))


def _added(plan: Plan) -> list[Path]:
    """Return the sources of the queue disciplines that we add to the kernel and the plan uses."""
    kinds = {each.kind for each in plan.tc_objects}
    return [p for p in _added_queues() if p.stem.removeprefix("sch_") in kinds]


def _added_queues() -> list[Path]:
    return sorted((PROJECT / "kernel" / "queues").glob("sch_*.c"))


def of_kernel(version: str = BASE_KERNEL) -> Mapping[str, str]:
    """Return the sha256 of everything of ours that a version of the guest's kernel is built from.

    The names are those in the kernel's key (kernel/recipe.sh). Queue disciplines are not among
    them: they concern only the trials that use them.
    """
    kernel = PROJECT / "kernel"
    own = kernel / version
    patches = [*(kernel / "patches").glob("*.patch"), *(own / "patches").glob("*.patch")]
    named = {f"kernel/patches/{path.name}": path for path in patches}
    patterns = ("guest.config", "initramfs.list", "*.c", "congestion/*.c")
    named |= {str(p.relative_to(PROJECT)): p for each in patterns for p in kernel.glob(each)}
    named |= {f"kernel/{version}/{path.name}": path for path in own.glob("*.config")}
    found = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in named.items()}
    found["kernel/build.sh"] = (own / "builder").read_text().strip()
    return dict(sorted(found.items()))


def _hashes(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    for path in paths:
        yield str(path.relative_to(PROJECT)), hash_of(path)


def compiled_for(plan: Plan) -> list[Built]:
    """Return the compiled programs that run in the trial."""
    return [each for each in BUILT if each.runs_in(plan)]


def require_compiled(programs: Iterable[Built]) -> None:
    """Raise an error if one of them is missing, damaged, or older than its sources."""
    for each in programs:
        if each.everywhere or each.file.exists():
            require_built(each.file)
            if each.is_stale():
                raise TestbedError(
                    f"{each.file} is older than its sources", "./setup.sh compiles it"
                )
