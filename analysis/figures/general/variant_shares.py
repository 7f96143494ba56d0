"""What each variant gets of a trial's goodput, and Jain's index over its flows."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.plotting import error_bars, figure_layout, style
from analysis.figures.plotting.error_bars import Measure
from analysis.metrics.axes import AXIS
from analysis.statistics.intervals import half_width

SHARE = Measure("share_percent", "share of goodput (%)")
GROUP = "group"  # a variant's flows in a trial, `cubic × 3`
READING = (
    "points: means; bars: 95 % intervals (Student's t); rings: single seeds; lines: even split"
)


def several_flows(rows: pd.DataFrame) -> bool:
    """True if a trial has flows that can share."""
    return bool(rows.groupby("trial")["flow"].nunique().gt(1).any())


def by_variant(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per trial and variant: the sum of its flows' shares, and that of an even split."""
    total = rows.groupby("trial")["goodput_mbps"].transform("sum")
    share = (100 * rows["goodput_mbps"] / total).where(total > 0)
    even = 100 / rows.groupby("trial")["flow"].transform("count")
    kept = ["seed", "verdict", "jain", *(each for each in rows if str(each).startswith(AXIS))]
    groups = rows.assign(share_percent=share, even=even, flows=1).groupby(["trial", "variant"])
    sums = groups[["share_percent", "even", "flows"]].sum(min_count=1)
    found = sums.join(groups[kept].first()).reset_index()
    times = found["flows"].map(lambda flows: f" × {flows}" if flows > 1 else "")
    return found.assign(**{GROUP: found["variant"] + times})


def panels(parts: Sequence[tuple[str, pd.DataFrame]]) -> tuple[Figure, pd.DataFrame]:
    """One panel per part, one line per variant, Jain's index above."""
    known = style.styles_of(pd.concat([rows for _, rows in parts]), GROUP)
    across = min(2, len(parts))
    down = -(-len(parts) // across)
    most = max(rows[GROUP].nunique() for _, rows in parts)
    figure, grid = figure_layout.grid(down, across, panel=0.22 * most + 0.75, head=0.3)
    places = [axes for line in grid for axes in line]
    tables = []
    for axes, (words, rows) in zip(places, parts, strict=False):
        table = error_bars.summary(rows, [GROUP], SHARE)
        jain = rows.drop_duplicates("trial")["jain"]
        tables.append(table.assign(part=words, jain=float(jain.mean())))
        names = [name for name in known if name in set(rows[GROUP])]
        for place, name in enumerate(names):
            _line(axes, place, rows[rows[GROUP] == name], known[name])
            error_bars.point(axes, place, table[table[GROUP] == name].iloc[0], known[name])
        axes.set_yticks(range(len(names)), names)
        axes.set(xlim=(0, 100), ylim=(len(names) - 0.5, -0.5), xlabel=SHARE.label)
        axes.tick_params(axis="y", length=0)
        figure_layout.panel_title(axes, words)
        axes.set_title(jain_words(jain), loc="right", fontsize=6.5, color=style.GREY)
    for axes in places[len(parts) :]:
        axes.set_visible(False)
    return figure, pd.concat(tables, ignore_index=True)


def _line(axes: Axes, place: int, rows: pd.DataFrame, look: style.SeriesStyle) -> None:
    """The single seeds, and the share that would be even."""
    error_bars.single_trials(axes, rows[SHARE.metric], place, look)
    even = float(rows["even"].iloc[0])
    axes.plot([even, even], [place - 0.4, place + 0.4], color=style.GREY, linewidth=0.8, zorder=1.5)


def jain_words(jain: pd.Series) -> str:
    """`Jain's index 0.93 ± 0.02`."""
    half = half_width(jain.dropna()) if jain.notna().sum() > 1 else 0.0
    return f"Jain's index {jain.mean():.3f}" + (f" ± {half:.3f}" if half else "")


def caption(data: pd.DataFrame) -> str:
    """The shares and Jain's index of each part."""
    said = []
    for words, own in data.groupby("part", sort=False):
        shares = ", ".join(f"{row[GROUP]} {row['mean']:.0f} %" for _, row in own.iterrows())
        index = f" (Jain's index {own['jain'].iloc[0]:.3f})"
        said.append((f"with {words!s}: " if words else "") + shares + index)
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."
