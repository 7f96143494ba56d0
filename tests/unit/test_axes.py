"""A trial's place on its experiment's axes travels from the command line to the metrics."""

from __future__ import annotations

import pandas as pd

from analysis.metrics.metric_rows import read_axes, with_axes, write_axes
from experiments.all_variants import EXPERIMENT


def test_an_experiment_notes_where_each_of_its_scenarios_lies() -> None:
    scenarios = EXPERIMENT.scenarios({"variant": ["reno"], "packets": ["20", "7.5"]}, 1, False)
    assert [s.axes["packets"] for s in scenarios] == ["20", "7.5"]
    assert {s.axes["variant"] for s in scenarios} == {"reno"}


def test_axes_are_written_and_read() -> None:
    axes = {"cbr_mbit": "7", "order": "cbr-first"}
    assert write_axes(axes) == "cbr_mbit=7; order=cbr-first"
    assert read_axes(write_axes(axes)) == axes
    assert read_axes("") == {}


def test_axes_become_columns_with_numbers_where_all_are() -> None:
    metrics = pd.DataFrame({"axes": ["load=7; pair=a/b", "load=10; pair=c/d", ""]})
    table = with_axes(metrics)
    assert table["axis_load"].tolist()[:2] == [7, 10]
    assert table["axis_pair"].tolist()[:2] == ["a/b", "c/d"]
    assert table["axis_load"].isna().tolist() == [False, False, True]
