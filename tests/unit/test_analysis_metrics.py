"""Every metric of a trial made by hand (tests/trial_writer.py), to the last digit."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from analysis.captures.tcp import Packets, read_capture
from analysis.metrics.columns import ALL_METRICS, COLUMN_GROUPS, METRIC_COLUMNS, settings
from analysis.metrics.datagrams import DATAGRAM_COLUMNS
from analysis.metrics.metric import ColumnGroup, MeasuredFlow
from analysis.metrics.packet_counts import mark_rate
from analysis.metrics.rates import (
    COMPLETION_GROUP,
    add_fairness,
    steady_after_s,
    unknown_fairness,
)
from analysis.metrics.video_columns import VIDEO_GROUP
from analysis.results.reduction import reduce_trial
from analysis.trials import packets
from analysis.trials.packets import FlowPackets, Interval, TrialPackets
from analysis.trials.samples import Samples
from analysis.trials.tcp_stream import recovery_latencies
from experiments.catalogue import EXPERIMENTS
from testbed.scenario.model import Profile
from testbed.scenario.network import Queue
from testbed.store.reading import Trial, open_trial
from testbed.store.records import Record, Status
from tests.scenarios import router
from tests.sealing import seal
from tests.trial_writer import EPOCH_S, ROLES, TCP, flow_record, write_trial, written_scenario

ISSUE_COLUMNS = (
    "experiment, trial, engine, status, verdict, why, topology, queue, flow, kind, src, dst, "
    "variant, variant_seen, label, axes, setting, seed, start_s, duration_s, throughput_mbps, "
    "goodput_mbps, sent_packets, received_packets, drop_rate, mark_rate, "
    "wireshark_retransmissions, wireshark_fast_retransmissions, "
    "wireshark_spurious_retransmissions, retransmitted, timeouts, "
    "receive_window_limited, send_buffer_limited, application_limited, timeouts_seen, "
    "recoveries, segment_bytes, loss_rate, loss_events, loss_event_rate, losses_per_event, "
    "slow_start_events, srtt_mean_ms, rto_mean_ms, rto_at_timeout_ms, timeout_wait_ms, "
    "out_of_order, out_of_order_sent, duplicate_acks, rtt_min_ms, rtt_mean_ms, rtt_p95_ms, "
    "wireshark_ack_rtt_mean_ms, recovery_latency_mean_ms, "
    "owd_mean_ms, owd_p95_ms, queue_mean_ms, queue_p95_ms, steady_after_s, share, jain, "
    "page_s, startup_s, loaded_s, ended_s, stalls, stall_s, video_mbps, switches, "
    "mean_packet_bytes, error_packets, error_packets_peak, lost_packets, lost_packets_peak, "
    "quic_lost_packets, retransmitted_bytes, spikes, largest_spike_pps, "
    "completion_s, datagrams_lost, datagram_loss_rate, jitter_ms, datagrams_reordered"
).split(", ")

SCENARIO = written_scenario()
TCP_GOODPUT = 10_000 * 8 / 10 / 1e6  # the last packet comes too late
CBR_GOODPUT = 4 * 972 * 8 / 10 / 1e6

EXPECTED = {
    "tcp": {
        "experiment": "test",
        "trial": "trial",
        "engine": "guest",
        "status": "ok",
        "verdict": "suspect",  # the last of three samples is 8 s before the flows' end
        "why": "kernel of guest is not known: not recorded",
        "topology": "router-bottleneck",
        "queue": "codel 66 packets",
        "flow": "tcp",
        "kind": "tcp",
        "src": "sender1",
        "dst": "receiver",
        "variant": "reno",
        "variant_seen": "reno1990",
        "label": "reno",
        "axes": "",
        "setting": next(settings(SCENARIO)),
        "seed": 1,
        "start_s": 1.0,
        "duration_s": 10.0,
        # SYN and ACK of 54 bytes; nine packets, a repeated and a superfluous one of 1054
        "throughput_mbps": (2 * 54 + 11 * 1054) * 8 / 10 / 1e6,
        "goodput_mbps": TCP_GOODPUT,
        "sent_packets": 13,
        "received_packets": 11,  # the last one comes too late
        "drop_rate": 1 / 15,  # SYN and ACK enter too
        "mark_rate": 0,
        "wireshark_retransmissions": 2,
        "wireshark_fast_retransmissions": 1,
        "wireshark_spurious_retransmissions": 1,
        "retransmitted": 2,
        "timeouts": 3,
        # of ten seconds; and of three samples
        "receive_window_limited": 0.004,
        "send_buffer_limited": 1 / 3,
        "application_limited": 0,
        "timeouts_seen": 0,
        "recoveries": 1,
        "segment_bytes": 1000,
        "loss_rate": 1 / 13,
        "loss_events": 0,
        "loss_event_rate": 0,
        "losses_per_event": math.nan,
        "slow_start_events": 1,
        "srtt_mean_ms": 100,
        "rto_mean_ms": 320,
        "rto_at_timeout_ms": math.nan,
        "timeout_wait_ms": math.nan,
        "out_of_order": 1,
        "out_of_order_sent": 0,
        "duplicate_acks": 7,
        "rtt_min_ms": 100,
        # the first three packets'
        "rtt_mean_ms": 100,
        "rtt_p95_ms": 100,
        # Wireshark also takes the ACK of the repair for the tenth's, sent at 2.09, and the answer
        # to the superfluous packet for one
        "wireshark_ack_rtt_mean_ms": (3 * 100 + 175 + 120) / 5,
        # of ten segments: the fourth's repair is acknowledged at 2.265, with all behind it; the
        # eleventh never is
        "recovery_latency_mean_ms": (3 * 100 + sum(range(175, 230, 10)) + 235) / 10,
        "owd_mean_ms": (11 * 50 + 70) / 12,
        "owd_p95_ms": 50 + 0.45 * 20,
        # from a millisecond after the sender to ten before the receiver
        "queue_mean_ms": (11 * 39 + 59) / 12,
        "queue_p95_ms": 39 + 0.45 * 20,
        "steady_after_s": math.nan,  # it sends nothing in its second half but one packet too late
        "share": TCP_GOODPUT / (TCP_GOODPUT + CBR_GOODPUT),
        "jain": math.nan,  # of one TCP flow
        **dict.fromkeys((metric.name for metric in VIDEO_GROUP.columns), math.nan),
        "completion_s": math.nan,
        **dict.fromkeys((metric.name for metric in DATAGRAM_COLUMNS), math.nan),
    },
    "cbr": {
        "kind": "cbr",
        "src": "sender2",
        "variant": "",
        "variant_seen": "",
        "throughput_mbps": 4 * (972 + 42) * 8 / 10 / 1e6,
        "goodput_mbps": CBR_GOODPUT,
        "sent_packets": 5,
        "received_packets": 4,
        "drop_rate": 1 / 5,
        "mark_rate": 0,
        "wireshark_retransmissions": math.nan,
        "retransmitted": math.nan,
        "timeouts": math.nan,
        "loss_events": math.nan,
        "loss_rate": math.nan,
        "duplicate_acks": math.nan,
        "rtt_mean_ms": math.nan,
        "recovery_latency_mean_ms": math.nan,
        "owd_mean_ms": 50,
        "owd_p95_ms": 50,
        "queue_mean_ms": 39,
        "queue_p95_ms": 39,
        "steady_after_s": math.nan,
        "share": CBR_GOODPUT / (TCP_GOODPUT + CBR_GOODPUT),
        "jain": math.nan,
        "completion_s": math.nan,
        "datagrams_lost": 1,
        "datagram_loss_rate": 1 / 5,
        "jitter_ms": 0,
        "datagrams_reordered": 0,
    },
}


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """The trial, whole."""
    return open_trial(write_trial(tmp_path_factory.mktemp("results") / "trial", samples=True))


@pytest.fixture(scope="module")
def table(trial: Trial) -> pd.DataFrame:
    """The trial's rows, by flow."""
    return reduce_trial(trial).flows.set_index("flow", drop=False)


