"""Changes of scenarios, each of one thing; scenarios drawn by a seed are recipes with some of them.

A change that `benchmarks.planted_faults` makes behind a trial's back is a fault.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import recipes
from testbed.errors import UsageError
from testbed.own_files.scenario_file import Document, in_document
from testbed.plan.plan import make_plan
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import BASE_KERNEL, Flow, FlowKind, Misbehaviour, Profile, Scenario
from testbed.scenario.network import Change as LinkChange
from testbed.scenario.network import Direction, Queue, Step

Dice = random.Random
ScenarioChange = Callable[[Dice, Scenario], Scenario | None]  # None: it has no such thing


# Directions of links


def direction(change: Callable[[Dice, Direction], Direction | None]) -> ScenarioChange:
    """Change one direction of a link that packets of a flow cross."""

    def bent(dice: Dice, scenario: Scenario) -> Scenario | None:
        network = scenario.network
        crossed = list[Step]()  # by data first
        for ends in (("src", "dst"), ("dst", "src")):
            paths = (operator.attrgetter(*ends)(flow) for flow in scenario.flows)
            steps = {step for src, dst in paths for step in network.steps_from(src)[dst]}
            crossed += dice.sample(sorted(steps), len(steps))
        for number, end in crossed:
            directions = list(network.links[number].directions)
            other = change(dice, directions[end])
            if other is not None and other != directions[end]:
                directions[end] = other
                return _with_directions(scenario, number, directions)
        return None

    return bent


def _with_directions(scenario: Scenario, number: int, both: Sequence[Direction]) -> Scenario:
    links = list(scenario.network.links)
    links[number] = dataclasses.replace(links[number], forward=both[0], reverse=both[1])
    network = dataclasses.replace(scenario.network, links=tuple(links))
    return dataclasses.replace(scenario, network=network)


def swapped(_dice: Dice, scenario: Scenario) -> Scenario | None:
    """Swap the directions of the first link that has two."""
    for number, link in enumerate(scenario.network.links):
        if link.directions[0] != link.directions[1]:
            return _with_directions(scenario, number, link.directions[::-1])
    return None


def scaled(name: str, factors: Sequence[float], least: float = 0.0) -> Any:
    """Change a number of whatever has it by one of the factors."""

    def change(dice: Dice, value: Any) -> Any:
        number = getattr(value, name)
        if not number or number < least or getattr(value, "trace", None):
            return None
        other = round(number * dice.choice(factors), 3)
        return dataclasses.replace(value, **{name: type(number)(other)})

    return change


def given(**options: Sequence[Any]) -> Any:
    """Give a field another value than it has: one of those listed."""

    def change(dice: Dice, value: Any) -> Any:
        names = {name: dice.choice(each) for name, each in options.items()}
        return dataclasses.replace(value, **names)

    return change


def queue(change: Callable[[Dice, Queue], Queue | None]) -> Any:
    """Change a direction's queue."""

    def bent(dice: Dice, value: Direction) -> Direction | None:
        other = change(dice, value.queue) if value.queue else None
        return dataclasses.replace(value, queue=other) if other else None

    return bent


def _limit(dice: Dice, value: Queue) -> Queue | None:
    for name in ("limit_packets", "limit_bytes", "limit_bdp"):
        if getattr(value, name):
            other: Queue = scaled(name, (0.5, 0.8, 1.25, 2))(dice, value)
            return other
    return None


def _options(dice: Dice, value: Queue) -> Queue | None:
    if not value.options:
        return None
    name = dice.choice(sorted(value.options))
    return dataclasses.replace(value, options={**value.options, name: 2 * value.options[name]})


def _jitter(_dice: Dice, value: Direction) -> Direction:
    return dataclasses.replace(value, jitter_ms=value.delay_ms / 2)


def _clean(_dice: Dice, value: Direction) -> Direction:
    return dataclasses.replace(value, loss=None, jitter_ms=0.0, reorder=0.0)


def _schedule(dice: Dice, value: Direction) -> Direction:
    """Make no change of the link, or each of them late; one of a link that does not change."""
    late = tuple(dataclasses.replace(each, at_s=each.at_s + 0.1) for each in value.schedule)
    if late or value.trace:
        return dataclasses.replace(value, schedule=dice.choice(((), late)))
    changes: tuple[dict[str, Any], ...] = ({"delay_ms": 20}, {"loss": 0.02}, {"up": False})
    if value.rate_mbit:
        changes += ({"rate_mbit": value.rate_mbit / 2}, {"rate_mbit": value.rate_mbit * 2})
    change = dice.choice(changes)
    back = {name: getattr(value, name, True) for name in change}
    times = (1, dice.choice((1.5, 2)))
    both = (LinkChange(at_s, **each) for at_s, each in zip(times, (change, back), strict=True))
    return dataclasses.replace(value, schedule=tuple(both))


# Flows


def flow(change: Callable[[Dice, Flow], Flow | None]) -> ScenarioChange:
    """Change one flow."""

    def bent(dice: Dice, scenario: Scenario) -> Scenario | None:
        flows = list(scenario.flows)
        for number in dice.sample(range(len(flows)), len(flows)):
            try:
                other = change(dice, flows[number])
            except (AttributeError, TypeError):  # a flow of another kind
                continue
            if other is not None and other != flows[number]:
                flows[number] = other
                return dataclasses.replace(scenario, flows=tuple(flows))
        return None

    return bent


def of_kind(kind: FlowKind, change: Any) -> Any:
    """Change flows of a kind alone."""
    return lambda dice, value: change(dice, value) if value.kind is kind else None


