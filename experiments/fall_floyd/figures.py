"""The panels: the trials of each figure, what is drawn of each, and the range shown."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as DrawnFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.figures import style
from analysis.figures.cases import stem
from analysis.figures.general import general_figures
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import setting_label, variant_key
from experiments.fall_floyd import outcomes
from experiments.fall_floyd.outcomes import Outcome
from testbed.errors import TestbedError
from testbed.store import Status, Trial

STEM = "segments"


@dataclass(frozen=True)
class Panel:
    """A trial to draw; one that did not run or was not captured has a reason, no segments."""

    trial: Trial
    segments: outcomes.SegmentSequence | None = None
    outcome: Outcome | None = None
    fault: str = ""  # why a trial that ran has no segments

    @property
    def variant(self) -> str:
        """The variant, which is the column."""
        return self.trial.scenario.flows[0].variant or ""

    @property
    def lost(self) -> tuple[int, ...]:
        """The segments that are lost, which are the row."""
        return self.trial.scenario.flows[0].drops

    @property
    def reason(self) -> str:
        """Why there is nothing to draw."""
        record = self.trial.record
        return self.fault if record.status is Status.OK else f"{record.status}: {record.reason}"


@dataclass(frozen=True)
class Extent:
    """The range that all panels show: from just before the first loss to the slowest recovery."""

    time_s: tuple[float, float]
    number: tuple[float, float]


def trials_by_figure(trials: Iterable[Trial], key: str) -> dict[str, list[Trial]]:
    """The trials of each figure, of every variant and loss the lowest seed, by file name."""
    groups: dict[str, dict[object, Trial]] = {}
    for trial in sorted(trials, key=_preference):
        flow = trial.scenario.flows[0]
        if flow.drops:
            own = groups.setdefault(str(trial.scenario.profile), {})
            own.setdefault((flow.variant, flow.drops), trial)
    return {
        stem(key, STEM, profile if len(groups) > 1 else ""): list(members.values())
        for profile, members in groups.items()
    }


def _preference(trial: Trial) -> tuple[bool, int]:
    """A trial that ran before one that did not, then the lower seed."""
    return trial.record.status is not Status.OK, trial.scenario.seed


def panel(trial: Trial) -> Panel:
    """A trial's segments and outcome."""
    if trial.record.status is not Status.OK:
        return Panel(trial)
    flow = trial.scenario.flows[0]
    try:
        segments = outcomes.sequence(trial, flow)
        return Panel(trial, segments, outcomes.outcome(trial, flow, segments))
    except TestbedError as error:
        return Panel(trial, fault=error.message)