@functools.cache
def read_once(path: Path) -> Packets:
    return read_capture(path)


@pytest.fixture
def read_already(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures of the trial's copies are taken from the trial: each is read once."""
    monkeypatch.setattr(
        packets, "read_cached", lambda path: read_once(trial.path / "captures" / path.name)
    )


ALL_BUT_THE_RECEIVER = tuple(name for name in ROLES if name != "receiver-eth0")


CASES = [(flow, name, value) for flow, row in EXPECTED.items() for name, value in row.items()]


@pytest.mark.parametrize(("flow", "name", "value"), CASES)
def test_metric(table: pd.DataFrame, flow: str, name: str, value: Any) -> None:
    found = table.loc[flow, name]
    assert found == value if isinstance(value, str) else found == pytest.approx(value, nan_ok=True)


def test_steady_is_the_receivers_throughput() -> None:
    """Three seconds of nothing much, then a packet every 10 ms to the end, at 20 s."""
    early = [1.5 + k for k in range(3)]
    times = np.array([*early, *np.arange(4, 21, 0.01)])
    rows = pd.DataFrame({"time_ns": (times * 1e9).astype(np.int64), "length": 1000})
    interval = Interval(10**9, 21 * 10**9)
    assert steady_after_s(FlowPackets(rows, rows[:0]), interval) == 3
    pauses = rows[(rows["time_ns"] < 15 * 10**9) | (rows["time_ns"] > 17 * 10**9)]
    assert math.isnan(steady_after_s(FlowPackets(pauses, rows[:0]), interval))


def test_repeats_have_one_setting() -> None:
    """Seeds, this flow's variant, labels and captures do not count; all else does."""
    mine, beside = settings(router(variant="reno", cbr_mbit=0.1, duration_s=12))
    other, beside_other = settings(
        router(variant="cubic", cbr_mbit=0.1, duration_s=12, seed=2, captures=())
    )
    assert other == mine
    assert beside != mine
    for changed in (
        router(variant="reno", cbr_mbit=0.2, duration_s=12),
        router(variant="reno", cbr_mbit=0.1, duration_s=13),
        router(variant="reno", cbr_mbit=0.1, duration_s=12, rate_mbit=2),
        router(variant="reno", cbr_mbit=0.1, duration_s=12, profile=Profile.NS2),
    ):
        assert next(settings(changed)) != mine
    # the other flow's variant is part of the setting
    assert beside != beside_other


@pytest.mark.parametrize("seed", range(5))
def test_recovery_latency_is_the_plain_search(seed: int) -> None:
    """Segments across the end of the sequence numbers, some sent again, ACKs that repeat."""
    dice = np.random.default_rng(seed)
    isn, size = 2**32 - 2500, 1000
    numbers = [int(n) for k in range(30) for n in (k, *dice.integers(0, k + 1, k % 3))]
    reached = np.maximum.accumulate(dice.integers(1, 29, 60)).tolist()

    def rows(seqs: list[int], *, ack: bool, payload: int) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "src_port": 1,
                "dst_port": 1,
                "time_ns": np.arange(len(seqs)) * 10_000_000 + 5_000_000_000 * ack,
                "seq": 7 if ack else np.array(seqs) % 2**32,
                "ack": np.array(seqs) % 2**32 if ack else 7,
                "payload": payload,
                "flags": 0x10,
            }
        )

    data = rows([isn + size * n for n in numbers], ack=False, payload=size)
    acks = rows([isn + size * n for n in reached], ack=True, payload=0)
    reset = acks.tail(1).assign(ack=0, flags=0x04)
    expected = [
        5000 + 10 * (next(i for i, n in enumerate(reached) if n > k) - numbers.index(k))
        for k in range(max(reached))
    ]
    found = recovery_latencies(data, pd.concat((reset, acks, reset)))
    assert found["recovery_ms"].tolist() == expected