def _variant(dice: Dice, value: Flow) -> Flow | None:
    if value.kind not in (FlowKind.TCP, FlowKind.WORKLOAD):
        return None
    others = {"cubic", "linux-reno", "bbr", "vegas"} - {value.variant or ""}
    return dataclasses.replace(value, variant=dice.choice(sorted(others)))


def _turned(_dice: Dice, value: Flow) -> Flow:
    return dataclasses.replace(value, src=value.dst, dst=value.src)


def _sizes(_dice: Dice, value: Flow) -> Flow | None:
    if value.workload is None:
        return None
    sizes = value.workload.sizes
    other = dataclasses.replace(sizes, scale=1.2 * sizes.scale)
    return dataclasses.replace(value, workload=dataclasses.replace(value.workload, sizes=other))


def _profile(_dice: Dice, value: Scenario) -> Scenario:
    other = Profile.NS2 if value.profile is Profile.MODERN else Profile.MODERN
    return dataclasses.replace(value, profile=other)


# All of them

SCENARIO_CHANGES: Mapping[str, ScenarioChange] = {
    "rate": direction(scaled("rate_mbit", (0.9, 0.97, 1.03, 1.25))),
    "delay": direction(scaled("delay_ms", (0.8, 0.95, 1.05, 1.25), 1)),
    "queue's limit": direction(queue(_limit)),
    "queue's options": direction(queue(_options)),
    "queue discipline": direction(queue(given(discipline=("pfifo", "codel", "pie")))),
    "ECN": direction(queue(lambda _dice, value: dataclasses.replace(value, ecn=not value.ecn))),
    "losses": direction(given(loss=(GilbertElliott(0.01, 0.5),))),
    "overtaking": direction(given(reorder=(0.02,))),
    "jitter": direction(_jitter),
    "no jitter, losses or overtaking": direction(_clean),
    "aggregation": direction(given(aggregate_packets=(1, 4, 8))),
    "receiver that takes time": direction(given(hold_us=(0.0, 500.0))),
    "link's changes": direction(_schedule),
    "swapped directions": swapped,
    "control": flow(_variant),
    "segments' size": flow(of_kind(FlowKind.TCP, given(mss=(700, 1200)))),
    "window": flow(of_kind(FlowKind.TCP, given(window_bytes=(15_000, None)))),
    "retransmit timer": flow(of_kind(FlowKind.TCP, given(rto_min_ms=(50, 600)))),
    "connections": flow(of_kind(FlowKind.TCP, given(parallel=(1, 2, 4)))),
    "bytes": flow(scaled("bytes", (0.8, 1.25))),
    "flow's start": flow(given(start_s=(0.2, 0.7))),
    "flow's end": flow(given(duration_s=(1.0, 2.0))),
    "flow's ends swapped": flow(_turned),
    "CBR's rate": flow(of_kind(FlowKind.CBR, scaled("rate_mbit", (0.8, 1.25)))),
    "CBR's packets": flow(of_kind(FlowKind.CBR, scaled("packet_bytes", (0.5, 0.8)))),
    "CBR's pauses": flow(of_kind(FlowKind.CBR, given(on_s=(0.3,), off_s=(0.2,)))),
    "sizes of transfers": flow(_sizes),
    "losses of a flow": flow(given(loss=(None,), drops=((), (15, 30)))),
    "receiver that misbehaves": flow(of_kind(FlowKind.TCP, given(receiver=tuple(Misbehaviour)))),
    "profile": _profile,
    "seed": lambda _dice, value: dataclasses.replace(value, seed=7777),
}
DRAWN_SETTINGS: tuple[ScenarioChange, ...] = (
    given(realistic=(True,)),
    given(network_jitter=(0.05,)),
    given(drawn_service_times=(1.0,)),
    given(start_jitter_ms=(20.0,)),
    given(measure_from_s=(1.0,)),
    given(sample_interval_ms=(1, 100)),
    given(snaplen_bytes=(96,)),
)
DRAWN_COMMAND = {
    "server": ["iperf3", "--server", "--port", "{port}"],
    "client": ["iperf3", "--client", "{server_ip}", "--port", "{port}", "--bytes", "300K"],
    "upload": True,
}
DRAWN_MOST_CHANGES = 3
DRAWN_LONGEST_S = 6.0


@functools.cache
def bases() -> tuple[Scenario, ...]:
    """Return what is drawn from: short recipes without video, and one with a program."""
    program = {**recipes.tcp(), "kind": "command", "command": DRAWN_COMMAND}
    document = {"experiment": "verdicts", "label": "program"}
    document |= recipes.router(recipes.PFIFO_20, program)
    every = (*recipes.recipes().values(), in_document(Document(document), "drawn").scenario)
    return tuple(each for each in every if _is_base(each))


def _is_base(scenario: Scenario) -> bool:
    is_quick = scenario.kernel == BASE_KERNEL and scenario.duration_s <= DRAWN_LONGEST_S
    return is_quick and not any(flow.kind is FlowKind.VIDEO for flow in scenario.flows)


def drawn_scenario(seed: int, number: int) -> Scenario:
    """Return scenario `number` of a seed; what cannot run together is drawn again."""
    dice = Dice(f"{seed} {number}")
    changes = (*SCENARIO_CHANGES.values(), *DRAWN_SETTINGS)
    while True:
        scenario = dataclasses.replace(dice.choice(bases()), seed=dice.randrange(1, 1000))
        for change in dice.choices(changes, k=dice.randrange(DRAWN_MOST_CHANGES + 1)):
            scenario = change(dice, scenario) or scenario
        try:
            make_plan(scenario)
        except UsageError:
            continue
        return scenario
