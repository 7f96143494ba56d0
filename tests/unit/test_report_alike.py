"""Nothing in the report is averaged over settings that differ, and its rows can be told apart."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.figures.cases import split
from analysis.figures.general.presentation import figures, tables
from analysis.figures.means import with_goodput_shares
from analysis.metrics.digest import THROUGHPUT_SERIES
from analysis.metrics.metric_rows import tell_settings_apart, varied_axes
from analysis.report import collect
from analysis.report.listing import cells
from analysis.results.experiment_results import ExperimentResults
from experiments.catalogue import EXPERIMENTS
from experiments.kapre_saxena_joshi_hattikar.figures import IN_NS2
from tests import report_writer

SEEDS = 2
MEASURED = {"throughput_mbps": 1.0, "goodput_mbps": 1.0, "owd_mean_ms": 1.0, "drop_rate": 0.01}
CAPTIONED = re.compile(
    r"(?<!cbr )(?<!sends )(?<!line at )\b(\d[\d.e+]*)(?= (?:Mbit/s|ms|%))(?! Mbit/s of CBR)"
)
PAPERS: Mapping[str, Mapping[str, Sequence[str | float]]] = {
    "dumbbell-load": {
        "variant": ("reno", "cubic"),
        "cbr_mbit": (1.0, 9.0),
        "order": ("cbr-first", "tcp-first"),
        "profile": ("ns2",),
        "window": ("small",),
    },
    "dumbbell-pairs": {"pair": ("reno/cubic", "bbr/vegas"), "cbr_mbit": (2.0, 8.0)},
    "dumbbell-queues": {"variant": ("reno", "sack"), "queue": ("droptail", "red")},
    "router-fairness": {"queue": ("bfifo", "codel"), "within_s": (0.1, 1.0)},
    "someones-own": {"variant": ("cubic", "bbr")},
    "someones-pairs": {"pair": ("reno/cubic", "cubic/cubic")},
    "of-one-variant": {"variant": ("cubic",)},
}


def extra_axes(dice: np.random.Generator, most: int) -> dict[str, Sequence[str | float]]:
    """One or two axes that no figure knows, of numbers or of names."""
    found: dict[str, Sequence[str | float]] = {}
    for number in range(int(dice.integers(1, most + 1))):
        values = dice.choice(50, size=2, replace=False)
        words = bool(dice.integers(2))
        found[f"axis{number}"] = [f"v{v}" if words else float(v) for v in values]
    return found


def points(axes: Mapping[str, Sequence[str | float]]) -> Iterator[dict[str, str | float]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def unlike(
    folder: Path, experiment: str, dice: np.random.Generator, most: int = 1
) -> tuple[ExperimentResults, set[float]]:
    """Trials whose every cell has a number of its own, which all its seeds share."""
    for point in points({**PAPERS[experiment], **extra_axes(dice, most)}):
        for seed in range(1, SEEDS + 1):
            report_writer.write(folder, report_writer.scenario(experiment, point, seed))
    [results] = collect([folder], EXPERIMENTS).experiments
    rows = results.rows.assign(setting=results.rows["axes"])
    keys = rows["axes"] + rows["flow"]
    drawn = dice.choice(np.arange(100, 1000), size=keys.nunique(), replace=False)
    value = keys.map(dict(zip(keys.unique(), drawn.astype(float), strict=True)))
    rows = rows.assign(**{name: factor * value for name, factor in MEASURED.items()})
    rows["rtt_mean_ms"] = value
    by_flow = dict(zip(zip(rows["trial"], rows["flow"], strict=True), value, strict=True))
    digest = results.digest
    own = [by_flow[key] for key in zip(digest["trial"], digest["flow"], strict=True)]
    made = dataclasses.replace(results, rows=rows, good=rows, digest=digest.assign(value=own))
    parts = with_goodput_shares(made.tcp)["share_percent"]
    together = made.tcp.groupby(["trial", "variant"])["throughput_mbps"].sum()  # over time
    return made, {*value, *together, *parts, *(100 - parts), 100.0}


Unlike = Callable[[int], tuple[ExperimentResults, set[float]]]


@pytest.fixture(scope="module")
def unlike_trials(tmp_path_factory: pytest.TempPathFactory, full: bool) -> Unlike:
    """Those of the experiment of that place, with numbers drawn by it. Two axes that no figure
    knows where there is one of its own; where there are two, in the full run."""

    def made(place: int) -> tuple[ExperimentResults, set[float]]:
        folder, own = tmp_path_factory.mktemp("unlike") / "r", list(PAPERS)[place]
        most = {1: 2, 2: 1 + full}.get(len(PAPERS[own]), 1)
        return unlike(folder, own, np.random.default_rng(place), most)

    return functools.cache(made)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(("seed", "experiment"), list(enumerate(PAPERS)))
def test_nothing_unlike_is_averaged(experiment: str, seed: int, unlike_trials: Unlike) -> None:
    results, known = unlike_trials(seed)
    assert results.experiment == experiment
    for figure in figures(results):
        ours = figure.data
        if "part" in ours:  # ns-2's numbers are of no trial
            ours = ours[ours["part"] != IN_NS2]
        for column in {"mean", "ms", "share_percent"} & set(ours.columns):
            _known(ours[column], known, f"{figure.stem}: {column}")
        said = [float(text) for text in CAPTIONED.findall(figure.caption)]
        short = {float(f"{value:.{digits}g}") for value in known for digits in (1, 2, 3)}
        assert set(said) <= short, f"{figure.stem}: {figure.caption}"
    for title, sheet in tables(results):
        rates = [row[[head.words for head in sheet.heads].index("n")].words for row in sheet.rows]
        assert set(rates) == {str(SEEDS)}, title


def _known(found: pd.Series, known: set[float], where: str) -> None:
    for value in found.dropna():
        assert np.isclose(value, list(known)).any(), f"{where}: {value} is a mean of unlike trials"


@pytest.mark.parametrize("seed", range(len(PAPERS)))
def test_a_row_of_the_table_is_one_setting(seed: int, unlike_trials: Unlike) -> None:
    results, known = unlike_trials(seed)
    sheet = cells(results)
    heads = [head.words for head in sheet.heads]
    n, throughput = heads.index("n"), heads.index("throughput")
    names = [tuple(cell.words for cell in row[:n]) for row in sheet.rows]
    assert len(set(names)) == len(names), "two rows look the same"
    assert len(set(heads[:n])) == n, "two columns have one name"
    assert {row[n].words for row in sheet.rows} == {str(SEEDS)}
    _known(pd.Series([float(row[throughput].words) for row in sheet.rows]), known, "table")
    assert len(sheet.rows) * SEEDS == len(results.rows)


def test_settings_that_no_axis_names_get_one() -> None:
    """As trials of scenario files, which have no axes."""
    rows = pd.DataFrame(
        {
            "trial": ["a", "b", "c"],
            "flow": "tcp",
            "variant": "cubic",
            "label": "",
            "queue": ["pfifo", "codel", "codel"],
            "topology": "dumbbell",
            "setting": ["1", "2", "3"],
        }
    )
    assert varied_axes(tell_settings_apart(rows)) == ["queue", "setting"]
    assert varied_axes(tell_settings_apart(rows[:2])) == ["queue"]
    assert varied_axes(tell_settings_apart(rows[:1])) == []
    assert len(list(split(tell_settings_apart(rows), ()))) == 3


def test_a_length_that_another_axis_decides_divides_nothing() -> None:
    rows = pd.DataFrame({"axis_path": ["near", "far"], "axis_duration_s": [10.0, 60.0]})
    assert varied_axes(rows) == ["path"]
    both = pd.concat([rows, rows.assign(axis_duration_s=20.0)])
    assert varied_axes(both) == ["path", "duration_s"]


def test_throughput_over_time_is_of_one_setting(tmp_path: Path) -> None:
    results, _ = unlike(tmp_path / "r", "someones-own", np.random.default_rng(3))
    one = results.digest[results.digest["what"] == THROUGHPUT_SERIES].groupby("trial")["value"]
    assert (one.nunique() == 1).all()
