"""The figure's curves, notes and words, from trials made by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.figures import style
from analysis.figures.figure import Area, Curve, Figure, Panel, PointSeries, ReferenceLine
from analysis.figures.setting_groups import by_setting
from analysis.results.experiment_results import collect
from analysis.results.tables import write_metrics
from analysis.trials.series import Series, TrialSeries, grid_step_s, trial_series
from experiments.catalogue import EXPERIMENTS
from experiments.guo_yuan_sheng import bottleneck_figures
from experiments.guo_yuan_sheng.bottleneck_figures import Column, columns, rows
from testbed.scenario.model import Scenario
from testbed.scenario.network import Queue
from testbed.store.reading import Trial, open_trial, trials_in
from testbed.store.records import Record, Status
from tests.scenarios import router
from tests.trial_writer import ROLES, write_trial, written_scenario


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trial that ran, and one of a variant that the kernel lacks."""
    folder = tmp_path_factory.mktemp("results")
    write_trial(folder / "reno", samples=True)
    absent = Record(Status.UNSUPPORTED, "no vegas in this kernel", engine="guest")
    write_trial(folder / "vegas", scenario=written_scenario("vegas"), record=absent)
    return folder


def variant(name: str, seed: int = 1, queue: Queue | None = None) -> Scenario:
    """A scenario like the trial's, whose queue is another, with this variant, seed or queue."""
    return router(variant=name, cbr_mbit=0.1, duration_s=12, seed=seed, queue=queue)


@pytest.fixture(scope="module")
def metrics(results: Path) -> pd.DataFrame:
    return write_metrics(results)


@pytest.fixture(scope="module")
def trial(results: Path) -> Trial:
    return open_trial(results / "reno")


def defined(series: Series | None) -> dict[float, float]:
    """The values of a series by time, where it has any."""
    assert series is not None
    pairs = zip(series.time_s, series.value, strict=True)
    return {round(float(t), 3): float(v) for t, v in pairs if np.isfinite(v)}


def test_throughput_over_time(trial: Trial) -> None:
    (flow,) = trial_series(trial).flows  # the CBR flow is not drawn
    assert grid_step_s(trial) == 1  # fifty frames at 1 Mbit/s take 0.6 s
    expected = {t + 0.5: 0.0 for t in range(1, 11)}
    expected |= {1.5: 108 * 8e-6, 2.5: 10 * 1054 * 8e-6, 3.5: 1054 * 8e-6}
    assert defined(flow.throughput_mbps) == pytest.approx(expected)


def test_delay_over_time(trial: Trial) -> None:
    (flow,) = trial_series(trial).flows
    delays = defined(flow.delay_ms)
    assert delays.pop(3.01) == pytest.approx(70)
    assert set(delays.values()) == {50.0}
    assert sorted(delays)[-1] == 10.97  # by the time of sending
    assert sorted(flow.delays_ms) == [50.0] * 11 + [70.0]


def test_window_and_queue_over_time(trial: Trial) -> None:
    series = trial_series(trial)
    assert defined(series.flows[0].cwnd) == {2.01: 11.0, 3.01: 5.0}  # means of 20 ms
    assert series.queue is not None
    assert defined(series.queue.backlog_kb) == {2.01: 0.0, 2.05: 3.0, 3.01: 1.0}
    assert series.queue.drop_times_s.tolist() == [2.04]
    assert series.queue.drops == 1
    assert (series.flows[0].cwnd_peak, series.queue.peak_kb) == (12, 3)


def over_time(trials: Sequence[Trial], metrics: pd.DataFrame) -> Figure:
    """All trials in one figure."""
    across = columns(trials, metrics)
    down = rows(trials[0].scenario, across)
    return bottleneck_figures.over_time_figure("time", trials, across, down)


@pytest.fixture(scope="module")
def figure(results: Path, metrics: pd.DataFrame) -> Figure:
    return over_time(list(trials_in(results)), metrics)


def first_column(figure: Figure) -> list[Panel]:
    """The first variant's panels."""
    return [panel for panel, *_ in figure.panels if panel]


def test_a_column_a_variant_and_a_row_a_measure(figure: Figure) -> None:
    assert [len(row) for row in figure.panels] == [2, 2, 2]
    panels = first_column(figure)
    assert [panel.y.label for panel in panels] == [
        "throughput\n(Mbit/s)",
        "one-way delay\n(ms)",
        "congestion window\n(packets)",
    ]
    assert [panel.x.label for panel in panels] == ["", "", "time (s)"]
    assert panels[0].heading == "reno"


def test_lines_that_the_network_allows(trial: Trial, metrics: pd.DataFrame) -> None:
    figure = over_time([dataclasses.replace(trial, scenario=variant("reno"))], metrics)
    lines = [panel.marks[0] for panel in first_column(figure)[:2]]
    assert [line.value for line in lines if isinstance(line, ReferenceLine)] == [1, 800]
    # Mbit/s; 100000 bytes at that rate


def test_drops_are_ticks_over_the_windows(figure: Figure) -> None:
    window = first_column(figure)[2]
    (ticks,) = [mark for mark in window.marks if isinstance(mark, PointSeries)]
    assert (list(np.asarray(ticks.x)), ticks.y_place) == ([2.04], "panel")
    low, high = window.y.limits
    assert low == 0 and high == pytest.approx(11 + 0.15 * (11 - 5))  # room for them


