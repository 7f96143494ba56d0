"""What this machine can run, found by looking and by trying."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.engines.base import Job
from testbed.engines.guest import GuestEngine
from testbed.engines.host import HostEngine
from testbed.errors import TestbedError
from testbed.machine.journal import Journal
from testbed.machine.process import CHROMIUM, TOOLS, require
from testbed.plan.requirements import Need, control_need
from testbed.scenario.profiles import PROFILES
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.variants import VARIANTS, Variant
from testbed.traffic.background.sessions import BACKGROUND
from testbed.traffic.iperf3 import PACE
from testbed.trial.parts.radio import MEDIUM


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; only `needed` ones make the check fail."""

    what: str
    ok: bool
    state: str
    mend: str = ""
    needed: bool = True


BUILDS = "./setup.sh builds it"
OPTIONAL = {  # and what is missed without
    "wireshark": "`testbed inspect` prints what it would open",
    "nginx": "videos over TCP need it",
    "hostapd": "radio links need it",
    "iw": "radio links need it",
    CHROMIUM: "videos that a browser plays need it",
}


def findings() -> Iterator[Finding]:
    """Tools first, then the engines, each tried."""
    for tool in TOOLS:
        try:
            yield Finding(tool, True, require(tool))
        except TestbedError as error:
            yield Finding(tool, False, "not installed", error.hint)
    for program, without in OPTIONAL.items():
        found = shutil.which(program) or shutil.which(program, path="/usr/sbin")
        state = found or f"not installed; {without}"
        yield Finding(program, found is not None, state, f"apt install {program}", needed=False)
    for built in (PACE, BACKGROUND, MEDIUM):
        yield Finding(built.stem.removeprefix("testbed-"), built.exists(), str(built), BUILDS)
    yield from _guest()
    yield from _host()


def _needs() -> list[Need]:
    controls = [control_need(v.control) for v in VARIANTS.values()]
    queues = [
        Need("queue discipline", q.name, q.symbol, f"sch_{q.name}") for q in DISCIPLINES.values()
    ]
    netem = Need("queue discipline", "netem", "CONFIG_NET_SCH_NETEM", "sch_netem")
    return [*controls, *queues, netem]


def _guest() -> Iterator[Finding]:
    engine = GuestEngine()
    if problem := engine.ready():
        yield Finding("guest engine", False, problem, "./setup.sh")
        return
    begun = time.monotonic()
    try:
        _boot(engine)
    except TestbedError as error:
        yield Finding("guest engine", False, error.message, "look at the kernel's message above")
        return
    lacking = ", ".join(m.need.name for m in engine.missing(_needs()))
    state = f"{engine.version()}; boots in {time.monotonic() - begun:.1f} s"
    yield Finding("guest engine", True, f"{state}; lacks: {lacking or 'nothing'}")
    yield Finding("  its variants", True, " ".join(sorted(engine.controls())))


def _boot(engine: GuestEngine) -> None:
    with tempfile.TemporaryDirectory(prefix="testbed-check-") as name:
        folder = Path(name)
        job = Job(1, min(os.sched_getaffinity(0)), Journal(folder), threading.Event())
        engine.boot(folder, ["/bin/true"], job, patience_s=60)


def _host() -> Iterator[Finding]:
    engine = HostEngine()
    if problem := engine.ready():
        yield Finding("host engine", False, problem, "sudo testbed check", needed=False)
        return
    missing = engine.missing(_needs())
    lacking = ", ".join(m.need.name for m in missing)
    state = f"this kernel lacks: {lacking}" if missing else "this kernel has everything"
    yield Finding("host engine", True, state, needed=False)
    yield Finding("  its variants", True, " ".join(sorted(engine.controls())), needed=False)


def variant_lines() -> Iterator[str]:
    """Every variant with its recipe, its deviations, and the engines that can run it."""
    offers = _offers()
    for each in VARIANTS.values():
        yield f"{each.name}: {each.about} ({each.source})"
        yield f"    runs on: {_engines_with(each.control, offers)}"
        yield f"    recipe: {_recipe(each)}"
        for deviation in each.deviations:
            yield f"    deviates: {deviation}"
    others = {name for names in offers.values() for name in names} - {
        each.control for each in VARIANTS.values()
    }
    for name in sorted(others):
        yield f"{name}: by name, as the kernel has it; runs on: {_engines_with(name, offers)}"
    for profile, setting in PROFILES.items():
        yield f"profile {profile}: {setting.about}"


def _offers() -> dict[str, frozenset[str]]:
    """The congestion controls of each engine; modules that root may load are tried."""
    guest, host = GuestEngine(), HostEngine()
    offers = {} if guest.ready() else {"guest": guest.controls()}
    if not host.ready():
        host.missing([control_need(each.control) for each in VARIANTS.values()])
    return {**offers, "host": host.controls()}


def _engines_with(control: str, offers: Mapping[str, frozenset[str]]) -> str:
    found = " and ".join(name for name, controls in offers.items() if control in controls)
    return found or "none of this machine's engines (./setup.sh builds the guest's)"


def _recipe(each: Variant) -> str:
    parts = [f"congestion control {each.control}"]
    parts += [f"{name}={value}" for name, value in each.parameters.items()]
    parts += [f"{name}={value}" for name, value in each.sender.items()]
    parts += [f"at the receiver {name}={value}" for name, value in each.receiver.items()]
    return ", ".join(parts)