def test_every_column_is_asserted() -> None:
    assert set(EXPECTED["tcp"]) == set(METRIC_COLUMNS)


def test_columns_are_the_issues(table: pd.DataFrame) -> None:
    assert list(table.columns) == ISSUE_COLUMNS
    assert len({metric.definition for metric in ALL_METRICS}) == len(ALL_METRICS)


@pytest.mark.parametrize("group", COLUMN_GROUPS, ids=lambda group: group.columns[0].name)
def test_a_group_computes_its_own_columns(trial: Trial, group: ColumnGroup) -> None:
    packets, samples = TrialPackets(trial), Samples(trial)
    names = {column.name for column in group.columns}
    for record in trial.record.flows:
        assert set(group.measure(MeasuredFlow(trial, record, packets, samples))) <= names


@dataclasses.dataclass(frozen=True)
class Sent:
    """A flow over UDP that sends 1000 bytes at these seconds."""

    start_s: int
    stop_s: int
    at_s: tuple[float, ...]
    record: SimpleNamespace = dataclasses.field(
        default_factory=lambda: SimpleNamespace(protocol="udp")
    )
    own_port: str = "src_port"
    scenario_flow: SimpleNamespace = dataclasses.field(
        default_factory=lambda: SimpleNamespace(captured=True, conceals_losses=False)
    )

    @property
    def interval(self) -> Interval:
        return Interval(self.start_s * 10**9, self.stop_s * 10**9)

    def packets_at(self, _role: str) -> SimpleNamespace:
        times = [int(each * 1e9) for each in self.at_s]
        return SimpleNamespace(data=pd.DataFrame({"time_ns": times, "payload": 1000}))


