"""Scenarios drawn by a seed over what scenarios can ask, each short: seconds at a few Mbit/s."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import recipes
from testbed.errors import UsageError
from testbed.own_files.scenario_file import Document, in_document
from testbed.plan.plan import make_plan
from testbed.scenario.model import Scenario

Json = dict[str, Any]

DRAWN_MBIT = (1, 2, 4, 6, 10)
DRAWN_MS = (0, 1, 5, 10, 25, 60)
DRAWN_FROM = ("cubic", "linux-reno", "bbr", "vegas", "sack", "newreno", "veno", "westwood")
DRAWN_CHANNEL = {"to_bad": 0.005, "to_good": 0.3, "loss_in_bad": 0.9}


def drawn_scenario(seed: int, number: int) -> Scenario:
    """Return scenario `number` of a seed; what cannot run together is drawn again."""
    dice = random.Random(f"{seed} {number}")
    while True:
        document = {"experiment": "verdicts", "label": f"{number}", **_document(dice)}
        try:
            scenario = in_document(Document(document), "drawn").scenario
            make_plan(scenario)
        except UsageError:
            continue
        return scenario


def _document(dice: random.Random) -> Json:
    duration_s = dice.choice((3, 4, 6))
    flows = [dice.choices(DRAWN_FLOWS, DRAWN_FLOW_WEIGHTS)[0](dice, "flow", duration_s)]
    while len(flows) < 3 and dice.random() < 0.4:
        name = f"flow{len(flows)}"
        flows.append(dice.choices(DRAWN_FLOWS, DRAWN_FLOW_WEIGHTS)[0](dice, name, duration_s))
    network = dice.choice(DRAWN_NETWORKS)(dice, flows)
    return {"duration_s": duration_s, "seed": dice.randrange(1, 1000), **network, **_whole(dice)}


def _whole(dice: random.Random) -> Json:
    """Return what is said of the whole trial, mostly nothing."""
    settings: tuple[Json, ...] = (
        {"profile": "ns2"},
        {"sample_interval_ms": dice.choice((1, 100))},
        {"network_jitter": 0.05},
        {"drawn_service_times": 1},
        {"start_jitter_ms": 20},
        {"measure_from_s": 1},
        {"realistic": True},
        {"snaplen_bytes": 96},
    )
    return {key: value for each in settings if dice.random() < 0.1 for key, value in each.items()}


# Links and queues


def _queue(dice: random.Random) -> Json:
    packets = dice.choice((8, 20, 50, 100))
    red = {"min_bytes": 5000, "max_bytes": 20_000, "burst_packets": 8, "probability": 0.1}
    times = {"target_ms": 5, "interval_ms": 50}
    return dice.choice(
        (
            recipes.queue("pfifo", limit_packets=packets),
            recipes.queue("bfifo", limit_bytes=1514 * packets),
            recipes.queue("bfifo", limit_bdp=dice.choice((0.5, 1, 4))),
            recipes.queue("codel", limit_packets=packets, ecn=dice.random() < 0.5, options=times),
            recipes.queue("fq_codel", limit_packets=1000, ecn=dice.random() < 0.5),
            recipes.queue("pie", limit_packets=200, ecn=dice.random() < 0.5),
            recipes.queue("red", limit_bytes=60_000, ecn=dice.random() < 0.5, options=red),
            recipes.queue("cake", limit_bytes=200_000),
            recipes.queue("police", limit_bytes=30_000),
        )
    )


def _bottleneck(dice: random.Random) -> Json:
    rate_mbit = dice.choice(DRAWN_MBIT)
    link: Json = {
        "rate_mbit": rate_mbit,
        "delay_ms": dice.choice(DRAWN_MS),
        "queue": _queue(dice),
    }
    slow = {**link, "rate_mbit": rate_mbit / dice.choice((4, 20)), "queue": recipes.PFIFO_20}
    settings: tuple[Json, ...] = (
        {"reverse": slow},
        {"reverse": {"delay_ms": dice.choice(DRAWN_MS)}},
        {"jitter_ms": link["delay_ms"] / 2},
        {"loss": DRAWN_CHANNEL},
        {"reorder": 0.02},
        {"schedule": _schedule(dice, rate_mbit)},
        {"schedule": _schedule(dice, rate_mbit)},
        {"aggregate_packets": 8, "aggregate_ms": dice.choice((0, 4))},
        {"shaping": "htb"},
        {"hold_us": 100, "cost_us": 5},
    )
    return link | {k: v for each in settings if dice.random() < 0.08 for k, v in each.items()}


def _schedule(dice: random.Random, rate_mbit: float) -> list[Json]:
    changes: tuple[Json, ...] = (
        {"rate_mbit": rate_mbit / 2},
        {"rate_mbit": rate_mbit * 2},
        {"delay_ms": dice.choice((5, 20))},
        {"loss": 0.02},
        {"up": False},
    )
    change = dice.choice(changes)
    back = {"up": True} if "up" in change else dice.choice(changes[:3])
    return [{"at_s": 1, **change}, {"at_s": dice.choice((1.5, 2)), **back}]


def _router(dice: random.Random, flows: list[Json]) -> Json:
    for number, flow in enumerate(flows, start=1):
        flow.update(src=f"sender{number}", dst="receiver")
    access = {"delay_ms": dice.choice(DRAWN_MS)}
    return _network("router-bottleneck", dice, flows, hosts=len(flows), access=access)


def _dumbbell(dice: random.Random, flows: list[Json]) -> Json:
    for number, flow in enumerate(flows, start=1):
        ends = f"sender{number}", f"receiver{number}"
        flow["src"], flow["dst"] = ends[:: dice.choice((1, 1, 1, -1))]
    access: Json = {"delay_ms": dice.choice(DRAWN_MS)}
    if dice.random() < 0.3:
        access |= {"rate_mbit": 20, "queue": recipes.PFIFO_20}
    return _network("dumbbell", dice, flows, hosts=len(flows), access=access)


def _row(dice: random.Random, flows: list[Json]) -> Json:
    kind = dice.choice(("parking-lot", "chain"))
    for number, flow in enumerate(flows, start=1):
        place = number if kind == "parking-lot" else 1
        flow.update(src=f"sender{place}", dst=f"receiver{place}")
    hosts = max(2, len(flows) - 1)
    return _network(kind, dice, flows, hosts=hosts, access={"delay_ms": dice.choice(DRAWN_MS)})


def _access(dice: random.Random, flows: list[Json]) -> Json:
    for flow in flows:
        flow["src"], flow["dst"] = ("server", "station")[:: dice.choice((1, 1, -1))]
    return _network("access-link", dice, flows, links={"ap-station": {"delay_ms": 3}})


def _network(kind: str, dice: random.Random, flows: list[Json], **more: Any) -> Json:
    topology = {"kind": kind, "bottleneck": _bottleneck(dice), **more}
    if dice.random() < 0.1:
        topology["ip"] = 6
    return {"topology": topology, "flows": flows}


DRAWN_NETWORKS = (_router, _router, _dumbbell, _dumbbell, _row, _access)


# Flows


def _tcp(dice: random.Random, name: str, duration_s: float) -> Json:
    settings: tuple[Json, ...] = (
        {"mss": dice.choice((536, 1000))},
        {"window_bytes": dice.choice((20_000, 60_000))},
        {"rto_min_ms": 400},
        {"parallel": 3},
        {"bytes": dice.choice((50_000, 500_000))},
        {"start_s": 0.5, "duration_s": duration_s / 2},
        {"loss": {"events": {"rate": 0.01, "losses": 2}}},
        {"drops": [20, 22, 40]},
    )
    flow = {"kind": "tcp", "name": name, "variant": dice.choice(DRAWN_FROM)}
    return flow | {k: v for each in settings if dice.random() < 0.1 for k, v in each.items()}


def _cbr(dice: random.Random, name: str, _duration_s: float) -> Json:
    flow: Json = {"kind": "cbr", "name": name, "rate_mbit": dice.choice((0.5, 1, 3))}
    flow |= {"packet_bytes": dice.choice((200, 1000, 1500)), "jitter": dice.choice((0, 0.5, 1))}
    if dice.random() < 0.3:
        flow |= {"on_s": 0.5, "off_s": 0.3}
    return flow


def _workload(dice: random.Random, name: str, _duration_s: float) -> Json:
    arrivals = dice.choice(({"load": 0.3}, {"process": "deterministic", "per_s": 5}))
    sizes: Mapping[str, Any] = dice.choice(
        (
            {"distribution": "constant", "mean_bytes": 20_000},
            {"distribution": "pareto", "mean_bytes": 20_000, "shape": 1.3},
            {"distribution": "web-search", "scale": 0.05},
        )
    )
    work = {"arrivals": arrivals, "sizes": sizes, "connections": dice.choice(("new", "kept"))}
    return {
        "kind": "workload",
        "name": name,
        "variant": dice.choice(DRAWN_FROM),
        "workload": work,
    }


def _command(dice: random.Random, name: str, _duration_s: float) -> Json:
    words = {
        "server": ["iperf3", "--server", "--port", "{port}"],
        "client": ["iperf3", "--client", "{server_ip}", "--port", "{port}", "--bytes", "300K"],
        "upload": True,
    }
    return {
        "kind": "command",
        "name": name,
        "variant": dice.choice(DRAWN_FROM),
        "command": words,
    }


def _call(dice: random.Random, name: str, _duration_s: float) -> Json:
    return {"kind": "call", "name": name, "call": {"media": dice.choice(("voice", "video"))}}


Drawn = Callable[[random.Random, str, float], Json]
DRAWN_FLOWS: tuple[Drawn, ...] = (_tcp, _cbr, _workload, _command, _call)
DRAWN_FLOW_WEIGHTS = (60, 15, 12, 5, 4)