def panels(trials: Iterable[Trial]) -> list[Panel]:
    """The panels of several trials, read in parallel."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the core works outside Python's lock
        return list(pool.map(panel, trials))


def extent(panels: Iterable[Panel]) -> Extent | None:
    """The range that all panels share; None if no trial ran."""
    starts, ends, numbers, lowest = [], [], [], []
    for each in panels:
        if each.segments is None or each.outcome is None:
            continue
        new, again = each.segments.new, each.segments.again
        end = float(again.time_s[-1])
        if each.outcome.recovered:
            end = float(again.time_s[0]) + each.outcome.recovery_s
        _, gone = split(new, each.lost)
        starts.append(float(gone.time_s[0]) - float(new.time_s[0]))
        ends.append(end - float(new.time_s[0]))
        numbers.append(float(new.number[new.time_s <= end].max()))
        lowest.append(min(each.lost))
    if not ends:
        return None
    time_s = max(ends) - min(starts)
    height = max(numbers) - min(lowest)
    return Extent(
        (min(starts) - 0.06 * time_s, max(ends) + 0.06 * time_s),
        (min(lowest) - 0.15 * height, max(numbers) + 0.2 * height),
    )


def split(
    points: outcomes.Points, lost: tuple[int, ...]
) -> tuple[outcomes.Points, outcomes.Points]:
    """New data that arrives, and the lost segments, where each was first sent."""
    gone = np.isin(points.number, lost)
    return (
        outcomes.Points(points.time_s[~gone], points.number[~gone]),
        outcomes.Points(points.time_s[gone], points.number[gone]),
    )


DEFINITIONS = {
    "tahoe": "slow start after every loss,\nno fast recovery",
    "reno": "fast recovery, which the first\nACK of new data ends",
    "newreno": "fast recovery until all that\nwas sent is acknowledged",
    "newreno-impatient": "newreno, but later partial\nACKs leave the timer running",
    "sack": "the receiver says which\nsegments it has",
}


def note(outcome: Outcome) -> str:
    """The outcome in two short lines."""
    events = []
    if outcome.timeouts:
        events.append("timeout" if outcome.timeouts == 1 else f"{outcome.timeouts} timeouts")
    events.append(f"{outcome.halvings} halving{'s' * (outcome.halvings != 1)}")
    if outcome.slow_start:
        events.append("slow start")
    trips = f"{round_trips(outcome)} round trips" if outcome.recovered else "no recovery"
    return f"{', '.join(events)}\n{trips}, {len(outcome.sent_again)} sent again"


def round_trips(outcome: Outcome) -> str:
    """The recovery, as notes and the title write it."""
    return f"{outcome.round_trips:.1f}"


def title(panels: Iterable[Panel]) -> str:
    """The title: the findings with the most losses."""
    ran = [(each.lost, each.variant, each.outcome) for each in panels if each.outcome]
    if not ran:
        return "Lost segments: no trial ran"
    most = max((lost for lost, _, _ in ran), key=lambda lost: (len(lost), lost))
    ran.sort(key=lambda each: variant_key(each[1]))
    seen = {variant: outcome for lost, variant, outcome in ran if lost == most}
    what = f"{len(most)} segment{'s' * (len(most) > 1)} lost"
    return f"{what}: {_recoveries(seen)};\n{_timeouts(seen)}"


def _recoveries(seen: Mapping[str, Outcome]) -> str:
    """The shortest recovery and the longest."""
    done = {name: each for name, each in seen.items() if each.recovered}
    if not done:
        return f"{_names(seen)} did not recover"
    low = round_trips(min(done.values(), key=lambda each: each.round_trips))
    high = round_trips(max(done.values(), key=lambda each: each.round_trips))
    text = f"{_names(_those(done, low))} recovered in {low} round trips"
    if high != low:
        text += f", {_names(_those(done, high))} in {high}"
    missing = [name for name in seen if name not in done]
    return text + (f", {_names(missing)} did not" if missing else "")


def _those(seen: Mapping[str, Outcome], trips: str) -> list[str]:
    return [name for name, each in seen.items() if round_trips(each) == trips]


def _timeouts(seen: Mapping[str, Outcome]) -> str:
    """The variants whose retransmit timer fired."""
    fired = [name for name, each in seen.items() if each.timeouts]
    if not fired:
        return "no retransmit timer fired"
    return f"the retransmit timer{'s' * (len(fired) > 1)} of {_names(fired)} fired"


def _names(names: Iterable[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def footer(panels: Sequence[Panel], shown: Extent | None) -> str:
    """The footer: setting, engine, and how to read the figure."""
    seeds = sorted({each.trial.scenario.seed for each in panels})
    how = [
        f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}",
        "time from the first segment",
    ]
    how.append(
        "round trips: of the idle path, from the first segment sent again to the ACK of all "
        "that was sent before it"
    )
    if shown is not None:
        how.append(f"segments above {shown.number[1]:.0f} not shown")
    return f"{setting_label(panels[0].trial)}\n{' · '.join(how)}"


READING = "Segments and ACKs at the sender, one column per variant, one row per set of losses."

# How the marks look, in the panels and in the legend.
MARKS: dict[str, dict[str, Any]] = {
    "new data": {"linestyle": "", "marker": ".", "color": style.BLACK, "markersize": 1.6},
    "lost": {
        "linestyle": "",
        "marker": "x",
        "color": style.BLUE,
        "markersize": 3.4,
        "markeredgewidth": 0.8,
    },
    "sent again": {
        "linestyle": "",
        "marker": "o",
        "color": style.VERMILLION,
        "markersize": 2.8,
        "markeredgewidth": 0,
    },
    "ACKs": {
        "color": "#9A9A9A",
        "linewidth": 0.5,
        "marker": "|",
        "markersize": 2,
        "markeredgewidth": 0.3,
    },
    "timeout": {"color": style.BLACK, "linestyle": (0, (3, 2)), "linewidth": 0.7},
}


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """The segments over time, one figure per profile; then the general figures."""
    for name, trials in trials_by_figure(results.trials, results.key).items():
        drawn = panels(trials)
        if any(each.segments for each in drawn):
            caption = title(drawn).replace("\n", " ")
            yield NamedFigure(name, caption, _figure(drawn), _points(drawn), READING)
    yield from general_figures.draw(results)


def _points(panels: Sequence[Panel]) -> pd.DataFrame:
    """The drawn points: each segment and ACK by the time since the first segment."""
    tables = []
    for each in panels:
        for mark, points in _marks(each).items():
            table = pd.DataFrame({"time_s": points.time_s, "segment": points.number})
            tables.append(table.assign(variant=each.variant, lost=len(each.lost), mark=mark))
    columns = ["variant", "lost", "mark", "time_s", "segment"]
    return pd.concat(tables, ignore_index=True)[columns]


def _marks(drawn: Panel) -> dict[str, outcomes.Points]:
    """The points by their mark, on a clock that starts with the first segment."""
    segments = drawn.segments
    if segments is None:
        return {}
    zero = float(segments.new.time_s[0])
    arrives, gone = split(segments.new, drawn.lost)
    marks = {"ACKs": segments.acks, "new data": arrives, "sent again": segments.again, "lost": gone}
    return {
        mark: outcomes.Points(points.time_s - zero, points.number) for mark, points in marks.items()
    }


def _figure(panels: Sequence[Panel]) -> DrawnFigure:
    across = sorted({each.variant for each in panels}, key=variant_key)
    down = sorted({each.lost for each in panels}, key=lambda lost: (len(lost), lost))
    figure, axes = _grid(len(down), len(across))
    colours = style.variant_colours(across)
    found = {(each.lost, each.variant): each for each in panels}
    shown = extent(panels)
    for i, lost in enumerate(down):
        for j, variant in enumerate(across):
            _draw_panel(axes[i][j], found.get((lost, variant)), shown)
        axes[i][0].set_ylabel(_row_name(lost), fontweight="bold", labelpad=5)
    for j, variant in enumerate(across):
        _head(axes[0][j], variant, colours[variant])
        axes[-1][j].set_xlabel("time (s)")
    figure.supylabel("segment number", fontsize=7)
    _words(figure, panels, shown)
    return figure


def _grid(height: int, width: int) -> tuple[DrawnFigure, list[list[Axes]]]:
    """The panels, between a title with a legend and a footer, both of fixed heights."""
    inches = 1.35 * height + 1.7
    head, foot = 0.68 / inches, 0.34 / inches
    figure = DrawnFigure(
        figsize=(max(style.WIDTH_INCHES, 1.35 * width), inches),
        layout=ConstrainedLayoutEngine(rect=(0, foot, 1, 1 - head - foot), h_pad=0.04, w_pad=0.03),
    )
    axes = figure.subplots(height, width, squeeze=False, sharex=True, sharey=True)
    return figure, [list(line) for line in axes]


def _words(figure: DrawnFigure, panels: Sequence[Panel], shown: Extent | None) -> None:
    """The title, the legend below it, and the footer."""
    figure.text(
        0.01, 0.992, title(panels), fontsize=9, fontweight="bold", va="top", linespacing=1.3
    )
    below = 1 - 0.38 / figure.get_figheight()
    figure.legend(
        handles=[Line2D([], [], label=label, **look) for label, look in MARKS.items()],
        loc="upper left",
        bbox_to_anchor=(0.0, below),
        ncols=len(MARKS),
        frameon=False,
        fontsize=6.5,
        handlelength=1.6,
        handletextpad=0.5,
        columnspacing=1.8,
    )
    small = footer(panels, shown)
    figure.text(0.01, 0.01, small, fontsize=5.5, color=style.GREY, va="bottom", linespacing=1.4)


def _row_name(lost: tuple[int, ...]) -> str:
    numbers = ", ".join(map(str, lost))
    return f"{len(lost)} lost: {numbers}"


def _head(axes: Axes, variant: str, colour: str) -> None:
    """The variant's name over its column, and what defines it."""
    for text, above, look in (
        (variant, 46, {"fontsize": 8, "fontweight": "bold", "color": colour}),
        (DEFINITIONS.get(variant, ""), 36, {"fontsize": 5.5, "linespacing": 1.2}),
    ):
        axes.annotate(
            text,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, above),
            textcoords="offset points",
            va="top",
            **look,
        )


