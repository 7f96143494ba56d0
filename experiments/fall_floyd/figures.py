"""The segments over time of every variant and set of losses: trials, range, marks and words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.figures import style
from analysis.figures.cases import stem
from analysis.figures.figure import (
    Annotation,
    Axis,
    Curve,
    Figure,
    LegendEntry,
    Mark,
    Panel,
    PointSeries,
    ReferenceLine,
)
from analysis.figures.general import general_figures
from analysis.results.experiment_results import ExperimentResults
from analysis.trials.labels import setting_label, variant_key
from experiments.fall_floyd import outcomes
from experiments.fall_floyd.outcomes import Outcome
from testbed.errors import TestbedError
from testbed.store.reading import Trial
from testbed.store.records import Status

STEM = "segments"


@dataclass(frozen=True)
class TrialSegments:
    """A trial to draw; one that did not run or was not captured has a reason, no segments."""

    trial: Trial
    segments: outcomes.SegmentSequence | None = None
    outcome: Outcome | None = None
    fault: str = ""  # why a trial that ran has no segments

    @property
    def variant(self) -> str:
        """Return the variant, which is the column."""
        return self.trial.scenario.flows[0].variant or ""

    @property
    def lost(self) -> tuple[int, ...]:
        """Return the segments that are lost, which are the row."""
        return self.trial.scenario.flows[0].drops

    @property
    def reason(self) -> str:
        """Say why there is nothing to draw."""
        record = self.trial.record
        return self.fault if record.status is Status.OK else f"{record.status}: {record.reason}"


@dataclass(frozen=True)
class Extent:
    """The range that all panels show: from just before the first loss to the slowest recovery."""

    time_s: tuple[float, float]
    number: tuple[float, float]


def trials_by_figure(trials: Iterable[Trial], key: str) -> dict[str, list[Trial]]:
    """Choose the trials of each figure: of every variant and loss the lowest seed, by file name."""
    groups: dict[str, dict[object, Trial]] = {}
    for trial in sorted(trials, key=_preference):
        flow = trial.scenario.flows[0]
        if flow.drops:
            members = groups.setdefault(str(trial.scenario.profile), {})
            members.setdefault((flow.variant, flow.drops), trial)
    return {
        stem(key, STEM, profile if len(groups) > 1 else ""): list(members.values())
        for profile, members in groups.items()
    }


def _preference(trial: Trial) -> tuple[bool, int]:
    """Prefer a trial that ran, then the lower seed."""
    return trial.record.status is not Status.OK, trial.scenario.seed


def segments_of(trial: Trial) -> TrialSegments:
    """Read a trial's segments and outcome."""
    if trial.record.status is not Status.OK:
        return TrialSegments(trial)
    flow = trial.scenario.flows[0]
    try:
        segments = outcomes.sequence(trial, flow)
        return TrialSegments(trial, segments, outcomes.outcome(trial, flow, segments))
    except TestbedError as error:
        return TrialSegments(trial, fault=error.message)


