"""A network whose rates and delays the seed draws, so that repeats sample phases of a network in
which nothing is random: each number lies within a small part of what the scenario says.

A number is drawn by the seed and its place in the network: trials that differ in their flows have
the same network for the same seed, and are compared in pairs.
"""

from __future__ import annotations

import dataclasses
import random

from testbed.scenario.model import Scenario
from testbed.scenario.named_networks import with_share_of_rtt
from testbed.scenario.network import Direction, Link

MOST_NETWORK_JITTER = 0.2  # with more, a trial is no repeat of another
DIGITS = 3  # of rates and delays: tc is told whole microseconds, and rates in whole kbit/s


def drawn(scenario: Scenario) -> Scenario:
    """Return the scenario with the network that its seed draws."""
    if not scenario.network_jitter:
        return scenario
    dice = _Dice(scenario.seed, scenario.network_jitter)
    graph = scenario.network
    links = [dice.link(link) for link in graph.links]
    if any(link.rtt_ms for link in links):
        bottleneck_ms = links[graph.links.index(graph.bottleneck_link)].forward.delay_ms
        links = [with_share_of_rtt(e, bottleneck_ms) if e.rtt_ms else e for e in links]
    network = dataclasses.replace(graph, links=tuple(links))
    return dataclasses.replace(scenario, network=network)


@dataclasses.dataclass(frozen=True)
class _Dice:
    seed: int
    part: float

    def draw(self, place: str, value: float) -> float:
        """Return a number within a part of the value, the same for the same seed and place."""
        dice = random.Random(f"{self.seed} network {place}")
        return round(value * dice.uniform(1 - self.part, 1 + self.part), DIGITS)

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
            rtt_ms=None if link.rtt_ms is None else self.draw(name, link.rtt_ms),
        )

    def direction(self, direction: Direction, rate: str, delay: str) -> Direction:
        """Return the direction with its rate and its delay drawn by their places."""
        rate_mbit = direction.rate_mbit
        return dataclasses.replace(
            direction,
            rate_mbit=rate_mbit and self.draw(rate, rate_mbit),
            delay_ms=self.draw(delay, direction.delay_ms),
        )
