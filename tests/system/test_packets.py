"""Packets of real trials: the same for the same seed, and in pyshark's hands."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import pytest

import testbed
from analysis.statistics.packet_comparison import compare_packets
from experiments.command import main
from testbed.plan.plan import CapturePlan
from testbed.runner.programme import Answers
from testbed.store.names import FLOWS_FOLDER, capture_file
from testbed.store.reading import trials_in
from testbed.store.records import Record
from testbed.trial.parts.capture import GUEST_KERNEL, HostCaptures
from testbed.trial.parts.part import PlannedTrial
from testbed.trial.parts.pcapng import Source, convert
from tests.lab import ended_in_the_guest
from tests.sabotage import add_part
from tests.scenarios import router


def test_a_trial_that_runs_again_sends_the_same_packets(tmp_path: Path) -> None:
    scenario = router(variant="cubic", duration_s=3)
    for name in ("a", "b"):
        testbed.run(scenario, engine="guest", out=tmp_path / name, quiet=True)
    assert compare_packets(tmp_path / "a", tmp_path / "b").agrees
    assert main(["compare", "--packets", str(tmp_path / "a"), str(tmp_path / "b")]) == 0


def test_pyshark_reads_a_trials_packets(tmp_path: Path) -> None:
    scenario = router(variant="cubic", duration_s=3)
    flow = dataclasses.replace(scenario.flows[0], drops=(20, 21))
    scenario = dataclasses.replace(scenario, flows=(flow,))
    rows = testbed.run(scenario, engine="guest", out=tmp_path, quiet=True)
    (trial,) = testbed.open_results(rows).trials
    assert trial.path == next(trials_in(tmp_path)).path
    again = trial.packets("tcp.analysis.retransmission")
    assert len(again) == rows["retransmitted"].iloc[0] > 0
    table = trial.packet_table()
    assert [int(p.number) for p in again] == list(table.loc[table["retransmission"], "frame"])


class TcpdumpBeside(HostCaptures):
    """tcpdump at every capture of a guest, beside the kernel's."""

    @classmethod
    def wanted(cls, _trial: PlannedTrial) -> bool:
        return True

    def _file(self, plan: CapturePlan, suffix: str) -> str:
        return f"{FLOWS_FOLDER}/tcpdump-{plan.interface}{suffix}"

    def write(self, folder: Path, answers: Answers) -> None:
        pass

    def describe(self, record: Record, _answers: Answers) -> Record:
        return record


def test_the_kernel_writes_what_tcpdump_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_part(monkeypatch, TcpdumpBeside)
    scenario = router(variant="cubic", duration_s=3, cbr_mbit=1, snaplen_bytes=101)
    trial = ended_in_the_guest(scenario, tmp_path)
    assert len(trial.record.captures) == 6
    for capture in trial.record.captures:
        pcap = trial.path / FLOWS_FOLDER / f"tcpdump-{capture.interface}.pcap"
        source = Source(capture.interface, capture.node, GUEST_KERNEL)
        convert(pcap, pcap.with_suffix(".pcapng"), source, threading.Event())
        kernels = trial.path / capture_file(capture.interface)
        assert kernels.read_bytes() == pcap.with_suffix(".pcapng").read_bytes()
        assert capture.packets > 100 and not capture.dropped
