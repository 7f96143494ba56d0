"""Queues as they really are set up: a row that is added, and options that are set wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.scenario import queues
from testbed.scenario.network import Queue
from testbed.store import Status
from tests.added_row import tutorial_row
from tests.faults import verdict
from tests.lab import packets, run_by, samples
from tests.option_faults import FAULTS, Fault, reason
from tests.scenarios import router

EVERY = 4  # the others: python -m tests.faults --options


@pytest.mark.parametrize("fault", FAULTS[::EVERY], ids=lambda fault: fault.message)
def test_a_wrong_option_ends_the_trial_by_name(fault: Fault, tmp_path: Path) -> None:
    assert fault.message in reason(fault, tmp_path)


def test_the_tutorials_queue_marks_and_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = tutorial_row()
    monkeypatch.setitem(queues.DISCIPLINES, row.name, row)
    queue = Queue(row.name, limit_packets=200, ecn=True, options={"target_ms": 5})
    # Cubic: what Reno does to it in slow start is above fq_pie's ecn_prob, and dropped
    scenario = router(variant="cubic", rate_mbit=10, queue=queue, delay_ms=10, duration_s=8)
    trial = run_by("tests.added_row", scenario=scenario, out=tmp_path)
    assert trial.record.status is Status.OK, trial.record.reason
    marked = packets(trial, "bottleneck-out:tcp", "ip.dsfield.ecn == 3")
    assert int(samples(trial, "queues")[-1]["marks"]) == len(marked) > 0
    assert verdict(trial.path).why == ""
