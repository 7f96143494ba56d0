"""Workloads in the guest: every transfer has its row, and one that is lost is named."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.results.reduction import reduction_of
from analysis.results.tables import transfers_of
from analysis.statistics.text_tables import transfers_summary
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.workload import Arrivals, Sizes, Workload
from testbed.store.names import planned_file, report_file
from testbed.store.reading import Trial, open_trial
from tests.lab import run_trials
from tests.sealing import seal
from tests.workloads import kept, workload_scenario


def several() -> Scenario:
    """New connections with web-search sizes, a long flow beside them, and kept ones the other
    way."""
    workload = Workload(Arrivals(load=0.4), Sizes(scale=0.02))
    scenario = workload_scenario(workload, beside=True)
    back = Flow(
        "back", FlowKind.WORKLOAD, "receiver1", "sender1", variant="bbr", workload=kept(0.3)
    )
    return dataclasses.replace(scenario, flows=(*scenario.flows, back))


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return run_trials([several()], tmp_path_factory.mktemp("workloads"))[0]


def test_every_transfer_has_its_row(trial: Trial) -> None:
    verdict = judge(trial)
    assert verdict is not None and (verdict.verdict, verdict.why) == (Grade.VALID, "")
    checked = {c.subject for c in verdict.checks if c.name.startswith("transfer")}
    assert {"web list", "web log", "web captured", "back captured", "web", "back"} <= checked
    rows = reduction_of(trial).transfers
    for flow in ("web", "back"):
        planned = (trial.path / planned_file(flow)).read_text().splitlines()
        own = rows[rows["flow"] == flow]
        assert own["size_bytes"].tolist() == [int(line.split()[2]) for line in planned]
        # those that begin in the last moments do not end
        assert (own["state"] == "finished").mean() > 0.8
    assert rows["slowdown"].min() >= 1 - 1e-9
    assert set(rows["state"]) == {"finished", "unfinished"}
    assert rows.loc[rows["state"] == "unfinished", "completion_s"].isna().all()


def test_the_table_has_a_line_for_each_workload_and_size(trial: Trial) -> None:
    table = transfers_summary(transfers_of([trial]))
    assert {(row[0], row[1]) for row in table.rows} == {("web", "cubic"), ("back", "bbr")}
    rows = reduction_of(trial).transfers
    assert sum(int(row[3]) for row in table.rows) == len(rows)


def without_one(data: Any) -> None:
    del data["transfers"][7]


def shifted(data: Any) -> None:
    data["transfers"][7][2] += 20_000_000


def unfinished(data: Any) -> None:
    data["transfers"][7][2] = -1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (without_one, "transfers of web log: "),
        (shifted, "transfer times of web: "),
        (unfinished, "transfers of web captured: 1, expected 0 ± 0 transfers; transfer 7 is in"),
    ],
)
def test_a_log_that_is_not_what_the_captures_show(
    trial: Trial, change: Callable[[Any], None], why: str, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(trial.path, tmp_path / "results" / "trial"))
    path = copy / report_file("web", "client")
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    found = judge(open_trial(seal(copy)))
    assert found is not None and found.verdict is Grade.INVALID
    assert found.why.startswith(why)


def test_a_list_that_lacks_a_transfer(trial: Trial, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(trial.path, tmp_path / "results" / "trial"))
    path = copy / planned_file("web")
    path.write_text(path.read_text().partition("\n")[2])
    found = judge(open_trial(seal(copy)))
    assert found is not None and found.verdict is Grade.INVALID
    assert "transfer 0 is not the one that the seed draws" in found.why
