"""The access link: where its rates, delays and losses go, and what may not be asked of it."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.report.network_drawing import drawing
from analysis.trials.labels import losses_label, path_rtt_ms, rate_label, variation_label
from analysis.verdict import links
from analysis.verdict.checks import Grade
from experiments.rajore_gupta_sikka_jain.access_settings import CONGESTED_NETEM, NETWORKS
from testbed.errors import UsageError
from testbed.plan.check import validate
from testbed.plan.network import build_network
from testbed.plan.plan import Plan, make_plan
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import Scenario
from testbed.scenario.named_networks import described
from testbed.scenario.network import Change, Direction, Graph, Link, Node, Queue
from testbed.scenario.reading import read_scenario
from testbed.store.names import COUNTERS_FILE, IDLE_RTTS
from testbed.store.writing import write_table
from tests.scenarios import access, background, dumbbell, router, with_link, with_network
from tests.sealing import file_in

FIFO = Queue("pfifo", limit_packets=10)
CHANNEL = GilbertElliott(0.01, 0.5)


def test_each_way_has_its_rate_and_queue() -> None:
    built = build_network(NETWORKS["netem-congested"])
    down, up = built.path("server", "station"), built.path("station", "server")
    assert [hop.out.name for hop in down] == ["server-eth0", "isp-eth1", "ap-eth1"]
    rates = [[hop.direction.rate_mbit for hop in path] for path in (down, up)]
    assert rates == [[None, 100, 1.89], [0.01, 100, None]]
    assert built.graph.longest_rtt_ms == 2 * (10 + 2 + 10)
    shaped = build_network(NETWORKS["shaped"]).path("station", "server")
    assert (shaped[1].rate_mbit, shaped[1].full.packets) == (0.512, 127)


def test_the_way_back_through_one_router_has_the_other_rate() -> None:
    scenario = with_network(router(), reverse=Direction(0.25, queue=FIFO))
    forward, reverse = (
        build_network(scenario.network).path(*ends)
        for ends in (("sender1", "receiver"), ("receiver", "sender1"))
    )
    assert forward[1].rate_mbit == 1
    assert (reverse[1].rate_mbit, reverse[1].queue) == (0.25, FIFO)


def losses(plan: Plan) -> dict[str, GilbertElliott]:
    return {
        end: loss
        for each in plan.delays
        for number, end in enumerate(each.ends)
        if (loss := each.hop(number).direction.loss)
    }


def test_only_the_radio_loses() -> None:
    plan = make_plan(access("netem-congested"))
    assert losses(plan) == {"w2a": CONGESTED_NETEM.loss, "w2b": CONGESTED_NETEM.loss}
    assert not losses(make_plan(access("shaped")))


def test_a_loss_without_a_delay_has_a_wire() -> None:
    plan = make_plan(with_link(access("ethernet"), "ap-station", loss=CHANNEL))
    assert "netem" in [need.name for need in plan.needs]
    assert losses(plan) == {"w2a": CHANNEL, "w2b": CHANNEL}


def test_a_trial_lasts_until_its_slowest_queue_is_empty() -> None:
    assert make_plan(router(rate_mbit=10)).end_s == 5 + 2
    slow = make_plan(access("netem-congested"))
    # the flow, a second for tcpdump, a quarter for the last segment, 50 packets at 10 kbit/s
    assert slow.end_s == pytest.approx(5 + 1 + 0.25 + 50 * 1514 * 8 / 10_000)


def with_last(**settings: Any) -> Scenario:
    return with_link(access("ethernet"), "ap-station", **settings)


def with_reverse(**settings: Any) -> Scenario:
    return with_network(dumbbell(), reverse=Direction(**settings))


def test_netem_is_told_who_may_overtake_and_asked_for_it() -> None:
    plan = make_plan(with_last(delay_ms=5.0, reorder=0.1))
    told = [c.argv[4] for c in plan.setup if "reorder" in c.argv]
    assert told and told == [c.argv[4] for c in plan.setup if "5000.000us" in c.argv]
    asked = [each for each in plan.tc_objects if each.interface in told and each.kind == "netem"]
    numbers = [{each.name: each.value for each in wire.settings} for wire in asked]
    assert {(each["reordering"], each["gap"]) for each in numbers} == {(0.1, 1)}


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (with_last(jitter_ms=1.0), "links[2].forward.jitter_ms: 1 is not between 0 and delay_ms"),
        (with_last(jitter_ms=-1.0, delay_ms=5.0), "links[2].forward.jitter_ms: -1"),
        (with_last(reorder=0.1), "links[2].forward.reorder: without a delay_ms"),
        (
            with_last(reorder=1.1, delay_ms=5.0),
            "links[2].forward.reorder: 1.1 is not a probability",
        ),
        (
            with_last(reorder=0.1, delay_ms=5.0, jitter_ms=1.0),
            "links[2].forward.reorder: beside jitter_ms",
        ),
        (
            with_last(loss=GilbertElliott(0, 0.5)),
            "links[2].forward.loss.to_bad: 0 is not a probability",
        ),
        (
            with_last(loss=GilbertElliott(1e-9, 0.5)),
            "links[2].forward.loss.to_bad: 1e-09 is not a probability",
        ),
        (
            with_last(loss=GilbertElliott(0.5, 0.5)),
            "links[2].forward.loss: loses 50% of all packets",
        ),
        (with_reverse(rate_mbit=-1.0), "links[0].reverse.rate_mbit: -1"),
        (with_reverse(queue=FIFO), "links[0].reverse.queue: a queue needs a rate_mbit"),
        (
            with_reverse(rate_mbit=1.0, queue=Queue("pfifo")),
            "links[0].reverse.queue: give the limit",
        ),
        (
            with_link(background(), "receiver2-right", loss=CHANNEL),
            "flows[1].workload.arrivals.sessions.rtt_min_ms: receiver2-right has jitter, losses,",
        ),
    ],
)
def test_faults(scenario: Scenario, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(scenario)
    assert said in caught.value.message


@pytest.mark.parametrize("name", NETWORKS)
def test_the_papers_networks_are_sound(name: str) -> None:
    validate(access(name))
    assert read_scenario(access(name).to_json()) == access(name)


def test_how_it_is_shown() -> None:
    scenario = access("netem-congested")
    assert described(scenario.network) == "access-link, 1 station"
    assert rate_label(NETWORKS["shaped"].bottleneck_link) == "1.024/0.512 Mbit/s"
    assert rate_label(Link(("a", "b"))) == ""

    assert path_rtt_ms(scenario) == 44
    drawn = drawing([scenario])
    assert ">1.89/0.01 Mbit/s<" in drawn
    wrapped = (">10 ± 8 ms,<", ">1.9 % lost<", ">each way<")  # between the boxes
    assert all(line in drawn for line in wrapped)


def judged_idle(
    folder: pathlib.Path,
    rows: Sequence[tuple[object, ...]],
    jitter_ms: float = 0.0,
    virtual_time: bool = True,
) -> tuple[Grade, float | str | None]:
    (folder / "samples").mkdir()
    write_table(folder, IDLE_RTTS, rows)
    evidence: Any = SimpleNamespace(
        trial=SimpleNamespace(path=folder, file=file_in(folder)),
        scenario=with_link(
            router(rate_mbit=1000, delay_ms=22), "sender1-router", jitter_ms=jitter_ms
        ),
        flows=(SimpleNamespace(name="tcp"),),
        virtual_time=virtual_time,
    )
    (check,) = links.idle(evidence)
    return check.verdict, check.measured


@pytest.mark.parametrize(
    ("rtts_ms", "jitter_ms", "lossy", "expected"),
    [
        ((45.0, 59.9), 16.0, False, Grade.VALID),
        ((45.0, 62.0), 16.0, False, Grade.INVALID),  # later than it may be
        ((26.0, 44.0), 16.0, False, Grade.INVALID),  # sooner
        ((44.5, 44.0), 0.0, False, Grade.SUSPECT),
        ((44.0, None), 0.0, True, Grade.VALID),  # the channel's, one of them
        ((None, None), 0.0, True, Grade.UNKNOWN),
        ((44.0, None), 0.0, False, Grade.INVALID),
    ],
)
def test_echoes_may_vary_and_be_lost_where_that_was_asked_for(
    tmp_path: pathlib.Path,
    rtts_ms: tuple[float | None, ...],
    jitter_ms: float,
    lossy: bool,
    expected: Grade,
) -> None:
    rows = [
        ("tcp", "a", "b", "" if rtt is None else rtt, 44.0, jitter_ms, int(lossy))
        for rtt in rtts_ms
    ]
    assert judged_idle(tmp_path, rows, jitter_ms)[0] is expected


@pytest.mark.parametrize(
    ("rtts_ms", "expected"),
    [
        (("", 44.1, 44.1), Grade.VALID),
        ((44.1, "", 44.1), Grade.INVALID),
        (("", "", 44.1), Grade.INVALID),
    ],
)
def test_a_host_may_not_have_taken_a_link_into_service_at_the_first_echo(
    tmp_path: pathlib.Path, rtts_ms: tuple[object, ...], expected: Grade
) -> None:
    rows = [("tcp", "a", "b", rtt, 44.0, 0.0, 0) for rtt in rtts_ms]
    assert judged_idle(tmp_path, rows, virtual_time=False)[0] is expected


@pytest.mark.parametrize(
    ("counter", "expected"),
    [
        ("IpExtInCsumErrors", Grade.INVALID),
        ("TcpInCsumErrors", Grade.INVALID),
        ("UdpInCsumErrors", Grade.INVALID),
        ("IcmpInCsumErrors", Grade.VALID),  # Linux 6.18 has one of an answered echo request
    ],
)
def test_wrong_checksums_are_those_of_what_flows_send(
    tmp_path: pathlib.Path, counter: str, expected: Grade
) -> None:
    (tmp_path / "samples").mkdir()
    counters = {"a": {"TcpOutSegs": 9}, "b": {"TcpOutSegs": 9, counter: 1}}
    (tmp_path / COUNTERS_FILE).write_text(json.dumps(counters))
    evidence: Any = SimpleNamespace(
        trial=SimpleNamespace(path=tmp_path, file=file_in(tmp_path)), virtual_time=False
    )
    (check,) = links.damage(evidence)
    assert check.verdict is expected


def test_what_decides_beside_the_rate_is_named() -> None:
    changing = Direction(rate_mbit=8, schedule=(Change(2.0, rate_mbit=4),))
    assert variation_label(Link(("a", "b"), changing)) == "rate 4 to 8 Mbit/s"
    assert variation_label(Link(("a", "b"), Direction(rate_mbit=8, trace="phone"))) == "by a trace"
    assert variation_label(Link(("a", "b"), Direction(rate_mbit=8))) == ""
    lossy = Direction(loss=GilbertElliott(to_bad=0.01, to_good=1))
    graph = Graph((Node("a"), Node("b")), (Link(("a", "b"), Direction(), lossy),))
    assert losses_label(graph) == "0.99 % lost from b to a"
