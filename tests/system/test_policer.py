"""A policer in the guest: packets pass at once or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.trials.packets import TrialPackets
from analysis.verdict.verdict import judge
from testbed.scenario.network import Queue
from tests.lab import packets, run_trials, samples
from tests.scenarios import router

BUCKET_BYTES = 30_000
CBR_MBIT = 4.0
RATE_MBIT = 3.0


def test_what_exceeds_the_bucket_is_dropped_and_nothing_waits(tmp_path: Path) -> None:
    """UDP at 4 Mbit/s against 3: for a while the bucket pays the rest, then a quarter is lost."""
    policer = Queue("police", limit_bytes=BUCKET_BYTES)
    scenario = router(rate_mbit=RATE_MBIT, queue=policer, delay_ms=5.3, cbr_mbit=CBR_MBIT)
    (trial,) = run_trials([scenario], tmp_path)
    verdict = judge(trial)
    assert verdict is not None and verdict.verdict == "valid", verdict and verdict.why
    (drops,) = (check for check in verdict.checks if check.name == "tail drop")
    assert drops.measured >= BUCKET_BYTES  # type: ignore[operator]
    read = TrialPackets(trial)
    for flow in trial.record.flows:
        sent, left = (read.part(f"bottleneck-{side}", flow) for side in ("in", "out"))
        assert sent is not None and left is not None
        assert set(left.data["time_ns"]) <= set(sent.data["time_ns"])  # at once
    last = samples(trial, "queues")[-1]
    assert int(last["drops"]) > 100 and int(last["backlog_packets"]) == 0
    passed = packets(trial, "bottleneck-out:cbr", "udp && !icmp")
    data = packets(trial, "bottleneck-out:tcp", "tcp.dstport == 5201")
    carried = sum(each.length for each in (*passed, *data))
    assert carried == pytest.approx(RATE_MBIT * 125_000 * 5 + BUCKET_BYTES, rel=0.02)
