"""Networks and flows at the edge of what is sensible: right numbers, empty cells, or reasons."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.captures.packet_matching import match_data
from analysis.metrics.columns import NUMBER_COLUMNS, OPTION_COLUMNS
from analysis.metrics.video_columns import VIDEO_GROUP
from analysis.results.reduction import reduce_trial
from analysis.trials.packets import TrialPackets
from analysis.verdict.verdict import judge
from experiments.evaluation.extreme_evaluations import long_delay_trial
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import Direction, Graph, Link, Node, NodeKind, Queue
from testbed.store.reading import Trial
from tests.lab import run_trials

RST = 4  # of TCP's flags
VIDEO = {metric.name for metric in VIDEO_GROUP.columns}


def asymmetric(
    label: str, *flows: Flow, up: Direction, down_mbit: float = 20, ip: int = 4
) -> Scenario:
    """Flows whose acknowledgements cross a slow queue behind the router that their data enter."""
    down = Direction(down_mbit, delay_ms=10, queue=Queue("pfifo", limit_packets=100))
    ways = (Link(("h1", "r"), Direction(delay_ms=10), up), Link(("r", "h2"), down, Direction()))
    nodes = (Node("h1"), Node("r", NodeKind.ROUTER), Node("h2"))
    network = Graph(nodes, ways, name="asymmetric", ip=ip)
    return Scenario("corners", network, flows, duration_s=10, label=label)


def upload(kbit: float, packets: int, discipline: str = "pfifo") -> Direction:
    return Direction(kbit / 1e3, delay_ms=10, queue=Queue(discipline, limit_packets=packets))


def flow(name: str, src: str = "h1", dst: str = "h2", **settings: object) -> Flow:
    return Flow(name, FlowKind.TCP, src, dst, variant="cubic", **settings)  # type: ignore[arg-type]


ENDING = (flow("short", duration_s=4), flow("long"))


@pytest.mark.parametrize(
    "scenario",
    [
        asymmetric("shallow", flow("tcp"), up=upload(400, 10)),
        asymmetric("deep", flow("tcp"), up=upload(200, 100)),
        asymmetric("hardly-any", flow("tcp"), up=upload(10, 20)),
        asymmetric("one-ends", *ENDING, up=upload(200, 20)),
        asymmetric("ipv6", *ENDING, up=upload(200, 20), ip=6),
        asymmetric("codel", *ENDING, up=upload(200, 50, "codel")),
    ],
    ids=lambda scenario: scenario.label,
)
def test_a_congested_path_of_acknowledgements_is_no_fault(
    scenario: Scenario, tmp_path: Path
) -> None:
    """After its stop a receiver answers late data with resets that are all alike, of which the
    queue drops some."""
    run_trials([scenario], tmp_path)


def test_resets_on_their_way_over_a_long_path_when_captures_end_are_no_fault(
    tmp_path: Path,
) -> None:
    """A queue of a second empties into a path of 600 ms: 63 resets that are all alike have not
    come back."""
    scenario = long_delay_trial(variant="bbr", queue="pfifo", rtt_ms=600, duration_s=24, seed=106)
    (trial,) = run_trials([scenario], tmp_path)
    packets, record = TrialPackets(trial), trial.record.flows[0]
    sent, came = (packets.part(role, record) for role in ("receiver", "sender"))
    assert sent is not None and came is not None
    resets = [int((each.acks["flags"] & RST != 0).sum()) for each in (sent, came)]
    assert 0 < resets[1] < resets[0]


def rows_of(trial: Trial) -> pd.DataFrame:
    return reduce_trial(trial).flows.set_index("flow")


def test_columns_that_need_tcps_options_are_empty_where_these_were_cut(tmp_path: Path) -> None:
    """The same packets, of which a capture of 66 bytes holds the time stamps and no SACK."""
    whole = asymmetric("whole", flow("tcp"), up=Direction(delay_ms=10), down_mbit=10)
    cut = dataclasses.replace(whole, label="cut", snaplen_bytes=66)
    known, unknown = (rows_of(each).loc["tcp"] for each in run_trials([whole, cut], tmp_path))
    assert known["duplicate_acks"] > 100 and known[sorted(OPTION_COLUMNS - VIDEO)].notna().all()
    assert unknown[sorted(OPTION_COLUMNS)].isna().all()
    same = ["goodput_mbps", "drop_rate", "retransmitted", "recovery_latency_mean_ms"]
    assert list(known[same]) == list(unknown[same])


def test_what_the_last_queue_drops_of_a_flow_that_it_starves_is_counted(tmp_path: Path) -> None:
    """Behind the last packet of it that arrives, nine seconds before the end, all are dropped."""
    link = Direction(10, delay_ms=5, queue=Queue("pfifo", limit_packets=50))
    names = ("h1", "h2", "h3", "h4")
    nodes = (Node("s1", NodeKind.SWITCH), *map(Node, names))
    network = Graph(nodes, tuple(Link((name, "s1"), link) for name in names))
    turns = Flow("turns", FlowKind.CBR, "h3", "h4", rate_mbit=9, packet_bytes=1500, on_s=1, off_s=1)
    tcp = (flow("one", dst="h4"), flow("eight", src="h2", dst="h4", parallel=8))
    scenario = Scenario("corners", network, (*tcp, turns), duration_s=10)
    (trial,) = run_trials([scenario], tmp_path)
    row = rows_of(trial).loc["turns"]
    assert row["drop_rate"] == pytest.approx(row["datagram_loss_rate"])
    assert row["drop_rate"] == pytest.approx(1 - row["received_packets"] / row["sent_packets"])
    assert row["drop_rate"] > 0.5


def test_packets_wait_for_those_that_leave_with_them(tmp_path: Path) -> None:
    """The link takes four packets of 1514 bytes at once: the last of them is sent for 1.2 ms."""
    queue = Queue("pfifo", limit_packets=40)
    down = Direction(10, delay_ms=10, queue=queue, aggregate_packets=4, aggregate_ms=10)
    nodes = (Node("h1"), Node("r", NodeKind.ROUTER), Node("h2"))
    network = Graph(nodes, (Link(("h1", "r")), Link(("r", "h2"), down, Direction())))
    scenario = Scenario("corners", network, (flow("tcp"),), duration_s=5)
    (trial,) = run_trials([scenario], tmp_path)
    packets, record = TrialPackets(trial), trial.record.flows[0]
    before, behind = (packets.part(f"bottleneck-{side}", record) for side in ("in", "out"))
    assert before is not None and behind is not None
    found = match_data(before.data, behind.data)
    size = behind.data["length"][behind.data["payload"] > 0]
    own_ms = found.delay_ns / 1e6 - size * 8e-3 / 10  # at 10 Mbit/s
    assert rows_of(trial).loc["tcp", "queue_mean_ms"] == pytest.approx(own_ms.mean(), rel=0.02)


@pytest.mark.parametrize(
    ("label", "flows"),
    [
        ("one-byte", (flow("tcp", bytes=1),)),
        ("ends-early", (flow("tcp", duration_s=1),)),
        ("small-segments", (flow("tcp", mss=88),)),
    ],
)
def test_a_flow_that_hardly_sends(label: str, flows: tuple[Flow, ...], tmp_path: Path) -> None:
    """No column has an infinite number, and what rests on few packets is noted."""
    up = Direction(delay_ms=10)
    scenario = asymmetric(label, *flows, up=up, down_mbit=1)
    (trial,) = run_trials([dataclasses.replace(scenario, measure_from_s=2)], tmp_path)
    numbers = rows_of(trial)[[name for name in NUMBER_COLUMNS if name != "seed"]]
    assert not np.isinf(numbers.to_numpy(dtype=np.float64)).any()
    verdict = judge(trial)
    assert verdict is not None
    assert ("few packets" in verdict.by_check()) == (label != "small-segments")
