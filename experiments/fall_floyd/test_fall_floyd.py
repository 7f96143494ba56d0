"""Segments over time, and the variants beside each other: marks, notes, titles and files."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.figures import static_renderer, style
from analysis.figures.figure import (
    Annotation,
    Curve,
    Figure,
    Panel,
    PointSeries,
    ReferenceLine,
    resolved_limits,
)
from analysis.metrics.columns import METRIC_COLUMNS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key
from experiments import all_variants_figures
from experiments.fall_floyd import figures
from experiments.fall_floyd.figures import (
    DEFINITIONS,
    TrialSegments,
    note,
    title,
    trials_by_figure,
)
from experiments.fall_floyd.outcomes import Expected, Outcome, Points, compared
from experiments.fall_floyd.outcomes import SegmentSequence as Segments
from testbed.scenario.model import Profile
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, Record, Status
from tests.scenarios import router

FIRST_S = 0.2  # when the first segment is sent, on the trial's clock
PERIOD = ("tahoe", "reno", "newreno", "newreno-impatient", "sack")
ORDER = (*PERIOD, "vegas", "vegas1995", "veno", "cubic", "bbr", "linux-reno")


def outcome(**settings: object) -> Outcome:
    """Segment 4 of ten was lost and sent again once."""
    usual = Outcome(
        lost=(4,),
        sent_again=(4,),
        timeouts=0,
        halvings=1,
        slow_start=False,
        recovery_s=0.2,
        round_trips=1.0,
        rto_ms=500.0,
        acked=10,
    )
    return dataclasses.replace(usual, **settings)  # type: ignore[arg-type]


def points(*pairs: tuple[float, float]) -> Points:
    return Points(np.array([t for t, _ in pairs]), np.array([n for _, n in pairs]))


def segments(timeouts_s: Sequence[float] = ()) -> Segments:
    """Ten segments 10 ms apart; the fourth comes again at 0.5 s and is covered at 0.7 s."""
    return Segments(
        new=points(*((FIRST_S + 0.01 * i, i + 1.0) for i in range(10))),
        again=points((0.5, 4)),
        acks=points((0.4, 1), (0.41, 2), (0.42, 3), (0.44, 3), (0.7, 10)),
        timeouts_s=np.array(timeouts_s),
    )


def trial(
    variant: str = "reno",
    lost: tuple[int, ...] = (4,),
    seed: int = 1,
    profile: Profile = Profile.NS2,
    **record: object,
) -> Trial:
    scenario = router(variant=variant, seed=seed, profile=profile)
    flow = dataclasses.replace(scenario.flows[0], drops=lost)
    scenario = dataclasses.replace(scenario, flows=(flow,))
    ran = dataclasses.replace(Record(Status.OK, engine="guest"), **record)  # type: ignore[arg-type]
    return Trial(Path(scenario.name), scenario, ran)


def panel(variant: str = "reno", lost: tuple[int, ...] = (4,), **seen: object) -> TrialSegments:
    fired = [0.6] if seen.get("timeouts") else []
    return TrialSegments(trial(variant, lost), segments(fired), outcome(lost=lost, **seen))


def mark(panel: Panel, name: str) -> list[tuple[float, float]]:
    """Return where the points of this series are."""
    return [
        (round(float(x), 6), float(y))
        for mark in panel.marks
        if isinstance(mark, PointSeries) and mark.series == name
        for x, y in zip(np.asarray(mark.x), np.asarray(mark.y), strict=True)
    ]


def annotation_texts(panel: Panel) -> list[str]:
    return [mark.text for mark in panel.marks if isinstance(mark, Annotation)]


def reference_lines(panel: Panel) -> set[float]:
    return {round(mark.value, 6) for mark in panel.marks if isinstance(mark, ReferenceLine)}


def test_marks_are_at_their_times_and_numbers() -> None:
    (drawn,) = figures.figure([panel(timeouts=1, lost=(4, 6))]).all_panels
    assert mark(drawn, "lost") == [(0.03, 4), (0.05, 6)]
    assert mark(drawn, "sent again") == [(0.3, 4)]
    assert [number for _, number in mark(drawn, "new data")] == [5, 7, 8, 9, 10]
    (acks,) = (each for each in drawn.marks if isinstance(each, Curve))
    assert acks.steps and np.asarray(acks.y).tolist() == [1, 2, 3, 3, 10]
    assert mark(drawn, "ACKs")[-1] == (0.5, 10)
    assert reference_lines(drawn) == {0.4}
    assert annotation_texts(drawn) == ["timeout"]


def test_without_a_timeout_there_is_no_line() -> None:
    (drawn,) = figures.figure([panel()]).all_panels
    assert not reference_lines(drawn) and not annotation_texts(drawn)


def test_all_panels_show_the_first_loss_and_the_slowest_recovery() -> None:
    slow = panel("tahoe", recovery_s=2.0)
    for drawn in figures.figure([panel(), slow]).all_panels:
        (low, high), (bottom, top) = resolved_limits(drawn)
        assert -0.2 < low < 0.03  # the loss
        assert 2.3 < high < 2.6  # 0.3 s and 2 s
        assert bottom < 4 and top > 10
        for name in ("new data", "lost", "sent again", "ACKs"):  # points are not clipped
            assert all(low <= x <= high and bottom <= y <= top for x, y in mark(drawn, name))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (outcome(), "1 halving\n1.0 round trips, 1 sent again"),
        (
            outcome(
                timeouts=1, halvings=3, slow_start=True, round_trips=7.62, sent_again=(4, 5, 6)
            ),
            "timeout, 3 halvings, slow start\n7.6 round trips, 3 sent again",
        ),
        (outcome(timeouts=2, halvings=0), "2 timeouts, 0 halvings\n1.0 round trips, 1 sent again"),
        (outcome(round_trips=math.nan), "1 halving\nno recovery, 1 sent again"),
    ],
)
def test_note(seen: Outcome, expected: str) -> None:
    assert note(seen) == expected


def test_each_panel_has_its_own_note() -> None:
    figure = figures.figure([panel("sack"), panel("tahoe", slow_start=True, round_trips=3)])
    assert [drawn.note for drawn in figure.all_panels] == [
        "1 halving, slow start\n3.0 round trips, 1 sent again",
        "1 halving\n1.0 round trips, 1 sent again",
    ]


def test_columns_in_the_usual_order_and_rows_by_losses() -> None:
    traces = [panel(name, lost) for lost in ((4, 6), (4,)) for name in ("sack", "reno", "tahoe")]
    panels = figures.figure(traces).all_panels
    assert [drawn.heading for drawn in panels] == ["tahoe", "reno", "sack", "", "", ""]
    assert panels[1].heading_colour == style.VARIANT_COLOURS["reno"]
    assert [panels[0].y.label, panels[3].y.label] == ["1 lost: 4", "2 lost: 4, 6"]
    assert [len(mark(drawn, "lost")) for drawn in panels] == [1, 1, 1, 2, 2, 2]


def test_every_variant_of_the_paper_is_defined() -> None:
    assert set(DEFINITIONS) == set(PERIOD)


def test_a_trial_that_did_not_run_is_named() -> None:
    absent = TrialSegments(trial("tahoe", status=Status.UNSUPPORTED, reason="no tahoe in it"))
    figure = figures.figure([absent, panel("reno"), panel("reno", (4, 6))])
    panels = figure.all_panels
    assert panels[0].empty == "unsupported: no tahoe in it" and not panels[0].marks
    assert panels[2].empty == "no trial"  # tahoe with two losses
    assert "no trial ran" in figures.figure([absent]).title


def test_title_says_who_recovers_first_and_last() -> None:
    panels = [
        panel("reno", (4, 6), round_trips=7.6, timeouts=1),
        panel("newreno", (4, 6), round_trips=2.04),
        panel("sack", (4, 6), round_trips=1.96),
        panel("tahoe", (4, 6), round_trips=3.0),
        panel("tahoe", (4,), round_trips=99.0, timeouts=1),  # fewer losses: not its subject
    ]
    assert title(panels) == (
        "2 segments lost: newreno and sack recovered in 2.0 round trips, reno in 7.6;\n"
        "the retransmit timer of reno fired"
    )


def test_title_claims_nothing_that_is_not_there() -> None:
    assert title([panel("reno"), panel("sack")]) == (
        "1 segment lost: reno and sack recovered in 1.0 round trips;\nno retransmit timer fired"
    )
    lost = panel("reno", round_trips=math.nan, timeouts=1)
    assert title([lost, panel("sack")]) == (
        "1 segment lost: sack recovered in 1.0 round trips, reno did not;\n"
        "the retransmit timer of reno fired"
    )
    assert title([lost]).startswith("1 segment lost: reno did not recover;")


def test_footer_says_what_ran() -> None:
    foot = figures.figure([panel()]).foot
    for part in ("1 Mbit/s", "bfifo 100000 B", "profile ns2", "engine guest", "seed 1 "):
        assert part in foot


def test_a_figure_a_profile_and_the_lowest_seed_that_ran() -> None:
    trials = [
        trial("reno", seed=2),
        trial("reno", seed=1),
        trial("sack", seed=1, status=Status.FAILED),
        trial("sack", seed=3),
        trial("sack", seed=2),
        trial("reno", profile=Profile.MODERN),
        trial("reno", lost=()),  # loses nothing
    ]
    by_figure = trials_by_figure(trials, "x-guest")
    assert set(by_figure) == {"x-guest-segments-ns2", "x-guest-segments-modern"}
    members = by_figure["x-guest-segments-ns2"]
    ns2 = [(p.scenario.flows[0].variant, p.scenario.seed) for p in members]
    assert sorted(ns2) == [("reno", 1), ("sack", 2)]
    assert list(trials_by_figure(trials[:2], "x-guest")) == ["x-guest-segments"]


def results(trials: Sequence[Trial], rows: pd.DataFrame | None = None) -> ExperimentResults:
    """These trials without any that could go into the general figures."""
    table = pd.DataFrame(columns=list(METRIC_COLUMNS)) if rows is None else rows
    none = pd.DataFrame(columns=list(METRIC_COLUMNS))
    return ExperimentResults("x", "guest", tuple(trials), table, none, pd.DataFrame())


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "experiments.fall_floyd.figures.segments_of",
        lambda each: TrialSegments(each, segments(), outcome()),
    )

    def written() -> dict[str, bytes]:
        (figure,) = figures.draw(results([trial()]))
        return {path.name: path.read_bytes() for path in static_renderer.save(figure, tmp_path)}

    first = written()
    assert list(first) == [f"x-guest-segments.{kind}" for kind in ("png", "svg", "csv")]
    assert first["x-guest-segments.png"].startswith(b"\x89PNG")
    assert b"<svg" in first["x-guest-segments.svg"]
    assert b"reno,1,lost,0.03,4" in first["x-guest-segments.csv"]
    assert written() == first  # the same data, the same bytes


def test_a_trial_without_captures_says_so(tmp_path: Path) -> None:
    one = trial()
    record = FlowRecord("tcp", "tcp", "10.0.0.1", "10.0.0.2", (), 5001, 0, 1)
    ran = dataclasses.replace(
        one, path=tmp_path, record=dataclasses.replace(one.record, flows=(record,))
    )
    assert "no capture at sender1" in figures.segments_of(ran).reason
    assert list(figures.draw(results([ran]))) == []


# --- the variants beside each other


def row(variant: str, seed: int = 1, status: str = "ok", **numbers: float) -> dict[str, object]:
    usual: dict[str, object] = {
        "trial": f"{variant}-{seed}",
        "variant": variant,
        "seed": seed,
        "status": status,
        "verdict": "valid" if status == "ok" else "",
        "throughput_mbps": 0.9,
        "retransmitted": 10.0,
        "timeouts": 1.0,
        "rtt_mean_ms": 100.0,
    }
    if status != "ok":
        usual |= dict.fromkeys(list(usual)[5:], math.nan)
    return usual | numbers


def variants(*rows: dict[str, object]) -> Figure:
    scenarios = [router(variant=str(each["variant"]), delay_ms=30) for each in rows]
    trials = [Trial(Path("x"), each, Record(Status.OK, engine="guest")) for each in scenarios]
    return all_variants_figures.figure(trials, pd.DataFrame(list(rows)))


def at(panel: Panel, place: int, size: float) -> list[float]:
    """Return where the dots of this size are that belong to the variant in this place."""
    return [
        float(x)
        for mark in panel.marks
        if isinstance(mark, PointSeries) and mark.size == size
        for x, y in zip(np.asarray(mark.x), np.asarray(mark.y), strict=True)
        if round(float(y)) == place
    ]


SEED, MEAN = 3, 4.2  # the sizes of the dots


def test_a_dot_a_seed_their_mean_and_its_interval() -> None:
    figure = variants(*(row("reno", i, rtt_mean_ms=8.0 + 2 * i) for i in range(3)))
    panel = figure.all_panels[3]
    assert at(panel, 0, SEED) == [8, 10, 12]
    assert at(panel, 0, MEAN) == [10]
    (bar,) = (mark for mark in panel.marks if isinstance(mark, PointSeries) and mark.low)
    # Student's t for two degrees of freedom is 4.303, the standard error 2 / √3
    assert bar.low == pytest.approx([10 - 4.9683], rel=1e-4)
    assert bar.high == pytest.approx([10 + 4.9683], rel=1e-4)
    assert "10.0" in annotation_texts(panel)
    assert bar.evidence and bar.evidence.trials == [("reno-0", "reno-1", "reno-2")]


def test_variants_down_the_side_in_their_usual_order() -> None:
    panel = variants(*(row(name) for name in sorted(ORDER))).all_panels[0]
    assert list(panel.y.names) == list(ORDER)
    bottom, top = resolved_limits(panel)[1]
    assert bottom > top  # the first is at the top


def test_only_trials_that_ran_count() -> None:
    figure = variants(row("reno"), row("reno", 2, "failed"), row("veno", status="unsupported"))
    panels = figure.all_panels
    assert at(panels[0], 0, MEAN) == [0.9]
    assert at(panels[0], 1, MEAN) == []
    assert "unsupported" in annotation_texts(panels[0]) and "failed" not in annotation_texts(
        panels[0]
    )
    assert annotation_texts(panels[2]).count("–") == 1


def test_counts_that_are_not_known_are_no_zeros() -> None:
    panel = variants(row("reno", timeouts=math.nan), row("sack", timeouts=0.0)).all_panels[2]
    assert at(panel, 0, MEAN) == [] and at(panel, 1, MEAN) == [0]
    assert annotation_texts(panel) == ["–", "0.0"]


def test_lines_that_the_network_allows() -> None:
    panels = variants(row("reno")).all_panels
    assert reference_lines(panels[0]) == {1}  # Mbit/s
    assert reference_lines(panels[3]) == {60}  # ms, forward and reverse
    assert panels[0].note == "dashed: link, 1 Mbit/s"


def test_one_far_out_makes_the_axis_logarithmic() -> None:
    near = [row(name, retransmitted=100) for name in ORDER[:4]]
    assert variants(*near).all_panels[1].x.scale == "linear"
    panel = variants(*near, row("bbr", retransmitted=9000)).all_panels[1]
    assert panel.x.scale == "symlog" and panel.note == "logarithmic"
    low, high = resolved_limits(panel)[0]
    assert low <= 0 and high > 9000


def test_title_of_the_variants() -> None:
    fast = row("cubic", throughput_mbps=0.95, rtt_mean_ms=120.0)
    assert variants(row("reno"), fast, row("bbr", status="failed")).title == (
        "Alone on a link of 1 Mbit/s: throughput 0.90 (reno) to 0.95 Mbit/s (cubic),\n"
        "mean round-trip time 100.0 (reno) to 120.0 ms (cubic)"
    )
    assert "no trial ran" in variants(row("reno", status="failed")).title


def test_a_figure_of_the_variants_for_each_setting() -> None:
    ok = Record(Status.OK, engine="guest")
    trials = [Trial(Path(f"reno-{seed}"), router(variant="reno", seed=seed), ok) for seed in (1, 2)]
    rows = pd.DataFrame([row("reno", seed) for seed in (1, 2)])
    (figure,) = all_variants_figures.draw(results(trials, rows))
    assert figure.stem == "x-guest-beside"
    assert figure.data["seed"].tolist() == [1, 2]
    assert list(all_variants_figures.draw(results(trials, rows[:0]))) == []


def test_order_and_colours_know_every_variant() -> None:
    assert sorted(["westwood", *reversed(ORDER)], key=variant_key) == [*ORDER, "westwood"]
    colours = style.variant_colours([*ORDER, "westwood"])
    assert len({colours[name] for name in ORDER}) == len(ORDER)
    kept = {"cubic": "#D55E00", "vegas": "#009E73", "veno": "#CC79A7", "bbr": "#0072B2"}
    assert {name: colours[name] for name in kept} == kept
    few = style.variant_colours(["newreno", "tahoe", "westwood"])  # one that is not used yet
    assert len(set(few.values())) == 3


ONE_LOSS = Expected(0, 1, slow_start=False, exactly_the_lost=True, round_trips=(1, 1))


@pytest.mark.parametrize(
    ("expected", "note"),
    [
        ({"reno": (ONE_LOSS,)}, "seen (expected): 1 of 1 as expected"),
        (
            {"reno": (dataclasses.replace(ONE_LOSS, timeouts=1),)},
            "seen (expected): 0 of 1 as expected",
        ),
        ({}, ""),
    ],
)
def test_the_table_counts_what_something_is_expected_of(
    expected: dict[str, tuple[Expected, ...]], note: str
) -> None:
    ran = [
        (Trial(Path(name), router(variant=name), Record(Status.OK)), outcome())
        for name in ("reno", "bbr")
    ]
    table = compared(ran, expected)
    assert table.note == note
    assert table.rows[1][-1] == "–"
