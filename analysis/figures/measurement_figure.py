"""Two tools' measurements side by side: goodput and delay over time."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.figures.figure import (
    Axis,
    Curve,
    Figure,
    LegendEntry,
    Mark,
    Panel,
    share_like_limits,
    share_limits,
)
from analysis.figures.style import variant_colours
from analysis.statistics.measurements import (
    DELAY_SERIES,
    GOODPUT_SERIES,
    SERIES_UNITS,
    Measurement,
    binned,
)

MAX_DRAWN_SERIES = 12  # of one tool and quantity; the table has all


def figure(sides: Sequence[Measurement], stem: str) -> Figure:
    """Return a column for each, whose rows share their axes."""
    grid, tables, entries = [], list[pd.DataFrame](), dict[str, LegendEntry]()
    for quantity in (GOODPUT_SERIES, DELAY_SERIES):
        panels = []
        for letter, side in zip("AB", sides, strict=True):
            marks: list[Mark] = []
            drawn = side.of(quantity)[:MAX_DRAWN_SERIES]
            colours = variant_colours(each.name for each in drawn)
            for each in drawn:
                table = binned(each)
                colour = colours[each.name]
                marks.append(Curve(table["time_s"], table["value"], colour, series=each.name))
                entries[each.name] = LegendEntry(each.name, colour)
                tables.append(table.assign(file=side.name, series=each.name, quantity=quantity))
            label = f"{quantity} ({SERIES_UNITS[quantity]})"
            y = Axis(label, limits=(0, None), tick_count=5)
            empty = "" if marks else f"no {quantity} in it"
            title = f"{letter}: {side.tool}" if quantity == GOODPUT_SERIES else ""
            panels.append(Panel(marks, Axis("seconds"), y, title=title, empty=empty))
        grid.append(tuple(share_like_limits(share_limits(panels, "y"), "x")))
    first, second = sides[0].metrics(), sides[-1].metrics()
    shown = (("goodput_mbps", "Goodput", "Mbit/s"), ("rtt_mean_ms", "delay", "ms"))
    sentences = [
        f"{name}: {first[key]:.3g} and {second[key]:.3g} {unit}"
        for key, name, unit in shown
        if key in first and key in second
    ]
    return Figure(
        stem=stem,
        title="; ".join(sentences) or "Nothing that both have",
        panels=tuple(grid),
        legend=tuple(entries.values()),
        foot=f"A: {sides[0].name}; B: {sides[-1].name}; means of one second",
        data=pd.concat(tables, ignore_index=True),
    )