def test_notes_over_the_panels(figure: Figure) -> None:
    notes = [panel.note for panel in first_column(figure)]
    assert notes == ["mean 0.00936", "median 50.0, 95 % 59.0", "peak 12, 1 drop"]


def test_an_unsupported_variant_is_named(figure: Figure) -> None:
    absent = [row[1] for row in figure.panels]
    assert absent[0] and absent[0].empty == "unsupported: no vegas in this kernel"
    assert all(panel and panel.empty and not panel.marks for panel in absent)


def test_title_and_footer(figure: Figure) -> None:
    assert figure.title == (
        "reno uses 1 % of the 1 Mbit/s bottleneck,\nwith a median one-way delay of 50.0 ms"
    )
    for part in ("codel 66 packets", "12 s", "engine guest", "n = 1 per variant, seed 1;"):
        assert part in figure.foot


def test_a_figure_has_its_data_and_a_caption(results: Path) -> None:
    (collected,) = collect([results], EXPERIMENTS).experiments
    (figure,) = bottleneck_figures.over_time(collected)
    assert figure.stem == f"{collected.key}-variants-over-time"
    assert figure.caption.startswith("reno uses 1 % of the 1 Mbit/s bottleneck, with a median")
    windows = figure.data[figure.data["measure"] == "congestion window (packets)"]
    assert dict(zip(windows["time_s"].round(3), windows["value"], strict=True)) == {
        2.01: 11,
        3.01: 5,
    }


def test_nothing_is_drawn_where_nothing_was_measured(tmp_path: Path) -> None:
    write_trial(tmp_path / "a", without=tuple(ROLES))
    (collected,) = collect([tmp_path], EXPERIMENTS).experiments
    assert list(bottleneck_figures.over_time(collected)) == []


def test_nothing_ran(tmp_path: Path) -> None:
    write_trial(tmp_path / "a", record=Record(Status.FAILED, "it broke", engine="guest"))
    figure = over_time(list(trials_in(tmp_path)), write_metrics(tmp_path))
    assert first_column(figure)[0].empty == "failed: it broke"
    assert "no trial has captures to draw" in figure.title


def test_without_captures_the_queue_is_drawn(tmp_path: Path) -> None:
    write_trial(tmp_path / "a", without=tuple(ROLES), samples=True)
    queue, window = first_column(over_time(list(trials_in(tmp_path)), write_metrics(tmp_path)))
    assert (queue.y.label, window.y.label) == ("queue\n(kB)", "congestion window\n(packets)")
    assert queue.note == "peak 3"


def test_the_title_names_the_queue_where_it_varies(
    results: Path, metrics: pd.DataFrame, trial: Trial
) -> None:
    across = columns(list(trials_in(results)), metrics)
    assert bottleneck_figures.title(trial.scenario, across).startswith("reno uses")
    named = bottleneck_figures.title(trial.scenario, across, "codel")
    assert named.startswith("With codel, reno uses")


def test_the_title_says_a_delay_that_all_have_once(
    results: Path, metrics: pd.DataFrame, trial: Trial
) -> None:
    (column,) = (each for each in columns(list(trials_in(results)), metrics) if each.trials)
    twins = [column, dataclasses.replace(column, variant="cubic")]
    title = bottleneck_figures.title(trial.scenario, twins)
    assert title.endswith("with a median one-way\ndelay of 50.0 ms")


@pytest.mark.parametrize(("seeds", "lines"), [(3, 3), (6, 1)])
def test_several_seeds(trial: Trial, seeds: int, lines: int) -> None:
    ten = np.arange(10.0)
    (flow,) = trial_series(trial).flows
    windows = [
        dataclasses.replace(flow, cwnd=Series(ten, ten + seed), cwnd_peak=1)
        for seed in range(seeds)
    ]
    column = Column("reno", tuple(TrialSeries((window,), None) for window in windows), 1)
    down = [bottleneck_figures.window_row()]
    figure = bottleneck_figures.over_time_figure("time", [trial], [column], down)
    (panel,) = figure.all_panels
    curves = [mark for mark in panel.marks if isinstance(mark, Curve)]
    bands = [mark for mark in panel.marks if isinstance(mark, Area)]
    assert len(curves) == lines
    if lines == 1:  # the median, and the range around it
        assert np.asarray(curves[0].y)[0] == 2.5
        (band,) = bands
        assert (np.min(band.low), np.max(band.high)) == (0, 14)


def test_one_figure_a_setting(trial: Trial) -> None:
    codel = Queue("codel", limit_packets=100, ecn=True)
    trials = [
        dataclasses.replace(trial, scenario=variant(name, seed, queue))
        for name in ("reno", "vegas")
        for seed in (1, 2)
        for queue in (None, codel)
    ]
    by_name = by_setting(trials, "x")
    assert {name: len(members) for name, members in by_name.items()} == {
        "x-bfifo-100000-B": 4,
        "x-codel-100-packets-ecn": 4,
    }
    assert list(by_setting(trials[:1], "x")) == ["x"]


def test_settings_that_read_alike_are_numbered(trial: Trial) -> None:
    other = dataclasses.replace(trial.scenario, snaplen_bytes=96)
    by_name = by_setting([trial, dataclasses.replace(trial, scenario=other)], "x")
    assert list(by_name) == ["x-1", "x-2"]


def test_colours_tell_variants_apart() -> None:
    colours = style.variant_colours(["reno", "cubic", "vegas", "veno", "bbr", "mine"])
    assert len(set(colours.values())) == 6
