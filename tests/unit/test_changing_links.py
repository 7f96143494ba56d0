"""Schedules and traces: how scenarios hold them, where they hold, and their faults."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.trials.capacity import Capacity
from analysis.verdict.changing_links import departures, down_stretches
from testbed.errors import UsageError
from testbed.plan.check import validate
from testbed.plan.network import build_network
from testbed.plan.plan import make_plan
from testbed.runs.sources import kernel_sources, parts_of
from testbed.scenario.file_sweep import fields, sweep
from testbed.scenario.make_traces import TRACES, text_of
from testbed.scenario.model import FlowChange, Scenario
from testbed.scenario.network import Change, Direction, Queue, Shaping
from testbed.scenario.reading import ScenarioDocument, read_scenario
from testbed.scenario.trace import (
    TRACE_FOLDER,
    bundled_traces,
    parse_trace,
    read_trace,
    trace_content,
    trace_summary,
    with_traces,
)
from tests.scenarios import dumbbell, router, with_network
from tests.unit.test_graph import graph, scenario

STEP = (Change(1, rate_mbit=2), Change(3, rate_mbit=10))
DOWN = (Change(1, up=False), Change(3, up=True))
QUEUE = Queue("pfifo", limit_packets=20)


def changed(base: Scenario, **values: object) -> Scenario:
    """With other settings of its bottleneck."""
    return with_network(base, **values)  # type: ignore[arg-type]


def fault_of(base: Scenario) -> str:
    with pytest.raises(UsageError) as found:
        validate(base)
    return found.value.message


def test_a_longer_queue_is_waited_for() -> None:
    longer = (Change(1, limit_packets=40), Change(2, rate_mbit=5))
    usual, other = (
        build_network(changed(dumbbell(), queue=QUEUE, schedule=each).network).shaped[0].drain_s
        for each in ((), longer)
    )
    assert other == pytest.approx(4 * usual)


@pytest.mark.parametrize("values", [{"schedule": STEP + DOWN[2:]}, {"trace": "0 5*3 9"}])
def test_changes_travel_as_json(values: dict[str, object]) -> None:
    base = changed(router(), **values)
    assert read_scenario(base.to_json()) == base


def test_the_reverse_direction_is_alike_unless_it_is_given() -> None:
    both = (*STEP, Change(4, up=False))
    alike = changed(dumbbell(), queue=QUEUE, schedule=both, trace="5").network.links[0]
    assert (
        alike.directions[1] == alike.forward == Direction(10, 10, QUEUE, trace="5", schedule=both)
    )
    other = Direction(1, 3)
    assert changed(dumbbell(), reverse=other).network.links[0].directions[1] == other


def test_a_routers_way_back_has_the_rate_at_the_senders_and_the_wire_behind_it() -> None:
    network = build_network(changed(router(), schedule=(Change(1, rate_mbit=2, up=False),)).network)
    hops = {both[0].link.name: both for both in network.hops}
    middle, own = hops["router-receiver"], hops["sender1-router"]
    assert [hop.wire_changes for hop in middle] == [(Change(1, up=False),)] * 2
    assert middle[0].queue_changes == own[1].queue_changes == (Change(1, rate_mbit=2),)
    assert [hop.wire_changes for hop in own] == [(), ()]
    assert [hop.is_shaped for hop in (*middle, *own)] == [True, False, False, True]


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        ((Change(3, up=False), Change(1, up=True)), "schedule[1].at_s: 1 is not after 3"),
        ((Change(1, up=False), Change(1, up=True)), "schedule[1].at_s: 1 is not after 1"),
        ((Change(5, up=False),), "schedule[0].at_s: 5 is not within the trial"),
        ((Change(-1, up=False),), "schedule[0].at_s: -1 is not within the trial"),
        ((Change(1),), "schedule[0]: changes nothing"),
        ((Change(1, rate_mbit=0),), "schedule[0].rate_mbit: 0 is not between"),
        ((Change(1, delay_ms=-1),), "schedule[0].delay_ms: -1 is not between"),
        ((Change(1, delay_ms=0.0001),), "schedule[0].delay_ms: 0.0001 ms is not a whole number"),
        ((Change(1, loss=1.5),), "schedule[0].loss: 1.5 is not a probability"),
        ((Change(1, loss=0.5), Change(2, mark=True)), "schedule[1].mark: the link loses packets"),
    ],
)
def test_a_schedules_fault_has_its_place(schedule: tuple[Change, ...], fault: str) -> None:
    base = dataclasses.replace(changed(router(), schedule=schedule), duration_s=5)
    assert f"network.links[1].forward.{fault}" in fault_of(base)
    reverse = Direction(10, 10, QUEUE, schedule=schedule)
    other = dataclasses.replace(changed(dumbbell(), reverse=reverse), duration_s=5)
    assert f"network.links[0].reverse.{fault}" in fault_of(other)


def test_a_direction_of_a_graph_is_looked_at_too() -> None:
    def of(reverse: Direction) -> Scenario:
        made = graph("a r=router b", "a-r", ("r-b", Direction(5, 1, QUEUE)))
        links = (made.links[0], dataclasses.replace(made.links[1], reverse=reverse))
        return scenario(dataclasses.replace(made, links=links), "a-b")

    assert "links[1].reverse.trace: needs a rate_mbit" in fault_of(of(Direction(trace="5")))
    bare = Direction(delay_ms=1, schedule=STEP)
    assert "links[1].reverse.schedule: there is no rate_mbit to change" in fault_of(of(bare))
    limit = (Change(1, limit_packets=9),)
    bare = Direction(delay_ms=1, schedule=limit)
    assert "limit_packets: there is no rate_mbit" in fault_of(of(bare))
    red = Direction(5, 1, Queue("red", limit_bytes=60_000), schedule=limit)
    assert "limit_packets: the queue is a red, whose limit is in bytes" in fault_of(of(red))
    both = Direction(5, 1, QUEUE, trace="5", schedule=STEP)
    assert "a rate_mbit beside a trace" in fault_of(of(both))


RED = Queue("red", limit_bytes=60_000, options={"min_bytes": 5000, "max_bytes": 15_000})
FQ_CODEL = Queue("fq_codel", limit_packets=900, options={"flows": 64})


@pytest.mark.parametrize(
    ("queue", "change", "words", "back"),
    [
        (
            RED,
            Change(1, options={"probability": 0.1}),
            "red limit 60000 min 5000 max 15000 avpkt 1000 burst 9 probability 0.1 "
            "bandwidth 1000000bit",
            "red limit 60000 min 5000 max 15000 avpkt 1000 burst 9 probability 0.02 "
            "bandwidth 1000000bit",
        ),
        (
            FQ_CODEL,  # its flows, which only a new one takes, are not repeated
            Change(1, limit_packets=50, options={"ce_threshold_ms": 2}),
            "fq_codel limit 50 target 5ms interval 100ms ce_threshold 2ms quantum 1514 noecn",
            "fq_codel limit 900 target 5ms interval 100ms ce_threshold 2199023255us quantum 1514 "
            "noecn",
        ),
        (
            Queue("codel", limit_packets=9, ecn=True),
            Change(1, ecn=False),
            "codel limit 9 target 5ms interval 100ms ce_threshold 2199023255us noecn",
            "codel limit 9 target 5ms interval 100ms ce_threshold 2199023255us ecn",
        ),
        (QUEUE, Change(1, limit_packets=5), "pfifo limit 5", "pfifo limit 20"),
    ],
    ids=["red", "fq_codel", "codel", "pfifo"],
)
def test_tc_changes_a_queue_and_sets_it_back(
    queue: Queue, change: Change, words: str, back: str
) -> None:
    plan = make_plan(changed(router(), queue=queue, schedule=(change,)))
    made = next(each for each in plan.changes if each.interface == "router-eth1")
    place = "tc qdisc change dev router-eth1 parent 1:1 handle 30: "
    told = [" ".join(each.argv) for each in (made.command, made.undoing) if each]
    assert told == [place + each for each in (words, back)]


def test_changes_of_a_queue_add_up() -> None:
    later = (Change(1, options={"max_bytes": 30_000}), Change(2, limit_bytes=90_000))
    (hop, *_) = build_network(changed(router(), queue=RED, schedule=later).network).shaped
    first, second = ((queue.options, limit.bytes) for _, queue, limit in hop.changed_queues)
    assert first == second[:1] + (60_000,) and second[1] == 90_000
    assert (first[0]["min_bytes"], first[0]["max_bytes"]) == (5000, 30_000)


@pytest.mark.parametrize(
    ("queue", "change", "fault"),
    [
        (QUEUE, Change(1, options={"target_ms": 3}), "options.target_ms: pfifo has no such option"),
        (QUEUE, Change(1, ecn=True), "ecn: pfifo can't mark packets"),
        (Queue("cake", limit_bytes=90_000), Change(1, ecn=True), "ecn: cake always marks"),
        (FQ_CODEL, Change(1, options={"flows": 9}), "options.flows: fq_codel takes it only as"),
        (FQ_CODEL, Change(1, options={"target_ms": 0}), "options.target_ms: 0 is below 0.02"),
        (RED, Change(1, options={"min_bytes": 20_000}), "from 1 s on: RED's lower threshold"),
        (
            Queue("dualpi2", limit_packets=10_000),
            Change(1, limit_packets=9),
            "limit_packets: the limit of dualpi2 cannot change",
        ),
    ],
)
def test_what_a_queue_cannot_become_is_said(queue: Queue, change: Change, fault: str) -> None:
    assert fault in fault_of(changed(router(), queue=queue, schedule=(change,)))


def test_hosts_and_sockets_change_in_virtual_time_alone() -> None:
    base = router()
    flow = dataclasses.replace(base.flows[0], schedule=(FlowChange(1, "bbr"),))
    changing = dataclasses.replace(base, flows=(flow,))
    make_plan(changing)
    with pytest.raises(UsageError, match="not on the host engine"):
        make_plan(changing, virtual_time=False)


def test_a_control_holds_until_the_next() -> None:
    flow = dataclasses.replace(
        router().flows[0], schedule=(FlowChange(1, "bbr"), FlowChange(2, "vegas"))
    )
    found = [flow.control_at(second, "cubic") for second in (0.5, 1, 1.5, 2)]
    assert found == ["cubic", "bbr", "bbr", "vegas"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("5\nx\n9", "line 2: 'x' is not a whole number of ms"),
        ("5\n\n9", "line 2: an empty line is not a whole number of ms"),
        ("5\n-1", "line 2: '-1' is not a whole number"),
        ("5\n7.5", "line 2: '7.5' is not a whole number"),
        ("5\n9\n7", "line 3: 7 comes after 9: times never go back"),
        ("", "an empty trace"),
        ("0\n0", "lasts 0 ms"),
        ("5\n\u00e9", "line 2: not a trace: not text"),
    ],
)
def test_a_trace_of_nonsense_is_refused_with_its_line(
    tmp_path: Path, text: str, fault: str
) -> None:
    (tmp_path / "bad.trace").write_text(text)
    with pytest.raises(UsageError) as found:
        read_trace("bad.trace", tmp_path)
    assert found.value.message.startswith(f"{tmp_path / 'bad.trace'}: {fault}")


def test_a_file_names_a_trace_beside_it(tmp_path: Path) -> None:
    (tmp_path / "my.trace").write_text("0\n5\n5\n9\n")
    base = with_traces(changed(router(), trace="my.trace"), tmp_path)
    assert base.network.bottleneck.trace == "0 5*2 9"
    with pytest.raises(UsageError, match="no such trace"):
        with_traces(changed(router(), trace="other.trace"), tmp_path)


def test_an_unresolved_name_is_no_trace() -> None:
    assert "links[1].forward.trace: not a trace: 'my.trace' is not a time" in fault_of(
        changed(router(), trace="my.trace")
    )


def test_a_folder_of_traces_is_an_axis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "many").mkdir()
    for name, text in (("a", "5"), ("b", "7\n7")):
        (tmp_path / "many" / f"{name}.trace").write_text(text)
    monkeypatch.chdir(tmp_path)
    base = changed(router(), trace="3")
    place = "network.links.1.forward.trace"
    document = ScenarioDocument(base)
    made = sweep(document, {place: ["many"]}, 1)
    assert [each.axes["trace"] for each in made] == ["a", "b"]
    assert [each.network.bottleneck.trace for each in made] == ["5", "7*2"]
    assert fields(document)[place] == "a trace of 0.003 s, 4.04 Mbit/s in the mean"


def test_a_trace_knows_its_rate_and_its_longest_wait() -> None:
    trace = parse_trace(trace_content("0\n10\n10\n500\n1000\n", "x"))
    assert (trace.period_ms, trace.opportunities) == (1000, 5)
    assert trace.mean_mbit == pytest.approx(5 * 1514 * 8 / 1e6)
    assert [trace.longest_ms(n) for n in (1, 2, 5, 6)] == [500, 990, 1000, 1500]
    assert trace_summary("driving") == "driving"


def test_a_full_queue_drains_at_the_slowest_rate() -> None:
    def drain_s(**values: object) -> float:
        base = changed(router(), queue=QUEUE, rate_mbit=10, **values)
        return build_network(base.network).hops[-1][0].drain_s

    assert drain_s(schedule=STEP) == pytest.approx(5 * drain_s())
    assert drain_s(trace="100") == pytest.approx(2.2, abs=0.11)


@pytest.mark.parametrize("name", sorted(TRACES))
def test_a_trace_of_ours_is_what_its_program_makes(name: str) -> None:
    assert (TRACE_FOLDER / f"{name}.trace").read_text() == text_of(name)
    assert bundled_traces() == sorted(TRACES)


def test_packets_take_the_opportunities_that_mahimahi_gives_them() -> None:
    """Two small ones share one, what is left of it begins the next packet, and what is left when
    nothing waits is lost; who comes at the time of one is too late for it."""
    full, half = 1514, 762  # 1504 and 752 of an opportunity's bytes
    arrived = [0, 0, 0, 0, 5_000_000, 9_000_000]
    length = [half, half, half, full, full, full]
    found = departures(arrived, length, np.array([1, 2, 3, 5, 6, 9, 10]) * 1_000_000)
    assert list(found // 1_000_000) == [1, 1, 2, 3, 6, 10]


def test_capacity_of_rates_and_of_a_trace() -> None:
    stepped = Capacity((0.0, 2.0), (10.0, 2.0))
    assert stepped.mean_mbit(1, 3) == pytest.approx(6)
    assert list(stepped.rates_at(np.array([0, 1.9, 2.0]))) == [10, 10, 2]
    assert [list(each) for each in stepped.steps(1, 3, 0.5)] == [[1, 2, 3], [10, 2, 2]]
    traced = Capacity(trace=parse_trace("10 20*3"))
    assert list(traced.opportunities_ns(0.05) // 1_000_000) == [10, 20, 20, 20, 30, 40, 40, 40, 50]
    assert traced.mean_mbit(0, 0.02) == pytest.approx(4 * 1514 * 8e-6 / 0.02)
    assert list(traced.sent_bytes(np.array([0.0, 0.02, 0.03]))) == [0, 6016, 7520]


def test_a_trial_has_the_sources_of_the_kernels_added_disciplines_that_it_uses() -> None:
    """No other: their identity stays when a discipline is added or changed."""

    def used(base: Scenario) -> set[str]:
        return {p for p in parts_of(make_plan(base)) if p.startswith("kernel/queues")}

    assert used(changed(router(), trace="5")) == {"kernel/queues/sch_trace.c"}
    assert used(router()) == {"kernel/queues/sch_link.c"}
    assert used(with_network(router(), shaping=Shaping.HTB)) == set()
    assert not any("queues" in path or "image" in path for path in kernel_sources("6.1"))


def test_a_link_is_down_until_it_is_up_again() -> None:
    changes = [
        (1.0, "down"),
        (2.0, "down, rate 5 Mbit/s"),
        (3.0, "up, rate 2 Mbit/s"),
        (6.0, "down"),
    ]
    rows = pd.DataFrame(
        [{"time_s": at_s, "planned_s": at_s, "change": change} for at_s, change in changes]
    )
    assert list(down_stretches(rows)) == [(1.0, 3.0), (6.0, math.inf)]
