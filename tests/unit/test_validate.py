"""Faults of meaning: found before anything is done, all of them, each with its field."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.plan.check import faults, validate, warnings
from testbed.plan.network import build_network
from testbed.plan.plan import make_plan
from testbed.scenario.model import CapturePoint, Scenario
from testbed.scenario.network import Change, Queue, Shaping
from tests.scenarios import dumbbell, router, with_network


def with_flow(**changes: Any) -> Scenario:
    scenario = router()
    return dataclasses.replace(scenario, flows=(dataclasses.replace(scenario.flows[0], **changes),))


def with_queue(queue: Queue, rate_mbit: float = 1) -> Scenario:
    return with_network(router(), rate_mbit=rate_mbit, queue=queue)


def cbr(**changes: Any) -> Scenario:
    scenario = router(cbr_mbit=0.5)
    changed = dataclasses.replace(scenario.flows[1], **changes)
    return dataclasses.replace(scenario, flows=(scenario.flows[0], changed))


FIFO = Queue("bfifo", limit_bytes=100_000)


@pytest.mark.parametrize("scenario", [router(), router(cbr_mbit=0.5), dumbbell()])
def test_sound_scenarios_pass(scenario: Scenario) -> None:
    validate(scenario)


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (
            with_flow(variant="Reno!"),
            "flows[0].variant: unknown variant 'Reno!': did you mean 'reno'",
        ),
        (with_flow(variant=None), "flows[0].variant: missing"),
        (with_flow(src="sender9"), "flows[0].src: unknown node 'sender9': did you mean 'sender1'"),
        (with_flow(dst="sender1"), "flows[0]: goes from sender1 to itself"),
        (with_flow(start_s=7.0), "flows[0].start_s: 7 is not within the trial's 5 s"),
        (with_flow(duration_s=0.0), "flows[0].duration_s"),
        (with_flow(duration_s=0.05), "flows[0]: runs for less than 0.1 s"),
        (router(duration_s=1e-9), "flows[0]: runs for less than 0.1 s"),
        (router(seed=-1), "seed: -1 is not between 0 and 4294967295"),
        (router(seed=2**32), "seed: 4294967296 is not between"),
        (router(snaplen_bytes=53), "snaplen_bytes: 53 is not between 54"),
        (router(snaplen_bytes=262_145), "262144, tcpdump's most"),
        (router(sample_interval_ms=0.01), "sample_interval_ms: 0.01 is neither 0 nor between 0.1"),
        (router(sample_interval_ms=1, duration_s=3600), "sample_interval_ms: 1 makes 3.6e+06 rows"),
        (router(captures=(CapturePoint.SENDERS,) * 2), "captures: a point is named twice"),
        (router(delay_ms=2000), "flows[0]: 5 s are too short for a round trip of 4 s: at least 8"),
        (router(delay_ms=60_000, duration_s=900), "opens over a round trip of 120 s (60)"),
        (router(delay_ms=1e308), "delay_ms: 1e+308 is not between 0 and 60000"),
        (router(delay_ms=33.333333), "delay_ms: 33.333333 ms is not a whole number of micros"),
        (
            with_flow(bytes=2**60),
            "flows[0].bytes: 1152921504606846976 is not between 1 and 1125899906842624",
        ),
        (with_flow(window_bytes=1), "flows[0].window_bytes: 1 is not between 88"),
        (
            with_flow(drops=(2**40,)),
            "flows[0].drops[0]: 1099511627776 is not between 1 and 536870912",
        ),
        (with_flow(jitter=0.1), "flows[0].jitter: of flows of kind cbr; this is tcp"),
        (cbr(parallel=2), "flows[1].parallel: of flows of kind tcp; this is cbr"),
        (cbr(parallel=10**9), "flows[1].parallel: 1000000000 is not between 1 and 64"),
        (cbr(rate_mbit=1e-9), "flows[1].rate_mbit: 1e-09 is not between 0.001"),
        (with_queue(FIFO, rate_mbit=1e-6), "forward.rate_mbit: 1e-06 is not between 0.001"),
        (
            with_queue(Queue("bfifo", limit_bytes=2**32 - 1), rate_mbit=0.01),
            "router-eth0: its queue of 4294967295 B would take 3.44e+06 s to drain",
        ),
        (with_queue(Queue("red", limit_bytes=2000)), "router-eth0: tc finds no average for RED"),
        (router(start_jitter_ms=-1.0), "start_jitter_ms: -1"),
        (
            router(measure_from_s=-1.0),
            "measure_from_s: -1 is not within the trial: from 0",
        ),
        (router(measure_from_s=5.0), "measure_from_s: 5 is not within the trial's 5 s"),
        (router(start_jitter_ms=5000.0), "flows[0].start_s: 0 is not within the trial's 5 s"),
        (with_flow(mss=9000), "flows[0].mss"),
        (with_flow(parallel=0), "flows[0].parallel"),
        (with_flow(bytes=-1), "flows[0].bytes"),
        (with_flow(rate_mbit=1.0), "flows[0].rate_mbit: of flows of kind cbr; this is tcp"),
        (with_queue(Queue("bfifo")), "give the limit in one unit"),
        (
            with_queue(Queue("bfifo", limit_bytes=9000, limit_packets=9)),
            "give the limit in one unit",
        ),
        (with_queue(Queue("bfifo", limit_bytes=-5)), "-5 is not between 1514, a full frame, and"),
        (with_queue(Queue("bfifo", limit_bytes=100)), "100 is not between 1514, a full frame, and"),
        (with_queue(Queue("bfido", limit_bytes=9000)), "did you mean 'bfifo'"),
        (with_queue(Queue("bfifo", limit_bytes=9000, ecn=True)), "bfifo can't mark"),
        (with_queue(Queue("codel", limit_packets=9, options={"tgt": 1})), "no such option"),
        (
            with_queue(Queue("codel", limit_packets=9, options={"target_ms": -1})),
            "target_ms: -1 is below 0.02",
        ),
        (with_queue(Queue("bfifo", limit_bdp=1)), "no path has a delay, so there is no BDP"),
        (with_queue(FIFO, rate_mbit=0), "network.links[1].forward.rate_mbit"),
        (
            with_queue(FIFO, rate_mbit=1e9),
            "forward.rate_mbit: 1e+09 is not between 0.001 and 100000",
        ),
        (
            with_network(router(), access={"shaping": Shaping.HTB}),
            "network.links[0].forward.shaping: htb: needs a rate_mbit, and no trace",
        ),
        (with_network(router(), access={"delay_ms": -1}), "links[0].forward.delay_ms"),
        (with_network(router(), access={"queue": FIFO}), "needs a rate_mbit"),
        (cbr(rate_mbit=None), "needs rate_mbit and packet_bytes"),
        (cbr(packet_bytes=20), "packet_bytes: 20"),
        (cbr(jitter=2.0), "jitter: 2"),
        (cbr(name="tcp"), "the name 'tcp' is used twice"),
        (
            cbr(variant="reno"),
            "variant: of flows of kind tcp or video or workload or command or stack; this is cbr",
        ),
        (router(duration_s=0), "duration_s: 0"),
        (router(sample_interval_ms=-1.0), "sample_interval_ms: -1"),
    ],
)
def test_every_fault_is_found(scenario: Scenario, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(scenario)
    assert said in caught.value.message


def test_faults_are_reported_together() -> None:
    scenario = dataclasses.replace(with_flow(variant="RENO", src="nowhere"), duration_s=-1.0)
    with pytest.raises(UsageError) as caught:
        validate(scenario)
    for field in ("duration_s", "flows[0].src", "flows[0].variant"):
        assert field in caught.value.message


def two_variants(one: str, other: str, **settings: Any) -> Scenario:
    scenario = router(variant=one, **settings)
    second = dataclasses.replace(scenario.flows[0], name="other", variant=other)
    return dataclasses.replace(scenario, flows=(*scenario.flows, second))


def test_one_host_sends_two_variants_each_by_its_sockets() -> None:
    plan = make_plan(two_variants("cubic", "bbr"))
    words = [flow.client.argv for flow in plan.flows]
    assert [each[each.index("--congestion") + 1] for each in words] == ["cubic", "bbr"]
    alone = make_plan(router(variant="cubic")).flows[0].client.argv
    assert "--congestion" not in alone  # the host's own


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("cubic", "newreno", "newreno needs .*tcp_sack 0.* there, and cubic does not"),
        ("sack", "newreno", "newreno needs tcp_sack 0 there, and sack does not"),
        ("cubic", "dctcp", "answers cubic and dctcp by one route, but not alike"),
    ],
)
def test_settings_that_two_variants_of_a_host_need_are_named(
    one: str, other: str, said: str
) -> None:
    queue = Queue("codel", limit_packets=100, ecn=True)
    with pytest.raises(UsageError, match=said):
        validate(two_variants(one, other, queue=queue))


def test_two_variants_of_the_same_settings_need_no_hosts_of_their_own() -> None:
    validate(two_variants("reno", "newreno"))


def test_seeds_start_flows_at_other_times() -> None:
    """By up to the jitter, each flow by its own; the same seed at the same times."""
    plans = [make_plan(router(seed=seed, cbr_mbit=0.1, start_jitter_ms=50)) for seed in (1, 1, 2)]
    starts = [[flow.start_s for flow in plan.flows] for plan in plans]
    assert starts[0] == starts[1] != starts[2]
    assert len({*starts[0], *starts[2]}) == 4
    assert all(0 < start < 0.05 for each in starts for start in each)
    assert [flow.start_s for flow in make_plan(router()).flows] == [0]


def test_a_path_without_delay_is_warned_of() -> None:
    """Its first round trip takes no time in the guest, unless its link takes time to send it."""
    by_htb = with_network(router(), shaping=Shaping.HTB)
    assert any("tcp: its path has no delay" in each for each in make_plan(by_htb).warnings)
    assert not any("no delay" in each for each in make_plan(router()).warnings)
    delayed = with_network(by_htb, access={"delay_ms": 0.05})
    assert not any("no delay" in each for each in make_plan(delayed).warnings)


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (router(snaplen_bytes=93), "snaplen_bytes: 93 may cut options of TCP"),
        (router(snaplen_bytes=94), ""),
        (with_flow(rto_min_ms=1), "tcp: rto_min_ms: 1 is 4 ms, and up to 4 ms more"),
        (with_flow(rto_min_ms=8), "tcp: rto_min_ms: 8 is 8 ms, and up to 4 ms more"),
        (with_flow(rto_min_ms=137), ""),
        (
            with_network(
                router(),
                queue=Queue("pfifo", limit_bdp=1),
                delay_ms=10,
                schedule=(Change(1, rate_mbit=25),),
            ),
            ": its limit of 1 BDP is that of 1 Mbit/s, and 0.04 BDP at 25 Mbit/s",
        ),
    ],
)
def test_settings_that_mean_something_else_are_told(scenario: Scenario, said: str) -> None:
    told = [*warnings(scenario, build_network(scenario.network), ())]
    mine = ("may cut", "ticks", "its limit of", "paces single")
    found = [text for text in told if any(word in text for word in mine)]
    assert bool(found) == bool(said) and all(said in text for text in found)


def test_only_the_host_forbids_segments_at_once_and_warns() -> None:
    """The guest's kernel cuts them; another one would count several as one packet."""
    own = with_network(router(variant="bbr"), access={"rate_mbit": 100})
    command = "ip link set sender1-eth0 up gso_max_segs 1"
    for scenario, virtual_time, expected in (
        (own, True, False),
        (own, False, True),
        (router(variant="bbr"), False, False),
    ):
        plan = make_plan(scenario, virtual_time=virtual_time)
        assert (command in [" ".join(each.argv) for each in plan.setup]) is expected
        assert (("sender1", "sender1-eth0") in plan.one_segment) is expected
        assert any("bbr paces single" in each for each in plan.warnings) is expected


def test_over_ipv6_a_capture_holds_the_headers() -> None:
    six = router(snaplen_bytes=73)
    six = dataclasses.replace(six, network=dataclasses.replace(six.network, ip=6))
    assert "snaplen_bytes: 73 does not hold IPv6's header" in str(faults(six)[0])
