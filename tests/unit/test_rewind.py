"""`testbed rewind`: where gdb is told to stop, and requests that cannot be obeyed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from analysis.captures.inspection import Point
from analysis.trials.packets import TrialPackets, epoch_ns
from experiments.command import main
from testbed.kernels.guest_under_gdb import CapturedPacket
from testbed.kernels.rewind import (
    RETRANSMISSION,
    RewindRequest,
    going_back,
    orders_for,
    retransmitted,
)
from testbed.store.reading import open_trial
from testbed.store.records import Record, Status
from tests.trial_writer import TCP, flow_record, write_trial


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return write_trial(tmp_path / "trial")


def test_a_packet_is_found_in_its_capture(trial: Path) -> None:
    opened = open_trial(trial)
    (flow, *_) = opened.record.flows
    packets = TrialPackets(opened).flow("sender", flow)
    assert packets is not None
    first = packets.data[packets.data["retransmission"]].iloc[0]
    orders = orders_for(opened, RewindRequest(packet=RETRANSMISSION))
    assert orders.packet == CapturedPacket("sender1-eth0", int(first["frame"]))
    assert round(orders.at_s * 1e9) == int(first["time_ns"]) - epoch_ns(opened)
    assert (orders.src_ports, orders.dst_port) == (flow.src_ports, flow.dst_port)
    by_number = orders_for(opened, RewindRequest(packet=str(first["frame"])))
    assert by_number == orders


def test_what_wireshark_calls_out_of_order_was_sent_before_where_it_is_sent() -> None:
    data = pd.DataFrame({"retransmission": [False, False, True], "out_of_order": [0, 1, 0]})
    assert list(retransmitted(data, Point.SENDER)) == [False, True, True]
    assert list(retransmitted(data, Point.RECEIVER)) == [False, False, True]


def test_an_instant_comes_before_the_packets(trial: Path) -> None:
    orders = orders_for(open_trial(trial), RewindRequest(at_s=0.5, packet="3"))
    assert orders.at_s == 0.5
    assert orders.packet == CapturedPacket("sender1-eth0", 3)
    assert going_back(orders, 0.25).packet is None


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ([], "to which instant or packet?", "--at 3.217"),
        (["--packet", "first"], "'first': neither a number", "testbed inspect"),
        (["--packet", "999999"], "no such TCP or UDP packet", "testbed inspect"),
        (["--packet", "3", "--flow", "tpc"], "no flow 'tpc'", "tcp"),
        (["--packet", RETRANSMISSION, "--flow", "cbr"], "retransmitted nothing", "--flow"),
        (["--at", "-1"], "a trial begins at second 0", "--at 3.217"),
        (["--at", "1000"], "--at 1000: the trial's last packet is at second", "an earlier second"),
        (["--at", "1", "--until", "0.5", "--probe", "tcp_ack"], "before second 1", "--at"),
        (["--at", "1", "--packet", "3"], "at one of them", "leave out the other"),
        (["--at", "1", "--gdb", "--probe", "tcp_ack"], "only one of them", "leave out --probe"),
    ],
)
def test_wrong_requests(
    trial: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
    hint: str,
) -> None:
    assert main(["rewind", str(trial), *words]) in (1, 2)
    said, advice = capsys.readouterr().err.splitlines()
    assert message in said
    assert hint in advice


def test_a_trial_in_real_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = Record(
        Status.OK, engine="host", seed=1, epoch_s=1, flows=(flow_record("tcp", TCP, "tcp"),)
    )
    trial = write_trial(tmp_path / "trial", record=record)
    assert main(["rewind", str(trial), "--at", "1"]) == 1
    said, advice = capsys.readouterr().err.splitlines()
    assert "it ran in real time" in said
    assert "--engine guest" in advice


def test_a_trial_that_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = Record(Status.FAILED, "the kernel panicked", virtual_time=True)
    trial = write_trial(tmp_path / "trial", record=record)
    assert main(["rewind", str(trial), "--at", "1"]) == 1
    said, _ = capsys.readouterr().err.splitlines()
    assert said.endswith("the trial did not end well: the kernel panicked")
