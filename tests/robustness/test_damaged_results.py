"""Results folders of which a part failed or was damaged: every verb says so, and reads the rest."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from testbed.cli.entry import main
from testbed.store import RECORD, REPORT, SCENARIO, Record, Status, open_trial
from tests.trial_writer import write_trial


def write_failed(path: Path, status: Status = Status.FAILED, experiment: str = "") -> Path:
    """Write a trial that left nothing but its scenario and why it failed."""
    whole = write_trial(path)
    scenario = dataclasses.replace(open_trial(whole).scenario, experiment=experiment)
    shutil.rmtree(whole)
    whole.mkdir()
    (whole / SCENARIO).write_text(scenario.to_json())
    (whole / RECORD).write_text(Record(status, "no room", engine="guest", seed=1).to_json())
    return whole


@pytest.mark.parametrize("status", [Status.FAILED, Status.UNSUPPORTED])
@pytest.mark.parametrize("beside", [True, False], ids=["beside a good one", "alone"])
def test_all_trials_of_an_experiment_failed(tmp_path: Path, status: Status, beside: bool) -> None:
    """Its page says why, and that of another experiment in the folder is there."""
    out = tmp_path / "results"
    write_failed(out / "failed", status, "router-bottleneck")
    if beside:
        write_trial(out / "good")
    assert main(["report", str(out)]) == 0
    page = (out / REPORT).read_text()
    assert "no room" in page and f"1 {status}" in page
    assert ("<td>tcp 0." in page) == beside
