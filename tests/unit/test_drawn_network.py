"""The seed's draw of a network: small, the same for the same seed, and seen in what is planned."""

from __future__ import annotations

import dataclasses

import pytest

from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.scenario.model import Scenario
from testbed.scenario.reading import read_scenario
from testbed.scenario.variations import drawn
from tests.scenarios import dumbbell, router, with_network

PART = 0.02


def jittered(seed: int = 1, **changes: object) -> Scenario:
    own = dataclasses.replace(router(seed=seed), network_jitter=PART)
    return dataclasses.replace(own, **changes)  # type: ignore[arg-type]


def rate(scenario: Scenario) -> float:
    (queue,) = (each for each in make_plan(scenario).queues if each.sampled)
    return queue.hop.rate_mbit


def test_rates_are_near_and_of_the_seed() -> None:
    nominal = router().network.bottleneck_mbit
    found = [rate(jittered(seed)) for seed in range(1, 9)]
    assert len(set(found)) == len(found)
    assert all(0 < abs(each / nominal - 1) <= PART for each in found)
    assert rate(jittered(1)) == found[0]


def test_delays_too() -> None:
    own = dataclasses.replace(router(delay_ms=10), network_jitter=PART)
    before, after = (
        [one.delay_ms for link in each.network.links for one in link.directions]
        for each in (own, drawn(own))
    )
    near = [(a, b) for a, b in zip(before, after, strict=True) if a]
    assert near and all(0 < abs(b / a - 1) <= PART for a, b in near)


def test_other_flows_have_the_same_network() -> None:
    """So that variants are compared in pairs."""
    one = jittered()
    (flow,) = one.flows
    other = dataclasses.replace(one, flows=(dataclasses.replace(flow, variant="bbr"),))
    assert drawn(one).network == drawn(other).network != one.network


def test_links_that_are_drawn_as_one_are_alike_and_others_differ() -> None:
    pairs = dataclasses.replace(dumbbell(), network_jitter=PART)
    first, *others = (link.forward for link in drawn(pairs).network.links[1:])
    assert all(each == first for each in others)
    links = tuple(dataclasses.replace(link, drawn_as="") for link in pairs.network.links)
    network = dataclasses.replace(pairs.network, links=links)
    single = drawn(dataclasses.replace(pairs, network=network)).network.links[1:]
    assert len({link.forward.delay_ms for link in single}) == len(single)


def test_a_round_trip_is_drawn_as_one_number() -> None:
    """The delays of a pair's access links make up what the bottleneck leaves of it."""
    pairs = dataclasses.replace(with_network(dumbbell(), rtts_ms=(60, 100)), network_jitter=PART)
    made = drawn(pairs).network
    for pair, nominal in ((1, 60), (2, 100)):
        ends = (f"sender{pair}-left", f"receiver{pair}-right")
        sender, receiver = (link for link in made.links if link.name in ends)
        assert sender.rtt_ms == receiver.rtt_ms != nominal
        crossed = 2 * (made.bottleneck.delay_ms + 2 * sender.forward.delay_ms)
        assert sender.rtt_ms == pytest.approx(crossed, abs=0.01)
        assert sender.rtt_ms == pytest.approx(nominal, rel=PART)


def test_without_it_nothing_changes() -> None:
    assert drawn(router()) == router()
    assert read_scenario(jittered().to_json()) == jittered()


def test_more_than_a_fifth_is_refused() -> None:
    with pytest.raises(UsageError, match="network_jitter"):
        make_plan(jittered(network_jitter=0.5))
