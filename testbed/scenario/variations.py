"""Scenarios that are made of another: on other kernels, or with a drawn network.

A network is drawn so that repeats sample the phases of a network in which nothing is random. With
a full drop-tail queue, who loses a packet depends on the round trip modulo the time that the
bottleneck takes for one packet: a delay that is exact is one phase. Each rate and delay lies within
a small share of what the scenario says, or each delay within some such times. A number is drawn by
the seed and its place in the network: trials that differ in their flows have the same network for
the same seed, and are compared in pairs.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from testbed.scenario.model import BASE_KERNEL, FlowKind, Scenario
from testbed.scenario.named_networks import with_share_of_rtt
from testbed.scenario.network import FRAME_BYTES, Direction, Graph, Link, Queue
from testbed.scenario.queues import DISCIPLINES

KERNEL_AXIS = "kernel"
REALISTIC_AXIS = "realistic"

Settings = Mapping[str, Sequence[str]]


def split_kernels(settings: Settings, texts: Iterable[str]) -> tuple[Sequence[str], Settings]:
    """Return the kernels that are set, and the other settings.

    An experiment may have `kernel` as one of its axes, which is then not touched.
    """
    if KERNEL_AXIS in texts:
        return (), settings
    rest = {name: values for name, values in settings.items() if name != KERNEL_AXIS}
    return tuple(dict.fromkeys(settings.get(KERNEL_AXIS, ()))), rest


def on_kernels(scenarios: Iterable[Scenario], kernels: Sequence[str]) -> list[Scenario]:
    """Return each scenario on each of the kernels; unchanged if none is set."""
    if not kernels:
        return list(scenarios)
    return [_on(scenario, kernel) for scenario in scenarios for kernel in kernels]


def _on(scenario: Scenario, kernel: str) -> Scenario:
    """Return the scenario on that kernel, which its label names.

    The base kernel stays out of the label.
    """
    parts = (scenario.label, *(() if kernel == BASE_KERNEL else (f"{KERNEL_AXIS}-{kernel}",)))
    return dataclasses.replace(scenario, kernel=kernel, label="-".join(filter(None, parts)))


def all_realistic(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Return each scenario with what machines and radios do; its label says so."""
    return [
        dataclasses.replace(
            each, realistic=True, label="-".join(filter(None, (each.label, REALISTIC_AXIS)))
        )
        for each in scenarios
    ]


def axes_of(scenario: Scenario) -> Mapping[str, str]:
    """Return the scenario's place on its axes, its kernel included, and whether it is realistic.

    The base kernel is left out, unless the kernel is an axis of the experiment, and so is an exact
    network.
    """
    axes = scenario.axes
    if scenario.realistic and REALISTIC_AXIS not in axes:
        axes = {**axes, REALISTIC_AXIS: "true"}
    if scenario.kernel == BASE_KERNEL or KERNEL_AXIS in axes:
        return axes
    return {**axes, KERNEL_AXIS: scenario.kernel}


MIN_DELAY_MS = 0.001  # a delay that is drawn stays one
DRAWN_DIGITS = 3  # of rates and delays: tc is told whole microseconds, and rates in whole kbit/s


def is_drawn(scenario: Scenario) -> bool:
    """Return whether the seed draws the network's delays."""
    return bool(scenario.network_jitter or scenario.drawn_service_times or scenario.drawn_share)


def service_ms(network: Graph) -> float:
    """Return the time that the bottleneck takes for a full frame."""
    return FRAME_BYTES * 8e-3 / network.bottleneck_mbit


def drawn(scenario: Scenario) -> Scenario:
    """Return the scenario with the network that its seed draws."""
    if not is_drawn(scenario):
        return scenario
    range_ms = scenario.drawn_service_times * service_ms(scenario.network)
    dice = _Dice(scenario.seed, scenario.network_jitter, range_ms, scenario.drawn_share)
    graph = scenario.network
    links = [dice.link(link) for link in graph.links]
    if any(link.rtt_ms for link in links):
        bottleneck_ms = links[graph.links.index(graph.bottleneck_link)].forward.delay_ms
        links = [with_share_of_rtt(e, bottleneck_ms) if e.rtt_ms else e for e in links]
    network = dataclasses.replace(graph, links=tuple(links))
    return dataclasses.replace(scenario, network=network)


