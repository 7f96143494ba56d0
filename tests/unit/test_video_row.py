"""A video flow's own columns, of a trial made by hand (tests/trial_writer.py), and by seconds."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.captures.tcp import WIRESHARK_MARKS
from analysis.metrics.video_columns import PLAYER_COLUMNS, VIDEO_PACKET_COLUMNS, video_columns
from analysis.results.reduction import reduce_trial
from analysis.trials.packets import FlowPackets, FlowTables
from testbed.scenario.model import FlowKind, Scenario
from testbed.scenario.video import Viewing
from testbed.store.reading import Trial, open_trial
from testbed.traffic.video.result import Load, Result, Segment
from tests.scenarios import router
from tests.sealing import seal
from tests.trial_writer import write_trial
from tests.wireshark_tables import frames_per_second

SECOND_NS = 10**9
ALONE = ("sender2-eth0", "router-eth1", "router-eth2", "router-eth0")  # captures that nobody needs


def watched() -> Scenario:
    """The trial's TCP flow, as if it were a video."""
    scenario = router(variant="reno", cbr_mbit=0.1, duration_s=12)
    tcp, cbr = scenario.flows
    video = dataclasses.replace(tcp, kind=FlowKind.VIDEO, video=Viewing())
    return dataclasses.replace(scenario, flows=(video, cbr))


def result(**changes: object) -> Result:
    """Two segments of different bitrates, and a stall between them."""
    seen = Result(
        epoch_s=1e9,
        transport="https",
        rule="throughput",
        why="",
        connected_s=0.1,
        page_s=0.5,
        startup_s=1.0,
        loaded_s=7.0,
        ended_s=11.0,
        stopped_s=11.0,
        stalls=((5.0, 7.0),),
        segments=(
            Segment(1, "240p", 330_000, 4.0, Load("1.m4s", 0.5, 0.6, 1.0, 5000)),
            Segment(2, "360p", 600_000, 4.0, Load("2.m4s", 1.0, 1.2, 7.0, 6000)),
        ),
        page=(Load("index.html", 0.1, 0.2, 0.5, 1000),),
        levels=((1.0, 4.0), (5.0, 0.0)),
    )
    return dataclasses.replace(seen, **changes)  # type: ignore[arg-type]


def trial(folder: Path, seen: Result | None, without: tuple[str, ...] = ALONE) -> Trial:
    path = write_trial(folder / "trial", scenario=watched(), without=without)
    if seen is not None:
        (path / "flows").mkdir()
        (path / "flows" / "tcp.json").write_text(seen.to_json())
    return open_trial(seal(path))


def row(found: Trial) -> pd.Series:
    return reduce_trial(found).flows.iloc[0]


def test_the_columns_of_a_video(tmp_path: Path) -> None:
    table = reduce_trial(trial(tmp_path, result())).flows.set_index("flow")
    expected = {
        "page_s": 0.5,
        "startup_s": 1.0,
        "loaded_s": 7.0,
        "ended_s": 11.0,
        "stalls": 1,
        "stall_s": 2.0,
        "video_mbps": 0.465,
        "switches": 1,
        # SYN, its answer and its ACK, 12 packets, 11 acknowledgements
        "mean_packet_bytes": (12 * 1054 + 14 * 54) / 26,
        # a segment behind the one that is missing, six duplicate ACKs and the repair; then a
        # packet that was not needed, and its answer
        "error_packets": 10,
        "error_packets_peak": 8,
        "lost_packets": 1,
        "lost_packets_peak": 1,
        "quic_lost_packets": math.nan,
        "retransmitted_bytes": 2 * 1054,
        "spikes": 0,
        "largest_spike_pps": 0,
    }
    assert list(expected) == [metric.name for metric in (*PLAYER_COLUMNS, *VIDEO_PACKET_COLUMNS)]
    assert table.loc["tcp", list(expected)].to_dict() == pytest.approx(expected, nan_ok=True)
    assert table.loc["cbr", list(expected)].isna().all()


def test_error_packets_are_those_of_wiresharks_graph(tmp_path: Path) -> None:
    found = trial(tmp_path, result())
    path = found.capture("receiver:tcp")
    assert path is not None
    counts = frames_per_second(path, "tcp.analysis.flags && !tcp.analysis.window_update")
    own = row(found)
    assert (own["error_packets"], own["error_packets_peak"]) == (sum(counts), max(counts))


