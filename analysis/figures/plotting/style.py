"""How figures look: colours that colour-blind readers tell apart, sizes for A4 and for slides."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

from analysis.trials.labels import variant_key

# Okabe and Ito, "Color Universal Design" (2008); their yellow is too light for thin lines.
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
BLACK = "#000000"
GREY = "#666666"
# Two more that stay apart from these, by their lightness too.
INDIGO = "#332288"
BROWN = "#7A4B21"

VARIANT_COLOURS = {
    "tahoe": BLACK,
    "reno": INDIGO,
    "newreno": SKY,
    "newreno-impatient": GREY,
    "sack": BROWN,
    "vegas": GREEN,
    "veno": PURPLE,
    "cubic": VERMILLION,
    "bbr": ORANGE,
    "linux-reno": BLUE,
}
OTHER_COLOURS = (SKY, BLACK, BROWN, INDIGO, GREY)  # those that the figure does not use yet

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
PAPER = "white"  # inside of a hollow point

WIDTH_INCHES = 7.2  # the text's width on A4; on a slide the letters grow along
PNG_DPI = 200

SHEET = Path(__file__).with_name("figures.mplstyle")


def variant_colours(variants: Iterable[str]) -> dict[str, str]:
    """A colour for each variant; the usual ones always have the same."""
    names = list(variants)
    used = {VARIANT_COLOURS.get(name) for name in names}
    free = [colour for colour in OTHER_COLOURS if colour not in used]
    others = itertools.cycle(free or OTHER_COLOURS)
    return {name: VARIANT_COLOURS.get(name) or next(others) for name in names}


@dataclass(frozen=True)
class SeriesStyle:
    """How a series is told from the others, by two means at once."""

    colour: str
    marker: str


# Of queues, in the order in which a figure shows them.
QUEUE_STYLES = (
    SeriesStyle(BLUE, "o"),
    SeriesStyle(VERMILLION, "D"),
    SeriesStyle(GREEN, "^"),
    SeriesStyle(PURPLE, "s"),
    SeriesStyle(ORANGE, "v"),
    SeriesStyle(BLACK, "P"),
)


def series_styles(names: Sequence[str]) -> dict[str, SeriesStyle]:
    """A look for each variant, in the usual order; the usual ones always have the same."""
    ordered = sorted(dict.fromkeys(names), key=variant_key)
    colours = variant_colours(ordered)
    others = itertools.cycle(OTHER_MARKERS)
    return {name: SeriesStyle(colours[name], MARKERS.get(name) or next(others)) for name in ordered}


def style_sheet() -> AbstractContextManager[None]:
    """A context in which all figures are drawn."""
    return mpl.rc_context(fname=SHEET)