def _draw_panel(axes: Axes, drawn: Panel | None, shown: Extent | None) -> None:
    if drawn is None or drawn.segments is None or drawn.outcome is None or shown is None:
        axes.set_facecolor("#F2F2F2")
        axes.grid(False)
        reason = textwrap.fill(drawn.reason if drawn else "no trial", 28, max_lines=6)
        axes.text(0.05, 0.5, reason, transform=axes.transAxes, fontsize=5.5, va="center")
        return
    words = note(drawn.outcome)
    axes.set_title(words, fontsize=5.5, color=style.GREY, loc="left", pad=2, linespacing=1.15)
    _draw_segments(axes, drawn, drawn.segments)
    axes.set_xlim(shown.time_s)
    axes.set_ylim(shown.number)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))


def _draw_segments(axes: Axes, drawn: Panel, segments: outcomes.SegmentSequence) -> None:
    """All marks, on a clock that starts with the first segment."""
    for label, points in _marks(drawn).items():
        step = "steps-post" if label == "ACKs" else "default"
        axes.plot(points.time_s, points.number, drawstyle=step, label=label, **MARKS[label])
    for time_s in segments.timeouts_s - float(segments.new.time_s[0]):
        axes.axvline(time_s, label="timeout", **MARKS["timeout"])
        axes.annotate(
            "timeout",
            (time_s, 0.02),
            xycoords=axes.get_xaxis_transform(),
            xytext=(-1.5, 0),
            textcoords="offset points",
            fontsize=5.5,
            rotation=90,
            ha="right",
            va="bottom",
        )