def test_what_did_not_happen_is_none(tmp_path: Path) -> None:
    seen = result(loaded_s=None, ended_s=None, why="deadline", segments=())
    own = row(trial(tmp_path, seen))
    names = ["page_s", "loaded_s", "ended_s", "video_mbps", "switches"]
    assert own[names].tolist() == pytest.approx([0.5, math.nan, math.nan, math.nan, 0], nan_ok=True)


def test_what_quics_server_counted(tmp_path: Path) -> None:
    found = trial(tmp_path, result())
    (found.path / "flows" / "tcp.server.json").write_text('{"lost_packets": 7}')
    assert row(open_trial(seal(found.path)))["quic_lost_packets"] == 7


def test_without_the_players_report_the_packets_are_known(tmp_path: Path) -> None:
    own = row(trial(tmp_path, None))
    assert own[[metric.name for metric in PLAYER_COLUMNS]].isna().all()
    assert own["error_packets"] == 10


@pytest.mark.parametrize(
    ("gone", "known"),
    [("sender1-eth0", {"error_packets"}), ("receiver-eth0", {"retransmitted_bytes"})],
)
def test_without_a_capture(tmp_path: Path, gone: str, known: set[str]) -> None:
    names = ["error_packets", "lost_packets", "lost_packets_peak", "retransmitted_bytes"]
    own = row(trial(tmp_path, None, (*ALONE, gone)))[names]
    assert set(own.index[own.notna()]) == known


def rows(times_s: list[float], **columns: Any) -> pd.DataFrame:
    """Packets with nothing wrong with them, but for the columns."""
    table = pd.DataFrame(
        {
            "time_ns": (np.array(times_s) * SECOND_NS).astype(np.int64),
            "ip_id": np.arange(len(times_s)),
            "src_port": 443,
            "seq": 0,
            "content": 0,
            "payload": 1350,
            "length": 1392,
            **dict.fromkeys(WIRESHARK_MARKS, False),
        }
    )
    return table.assign(**columns)


def packets(found: Trial, protocol: str, sent: FlowTables, came: FlowTables) -> dict[str, object]:
    record = dataclasses.replace(found.record.flows[0], protocol=protocol)
    return video_columns(found, record, sent, came)


def test_seconds_begin_with_the_first_packet(tmp_path: Path) -> None:
    """60 packets from 10.95 on, in one second of those that begin at 10.9; 5 in the next."""
    times = [10.95 + k / 100 for k in range(60)] + [12.0 + k / 100 for k in range(5)]
    ack = rows([10.9], payload=0, length=70)
    data = rows(times, length=100)
    found = packets(trial(tmp_path, None), "udp", FlowPackets(data, ack), FlowPackets(data, ack))
    assert (found["spikes"], found["largest_spike_pps"]) == (1, 61 - 5)
    assert found["mean_packet_bytes"] == (65 * 100 + 70) / 66
    assert "error_packets" not in found
    assert "retransmitted_bytes" not in found


def test_losses_of_quic_are_counted_by_their_second(tmp_path: Path) -> None:
    """Datagrams are told apart by IP's identification: three of a second, one of another."""
    sent = rows([0.1 * k for k in range(40)])
    lost = [3, 4, 9, 25]
    came = sent.drop(index=lost).assign(time_ns=lambda each: each["time_ns"] + 50_000_000)
    ack = rows([0.0], payload=0)
    found = packets(trial(tmp_path, None), "udp", FlowPackets(sent, ack), FlowPackets(came, ack))
    assert (found["lost_packets"], found["lost_packets_peak"]) == (4, 3)


def test_an_error_is_a_packet_with_any_mark_but_a_window_update(tmp_path: Path) -> None:
    data = rows([1.0, 1.1, 1.2], duplicate_ack=[True, False, False], keep_alive=[True, True, False])
    ack = rows([2.5, 2.6], window_update=True)
    both = FlowPackets(data, ack)
    found = packets(trial(tmp_path, None), "tcp", both, both)
    assert (found["error_packets"], found["error_packets_peak"]) == (2, 2)


def test_what_is_sent_between_new_segments_again_is_retransmitted(tmp_path: Path) -> None:
    data = rows(
        [1.0, 1.1, 1.2],
        length=[100, 10, 1],
        retransmission=[False, True, False],
        out_of_order=[False, False, True],
    )
    both = FlowPackets(data, rows([0.9], out_of_order=True))
    found = packets(trial(tmp_path, None), "tcp", both, both)
    assert found["retransmitted_bytes"] == 11
