"""The style of all figures: colours for colour-blind readers too, markers, sizes for A4."""

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
# Four more that differ from these in lightness too.
INDIGO = "#332288"
BROWN = "#7A4B21"
OLIVE = "#666600"
WINE = "#882255"

VARIANT_COLOURS = {
    "tahoe": BLACK,
    "reno": INDIGO,
    "newreno": SKY,
    "newreno-impatient": GREY,
    "sack": BROWN,
    "vegas": GREEN,
    "vegas1995": OLIVE,
    "veno": PURPLE,
    "cubic": VERMILLION,
    "bbr": ORANGE,
    "linux-reno": BLUE,
    "dctcp": WINE,
}
OTHER_COLOURS = (SKY, BLACK, BROWN, INDIGO, GREY)  # for variants not named above

MARKERS = {
    "tahoe": "s",
    "reno": "o",
    "newreno": "^",
    "newreno-impatient": "P",
    "sack": "D",
    "vegas": "v",
    "vegas1995": "<",
    "veno": "p",
    "cubic": "X",
    "bbr": "*",
    "linux-reno": "h",
    "dctcp": ">",
}
OTHER_MARKERS = "o^sDvPX*ph"
PAPER = "white"  # the inside of a hollow point

WIDTH_INCHES = 7.2  # the text width of an A4 page
PNG_DPI = 200

SHEET = Path(__file__).with_name("figures.mplstyle")


def variant_colours(variants: Iterable[str]) -> dict[str, str]:
    """A colour for each variant; the known ones always have the same colour."""
    names = list(variants)
    used = {VARIANT_COLOURS.get(name) for name in names}
    free = [colour for colour in OTHER_COLOURS if colour not in used]
    others = itertools.cycle(free or OTHER_COLOURS)
    return {name: VARIANT_COLOURS.get(name) or next(others) for name in names}


@dataclass(frozen=True)
class SeriesStyle:
    """Colour and marker: a series can be told apart by either."""

    colour: str
    marker: str


# For queues, in the order in which a figure shows them.
QUEUE_STYLES = (
    SeriesStyle(BLUE, "o"),
    SeriesStyle(VERMILLION, "D"),
    SeriesStyle(GREEN, "^"),
    SeriesStyle(PURPLE, "s"),
    SeriesStyle(ORANGE, "v"),
    SeriesStyle(BLACK, "P"),
)


def series_styles(names: Sequence[str]) -> dict[str, SeriesStyle]:
    """A style for each variant, in the usual order; known variants always have the same style."""
    ordered = sorted(dict.fromkeys(names), key=variant_key)
    colours = variant_colours(ordered)
    others = itertools.cycle(OTHER_MARKERS)
    return {name: SeriesStyle(colours[name], MARKERS.get(name) or next(others)) for name in ordered}


def style_sheet() -> AbstractContextManager[None]:
    """The context in which every figure is drawn and saved."""
    return mpl.rc_context(fname=SHEET)
