"""The seed's draw of a network: small, the same for the same seed, and seen in what is planned."""

from __future__ import annotations

import dataclasses

import pytest

from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.scenario.builders import graph_of
from testbed.scenario.drawn_network import drawn
from testbed.scenario.model import Scenario
from tests.scenarios import router

PART = 0.02


def jittered(seed: int = 1, **changes: object) -> Scenario:
    own = dataclasses.replace(router(seed=seed), network_jitter=PART)
    return dataclasses.replace(own, **changes)  # type: ignore[arg-type]


def rate(scenario: Scenario) -> float:
    (queue,) = (each for each in make_plan(scenario).queues if each.sampled)
    return queue.shaper.rate_mbit


def test_rates_are_near_and_of_the_seed() -> None:
    nominal = router().topology.bottleneck.rate_mbit
    found = [rate(jittered(seed)) for seed in range(1, 9)]
    assert len(set(found)) == len(found)
    assert all(0 < abs(each / nominal - 1) <= PART for each in found)
    assert rate(jittered(1)) == found[0]


def test_delays_too() -> None:
    own = dataclasses.replace(router(delay_ms=10), network_jitter=PART)
    before, after = (
        [way.delay_ms for link in graph_of(each.topology).links for way in link.directions]
        for each in (own, drawn(own))
    )
    near = [(a, b) for a, b in zip(before, after, strict=True) if a]
    assert near and all(0 < abs(b / a - 1) <= PART for a, b in near)


def test_other_flows_have_the_same_network() -> None:
    """So that variants are compared in pairs."""
    one = jittered()
    (flow,) = one.flows
    other = dataclasses.replace(one, flows=(dataclasses.replace(flow, variant="bbr"),))
    assert drawn(one).topology == drawn(other).topology != one.topology


def test_a_graph_is_drawn_as_well() -> None:
    graph = graph_of(router().topology)
    one = jittered(topology=graph)
    links = drawn(one).topology
    assert links != graph and links == drawn(one).topology


def test_without_it_nothing_changes() -> None:
    assert drawn(router()) == router()
    assert "network_jitter" not in router().to_json()
    assert Scenario.from_json(jittered().to_json()) == jittered()


def test_more_than_a_fifth_is_refused() -> None:
    with pytest.raises(UsageError, match="network_jitter"):
        make_plan(jittered(network_jitter=0.5))
