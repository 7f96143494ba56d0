"""`testbed check`, `doctor` and `clean`: what this machine can run, how fast, and what is left."""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.engine import Engine
from testbed.errors import TestbedError
from testbed.guest import kernels
from testbed.guest.boot import CONFINE
from testbed.guest.worker import cache_folder
from testbed.machine import leftovers
from testbed.machine.atomic import workplace
from testbed.machine.compiled import BUILDS, IN_WHEEL, REINSTALL
from testbed.machine.installed_packages import INSTALLS, SITE, why_damaged
from testbed.machine.journal import state_folder
from testbed.machine.process import CHROMIUM, GUARD, how_to_install, run
from testbed.plan.requirements import (
    OTHER_KERNELS,
    Need,
    control_need,
    queue_need,
    variant_needs,
)
from testbed.runner.recorded_netlink import IP, NETLINK_RECORDER, TC
from testbed.runs.console import console, errors, print_folded
from testbed.runs.engine_choice import ENGINES
from testbed.runs.orchestration import RunListener, RunOptions, plan_and_carry_out
from testbed.runs.selection import select
from testbed.runs.sources import BUILT, PROJECT
from testbed.scenario.profiles import PROFILE_SETTINGS
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.variants import VARIANTS, Variant
from testbed.store.records import Status
from testbed.traffic.call.call_flow import BUILT_CALL
from testbed.traffic.iperf3.iperf3_flow import IPERF3, PRELOAD
from testbed.traffic.workload.workload_flow import BUILT_PROGRAM
from testbed.trial.make import RUNNER
from testbed.trial.parts.radio import MEDIUM

PROBE = {"variant": ["linux-reno"], "queue": ["bfifo"], "path": ["receiver"], "duration_s": ["1"]}
PROBE_EXPERIMENT = "router-bottleneck"
RESULTS = Path("results")
MEGABYTE, GIGABYTE = 1e6, 1e9
LITTLE_DISK = 2 * GIGABYTE  # README's longest example takes more


def check(options: argparse.Namespace) -> int:
    """Run `testbed check`."""
    if options.variants:
        for line in variant_lines():
            print_folded(line, 8)
        return 0
    status = print_findings()
    if not status:
        console.print("next: testbed demo, or testbed list")
    return status


def print_findings() -> int:
    """Print what can run here, and what is missing; return 1 if something needed is."""
    status = 0
    for finding in tool_states():
        mark = "ok     " if finding.ok else "missing" if finding.needed else "-      "
        print_folded(f"{mark} {finding.what}: {finding.state}", 8)
        if not finding.ok and finding.remedy:
            print_folded(f"        {finding.remedy}", 8)
        status |= finding.needed and not finding.ok
    return int(status)


def clean(_options: argparse.Namespace) -> int:
    """Run `testbed clean`; the exit status is 1 if something could not be removed."""
    result = leftovers.clean()
    for each in result.done:
        console.print(each, soft_wrap=True)
    for each in result.left:
        console.print(f"left alone: {each}", soft_wrap=True)
    for each in result.failed:
        errors.print(f"testbed: not removed: {each}", soft_wrap=True)
    if not (result.done or result.left or result.failed):
        console.print("nothing was left behind")
    return 1 if result.failed else 0


def doctor(options: argparse.Namespace) -> int:
    """Run `testbed doctor`: check, then speed and disk; --mend first mends what it can."""
    if options.mend:
        _mend()
    status = print_findings()
    status |= _speed(options)
    for line in _disk():
        print_folded(line, 8)
    if status and not options.mend:
        hint = REINSTALL if IN_WHEEL else "testbed doctor --mend, or ./setup.sh"
        errors.print(f"    hint: {hint}", soft_wrap=True)
    return status


