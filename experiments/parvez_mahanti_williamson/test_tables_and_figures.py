"""The figures and tables of PMW's experiments, from metrics written by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from analysis.figures.general.presentation import tables
from analysis.figures.sheet import Sheet
from analysis.metrics.metric_rows import with_axes
from analysis.results.experiment_results import ExperimentResults
from experiments.catalogue import EXPERIMENTS
from experiments.parvez_mahanti_williamson import figures
from experiments.parvez_mahanti_williamson import newreno_for_tests as made
from experiments.parvez_mahanti_williamson.printed import PMW_TABLE_2


def results(experiment: str, table: pd.DataFrame) -> ExperimentResults:
    rows = with_axes(table.assign(kind="tcp", verdict="", number=1))
    return ExperimentResults(
        experiment, "guest", (), rows, rows, pd.DataFrame(), definition=EXPERIMENTS[experiment]
    )


@pytest.fixture(scope="module")
def events() -> ExperimentResults:
    return results("newreno-models", made.models_metrics(seeds=2))


@pytest.fixture(scope="module")
def traffic() -> ExperimentResults:
    return results("newreno-background", made.background_metrics(seeds=2))


def texts(sheet: Sheet) -> list[list[str]]:
    return [[cell.words for cell in row] for row in sheet.rows]


def test_figure_two_and_the_map(events: ExperimentResults) -> None:
    plane, other, regions = figures.event_figures(events)
    assert plane.stem == "newreno-models-guest-events-0.05"
    for figure, most in ((plane, 40), (other, 35)):
        assert figure.data["axis_m"].max() == most
    # the forms change places where the table was made to have them
    assert "With random events the models are -1.1 to -0.9 % off" in plane.caption
    assert "Impatient comes to lead from m = 27 on" in plane.caption
    assert regions.stem == "newreno-models-guest-regions"
    assert "m* = 7" in regions.caption  # with the timer that most of the timeouts had


def test_the_models_errors_stand_beside_the_goodputs(events: ExperimentResults) -> None:
    ((title, points),) = tables(events)
    assert title == "Figure 2, dropper random"
    assert len(points.rows) == 40 + 35
    first, last = texts(points)[0], texts(points)[39]
    assert (first[:3], last[:3]) == (["0.05", "1", "2"], ["0.05", "40", "2"])
    assert all(-1.1 < float(each.split()[0]) < -0.8 for each in first[-2:])


def test_figure_three(traffic: ExperimentResults) -> None:
    (drawn,) = figures.background_figures(traffic)
    assert (
        "With queue droptail Slow-but-Steady is +5.5 to +13.6 % ahead of Impatient" in drawn.caption
    )
    assert "with queue red Slow-but-Steady is +3.0 to +3.0 %" in drawn.caption
    assert set(drawn.data["part"]) == {"queue droptail", "queue red"}


def test_table_two_has_the_papers_rows_beside_ours(traffic: ExperimentResults) -> None:
    (title, plain), (_, red) = tables(traffic)
    assert "droptail" in title
    lines = texts(plain)
    assert [line[0] for line in lines] == [str(row.flows) for row in PMW_TABLE_2]
    assert [line[7] for line in lines] == [f"{row.simulated:g}" for row in PMW_TABLE_2]
    assert {line[7] for line in texts(red)} == {"–"}  # the paper prints none
    assert lines[0][-1].startswith("13.")
