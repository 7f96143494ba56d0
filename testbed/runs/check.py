"""`testbed check`: the engines and variants that work on this machine, each of them tested."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from testbed.engines.base import Engine
from testbed.engines.choice import ENGINES
from testbed.engines.confinement import CONFINE
from testbed.errors import TestbedError
from testbed.kernels import known
from testbed.machine.compiled import BUILDS
from testbed.machine.process import CHROMIUM, GUARD, TOOLS, require
from testbed.plan.requirements import Need, control_need
from testbed.scenario.profiles import PROFILES
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.variants import VARIANTS, Variant
from testbed.traffic.background.sessions import BACKGROUND_PROGRAM
from testbed.traffic.iperf3 import PRELOAD
from testbed.trial.parts.capture import PRELOAD as TCPDUMPS
from testbed.trial.parts.radio import MEDIUM


@dataclass(frozen=True)
class Finding:
    """The state of one tool or engine; only `needed` ones can make the check fail."""

    what: str
    ok: bool
    state: str
    mend: str = ""
    needed: bool = True


OPTIONAL = {  # program → the features that need it
    "wireshark": "`testbed inspect` prints what it would open",
    "nginx": "videos over TCP need it",
    "hostapd": "radio links need it",
    "iw": "radio links need it",
    CHROMIUM: "videos that a browser plays need it",
}


def findings() -> Iterator[Finding]:
    """Check the tools, then test each engine."""
    for tool in TOOLS:
        try:
            yield Finding(tool, True, require(tool))
        except TestbedError as error:
            yield Finding(tool, False, "not installed", error.hint)
    for program, without in OPTIONAL.items():
        found = shutil.which(program) or shutil.which(program, path="/usr/sbin")
        state = found or f"not installed; {without}"
        yield Finding(program, found is not None, state, f"apt install {program}", needed=False)
    for built in (GUARD, PRELOAD, TCPDUMPS, BACKGROUND_PROGRAM, MEDIUM, CONFINE):
        yield Finding(built.stem.removeprefix("testbed-"), built.exists(), str(built), BUILDS)
    for number, kind in enumerate(ENGINES.values()):
        yield from _engine(kind(), needed=number == 0)  # the first engine works for any user
    yield from kernels()


def kernels() -> Iterator[Finding]:
    """The guest's other kernels, none of which is needed."""
    for name in [*known.versions(), *known.own()]:
        if name != known.default():
            folder = known.built(name)
            state = (folder / "version").read_text().strip() if folder else "not built"
            mend = f"a run with --set kernel={name} builds it, or: testbed kernel build {name}"
            yield Finding(f"kernel {name}", folder is not None, state, mend, needed=False)


def _needs() -> list[Need]:
    controls = [control_need(v.control) for v in VARIANTS.values()]
    queues = [
        Need("queue discipline", q.name, q.symbol, f"sch_{q.name}") for q in DISCIPLINES.values()
    ]
    netem = Need("queue discipline", "netem", "CONFIG_NET_SCH_NETEM", "sch_netem")
    return [*controls, *queues, netem]


def _engine(engine: Engine, needed: bool) -> Iterator[Finding]:
    """Test an engine, and list the variants that it can run."""
    name = f"{engine.name} engine"
    if problem := engine.ready():
        yield Finding(name, False, problem, needed=needed)
        return
    try:
        tried = engine.try_out()
    except TestbedError as error:
        yield Finding(name, False, error.message, "see the message above", needed)
        return
    lacking = ", ".join(m.need.name for m in engine.missing(_needs()))
    state = f"{engine.version()}; {tried}; lacks: {lacking or 'nothing'}"
    yield Finding(name, True, state, needed=needed)
    yield Finding("  its variants", True, " ".join(sorted(engine.controls())), needed=needed)


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
    """The congestion controls of each engine; as root, kernel modules are loaded if needed."""
    offers = {}
    for name, kind in ENGINES.items():
        engine = kind()
        if not engine.ready():
            engine.missing([control_need(each.control) for each in VARIANTS.values()])
        offers[name] = engine.controls()
    return offers


def _engines_with(control: str, offers: Mapping[str, frozenset[str]]) -> str:
    found = " and ".join(name for name, controls in offers.items() if control in controls)
    return found or "none of this machine's engines (./setup.sh builds the guest's)"


def _recipe(each: Variant) -> str:
    parts = [f"congestion control {each.control}"]
    parts += [f"{name}={value}" for name, value in each.parameters.items()]
    parts += [f"{name}={value}" for name, value in each.sender.items()]
    parts += [f"at the receiver {name}={value}" for name, value in each.receiver.items()]
    route = each.receiver_route.items()
    parts += [f"on the receiver's route to the sender {name} {value}" for name, value in route]
    return ", ".join(parts)
