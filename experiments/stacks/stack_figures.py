"""What the trials of transports show: the matrix of shares, and the envelopes with conformance."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.figures import cases, style
from analysis.figures.figure import (
    Annotation,
    Axis,
    Boxes,
    Figure,
    Panel,
    PointSeries,
    Polygon,
)
from analysis.figures.sheet import Sheet, as_sheet
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.intervals import half_width
from experiments.stacks.envelope import Envelope, conformance, envelope, window_points
from experiments.stacks.stack_trials import kernels_own
from testbed.stacks.flows import is_stack

FULL_COLOUR = 50.0  # points away from an even share: the whole colour
WHITE_LETTERS = 0.72  # of the colour, from which on letters are white
HALF_CELL = 0.48
FEWEST = 3  # networks, of which an interval says something
LIKE_THE_KERNELS, APART = 0.75, 0.25  # conformance: full colour above, none below
GREY_POINTS = "#bbbbbb"


@dataclass(frozen=True)
class PairShare:
    """How much one has beside another: percent of both, over seeds."""

    one: str
    other: str
    percent: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over the networks that seeds drew."""
        return float(np.mean(self.percent))

    @property
    def half(self) -> float:
        """Half of the mean's 95 % interval; not known of one network."""
        return half_width(self.percent)


def shares(results: ExperimentResults) -> list[PairShare]:
    """Return each one's share beside each other, both ways; beside itself, of the first flow."""
    by_pair: dict[tuple[str, str], list[float]] = {}
    for _, row in results.good.dropna(subset=["share"]).iterrows():
        one, _, other = str(row[f"{AXIS}pair"]).partition("/")
        if row["flow"] == "other":
            if one == other:
                continue
            one, other = other, one
        by_pair.setdefault((one, other), []).append(100 * float(row["share"]))
    return [PairShare(one, other, tuple(each)) for (one, other), each in by_pair.items()]


def _names(pairs: list[PairShare]) -> list[str]:
    """Return who is there: the kernel's first, then stack by stack."""
    return sorted({each.one for each in pairs}, key=lambda name: (is_stack(name), name))


def sharing_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Draw the matrix of who shares with whom."""
    pairs = shares(results)
    if not pairs:
        return
    names = _names(pairs)
    x = [names.index(each.other) for each in pairs]
    y = [names.index(each.one) for each in pairs]
    shades = [min(1.0, abs(each.mean - 50) / FULL_COLOUR) for each in pairs]
    box = Boxes(
        [value - HALF_CELL for value in x],
        [value + HALF_CELL for value in x],
        [value - HALF_CELL for value in y],
        [value + HALF_CELL for value in y],
        [style.BLUE if each.mean > 50 else style.VERMILLION for each in pairs],
        shades,
        texts=[_share_words(each) for each in pairs],
        text_colours=["#ffffff" if s > WHITE_LETTERS else style.BLACK for s in shades],
        text_size=6.0,
    )
    colours = [style.BLUE if is_stack(name) else style.BLACK for name in names]
    beside = Axis("… beside", names=names, rotation=45, grid=False, name_colours=colours)
    share_axis = Axis("share of …", names=names, grid=False, name_colours=colours)
    counts = sorted({len(each.percent) for each in pairs})
    networks = " to ".join(dict.fromkeys(map(str, (counts[0], counts[-1]))))
    yield Figure(
        stem=cases.stem(results.key, "matrix"),
        title=_who_gets_most(pairs),
        panels=[[Panel((box,), beside, share_axis)]],
        reading="A row is who has the share, a column beside whom: blue has more than half, orange "
        "less. Below a mean is half of its 95 % interval over the networks that seeds drew, of "
        "three or more.",
        foot=f"{networks} drawn networks a pair · engine {results.engine}",
        row_inches=0.62 + 0.42 * len(names),
        data=pd.DataFrame(
            {"share of": e.one, "beside": e.other, "percent": e.mean, "half": e.half,
             "n": len(e.percent)} for e in pairs
        ),
        static=True,
    )  # fmt: skip


def _who_gets_most(pairs: list[PairShare]) -> str:
    """Say who has more than half beside each other one, if anybody has."""
    beside = {
        name: [each.mean for each in pairs if each.one == name != each.other]
        for name in _names(pairs)
    }
    name, percent = max(beside.items(), key=lambda each: min(each[1], default=0))
    if len(percent) < 2 or min(percent) <= 50:
        return "Who shares with whom: percent of both flows' goodput"
    share = f"{min(percent):.0f} to {max(percent):.0f} % of both flows' goodput"
    return f"{name} has {share}, whoever is beside it"


def _share_words(each: PairShare) -> str:
    is_known = len(each.percent) >= FEWEST and np.isfinite(each.half)
    return f"{each.mean:.0f}" + (f"\n±{each.half:.0f}" if is_known else "")


def sharing_tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Tabulate the shares."""
    rows = (
        (each.one, each.other, f"{each.mean:.1f}", f"{each.half:.1f}", str(len(each.percent)))
        for each in shares(results)
    )
    heads = ("share of", "beside", "percent", "±", "networks")
    yield "Who shares with whom", as_sheet(heads, rows, heads[2:])


Place = tuple[float, float, float]  # of a cell: rate, round trip, buffer


@dataclass(frozen=True)
class Conformity:
    """A stack's flow beside the kernel's own, and that one beside itself, in one cell."""

    variant: str
    place: Place
    test: Envelope
    reference: Envelope

    @property
    def value(self) -> float:
        """The conformance."""
        return conformance(self.test, self.reference)