def _mend() -> None:
    """Compile what is missing or older than its sources, and remove what killed runs left."""
    stale = [each.file.name for each in BUILT if not each.file.exists() or each.is_stale()]
    if stale and not IN_WHEEL:
        console.print(f"compiling {', '.join(stale)}", soft_wrap=True)
        run(["make", "--silent"], cwd=PROJECT)
    clean(argparse.Namespace())


def _speed(options: argparse.Namespace) -> int:
    """Run a trial of a second in a folder that is removed; return 1 if it fails."""
    console.print("a trial of a second:")
    begun = time.monotonic()
    try:
        with workplace("doctor") as folder:
            settings = RunOptions(out=folder / "results")
            selection = select(PROBE_EXPERIMENT, PROBE, options.experiments)
            _, made = plan_and_carry_out(selection, settings, "testbed doctor", RunListener())
            (trial,) = made.trials
            record = trial.record  # read before the folder is gone
    except TestbedError as error:
        print_folded(f"missing speed: {error.message}", 8)
        return 1
    if record.status is not Status.OK:
        print_folded(f"missing speed: {record.reason}", 8)
        return 1
    whole_s = time.monotonic() - begun
    rest = f"{whole_s:.1f} s with plan, verdict and numbers"
    print_folded(f"ok      {record.wall_s:.1f} s, {rest}", 8)
    return 0


def _disk() -> Iterator[str]:
    """Yield what is free, and what caches, state and the results of this folder take."""
    free = shutil.disk_usage(Path()).free
    mark = "ok     " if free > LITTLE_DISK else "-      "
    yield f"{mark} disk: {free / GIGABYTE:.1f} GB free here"
    for name, folder, remedy in (
        ("kernels", cache_folder(), "`testbed kernel remove NAME`"),
        ("state", state_folder(), "`testbed clean`"),
        (str(RESULTS), RESULTS, "`testbed runs remove RUN`"),
    ):
        if folder.is_dir():
            yield f"ok      {name}: {_size(folder) / MEGABYTE:.0f} MB in {folder} ({remedy})"


def _size(folder: Path) -> int:
    """Return the bytes that a folder's files take on the disk."""
    files = (Path(top) / name for top, _, names in os.walk(folder) for name in names)
    return sum(path.lstat().st_blocks * 512 for path in files if path.is_symlink() or path.exists())


@dataclass(frozen=True)
class ToolState:
    """The state of a tool, engine or kernel; only `needed` ones can make the check fail."""

    what: str
    ok: bool
    state: str
    remedy: str = ""
    needed: bool = True


OPTIONAL_PROGRAMS = {  # program → the features that need it
    "tshark": "`testbed inspect` and packet objects need it",
    "wireshark": "`testbed inspect` prints what it would open",
    "nginx": "videos over TCP need it",
    "hostapd": "radio links need it",
    "iw": "radio links need it",
    CHROMIUM: "videos that a browser plays need it",
}


def tool_states() -> Iterator[ToolState]:
    """Test each engine, then check what belongs to the testbed, and others' programs."""
    for number, kind in enumerate(ENGINES.values()):
        yield from _engine(kind(), needed=number == 0)  # the first engine works for any user
    yield from kernel_states()
    programs = (
        *(RUNNER, NETLINK_RECORDER, CONFINE, GUARD),
        *(IPERF3, PRELOAD, IP, TC, BUILT_PROGRAM, BUILT_CALL, MEDIUM),
    )
    missing = ", ".join(str(each) for each in programs if not each.exists())
    state = f"{missing} not built" if missing else f"all {len(programs)} in {RUNNER.parent}"
    yield ToolState("programs of the testbed", not missing, state, BUILDS)
    damage = why_damaged(SITE)
    yield ToolState("Python packages", not damage, damage or str(SITE), INSTALLS)
    for program, without in OPTIONAL_PROGRAMS.items():
        place = shutil.which(program) or shutil.which(program, path="/usr/sbin")
        state = place or f"not installed; {without}"
        yield ToolState(program, bool(place), state, how_to_install(program), needed=False)


