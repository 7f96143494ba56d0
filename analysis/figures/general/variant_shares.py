"""What each variant gets of a trial's goodput, and Jain's index over its flows."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.figures import means, style
from analysis.figures.figure import Axis, Mark, Panel, SegmentSet
from analysis.figures.means import Measure
from analysis.metrics.metric_rows import AXIS
from analysis.statistics.intervals import half_width

SHARE_OF_GOODPUT = Measure("share_percent", "share of goodput (%)")
GROUP = "group"  # a variant's flows in a trial, `cubic × 3`
SHARES_READING = (
    "points: means; bars: 95 % intervals (Student's t); rings: single seeds; lines: even split"
)


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


def panels(parts: Sequence[tuple[str, pd.DataFrame]]) -> tuple[list[Panel], pd.DataFrame]:
    """Return one panel per part: one line per variant, Jain's index above."""
    looks = style.styles_of(pd.concat([rows for _, rows in parts]), GROUP)
    found, tables = [], []
    for words, rows in parts:
        table = means.summary(rows, [GROUP], SHARE_OF_GOODPUT)
        jain = rows.drop_duplicates("trial")["jain"]
        tables.append(table.assign(part=words, jain=float(jain.mean())))
        names = [name for name in looks if name in set(rows[GROUP])]
        marks: list[Mark] = []
        for place, name in enumerate(names):
            own = rows[rows[GROUP] == name]
            even = float(own["even"].iloc[0])
            marks += [
                SegmentSet([even], [place - 0.4], [even], [place + 0.4], style.GREY, width=0.8),
                means.single_trials(own[SHARE_OF_GOODPUT.metric], place, looks[name]),
                means.mean_point(place, table[table[GROUP] == name].iloc[0], looks[name]),
            ]
        found.append(
            Panel(
                marks,
                Axis(SHARE_OF_GOODPUT.label, limits=(0, 100)),
                Axis(names=names),
                title=words,
                title_right=jain_words(jain),
            )
        )
    return found, pd.concat(tables, ignore_index=True)


def jain_words(jain: pd.Series) -> str:
    """`Jain's index 0.93 ± 0.02`."""
    half = half_width(jain.dropna()) if jain.notna().sum() > 1 else 0.0
    return f"Jain's index {jain.mean():.3f}" + (f" ± {half:.3f}" if half else "")


def caption(data: pd.DataFrame) -> str:
    """Write the shares and Jain's index of each part."""
    said = []
    for words, own in data.groupby("part", sort=False):
        shares = ", ".join(f"{row[GROUP]} {row['mean']:.0f} %" for _, row in own.iterrows())
        index = f" (Jain's index {own['jain'].iloc[0]:.3f})"
        said.append((f"with {words!s}: " if words else "") + shares + index)
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."