def read(trials: Iterable[Trial]) -> list[TrialSegments]:
    """Read several trials in parallel."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the core works outside Python's lock
        return list(pool.map(segments_of, trials))


def extent(traces: Iterable[TrialSegments]) -> Extent | None:
    """Return the range that all traces share; None if no trial ran."""
    starts, ends, numbers, lowest = [], [], [], []
    for trace in traces:
        if trace.segments is None or trace.outcome is None:
            continue
        new, again = trace.segments.new, trace.segments.again
        end = float(again.time_s[-1])
        if trace.outcome.recovered:
            end = float(again.time_s[0]) + trace.outcome.recovery_s
        _, gone = split(new, trace.lost)
        starts.append(float(gone.time_s[0]) - float(new.time_s[0]))
        ends.append(end - float(new.time_s[0]))
        numbers.append(float(new.number[new.time_s <= end].max()))
        lowest.append(min(trace.lost))
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
    """Separate new data that arrives from the lost segments, at their first transmission."""
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
    """Describe the outcome in two short lines."""
    events = []
    if outcome.timeouts:
        events.append("timeout" if outcome.timeouts == 1 else f"{outcome.timeouts} timeouts")
    events.append(f"{outcome.halvings} halving{'s' * (outcome.halvings != 1)}")
    if outcome.slow_start:
        events.append("slow start")
    trips = f"{round_trips(outcome)} round trips" if outcome.recovered else "no recovery"
    return f"{', '.join(events)}\n{trips}, {len(outcome.sent_again)} sent again"


def round_trips(outcome: Outcome) -> str:
    """Format the recovery as notes and the title write it."""
    return f"{outcome.round_trips:.1f}"


def title(traces: Iterable[TrialSegments]) -> str:
    """Return the title: the findings with the most losses."""
    ran = [(trace.lost, trace.variant, trace.outcome) for trace in traces if trace.outcome]
    if not ran:
        return "Lost segments: no trial ran"
    most = max((lost for lost, _, _ in ran), key=lambda lost: (len(lost), lost))
    ran.sort(key=lambda trial: variant_key(trial[1]))
    by_variant = {variant: outcome for lost, variant, outcome in ran if lost == most}
    what = f"{len(most)} segment{'s' * (len(most) > 1)} lost"
    return f"{what}: {_recoveries(by_variant)};\n{_timeouts(by_variant)}"


def _recoveries(by_variant: Mapping[str, Outcome]) -> str:
    """Name the shortest recovery and the longest."""
    done = {name: outcome for name, outcome in by_variant.items() if outcome.recovered}
    if not done:
        return f"{_names(by_variant)} did not recover"
    low = round_trips(min(done.values(), key=lambda outcome: outcome.round_trips))
    high = round_trips(max(done.values(), key=lambda outcome: outcome.round_trips))
    text = f"{_names(_those(done, low))} recovered in {low} round trips"
    if high != low:
        text += f", {_names(_those(done, high))} in {high}"
    missing = [name for name in by_variant if name not in done]
    return text + (f", {_names(missing)} did not" if missing else "")


def _those(by_variant: Mapping[str, Outcome], trips: str) -> list[str]:
    return [name for name, outcome in by_variant.items() if round_trips(outcome) == trips]


def _timeouts(by_variant: Mapping[str, Outcome]) -> str:
    """Name the variants whose retransmit timer fired."""
    fired = [name for name, outcome in by_variant.items() if outcome.timeouts]
    if not fired:
        return "no retransmit timer fired"
    return f"the retransmit timer{'s' * (len(fired) > 1)} of {_names(fired)} fired"


def _names(names: Iterable[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def footer(traces: Sequence[TrialSegments], shown: Extent | None) -> str:
    """Return the footer: setting, engine, and how to read the figure."""
    seeds = sorted({trace.trial.scenario.seed for trace in traces})
    how = [
        f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}",
        "time from the first segment",
    ]
    how.append(
        "round trips: of a segment on the idle path, from the first segment sent again to the "
        "ACK of all that was sent before it"
    )
    if shown is not None:
        how.append(f"segments above {shown.number[1]:.0f} not shown")
    return f"{setting_label(traces[0].trial)}\n{' · '.join(how)}"


RECOVERY_READING = (
    "Segments and ACKs at the sender, one column per variant, one row per set of losses."
)

# How the marks look, in the panels and in the legend, in the order of the legend.
LEGEND = (
    LegendEntry("new data", style.BLACK, ".", kind="points", size=1.6),
    LegendEntry("lost", style.BLUE, "x", kind="points", size=3.4),
    LegendEntry("sent again", style.VERMILLION, "o", kind="points", size=2.8),
    LegendEntry("ACKs", "#9A9A9A", "|", size=2, width=0.5),
    LegendEntry("timeout", style.BLACK, dash=(3, 2), width=0.7),
)
MARK_LOOKS = {entry.name: entry for entry in LEGEND}
EDGE_WIDTHS = {"new data": 1.0, "lost": 0.8, "ACKs": 0.3}


def draw(results: ExperimentResults) -> Iterator[Figure]:
    """Yield the segments over time, one figure per profile; then the general figures."""
    for name, trials in trials_by_figure(results.trials, results.key).items():
        traces = read(trials)
        if any(trace.segments for trace in traces):
            yield figure(traces, name)
    yield from general_figures.draw(results)


def figure(traces: Sequence[TrialSegments], name: str = STEM) -> Figure:
    """Return one column of panels per variant, one row per set of losses."""
    across = sorted({trace.variant for trace in traces}, key=variant_key)
    down = sorted({trace.lost for trace in traces}, key=lambda lost: (len(lost), lost))
    colours = style.variant_colours(across)
    by_place = {(trace.lost, trace.variant): trace for trace in traces}
    shown = extent(traces)
    rows = []
    for lost in down:
        row_name = f"{len(lost)} lost: {', '.join(map(str, lost))}"
        row = []
        for variant in across:
            top, first = lost == down[0], variant == across[0]
            row.append(
                Panel(
                    **_content(by_place.get((lost, variant)), shown),
                    x=Axis(
                        "time (s)" if lost == down[-1] else "",
                        limits=shown.time_s if shown else (None, None),
                        tick_count=5,
                        names_shown=lost == down[-1],
                    ),
                    y=Axis(
                        row_name if first else "",
                        limits=shown.number if shown else (None, None),
                        tick_count=5,
                        integer=True,
                        names_shown=first,
                    ),
                    heading=variant if top else "",
                    heading_colour=colours[variant],
                    heading_note=DEFINITIONS.get(variant, "") if top else "",
                )
            )
        rows.append(row)
    return Figure(
        stem=name,
        title=title(traces),
        panels=rows,
        caption=title(traces).replace("\n", " "),
        reading=RECOVERY_READING,
        foot=footer(traces, shown),
        foot_size=5.5,
        legend=LEGEND,
        data=_points(traces),
        row_inches=1.35 + 0.68 / len(down),
        width_inches=max(style.WIDTH_INCHES, 1.35 * len(across)),
        vertical_label="segment number",
    )


def _points(traces: Sequence[TrialSegments]) -> pd.DataFrame:
    """Return each segment and ACK by the time since the first segment."""
    columns = ["variant", "lost", "mark", "time_s", "segment"]
    tables = []
    for trace in traces:
        for mark, points in _points_by_mark(trace).items():
            table = pd.DataFrame({"time_s": points.time_s, "segment": points.number})
            tables.append(table.assign(variant=trace.variant, lost=len(trace.lost), mark=mark))
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame()


def _points_by_mark(trace: TrialSegments) -> dict[str, outcomes.Points]:
    """Return the points by their mark, on a clock that starts with the first segment."""
    segments = trace.segments
    if segments is None:
        return {}
    zero = float(segments.new.time_s[0])
    arrives, gone = split(segments.new, trace.lost)
    marks = {"ACKs": segments.acks, "new data": arrives, "sent again": segments.again, "lost": gone}
    return {
        mark: outcomes.Points(points.time_s - zero, points.number) for mark, points in marks.items()
    }


def _content(trace: TrialSegments | None, shown: Extent | None) -> dict[str, Any]:
    """Return a panel's marks and note, or the reason why it has none."""
    if trace is None or trace.segments is None or trace.outcome is None or shown is None:
        return {"empty": trace.reason if trace else "no trial"}
    marks: list[Mark] = []
    for name, points in _points_by_mark(trace).items():
        look = MARK_LOOKS[name]
        time_s, number = np.asarray(points.time_s), np.asarray(points.number)
        if name == "ACKs":
            marks.append(Curve(time_s, number, look.colour, look.width, steps=True, series=name))
        inside = (shown.time_s[0] <= time_s) & (time_s <= shown.time_s[1])  # not clipped
        inside &= (shown.number[0] <= number) & (number <= shown.number[1])
        at = (time_s[inside], number[inside])
        edge = EDGE_WIDTHS.get(name, 0.0)
        marks.append(PointSeries(*at, look.colour, look.marker, look.size, edge_width=edge,
                                 series=name))  # fmt: skip
    look = MARK_LOOKS["timeout"]
    for time_s in trace.segments.timeouts_s - float(trace.segments.new.time_s[0]):
        at_s = float(time_s)
        marks.append(ReferenceLine("x", at_s, "", look.colour, look.width, look.dash, look.name))
        if shown.time_s[0] <= at_s <= shown.time_s[1]:
            marks.append(Annotation("timeout", at_s, 0.02, y_place="panel", size=5.5, rotation=90,
                                    offset_points=(-1.5, 0), across="right", up="bottom",
                                    series=look.name))  # fmt: skip
    return {"marks": marks, "note": note(trace.outcome)}