def exact_delays(scenario: Scenario) -> str:
    """Return a warning of one phase: several regular flows, exact delays, a drop-tail queue.

    Not where one packet takes longer than the round trip: drawn delays would make another network.
    Not where flows have losses of their own: these then decide who loses packets.
    """
    discipline = DISCIPLINES.get(scenario.network.bottleneck_queue.discipline)
    is_tail = discipline is not None and discipline.tail_drop
    directions = [one for link in scenario.network.links for one in link.directions]
    if not is_tail or is_drawn(scenario) or any(each.jitter_ms for each in directions):
        return ""
    flows = scenario.flows
    if len(flows) < 2 or any(each.kind not in (FlowKind.TCP, FlowKind.CBR) for each in flows):
        return ""
    if service_ms(scenario.network) > scenario.network.longest_rtt_ms:
        return ""
    if any(each.loss or each.drops for each in flows):
        return ""
    return (
        f"exact delays and a drop-tail queue: who loses packets depends on the round trip within "
        f"{service_ms(scenario.network):.3g} ms, one packet's time at the bottleneck: "
        '"drawn_service_times": 1 lets seeds draw it'
    )


@dataclasses.dataclass(frozen=True)
class _Dice:
    seed: int
    part: float
    range_ms: float  # of delays
    share: float  # of delays and buffers

    def draw(self, place: str, value: float) -> float:
        """Return a number within a part of the value, the same for the same seed and place."""
        dice = random.Random(f"{self.seed} network {place}")
        return round(value * dice.uniform(1 - self.part, 1 + self.part), DRAWN_DIGITS)

    def delay(self, place: str, delay_ms: float) -> float:
        """Return a delay within a part of it, and within the range around that or from 0 on."""
        delay_ms = round(self.draw(place, delay_ms) * self._shared(place), DRAWN_DIGITS)
        if not self.range_ms or not delay_ms:
            return delay_ms
        least_ms = max(MIN_DELAY_MS, delay_ms - self.range_ms / 2)
        dice = random.Random(f"{self.seed} range {place}")
        return round(least_ms + dice.uniform(0, self.range_ms), DRAWN_DIGITS)

    def _shared(self, place: str) -> float:
        dice = random.Random(f"{self.seed} share {place}")
        return dice.uniform(1 - self.share, 1 + self.share)

    def queue(self, place: str, queue: Queue | None) -> Queue | None:
        """Return a queue with another limit in the same unit, by a packet or byte at least."""
        if queue is None or not self.share or not DISCIPLINES[queue.discipline].limit.keyword:
            return queue
        dice = random.Random(f"{self.seed} share {place}")
        limits: dict[str, Any] = {}
        for name in ("limit_bytes", "limit_packets"):
            if (limit := getattr(queue, name)) is not None:
                step = max(1, round(limit * self.share))
                limits[name] = max(1, dice.randint(limit - step, limit + step))
        if queue.limit_bdp is not None:
            limits["limit_bdp"] = queue.limit_bdp * self._shared(place)
        return dataclasses.replace(queue, **limits)

    def link(self, link: Link) -> Link:
        """Return the link with what is drawn for it."""
        name, (forward, reverse) = link.drawn_as, link.directions
        if name:
            is_slower = reverse.rate_mbit != forward.rate_mbit
            places = (f"{name} rate", f"{name} back" if is_slower else f"{name} rate")
            delays = (f"{name} delay", f"{name} delay")
        else:
            places = (f"{link.name} there rate", f"{link.name} back rate")
            delays = (f"{link.name} there delay", f"{link.name} back delay")
        both = [self.direction(*each) for each in zip(link.directions, places, delays, strict=True)]
        return dataclasses.replace(
            link,
            forward=both[0],
            reverse=None if link.reverse is None else both[1],
            rtt_ms=None if link.rtt_ms is None else self.delay(name, link.rtt_ms),
        )

    def direction(self, direction: Direction, rate: str, delay: str) -> Direction:
        """Return the direction with its rate and its delay drawn by their places."""
        rate_mbit = direction.rate_mbit
        return dataclasses.replace(
            direction,
            rate_mbit=rate_mbit and self.draw(rate, rate_mbit),
            queue=self.queue(rate.replace("rate", "buffer"), direction.queue),
            # a packet is late by at most its delay
            delay_ms=max(direction.jitter_ms, self.delay(delay, direction.delay_ms)),
        )
