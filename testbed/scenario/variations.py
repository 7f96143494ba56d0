"""What a paper leaves open, changed a little: an answer that does not survive it is not settled.

Each variation is a scenario's function; one that changes nothing in a scenario is not run. A varied
trial has the variation as one more axis, so that it is never taken for a repeat of the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from testbed.scenario.model import Flow, Scenario
from testbed.scenario.network import Direction, Link, Queue

AXIS = "variation"
STEP = 0.05  # of buffers and delays
TOGETHER_MS = 1000.0  # within which flows start that are said to start together

Change = Callable[[Scenario], Scenario]


def _starts(scenario: Scenario) -> Scenario:
    """Each start drawn within a second, unless a flow would be over by then."""
    lasts_s = min((flow.duration_s or scenario.duration_s for flow in scenario.flows), default=0)
    if lasts_s * 1e3 <= TOGETHER_MS:
        return scenario
    return dataclasses.replace(scenario, start_jitter_ms=max(scenario.start_jitter_ms, TOGETHER_MS))


def _buffers(factor: float) -> Change:
    return lambda scenario: _changed(scenario, queue=lambda queue: _sized(queue, factor))


def _delays(factor: float) -> Change:
    return lambda scenario: _changed(scenario, delay=lambda ms: round(ms * factor, 3))


def _changed(
    scenario: Scenario,
    queue: Callable[[Queue], Queue] = lambda queue: queue,
    delay: Callable[[float], float] = lambda delay_ms: delay_ms,
) -> Scenario:
    """Return the scenario with every queue and every delay of the network changed."""

    def direction(each: Direction) -> Direction:
        changed = each.queue and queue(each.queue)
        return dataclasses.replace(each, queue=changed, delay_ms=delay(each.delay_ms))

    def link(each: Link) -> Link:
        return dataclasses.replace(
            each,
            forward=direction(each.forward),
            reverse=each.reverse and direction(each.reverse),
            rtt_ms=each.rtt_ms and delay(each.rtt_ms),
        )

    graph = scenario.network
    network = dataclasses.replace(graph, links=tuple(map(link, graph.links)))
    return dataclasses.replace(scenario, network=network)


def _sized(queue: Queue, factor: float) -> Queue:
    """Another limit in the same unit; of a short one a packet is the smallest step."""
    limits: dict[str, Any] = {}
    for name in ("limit_bytes", "limit_packets"):
        if (limit := getattr(queue, name)) is not None:
            step = max(1, round(limit * abs(factor - 1)))
            limits[name] = max(1, limit + step if factor > 1 else limit - step)
    if queue.limit_bdp is not None:
        limits["limit_bdp"] = queue.limit_bdp * factor
    return dataclasses.replace(queue, **limits)


def _ecn(scenario: Scenario) -> Scenario:
    """Senders that ask for ECN do not, and the other way round, where the queue would mark."""
    marks = scenario.network.bottleneck_queue.ecn
    return dataclasses.replace(scenario, asks_ecn=scenario.asks_ecn != marks)


def _timer(scenario: Scenario) -> Scenario:
    """Linux's own minimum of the retransmission timer where another was set."""

    def own(flow: Flow) -> Flow:
        return dataclasses.replace(flow, rto_min_ms=None)

    return dataclasses.replace(scenario, flows=tuple(map(own, scenario.flows)))


VARIATIONS: Mapping[str, Change] = {
    "starts-within-1s": _starts,
    "buffers-less": _buffers(1 - STEP),
    "buffers-more": _buffers(1 + STEP),
    "delays-less": _delays(1 - STEP),
    "delays-more": _delays(1 + STEP),
    "other-ecn": _ecn,
    "linux-timer": _timer,
}
WORDS: Mapping[str, str] = {
    "starts-within-1s": "starts drawn within a second",
    "buffers-less": "buffers 5 % smaller",
    "buffers-more": "buffers 5 % larger",
    "delays-less": "delays 5 % shorter",
    "delays-more": "delays 5 % longer",
    "other-ecn": "ECN asked for where it was not, and the other way round",
    "linux-timer": "Linux's own retransmission timer",
}


def is_varied(scenario: Scenario) -> bool:
    """Whether something was changed in it that the paper leaves open."""
    return AXIS in scenario.axes


def with_variations(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """The scenarios, and each of them varied in every way that changes it."""
    plain = list(scenarios)
    varied = (
        dataclasses.replace(
            changed,
            label=f"{scenario.label}-{name}".lstrip("-"),
            axes={**scenario.axes, AXIS: name},
        )
        for name, change in VARIATIONS.items()
        for scenario in plain
        if (changed := change(scenario)) != scenario
    )
    return [*plain, *varied]