def side_by_side(**goodputs: float) -> pd.DataFrame:
    """Flows that are measured all the time, named by their kinds."""
    kinds = [name.rstrip("12") for name in goodputs]
    rows = {"flow": list(goodputs), "kind": kinds, "goodput_mbps": list(goodputs.values())}
    frame = pd.DataFrame(rows)
    flows = {name: Sent(0, 10, ()) for name in goodputs}
    add_fairness(frame, cast("Mapping[str, MeasuredFlow]", flows))
    return frame


@pytest.mark.parametrize(
    ("size", "stopped_s", "found"),
    [(1000, 3.5, {"completion_s": 2.5}), (1000, 10.0, {}), (None, 3.5, {})],
)
def test_a_flow_has_a_completion_time_if_its_bytes_are_limited_and_arrived(
    size: int | None, stopped_s: float, found: dict[str, float]
) -> None:
    record = SimpleNamespace(started_s=1.0, stopped_s=stopped_s, planned_stop_s=10.0)
    flow = SimpleNamespace(record=record, scenario_flow=SimpleNamespace(bytes=size))
    assert COMPLETION_GROUP.measure(cast("MeasuredFlow", flow)) == found


def test_jain_of_two_tcp_flows() -> None:
    frame = side_by_side(tcp1=3.0, tcp2=1.0, cbr=4.0)
    assert list(frame["jain"]) == [16 / 20] * 3
    assert list(frame["share"]) == [3 / 8, 1 / 8, 4 / 8]


def test_jain_without_tcp_is_over_all_flows() -> None:
    assert list(side_by_side(cbr1=3.0, cbr2=1.0)["jain"]) == [16 / 20] * 2


def test_beside_a_flow_that_is_unknown_nothing_is_shared_out() -> None:
    frame = side_by_side(tcp1=3.0, tcp2=math.nan)
    assert frame["share"].isna().all() and frame["jain"].isna().all()


def test_share_of_nothing_is_unknown() -> None:
    frame = side_by_side(tcp=0.0)
    assert frame["share"].isna().all() and frame["jain"].isna().all()


ALONE = ["share", "jain"]


@pytest.mark.parametrize(
    ("experiment", "settings", "unknown"),
    [
        ("intra-protocol", {}, []),
        ("parking-lot", {}, []),  # the long flow shares a link with each of the others
        ("reverse-traffic", {}, ALONE),
        ("buffer-sizing", {"flows": ["1"]}, ALONE),
        ("calls", {}, ["jain"]),  # of one TCP flow beside a call
        ("video-access", {}, ALONE),
    ],
)
def test_flows_have_shares_and_an_index_where_two_share_a_link(
    experiment: str, settings: dict[str, list[str]], unknown: list[str]
) -> None:
    for scenario in EXPERIMENTS[experiment].scenarios(settings, seeds=1, quick=True):
        assert unknown_fairness(scenario) == unknown


@pytest.mark.parametrize(
    ("interface", "unknown"),
    [
        ("receiver-eth0", ["throughput_mbps", "goodput_mbps", "received_packets", "out_of_order"]),
        ("receiver-eth0", ["owd_mean_ms", "share", "jain"]),
        (
            "sender1-eth0",
            ["sent_packets", "wireshark_retransmissions", "rtt_mean_ms", "owd_p95_ms"],
        ),
        ("router-eth1", ["drop_rate"]),
        ("router-eth0", ["drop_rate"]),
    ],
)
@pytest.mark.usefixtures("read_already")
def test_without_a_capture(tmp_path: Path, interface: str, unknown: list[str]) -> None:
    path = write_trial(tmp_path / "trial", without=(interface,))
    row = reduce_trial(open_trial(path)).flows.iloc[0]
    assert row[unknown].isna().all()
    known = "sent_packets" if interface == "receiver-eth0" else "received_packets"
    assert row[known] == EXPECTED["tcp"][known]


