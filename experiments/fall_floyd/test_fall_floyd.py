"""Segments over time, and the variants beside each other: marks, notes, titles and files."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.general import presentation
from analysis.metrics.columns import METRIC_COLUMNS
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import variant_key
from experiments import all_variants_figures
from experiments.fall_floyd import figures
from experiments.fall_floyd.figures import DEFINITIONS, Panel, note, title, trials_by_figure
from experiments.fall_floyd.outcomes import Expected, Outcome, Points, compared
from experiments.fall_floyd.outcomes import SegmentSequence as Segments
from testbed.scenario.model import Profile
from testbed.store import FlowRecord, Record, Status, Trial
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


def panel(variant: str = "reno", lost: tuple[int, ...] = (4,), **seen: object) -> Panel:
    fired = [0.6] if seen.get("timeouts") else []
    return Panel(trial(variant, lost), segments(fired), outcome(lost=lost, **seen))


def mark(axes: Axes, label: str) -> list[tuple[float, float]]:
    """Where the marks of this kind are."""
    return [
        (round(float(x), 6), float(y))
        for line in axes.lines
        if line.get_label() == label
        for x, y in zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True)
    ]


def words(figure: Figure) -> str:
    """All text of the figure."""
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    return "\n".join(text.get_text() for text in texts)


def test_marks_are_at_their_times_and_numbers() -> None:
    axes = figures._figure([panel(timeouts=1, lost=(4, 6))]).axes[0]
    assert mark(axes, "lost") == [(0.03, 4), (0.05, 6)]
    assert mark(axes, "sent again") == [(0.3, 4)]
    assert [number for _, number in mark(axes, "new data")] == [1, 2, 3, 5, 7, 8, 9, 10]
    assert mark(axes, "ACKs")[-1] == (0.5, 10)
    assert {x for x, _ in mark(axes, "timeout")} == {0.4}
    assert [text.get_text() for text in axes.texts].count("timeout") == 1


def test_without_a_timeout_there_is_no_line() -> None:
    axes = figures._figure([panel()]).axes[0]
    assert not mark(axes, "timeout")
    assert "timeout" not in [text.get_text() for text in axes.texts]


def test_all_panels_show_the_first_loss_and_the_slowest_recovery() -> None:
    slow = panel("tahoe", recovery_s=2.0)
    figure = figures._figure([panel(), slow])
    for axes in figure.axes:
        low, high = axes.get_xlim()
        assert -0.2 < low < 0.03  # the loss
        assert 2.3 < high < 2.6  # 0.3 s and 2 s
        bottom, top = axes.get_ylim()
        assert bottom < 4 and top > 10


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
    figure = figures._figure([panel("sack"), panel("tahoe", slow_start=True, round_trips=3)])
    notes = [axes.get_title(loc="left") for axes in figure.axes]
    assert notes == [
        "1 halving, slow start\n3.0 round trips, 1 sent again",
        "1 halving\n1.0 round trips, 1 sent again",
    ]


def test_columns_in_the_usual_order_and_rows_by_losses() -> None:
    panels = [panel(name, lost) for lost in ((4, 6), (4,)) for name in ("sack", "reno", "tahoe")]
    axes = figures._figure(panels).axes
    assert [each.texts[0].get_text() for each in axes[:3]] == ["tahoe", "reno", "sack"]
    assert axes[1].texts[0].get_color() == style.VARIANT_COLOURS["reno"]
    assert [axes[0].get_ylabel(), axes[3].get_ylabel()] == ["1 lost: 4", "2 lost: 4, 6"]
    assert [len(mark(each, "lost")) for each in axes] == [1, 1, 1, 2, 2, 2]


def test_every_variant_of_the_paper_is_defined() -> None:
    assert set(DEFINITIONS) == set(PERIOD)


def test_a_trial_that_did_not_run_is_named() -> None:
    absent = Panel(trial("tahoe", status=Status.UNSUPPORTED, reason="no tahoe in it"))
    figure = figures._figure([absent, panel("reno"), panel("reno", (4, 6))])
    assert "unsupported: no tahoe in it" in words(figure)
    assert "no trial" in figure.axes[2].texts[0].get_text()  # tahoe with two losses
    assert not figure.axes[0].lines
    assert "no trial ran" in words(figures._figure([absent]))


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
    said = words(figures._figure([panel()]))
    for part in ("1 Mbit/s", "bfifo 100000 B", "profile ns2", "engine guest", "seed 1 "):
        assert part in said


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
    found = trials_by_figure(trials, "x-guest")
    assert set(found) == {"x-guest-segments-ns2", "x-guest-segments-modern"}
    members = found["x-guest-segments-ns2"]
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
        "experiments.fall_floyd.figures.panel",
        lambda each: Panel(each, segments(), outcome()),
    )

    def written() -> dict[str, bytes]:
        (figure,) = figures.draw(results([trial()]))
        return {path.name: path.read_bytes() for path in presentation.save(figure, tmp_path)}

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
    assert "no capture at sender1" in figures.panel(ran).reason
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
    return all_variants_figures._figure(trials, pd.DataFrame(list(rows)))


def at(axes: Axes, place: int, marker: str) -> list[float]:
    """Where the dots of the variant in this place are."""
    return [
        float(x)
        for line in axes.lines
        if line.get_marker() == marker and round(float(np.asarray(line.get_ydata())[0])) == place
        for x in np.asarray(line.get_xdata())
    ]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_a_dot_a_seed_their_mean_and_its_interval() -> None:
    figure = variants(*(row("reno", i, rtt_mean_ms=8.0 + 2 * i) for i in range(3)))
    axes = figure.axes[3]
    assert at(axes, 0, ".") == [8, 10, 12]
    assert at(axes, 0, "o") == [10]
    (bar,) = (line for line in axes.lines if line.get_linewidth() == 1.6)
    # Student's t for two degrees of freedom is 4.303, the standard error 2 / √3
    assert np.asarray(bar.get_xdata()) == pytest.approx([10 - 4.9683, 10 + 4.9683], rel=1e-4)
    assert "10.0" in texts(axes)


def test_variants_down_the_side_in_their_usual_order() -> None:
    axes = variants(*(row(name) for name in sorted(ORDER))).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(ORDER)
    bottom, top = axes.get_ylim()
    assert bottom > top  # the first is at the top


def test_only_trials_that_ran_count() -> None:
    figure = variants(row("reno"), row("reno", 2, "failed"), row("veno", status="unsupported"))
    assert at(figure.axes[0], 0, "o") == [0.9]
    assert at(figure.axes[0], 1, "o") == []
    assert "unsupported" in texts(figure.axes[0]) and "failed" not in texts(figure.axes[0])
    assert texts(figure.axes[2]).count("–") == 1


def test_counts_that_are_not_known_are_no_zeros() -> None:
    figure = variants(row("reno", timeouts=math.nan), row("sack", timeouts=0.0))
    assert at(figure.axes[2], 0, "o") == [] and at(figure.axes[2], 1, "o") == [0]
    assert texts(figure.axes[2]) == ["–", "0.0"]


def test_lines_that_the_network_allows() -> None:
    figure = variants(row("reno"))
    lines = {i: figure.axes[i].lines[0].get_xdata() for i in (0, 3)}
    assert np.asarray(lines[0]).tolist() == [1, 1]  # Mbit/s
    assert np.asarray(lines[3]).tolist() == [60, 60]  # ms, there and back


def test_one_far_out_makes_the_axis_logarithmic() -> None:
    near = [row(name, retransmitted=100) for name in ORDER[:4]]
    assert variants(*near).axes[1].get_xscale() == "linear"
    axes = variants(*near, row("bbr", retransmitted=9000)).axes[1]
    assert axes.get_xscale() == "symlog" and "logarithmic" in texts(axes)
    assert axes.get_xlim()[0] <= 0 and axes.get_xlim()[1] > 9000


def test_title_of_the_variants() -> None:
    fast = row("cubic", throughput_mbps=0.95, rtt_mean_ms=120.0)
    assert (
        "Alone on a link of 1 Mbit/s: throughput 0.90 (reno) to 0.95 Mbit/s (cubic),\n"
        "mean round-trip time 100.0 (reno) to 120.0 ms (cubic)"
    ) in words(variants(row("reno"), fast, row("bbr", status="failed")))
    assert "no trial ran" in words(variants(row("reno", status="failed")))


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
    kept = {"cubic": "#D55E00", "vegas": "#009E73", "veno": "#CC79A7", "bbr": "#E69F00"}
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