def kernel_states() -> Iterator[ToolState]:
    """Check the guest's kernels but for the default; none of them is needed."""
    for name in [*kernels.versions(), *kernels.custom_names()]:
        if name != kernels.default_kernel():
            folder = kernels.built_folder(name)
            state = (folder / "version").read_text().strip() if folder else "not built"
            remedy = f"a run with --set kernel={name} builds it, or: testbed kernel build {name}"
            yield ToolState(f"kernel {name}", folder is not None, state, remedy, needed=False)


def _needs() -> list[Need]:
    controls = dict.fromkeys(control_need(v.control) for v in VARIANTS.values())
    queues = map(queue_need, DISCIPLINES.values())
    netem = Need("queue discipline", "netem", "CONFIG_NET_SCH_NETEM", "sch_netem")
    return [*controls, *queues, netem]


def _engine(engine: Engine, needed: bool) -> Iterator[ToolState]:
    """Test an engine, and list the variants that it can run."""
    name = f"{engine.name} engine"
    if problem := engine.ready():
        yield ToolState(name, False, problem, needed=needed)
        return
    try:
        tried = engine.try_out()
    except TestbedError as error:
        yield ToolState(name, False, error.message, "see the message above", needed)
        return
    missing = [each.need for each in engine.missing(_needs())]
    lacking = ", ".join(need.name for need in missing if need.symbol not in OTHER_KERNELS)
    others = ", ".join(need.name for need in missing if need.symbol in OTHER_KERNELS)
    state = f"{engine.version()}; {tried}; lacks: {lacking or 'nothing'}"
    state += f"; on other kernels only: {others}" if others else ""
    yield ToolState(name, True, state, needed=needed)
    yield ToolState("  its variants", True, " ".join(sorted(engine.controls())), needed=needed)


def variant_lines() -> Iterator[str]:
    """Yield every variant with its recipe, its deviations, and the engines that can run it."""
    offers = _offers()
    for each in VARIANTS.values():
        yield f"{each.name}: {each.about} ({each.source})"
        yield f"    runs on: {_other_kernel(each) or _engines_with(each.control, offers)}"
        yield f"    recipe: {_recipe(each)}"
        for deviation in each.deviations:
            yield f"    deviates: {deviation}"
    others = {name for names in offers.values() for name in names} - {
        each.control for each in VARIANTS.values()
    }
    for name in sorted(others):
        yield f"{name}: by name, as the kernel has it; runs on: {_engines_with(name, offers)}"
    for profile, setting in PROFILE_SETTINGS.items():
        yield f"profile {profile}: {setting.about}"


def _offers() -> dict[str, frozenset[str]]:
    """Return the congestion controls of each engine; root loads kernel modules for that."""
    offers = {}
    for name, kind in ENGINES.items():
        engine = kind()
        if not engine.ready():
            engine.missing([control_need(each.control) for each in VARIANTS.values()])
        offers[name] = engine.controls()
    return offers


def _engines_with(control: str, offers: Mapping[str, frozenset[str]]) -> str:
    engines = " and ".join(name for name, controls in offers.items() if control in controls)
    return engines or f"none of this machine's engines ({BUILDS})"


def _other_kernel(each: Variant) -> str:
    """Return the kernel that a variant needs if the default one cannot run it, or nothing."""
    others = (OTHER_KERNELS.get(need.symbol) for need in variant_needs(each))
    return next(filter(None, others), "")


def _recipe(each: Variant) -> str:
    parts = [f"congestion control {each.control}"]
    parts += [f"{name}={value}" for name, value in each.parameters.items()]
    parts += [f"{name}={value}" for name, value in each.sender.items()]
    parts += [f"at the receiver {name}={value}" for name, value in each.receiver.items()]
    route = each.receiver_route.items()
    parts += [f"on the receiver's route to the sender {name} {value}" for name, value in route]
    return ", ".join(parts)
