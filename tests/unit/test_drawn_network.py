"""The seed's draw of a network: small, the same for the same seed, and seen in what is planned."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from analysis.verdict.checks import Check, Grade
from analysis.verdict.queues import phase
from analysis.verdict.verdict import worst_verdict
from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.scenario.model import Scenario
from testbed.scenario.network import Queue
from testbed.scenario.reading import read_scenario
from testbed.scenario.variations import drawn, exact_delays
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


def limits(scenario: Scenario) -> list[tuple[int | None, int | None, float | None]]:
    queues = (d.queue for link in scenario.network.links for d in link.directions if d.queue)
    return [(each.limit_bytes, each.limit_packets, each.limit_bdp) for each in queues]


@pytest.mark.parametrize(
    ("queue", "least", "most"),
    [
        (Queue("bfifo", limit_bytes=40_000), 38_000, 42_000),
        (Queue("pfifo", limit_packets=10), 9, 11),  # a packet at least
        (Queue("codel", limit_packets=100), 95, 105),
        (Queue("pfifo", limit_bdp=2), 1.9, 2.1),
    ],
)
def test_delays_and_buffers_are_drawn_within_a_share(
    queue: Queue, least: float, most: float
) -> None:
    own = router(delay_ms=10, queue=queue)
    networks = [
        drawn(dataclasses.replace(own, seed=seed, drawn_share=0.05)) for seed in range(1, 40)
    ]
    values = [value for each in networks for limit in limits(each) for value in limit if value]
    assert all(least <= value <= most for value in values)
    assert min(values) < least + (most - least) / 4 and max(values) > most - (most - least) / 4
    assert len({each.network.bottleneck_mbit for each in networks}) == 1  # rates stay
    delays = [one.delay_ms for each in networks for link in each.network.links
              for one in link.directions if one.delay_ms]  # fmt: skip
    assert all(9.5 <= each <= 10.5 for each in delays) and len(set(delays)) > 20


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


def in_service_times(number: float, seed: int = 1, base: Scenario | None = None) -> Scenario:
    return dataclasses.replace(base or dumbbell(), drawn_service_times=number, seed=seed)


def test_delays_are_drawn_over_a_packets_time() -> None:
    """Uniformly around what the scenario says; rates stay as they are."""
    nominal = dumbbell().network.bottleneck
    assert nominal.rate_mbit is not None
    wide_ms = 1514 * 8e-3 / nominal.rate_mbit
    made = [drawn(in_service_times(1, seed)).network.bottleneck for seed in range(400)]
    assert {each.rate_mbit for each in made} == {nominal.rate_mbit}
    parts = sorted((each.delay_ms - nominal.delay_ms) / wide_ms for each in made)
    assert -0.501 < parts[0] < -0.48 and 0.48 < parts[-1] < 0.501
    uniform = [(n + 0.5) / len(parts) - 0.5 for n in range(len(parts))]
    assert max(abs(a - b) for a, b in zip(parts, uniform, strict=True)) < 0.07


def test_a_short_delay_is_drawn_from_nothing_on_and_none_stays_none() -> None:
    short = router(delay_ms=0.01)
    found = [drawn(in_service_times(2, seed, short)).network for seed in range(50)]
    delays = [one.delay_ms for each in found for link in each.links for one in link.directions]
    wide_ms = 2 * 1514 * 8e-3 / short.network.bottleneck_mbit
    there = [each for each in delays if each]
    assert there and min(there) > 0 and 0.9 * wide_ms < max(there) <= wide_ms + 0.001
    without = [one.delay_ms for link in short.network.links for one in link.directions]
    assert delays.count(0) == 50 * without.count(0)


def test_exact_delays_and_a_full_fifo_are_one_phase() -> None:
    one = router(delay_ms=10)
    (flow,) = one.flows
    two = dataclasses.replace(one, flows=(flow, dataclasses.replace(flow, name="other")))
    short = dataclasses.replace(router(delay_ms=0.225), flows=two.flows)  # below one packet's time
    assert "drawn_service_times" in exact_delays(two) and "12.1 ms" in exact_delays(two)
    codel = with_network(two, queue=Queue("codel", limit_packets=99))
    for scenario in (
        one,  # a flow by itself
        short,
        dataclasses.replace(two, network_jitter=PART),
        dataclasses.replace(two, drawn_service_times=1.0),
        codel,
        dataclasses.replace(two, flows=(flow, dataclasses.replace(flow, name="other", drops=(9,)))),
    ):
        assert not exact_delays(scenario)


def test_the_verdict_notes_one_phase_and_stays_valid() -> None:
    """Only where the queue dropped packets."""
    one = router(delay_ms=10)
    (flow,) = one.flows
    two = dataclasses.replace(one, flows=(flow, dataclasses.replace(flow, name="other")))
    queue = SimpleNamespace(interface="router-eth0")

    def noted(scenario: Scenario, lost: int) -> list[Check]:
        evidence = SimpleNamespace(trial=SimpleNamespace(scenario=scenario), virtual_time=True)
        transit = SimpleNamespace(lost_ns=[0] * lost)
        return list(phase(evidence, queue, transit))  # type: ignore[arg-type]

    (note,) = noted(two, 3)
    assert note.verdict is Grade.VALID and "drawn_service_times" in note.why
    verdict = worst_verdict((note,))
    assert (verdict.verdict, verdict.why) == (Grade.VALID, "")
    assert not noted(two, 0) and not noted(in_service_times(1, base=two), 3)


def test_more_than_a_fifth_is_refused() -> None:
    with pytest.raises(UsageError, match="network_jitter"):
        make_plan(jittered(network_jitter=0.5))
    with pytest.raises(UsageError, match="drawn_service_times: 11"):
        make_plan(in_service_times(11))