@pytest.mark.parametrize("behind", ["bottleneck-out", "receiver"])
def test_marks_are_counted_behind_the_bottleneck(behind: str) -> None:
    marked = FlowPackets(pd.DataFrame({"ecn": [0, 1, 2, 3]}), pd.DataFrame())
    record = SimpleNamespace(captures=(SimpleNamespace(roles=(f"{behind}:tcp",)),))
    flow = SimpleNamespace(
        trial=SimpleNamespace(record=record),
        record=SimpleNamespace(name="tcp"),
        measured_packets=lambda role: marked if role == behind else None,
    )
    assert mark_rate(cast(MeasuredFlow, flow)) == 1 / 4


@pytest.mark.parametrize("status", [Status.FAILED, Status.UNSUPPORTED])
def test_a_trial_that_did_not_run_has_a_row_a_flow(tmp_path: Path, status: Status) -> None:
    record = Record(status, "no such variant", engine="host")
    path = write_trial(tmp_path / "trial", record=record)
    table = reduce_trial(open_trial(path)).flows
    assert list(table["flow"]) == ["tcp", "cbr"]
    assert set(table["status"]) == {str(status)} and set(table["engine"]) == {"host"}
    assert list(table["variant"]) == ["reno", ""]
    assert table.loc[:, "start_s":].isna().all(axis=None)


def test_parallel_connections_are_one_flow(tmp_path: Path) -> None:
    """The TCP flow's packets twice, with two ports."""
    both = dataclasses.replace(flow_record("tcp", TCP, "tcp"), src_ports=(40001, 40002))
    record = Record(Status.OK, epoch_s=EPOCH_S, flows=(both,))
    flows = (dataclasses.replace(SCENARIO.flows[0], parallel=2),)
    scenario = dataclasses.replace(SCENARIO, flows=flows)
    path = write_trial(tmp_path / "trial", scenario=scenario, record=record)
    double_captures(path)
    row = reduce_trial(open_trial(seal(path))).flows.iloc[0]
    assert row["goodput_mbps"] == pytest.approx(2 * TCP_GOODPUT)
    assert row["sent_packets"] == 26
    assert row["drop_rate"] == pytest.approx(1 / 15)
    assert row["duplicate_acks"] == 14


def double_captures(trial: Path) -> None:
    """Add a second connection, port 40002, whose packets are those of the first."""
    for path in (trial / "captures").glob("*.pcap"):
        data, out, here = path.read_bytes(), path.read_bytes()[:24], 24
        while here < len(data):
            size = 16 + int.from_bytes(data[here + 8 : here + 12], "little")
            packet = data[here : here + size]
            out += packet + packet.replace((40001).to_bytes(2, "big"), (40002).to_bytes(2, "big"))
            here += size
        path.write_bytes(out)


def test_a_flows_packets_are_known_by_protocol_addresses_and_ports() -> None:
    """Rows: its data, its ACK, and six that differ in one thing each."""
    own = ("tcp", TCP.src, TCP.dst, TCP.src_port, TCP.dst_port)
    back = ("tcp", TCP.dst, TCP.src, TCP.dst_port, TCP.src_port)
    strangers = [
        ("udp", *own[1:]),
        ("tcp", "10.0.9.9", *own[2:]),
        (*own[:2], "10.0.9.9", *own[3:]),
        (*own[:3], 9, own[4]),
        (*own[:4], 9),
        (*back[:3], 9, back[4]),
    ]
    columns = ["protocol", "src", "dst", "src_port", "dst_port"]
    rows = pd.DataFrame([own, back, *strangers], columns=columns)
    found = packets.select(rows, flow_record("tcp", TCP, "tcp"))
    assert list(found.data.index) == [0] and list(found.acks.index) == [1]