@functools.lru_cache(maxsize=2)
def conformities(results: ExperimentResults) -> list[Conformity]:
    """Return what each stack's flow has in each cell, with the kernel's own; first seeds alone."""
    good = set(results.good["trial"])
    envelopes: dict[tuple[str, Place], Envelope] = {}
    for trial in results.trials:
        axes = trial.scenario.axes
        place = tuple(float(axes[name]) for name in ("rate_mbit", "rtt_ms", "buffer_bdp"))
        key = (axes["variant"], (place[0], place[1], place[2]))
        if trial.path.name in good and key not in envelopes:
            envelopes[key] = envelope(window_points(trial, "test", place[1]))
    return [
        Conformity(variant, place, test, envelopes[kernels_own(variant), place])
        for (variant, place), test in envelopes.items()
        if is_stack(variant) and (kernels_own(variant), place) in envelopes
    ]


def conformance_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Draw a stack's envelope over the kernel's in each cell, with the conformance."""
    pairs = conformities(results)
    if not pairs:
        return
    variants = list(dict.fromkeys(each.variant for each in pairs))
    places = sorted({each.place for each in pairs}, key=lambda place: (place[1], place[2]))
    by_cell = {(each.variant, each.place): each for each in pairs}
    panels = [
        [
            _envelopes(by_cell.get((v, p)), p, first=p == places[0], top=v == variants[0],
                       last=v == variants[-1])
            for p in places
        ]
        for v in variants
    ]  # fmt: skip
    yield Figure(
        stem=cases.stem(results.key, "envelopes"),
        title=_who_is_like_the_kernel(pairs),
        panels=panels,
        reading="Each point is a window of ten round trips: across, the mean delay in the "
        "bottleneck's queue; up, the throughput. Grey: the kernel's control beside itself; colour: "
        "the stack's beside the kernel's. The number is the conformance: the share of both flows' "
        "points within the other's envelope (QUICbench).",
        foot=f"{places[0][0]:g} Mbit/s · engine {results.engine}",
        row_inches=0.95,
        data=pd.DataFrame(
            {"variant": e.variant, "rtt_ms": e.place[1], "buffer_bdp": e.place[2],
             "conformance": e.value, "delay_ms": e.test.middle[0],
             "throughput_mbps": e.test.middle[1], "kernel_delay_ms": e.reference.middle[0],
             "kernel_throughput_mbps": e.reference.middle[1]} for e in pairs
        ),
        static=True,
    )  # fmt: skip


def _who_is_like_the_kernel(pairs: list[Conformity]) -> str:
    """Say whose conformance is the highest throughout, and whose the lowest."""
    values = {
        name: [each.value for each in pairs if each.variant == name]
        for name in dict.fromkeys(each.variant for each in pairs)
    }

    def range_of(name: str) -> str:
        return f"conformance {min(values[name]):.2f} to {max(values[name]):.2f}"

    most, least = (end(values, key=lambda name: sorted(values[name])) for end in (max, min))
    if most == least:
        return f"{most} beside the kernel's control of the same kind: {range_of(most)}"
    return (
        f"Most like the kernel's is {most} ({range_of(most)}), "
        f"and least {least} ({range_of(least)})"
    )


def _envelopes(
    conformity: Conformity | None, place: Place, *, first: bool, top: bool, last: bool
) -> Panel:
    """Return a cell: two envelopes, their points, and the conformance."""
    rate, rtt_ms, buffer_bdp = place
    heading = f"{rtt_ms:g} ms, {buffer_bdp:g} BDP" if top else ""
    x = Axis("ms" if last else "", limits=(0, rtt_ms * buffer_bdp * 1.1), tick_count=3)
    name = conformity.variant.replace(":", "\n") if conformity and first else ""
    y = Axis(name, limits=(0, rate), ticks=(0, rate / 2, rate), names_shown=first)
    if conformity is None:
        return Panel((), x, y, heading=heading, empty="invalid")
    shade = np.clip((conformity.value - APART) / (LIKE_THE_KERNELS - APART), 0, 1)
    colour = style.BLUE if shade > 0.5 else style.VERMILLION
    known, tested = conformity.reference, conformity.test
    marks = (
        _points(known, GREY_POINTS),
        Polygon(known.hull[:, 0], known.hull[:, 1], style.GREY, 0.3, style.GREY),
        _points(tested, colour),
        Polygon(tested.hull[:, 0], tested.hull[:, 1], colour, 0.25, colour),
        Annotation(f"{conformity.value:.2f}", 0.95, 0.93, "panel", "panel", size=7, colour=colour,
                   bold=True, across="right", up="top"),
    )  # fmt: skip
    return Panel(marks, x, y, heading=heading)


def _points(hull: Envelope, colour: str) -> PointSeries:
    return PointSeries(hull.nearest[:, 0], hull.nearest[:, 1], colour, ".", size=1.0, opacity=0.5)


def conformance_tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Tabulate the conformance of each stack in each cell."""
    pairs = conformities(results)
    places = sorted({each.place for each in pairs}, key=lambda place: (place[1], place[2]))
    values = {(each.variant, each.place): f"{each.value:.2f}" for each in pairs}
    heads = ("stack", *(f"{p[1]:g} ms, {p[2]:g} BDP" for p in places))
    rows = (
        (variant, *(values.get((variant, place), "–") for place in places))
        for variant in dict.fromkeys(each.variant for each in pairs)
    )
    yield "Conformance with the kernel's control of the same name", as_sheet(heads, rows, heads[1:])
