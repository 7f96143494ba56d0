"""Many flows, many transfers, many hosts, and a fast link; at full size with --full."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from analysis.results.reduction import reduction_of
from testbed.scenario.model import Flow, FlowKind
from testbed.scenario.network import Queue
from testbed.scenario.workload import Arrivals, Distribution, Process, Sizes, Workload
from tests.lab import run_trials
from tests.scenarios import fat_tree, router

MAX_MB = 1024
DEEP = Queue("bfifo", limit_bytes=10_000_000)


def test_many_flows_are_copies_of_one_process(tmp_path: Path, full: bool) -> None:
    flows = 1000 if full else 70
    rate_mbit = flows  # so that no SYN is lost
    one = router(variant="cubic", rate_mbit=rate_mbit, delay_ms=30.85, duration_s=1, queue=DEEP)
    named = (dataclasses.replace(one.flows[0], name=f"tcp{number}") for number in range(flows))
    scenario = dataclasses.replace(one, flows=tuple(named), start_jitter_ms=500)
    (trial,) = run_trials([scenario], tmp_path)
    assert trial.record.peak_memory_mb < (MAX_MB if full else 256)
    reports = {path.name for path in (trial.path / "flows").glob("*.json")}
    assert len(reports) == 2 * flows


@pytest.mark.slow
def test_many_transfers_a_second(tmp_path: Path, full: bool) -> None:
    """At 10,000 a second there are more connections at once than a guest's usual descriptors."""
    a_second = 10_000 if full else 500
    sizes = Sizes(Distribution.CONSTANT, mean_bytes=2000)
    workload = Workload(Arrivals(Process.POISSON, per_s=a_second), sizes)
    web = Flow("web", FlowKind.WORKLOAD, "sender1", "receiver", variant="cubic", workload=workload)
    one = router(rate_mbit=1000, delay_ms=30.85, duration_s=2, queue=DEEP)
    (trial,) = run_trials([dataclasses.replace(one, flows=(web,))], tmp_path)
    transfers = reduction_of(trial).transfers
    assert len(transfers) > 1.9 * a_second
    assert transfers["completion_s"].notna().mean() > 0.9
    assert trial.record.peak_memory_mb < MAX_MB


@pytest.mark.slow
def test_a_fast_link_is_filled(tmp_path: Path, full: bool) -> None:
    """A flow's window is 3 MB, which path and queue hold less than, even at 10 Gbit/s."""
    rate_mbit = 10_000 if full else 1000
    queue = Queue("bfifo", limit_bytes=1_500_000)
    duration_s = 1 if full else 0.5
    scenario = router(
        variant="cubic", rate_mbit=rate_mbit, delay_ms=0.5, duration_s=duration_s, queue=queue
    )
    (trial,) = run_trials([scenario], tmp_path)
    assert reduction_of(trial).flows["goodput_mbps"].item() > 0.9 * rate_mbit
    assert trial.record.peak_memory_mb < MAX_MB


@pytest.mark.slow
def test_a_fat_tree(tmp_path: Path, full: bool) -> None:
    """Half of the hosts send to the other half, through the core."""
    ports = 8 if full else 4
    (trial,) = run_trials([fat_tree(ports)], tmp_path)
    assert len(trial.scenario.flows) == ports**3 // 8
    assert trial.record.peak_memory_mb < MAX_MB