@pytest.mark.usefixtures("read_already")
def test_queue_in_words(tmp_path: Path) -> None:
    queue = Queue("codel", limit_packets=100, ecn=True, options={"target_ms": 5})
    scenario = router(cbr_mbit=0.1, queue=queue)
    path = write_trial(tmp_path / "trial", scenario=scenario)
    assert reduce_trial(open_trial(path)).flows["queue"][0] == "codel 100 packets ecn target_ms=5"


@pytest.mark.usefixtures("read_already")
def test_what_was_before_the_measured_time_does_not_count(tmp_path: Path) -> None:
    """From second 2.105 on the TCP flow sends three packets, and six arrive before its stop."""
    scenario = dataclasses.replace(SCENARIO, measure_from_s=2.105)
    path = write_trial(tmp_path / "trial", scenario=scenario, samples=True)
    row = reduce_trial(open_trial(path)).flows.iloc[0]
    expected = {
        "start_s": 1.0,
        "duration_s": 8.895,
        "throughput_mbps": 6 * 1054 * 8 / 8.895 / 1e6,
        "goodput_mbps": 7000 * 8 / 8.895 / 1e6,  # three had been delivered, seven wait for one
        "sent_packets": 3,
        "received_packets": 6,
        "drop_rate": 0,
        "wireshark_retransmissions": 2,
        "retransmitted": 2,
        "duplicate_acks": 7,
        # between the samples at 2.01 and 3 s
        "receive_window_limited": 0.04 * (3 - 2.105) / (3 - 2.01) / 8.895,
        "send_buffer_limited": 1,
        "rtt_mean_ms": 100,
        "wireshark_ack_rtt_mean_ms": (2 * 100 + 175 + 120) / 4,
        "recovery_latency_mean_ms": math.nan,
        "owd_mean_ms": (50 + 70 + 50) / 3,
        "queue_mean_ms": (39 + 59 + 39) / 3,
        "loss_rate": 0,
        "slow_start_events": 0,
        "recoveries": 1,
        "rto_mean_ms": 360,
    }
    assert row[list(expected)].to_dict() == pytest.approx(expected, nan_ok=True)


@pytest.mark.usefixtures("read_already")
def test_a_loss_in_congestion_avoidance_is_a_loss_event(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "trial", scenario=SCENARIO, samples=True)
    sockets = path / "samples" / "sockets.csv"
    sockets.write_text(sockets.read_text().replace("open,12,,", "open,12,11,"))
    row = reduce_trial(open_trial(seal(path))).flows.iloc[0]
    columns = ["loss_events", "loss_event_rate", "losses_per_event", "slow_start_events"]
    assert row[columns].tolist() == [1, 1 / 13, 1, 0]


def test_without_the_receiver_what_was_sent_again_was_lost(tmp_path: Path) -> None:
    """The needless one had been acknowledged; without samples the first event is slow start's."""
    path = write_trial(tmp_path / "trial", without=("receiver-eth0",))
    row = reduce_trial(open_trial(path)).flows.iloc[0]
    assert row[["loss_rate", "loss_events", "slow_start_events"]].tolist() == [1 / 13, 0, 1]


def test_a_share_is_of_the_time_in_which_all_are_there() -> None:
    """The first sends most before the second comes; a third comes when the first has gone."""
    flows = {"one": Sent(0, 10, (0.5, 1, 2, 3, 4, 7)), "two": Sent(5, 10, (6, 8, 9))}
    own = 3 * 1000 * 8 / 5 / 1e6  # the second's, of whose time the first has all
    rows = pd.DataFrame({"flow": list(flows), "kind": "cbr", "goodput_mbps": [9.0, own]})
    add_fairness(rows, cast("Mapping[str, MeasuredFlow]", flows))
    assert list(rows["share"]) == pytest.approx([1 / 4, 3 / 4])
    assert rows["jain"].iloc[0] == pytest.approx(4**2 / (2 * (1 + 9)))
    flows["three"] = Sent(12, 20, (15,))
    kinds = ["tcp", "tcp", "cbr"]
    rows = pd.DataFrame({"flow": list(flows), "kind": kinds, "goodput_mbps": [9.0, own, 9.0]})
    add_fairness(rows, cast("Mapping[str, MeasuredFlow]", flows))
    assert rows["share"].isna().all()
    assert rows["jain"].iloc[0] == pytest.approx(4**2 / (2 * (1 + 9)))  # of the two over TCP
