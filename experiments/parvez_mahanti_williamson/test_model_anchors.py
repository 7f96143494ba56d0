"""PMW's map of its two NewRenos, and what the paper prints of it: anchors, table II, figure 4."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.figures import static_renderer
from analysis.figures.figure import Area, Curve, Figure, Mark, PointSeries
from analysis.throughput_models import Conditions, Invalid
from experiments.parvez_mahanti_williamson import figures
from experiments.parvez_mahanti_williamson.models import (
    DUPLICATES,
    Regions,
    imp_cycle_rtts,
    imp_segments,
    imp_window,
    predict,
    sbs_cycle_rtts,
    sbs_most_losses,
    sbs_segments,
    sbs_window,
)
from experiments.parvez_mahanti_williamson.printed import (
    PMW_CRITICAL_LOSSES,
    PMW_CROSSING_OF_WINDOW,
    PMW_CROSSINGS,
    PMW_FIRST_IMPATIENT,
    PMW_GONE_FROM,
    PMW_LOSSES_PER_EVENT,
    PMW_MEAN_ERROR,
    PMW_RTT_S,
    PMW_TABLE_2,
    PMW_THIN_FROM,
    PMW_WORST_ERROR,
    BackgroundRow,
)
from experiments.parvez_mahanti_williamson.recomputed_for_tests import (
    Region,
    break_even_rto,
    mean_error,
    recompute,
    region,
)

TIMER = figures.MIN_RTO_S / PMW_RTT_S  # ns-2's least RTO in round trips
MEASURED = figures.TIMEOUT_S / PMW_RTT_S


# PMW's anchors. What of them no single RTO gives: experiments/parvez_mahanti_williamson/README.md


def rto_range_s(p: float, first: int) -> tuple[float, float]:
    """The RTOs, at 70 ms, with which `first` is the first whole m at or above the crossing."""
    low, high = (PMW_RTT_S * break_even_rto(p, m) for m in (first - 1, first))
    return low, high


def test_no_rto_gives_both_crossings_of_figure_4() -> None:
    """27 - 21 wants crossings more than 5 apart, however one rounds; they are less."""
    for tenths in range(90):
        regions = Regions(tenths / 10)
        apart = regions.crossing(0.0005) - regions.crossing(0.001)
        assert 4.95 < apart < 5
    exact = {p: PMW_RTT_S * break_even_rto(p, m) for p, m in PMW_CROSSINGS.items()}
    assert exact == pytest.approx({0.0005: 0.388, 0.001: 0.326}, abs=5e-4)
    assert rto_range_s(0.0005, 27) == pytest.approx((0.328, 0.388), abs=5e-4)
    assert rto_range_s(0.001, 21) == pytest.approx((0.266, 0.326), abs=5e-4)


def test_one_rto_gives_both_numbers_of_figure_2() -> None:
    ranges = [rto_range_s(p, first) for p, first in PMW_FIRST_IMPATIENT.items()]
    low, high = max(a for a, _ in ranges), min(b for _, b in ranges)
    assert (low, high) == pytest.approx((0.268, 0.326), abs=5e-4)
    assert low < figures.TIMEOUT_S < high


def test_whole_numbers_somewhere_would_give_27_and_21() -> None:
    """A slow start of whole rounds, or a whole W_SBS: the crossings are then more than 5 apart."""

    def first(p: float, rto_s: float, whole_rounds: bool, whole_window: bool) -> int:
        window = imp_window(p)
        impatient = imp_cycle_rtts(window, rto_s / PMW_RTT_S)
        if whole_rounds:
            impatient += math.ceil(math.log2(window / 8)) - math.log2(window / 8)
        for m in itertools.count(1):
            steady = math.ceil(sbs_window(p, m)) if whole_window else sbs_window(p, m)
            if sbs_cycle_rtts(steady, m) >= impatient:
                return m
        raise AssertionError

    def fitting_ms(whole_rounds: bool, whole_window: bool) -> list[int]:
        return [
            rto_ms
            for rto_ms in range(200, 450)
            if {p: first(p, rto_ms / 1000, whole_rounds, whole_window) for p in PMW_CROSSINGS}
            == PMW_CROSSINGS
        ]

    assert fitting_ms(False, False) == []
    assert fitting_ms(True, False) == list(range(259, 292))
    assert fitting_ms(False, True) == list(range(328, 353))


def test_curves_cross_where_figure_2_has_it() -> None:
    for p, first in PMW_FIRST_IMPATIENT.items():
        ahead = []
        for m in range(1, 36):
            met = Conditions(p, PMW_RTT_S, m, figures.TIMEOUT_S)
            sbs, imp = predict("sbs", met), predict("imp", met)
            if isinstance(sbs, float) and isinstance(imp, float) and imp > sbs:
                ahead.append(m)
        assert ahead == list(range(first, 36))


def test_the_timer_itself_gives_the_critical_losses_and_the_half() -> None:
    regions = Regions(TIMER)
    assert regions.critical == PMW_CRITICAL_LOSSES
    parts = {p: regions.crossing(p) / imp_window(p) for p in PMW_CROSSING_OF_WINDOW}
    assert parts == pytest.approx({0.0005: 0.370, 0.0025: 0.502}, abs=5e-4)
    crossings = {p: regions.crossing(p) for p in PMW_CROSSINGS}
    assert crossings == pytest.approx({0.0005: 23.86, 0.001: 18.90}, abs=5e-3)


def test_where_the_regions_vanish() -> None:
    regions = Regions(TIMER)
    window = regions.critical + DUPLICATES  # the least that bears m* losses
    sbs_vanishes, imp_vanishes = (
        1 / sbs_segments(window, regions.critical),
        1 / imp_segments(window),
    )
    # exactly: 8/(5·7²), and 1/p = 15/32·49 + 7/8·7 - 1
    assert sbs_vanishes == pytest.approx(8 / 245)
    assert imp_vanishes == pytest.approx(0.0356, abs=5e-5)
    assert PMW_GONE_FROM < sbs_vanishes < imp_vanishes
    for p in (PMW_GONE_FROM, 0.02):
        thin = regions.imp_end(p) - regions.sbs_end(p)
        assert 0 < thin < 1
    wide, thin = (regions.imp_end(p) - regions.sbs_end(p) for p in (0.001, PMW_THIN_FROM))
    assert (wide, thin) == pytest.approx((23.4, 2.3), abs=0.1)


@pytest.mark.parametrize("p", [0.0002, 0.001, 0.01, 0.03])
def test_the_most_losses_are_the_window_less_three(p: float) -> None:
    m = sbs_most_losses(p)
    assert m == pytest.approx(sbs_window(p, m) - 3)


@pytest.mark.parametrize(
    "p, m, wanted",
    [
        (0.0005, 3, Region.EQUAL),
        (0.0005, 4, Region.SBS),
        (0.0005, 23, Region.SBS),
        (0.0005, 24, Region.IMP),
        (0.0005, 61, Region.IMP),
        (0.0005, 62, Region.TIMEOUT),
        (0.02, 5.9, Region.SBS),
        (0.02, 6, Region.IMP),  # Slow-but-Steady's window does not bear it, Impatient's does
        (0.034, 4, Region.IMP),
        (0.036, 4, Region.TIMEOUT),
        (0.036, 3, Region.EQUAL),
        (0.06, 3, Region.TIMEOUT),
    ],
)
def test_regions(p: float, m: float, wanted: Region) -> None:
    assert region(Regions(TIMER), p, m) is wanted


@pytest.mark.parametrize("p", [1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2])
@pytest.mark.parametrize("rto_rtts", [2.5, MEASURED])
def test_the_map_says_what_the_models_say(p: float, rto_rtts: float) -> None:
    regions = Regions(rto_rtts)
    for m in range(1, 120):
        better = region(regions, p, m)
        met = Conditions(p, 0.07, m, rto_rtts * 0.07)
        sbs, imp = predict("sbs", met), predict("imp", met)
        if isinstance(sbs, Invalid) or isinstance(imp, Invalid) or better is Region.TIMEOUT:
            assert better is not Region.SBS
        elif m <= sbs_most_losses(p):
            ahead = Region.SBS if sbs > imp else Region.IMP
            assert better is (Region.EQUAL if sbs == imp else ahead)


# PMW's table II: its prediction column from its rates


def test_table_2_recomputed() -> None:
    rows = [recompute(row) for row in PMW_TABLE_2]
    deviations = {row.row.flows: 100 * row.deviation for row in rows}
    assert deviations == pytest.approx(
        {
            4: 1.51,
            8: 0.06,
            12: 0.46,
            16: 1.90,
            24: 0.39,
            32: 0.08,
            48: 0.75,
            64: 3.63,
            96: 0.66,
            128: 1.11,
            160: 3.48,
            180: 0.31,
            192: 3.54,
            224: 3.85,
            256: 7.09,
        },
        abs=0.006,
    )
    assert [row.row.flows for row in rows if row.explained] == [4, 8, 12, 16, 24, 32]


@pytest.mark.parametrize("row", PMW_TABLE_2, ids=lambda row: f"{row.flows} flows")
def test_what_table_2s_predictions_would_need(row: BackgroundRow) -> None:
    recomputed = recompute(row)
    needed = replace(row, loss_rate=row.loss_event_rate * recomputed.losses_needed)
    assert recompute(needed).prediction == pytest.approx(row.predicted)
    assert 1 < recomputed.losses_needed / recomputed.losses_per_event < 1.22


def test_table_2s_predictions_are_the_model_where_it_holds() -> None:
    for row in PMW_TABLE_2:
        recomputed = recompute(row)
        met = Conditions(row.loss_event_rate, 0.05, recomputed.losses_per_event)
        answer = predict("sbs", met)
        assert isinstance(answer, float)
        assert answer * 0.05 == pytest.approx(recomputed.prediction)


def test_table_2s_rounding_leaves_what_its_corners_leave() -> None:
    """The least and the most are those at the corners of the rounding."""
    for row in PMW_TABLE_2:
        recomputed = recompute(row)
        answers = [
            recompute(
                replace(
                    row,
                    loss_event_rate=row.loss_event_rate + a * 0.00005,
                    loss_rate=row.loss_rate + b * 0.00005,
                )
            ).prediction
            for a, b in itertools.product((-1, 0, 1), repeat=2)
        ]
        assert (min(answers), max(answers)) == pytest.approx(
            (recomputed.lowest, recomputed.highest)
        )


def test_table_2s_own_errors() -> None:
    to_200 = [row for row in PMW_TABLE_2 if row.flows <= 200]
    assert mean_error(to_200) == pytest.approx(0.0979, abs=5e-5)
    assert mean_error(to_200) == pytest.approx(PMW_MEAN_ERROR["droptail"], abs=2e-4)
    assert mean_error(PMW_TABLE_2[-1:]) == pytest.approx(PMW_WORST_ERROR, abs=2e-3)
    losses = [recompute(row).losses_per_event for row in to_200]
    low, high = PMW_LOSSES_PER_EVENT["newreno", "droptail"]
    assert min(losses) == pytest.approx(low, abs=0.01)
    assert max(losses) == pytest.approx(high, abs=0.05)


# The figure


def mark(figure: Figure, name: str) -> Mark:
    """The mark of that entry of the legend."""
    assert name in [entry.name for entry in figure.legend]
    (one,) = [mark for mark in figure.all_panels[0].marks if mark.series == name]
    return one


def test_the_map_is_drawn(tmp_path: Path) -> None:
    map_of_both = figures.regions_figure("map", {"a": Regions(TIMER), "b": Regions(MEASURED)})
    png, svg, data = static_renderer.save(map_of_both, tmp_path)
    assert png.stat().st_size > 10_000
    assert svg.stat().st_size > 10_000
    assert len(data.read_text().splitlines()) == 1 + 2 * 60


def test_the_maps_lines_are_the_regions() -> None:
    """A line for each ratio of RTO to RTT, and the paper's anchors where it prints them."""
    figure = figures.regions_figure("map", {"a": Regions(TIMER), "b": Regions(MEASURED)})
    for rto_rtts in (TIMER, MEASURED):
        line = mark(figure, f"mₜ with RTO {rto_rtts:.2f} RTT")
        assert isinstance(line, Curve)
        crossings = [Regions(rto_rtts).crossing(p) for p in np.asarray(line.x, float)]
        assert np.asarray(line.y) == pytest.approx(crossings)
    points = mark(figure, "paper: mₜ (Fig. 4)")
    assert isinstance(points, PointSeries)
    assert (points.x, points.y) == ([0.0005, 0.001], [27, 21])


@pytest.mark.parametrize(
    "label, wanted",
    [
        ("equal: m < m*", Region.EQUAL),
        ("Slow-but-Steady better", Region.SBS),
        ("Impatient better", Region.IMP),
    ],
)
def test_the_maps_areas_are_the_regions(label: str, wanted: Region) -> None:
    regions = Regions(TIMER)
    area = mark(figures.regions_figure("map", {"a": regions}), label)
    assert isinstance(area, Area)
    rates, lows, highs = (np.asarray(each, float) for each in (area.x, area.low, area.high))
    for p in (0.0003, 0.002, 0.009, 0.02, 0.031, 0.034, 0.04):
        low, high = np.interp(p, rates, lows), np.interp(p, rates, highs)
        for m in (1.5, 3.9, 4.2, 5, 8, 15, 25, 60):
            assert (low < m < high) == (region(regions, p, m) is wanted), (p, m)
