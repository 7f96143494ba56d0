"""What a figure of the report is, and the parts that all of them share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from analysis.figures.shared import style
from analysis.results.material import AXIS, Material
from analysis.statistics.intervals import half_width, known
from analysis.trials.labels import in_lines, variant_key

MARKERS = {
    "tahoe": "s",
    "reno": "o",
    "newreno": "^",
    "newreno-impatient": "P",
    "sack": "D",
    "vegas": "v",
    "veno": "p",
    "cubic": "X",
    "bbr": "*",
    "linux-reno": "h",
}
OTHER_MARKERS = "o^sDvPX*ph"
# The papers' own settings, in the order to show them; others follow by the alphabet.
FIRST = ("ns2", "small", "cbr-first", "receiver", "bfifo", "droptail", "red")
UNITS = {"mbit": "Mbit/s", "ms": "ms", "s": "s", "bytes": "bytes", "packets": "packets"}
FOOT_LETTERS = 165  # of a line below a figure
FOOT_INCHES = 0.26  # two lines
PAPER = "white"  # inside of a hollow point
READING = "points: means; bands and bars: 95 % interval of the mean (Student's t)"


@dataclass(frozen=True)
class Drawn:
    """A figure; its caption says what is to be seen; and the table of what is drawn."""

    stem: str
    caption: str
    figure: Figure
    data: pd.DataFrame
    reading: str = ""  # how to read it, where that is not said in the figure


@dataclass(frozen=True)
class Measure:
    """A metric as an axis of a figure."""

    metric: str
    label: str
    scale: float = 1.0
    zero: bool = True
    linear_below: float = math.inf  # and logarithmic above, where one line presses the rest flat


THROUGHPUT = Measure("throughput_mbps", "throughput (Mbit/s)")
DROPS = Measure("drop_rate", "drop rate (%)", 100, linear_below=0.1)
LATENCY = Measure("owd_mean_ms", "one-way delay (ms)", zero=False)


def summary(rows: pd.DataFrame, by: Sequence[str], measure: Measure) -> pd.DataFrame:
    """A row a cell: mean, the interval's ends (NaN below two), n, and how many are suspect."""
    cells = []
    for key, members in rows.groupby(list(by), sort=False, dropna=False):
        values = known(members[measure.metric]) * measure.scale
        mean = float(values.mean()) if len(values) else float("nan")
        half = half_width(values)
        suspect = int((members["verdict"] == "suspect").sum())
        keys = key if isinstance(key, tuple) else (key,)
        cells.append((*keys, mean, mean - half, mean + half, len(values), suspect))
    columns = [*by, "mean", "low", "high", "n", "suspect"]
    return pd.DataFrame(cells, columns=columns).sort_values(list(by), kind="stable")


def grid(
    down: int, across: int, *, panel: float = 1.5, head: float = 0.5, share: bool = False
) -> tuple[Figure, list[list[Axes]]]:
    """Panels below room for a title and a legend, above room for a foot."""
    inches = panel * down + head + FOOT_INCHES + 0.08
    figure = Figure(
        figsize=(style.WIDTH_INCHES, inches),
        layout=ConstrainedLayoutEngine(
            rect=(0, FOOT_INCHES / inches, 1, 1 - (FOOT_INCHES + head) / inches),
            h_pad=0.05,
            w_pad=0.05,
        ),
    )
    axes = figure.subplots(down, across, squeeze=False, sharex=share, sharey=share)
    return figure, [list(line) for line in axes]


def words(figure: Figure, title: str, foot: str) -> None:
    """The title above and, small, what was counted below."""
    height = figure.get_figheight()
    figure.text(0.01, 1 - 0.06 / height, title, fontsize=9, fontweight="bold", va="top")
    figure.text(0.01, 0.05 / height, foot, fontsize=6, color=style.GREY, va="bottom")


def legend(figure: Figure, looks: Mapping[str, Look]) -> None:
    """One for all panels, between the title and them."""
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, markersize=4, linewidth=1, label=name)
        for name, look in looks.items()
    ]
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - 0.25 / figure.get_figheight()),
        ncols=min(10, len(handles)),
        frameon=False,
        fontsize=7 if len(handles) < 9 else 6,
        handlelength=1.6 if len(handles) < 9 else 1.2,
        columnspacing=1.2 if len(handles) < 9 else 0.8,
        borderaxespad=0.2,
    )


@dataclass(frozen=True)
class Look:
    """How a series is told from the others, by two means at once."""

    colour: str
    marker: str


# Of queues, in the order in which a figure shows them.
QUEUE_LOOKS = (
    Look(style.BLUE, "o"),
    Look(style.VERMILLION, "D"),
    Look(style.GREEN, "^"),
    Look(style.PURPLE, "s"),
    Look(style.ORANGE, "v"),
    Look(style.BLACK, "P"),
)


def looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for each variant, in the usual order; the usual ones always have the same."""
    ordered = sorted(dict.fromkeys(names), key=variant_key)
    colours = style.variant_colours(ordered)
    others = itertools.cycle(OTHER_MARKERS)
    return {name: Look(colours[name], MARKERS.get(name) or next(others)) for name in ordered}


def line(axes: Axes, table: pd.DataFrame, x: str, look: Look, dashed: bool = False) -> None:
    """Means over a number with the band of their intervals; suspect ones hollow."""
    at, mean = table[x].to_numpy(dtype=float), table["mean"].to_numpy()
    axes.fill_between(
        at, table["low"], table["high"], color=look.colour, alpha=0.18, linewidth=0, zorder=2
    )
    axes.plot(at, mean, color=look.colour, linewidth=1, linestyle="--" if dashed else "-")
    for hollow in (False, True):
        own = table["suspect"].to_numpy() > 0 if hollow else table["suspect"].to_numpy() == 0
        axes.plot(
            at[own],
            mean[own],
            look.marker,
            color=look.colour,
            markerfacecolor=PAPER if hollow else look.colour,
            markersize=3.2,
            markeredgewidth=0.7,
            linestyle="none",
        )


def dot(axes: Axes, place: float, cell: pd.Series, look: Look, *, across: bool = True) -> None:
    """One mean with the bar of its interval, across or upright."""
    ends, at = [cell["low"], cell["high"]], [place, place]
    bar = (ends, at) if across else (at, ends)
    point = (cell["mean"], place) if across else (place, cell["mean"])
    if np.isfinite(cell["low"]):
        axes.plot(*bar, color=look.colour, linewidth=1.6, alpha=0.5)
    axes.plot(
        *point,
        look.marker,
        color=look.colour,
        markerfacecolor=PAPER if cell["suspect"] else look.colour,
        markersize=4.5,
        markeredgewidth=0.8,
    )


def seeds(axes: Axes, values: Iterable[float], place: float, look: Look) -> None:
    """Single trials on the line of their mean: two kinds of outcome have none in the middle."""
    found = known(values)
    axes.plot(
        found,
        [place] * len(found),
        "o",
        markersize=2.2,
        markerfacecolor=PAPER,
        markeredgecolor=look.colour,
        markeredgewidth=0.6,
    )


APART = 0.08  # of an axis's height: less, and names at the lines' ends overlap
LEAST_SPAN = 0.1  # of the largest value: differences below it are no difference to look at


def at_the_end(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Names in their colours where lines end, the upper ones moved up where two meet."""
    low, high = axes.get_ylim()
    last = -np.inf
    for value, words, colour in sorted(ends):
        last = max((value - low) / (high - low), last + APART)
        axes.annotate(
            words,
            (1.01, last),
            xycoords="axes fraction",
            fontsize=6,
            color=colour,
            va="center",
            annotation_clip=False,
        )


def not_too_close(axes: Axes, *which: Literal["x", "y"]) -> None:
    """Axes `x`, `y` that would blow up differences of no account are widened; numbers are written
    whole, not as small ones beside an offset."""
    for name in which:
        low, high = sorted(getattr(axes, f"get_{name}lim")())
        middle, least = (low + high) / 2, LEAST_SPAN * max(abs(low), abs(high))
        if 0 < high - low < least:
            getattr(axes, f"set_{name}lim")(middle - least / 2, middle + least / 2)
        axes.ticklabel_format(axis=name, useOffset=False)


def foot(material: Material, rows: pd.DataFrame, reading: str = READING) -> str:
    """n, who ran it, how to read it."""
    per = rows.groupby([AXIS + name for name in material.varied(rows)] or ["experiment"])
    seeds = sorted({int(n) for n in per["seed"].nunique()})
    n = f"n = {seeds[0]}" + (f"–{seeds[-1]}" if len(seeds) > 1 else "")
    parts = [f"{n} seed{'s' * (seeds[-1] > 1)} a point", f"engine {material.engine}"]
    if "axis_profile" not in rows:
        profiles = sorted({str(trial.scenario.profile) for trial in material.trials})
        parts.append(f"profile {', '.join(profiles)}")
    parts.append(reading)
    if (rows["verdict"] == "suspect").any():
        parts.append("hollow: a suspect trial among them")
    return in_lines(parts, FOOT_LETTERS)


def cases(rows: pd.DataFrame, axes: Sequence[str]) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """The rows apart by the values of axes, those that exist; the papers' own first."""
    columns = [
        AXIS + name for name in axes if AXIS + name in rows and rows[AXIS + name].notna().any()
    ]
    if not columns:
        yield {}, rows
        return
    for values, members in sorted(rows.groupby(columns), key=lambda group: _place(group[0])):
        yield (
            {
                name.removeprefix(AXIS): text(value)
                for name, value in zip(columns, values, strict=True)
            },
            members,
        )


def papers_first(values: Iterable[Any]) -> list[Any]:
    """An axis's values, the papers' own before the others."""
    return sorted(values, key=lambda value: _place([value]))


def _place(values: Sequence[object]) -> list[tuple[int, float, str]]:
    return [
        (
            FIRST.index(str(value)) if value in FIRST else len(FIRST),
            float(value) if isinstance(value, int | float) else 0.0,
            str(value),
        )
        for value in values
    ]


def text(value: object) -> str:
    """A value of an axis as people write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def stem(*parts: str) -> str:
    """A file's and an address's name."""
    joined = "-".join(part for part in parts if part)
    return "".join(c if c.isalnum() or c in "-._" else "-" for c in joined)


def case_words(case: Mapping[str, str]) -> str:
    """`order cbr-first, rate 1 Mbit/s`."""
    return ", ".join(_worded(name, value) for name, value in case.items())


def _worded(name: str, value: str) -> str:
    start, _, unit = name.rpartition("_")
    if start and unit in UNITS:
        return f"{start.replace('_', ' ')} {value} {UNITS[unit]}"
    return f"{name.replace('_', ' ')} {value}"


def exemplary(values: Sequence[float], most: int = 3) -> list[float]:
    """At most so many of sorted values: the ends and what lies evenly between."""
    if len(values) <= most:
        return list(values)
    places = np.linspace(0, len(values) - 1, most).round().astype(int)
    return [values[int(place)] for place in places]
