"""The style of all figures: colours for colour-blind readers too, markers, sizes for A4."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from zlib import crc32

import matplotlib as mpl
import pandas as pd

from analysis.trials.labels import by_number, variant_key

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
    "vegas1995": ORANGE,
    "veno": PURPLE,
    "cubic": VERMILLION,
    "bbr": BLUE,  # beside cubic most often: the two that differ most
    "linux-reno": OLIVE,
    "dctcp": WINE,
}
# Tol, "Colour schemes" (2021), muted: for the variants not named above, each always the same.
TEAL, WINE, ROSE, STEEL, MOSS = OTHER_COLOURS = (
    *("#2E9C8C", "#882255", "#CC6677", "#6699CC", "#999933"),
)
SERIES_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, BLACK)
VARIANT_COLOURS |= {
    **dict.fromkeys(("dctcp", "lp", "scalable"), TEAL),
    **dict.fromkeys(("westwood", "nv", "highspeed"), WINE),
    **dict.fromkeys(("htcp", "yeah"), ROSE),
    **dict.fromkeys(("illinois", "bic"), STEEL),
    **dict.fromkeys(("cdg", "hybla"), MOSS),
}

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
Dash = Literal["-"] | tuple[int, tuple[float, ...]]
DASHES: tuple[Dash, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))
PAPER = "white"  # the inside of a hollow point

WIDTH_INCHES = 7.2  # the text width of an A4 page
PNG_DPI = 200

SHEET = Path(__file__).with_name("figures.mplstyle")


def variant_colours(variants: Iterable[str]) -> dict[str, str]:
    """Return a colour for each variant, the same in every figure.

    Where one figure has two variants of one colour, the second gets a free one. Names that are no
    variant, such as those of flows, get colours in their order.
    """
    colours: dict[str, str] = {}
    names = list(variants)
    if len(names) <= len(SERIES_COLOURS) and not any(name in VARIANT_COLOURS for name in names):
        return dict(zip(names, SERIES_COLOURS, strict=False))
    for name in names:
        known_colour = VARIANT_COLOURS.get(name) or _by_name(name)
        free = (colour for colour in OTHER_COLOURS if colour not in colours.values())
        taken = (
            known_colour in OTHER_COLOURS
            and name not in colours
            and known_colour in colours.values()
        )
        colours[name] = next(free, known_colour) if taken else known_colour
    return colours


def _by_name(name: str) -> str:
    return OTHER_COLOURS[crc32(name.encode()) % len(OTHER_COLOURS)]


@dataclass(frozen=True)
class SeriesStyle:
    """Colour and marker: a series can be told apart by either."""

    colour: str
    marker: str
    dash: Dash = "-"

    @property
    def dashes(self) -> tuple[float, ...]:
        """Return the lengths of dashes and gaps, in widths of the line; none for a solid line."""
        return () if self.dash == "-" else self.dash[1]


# For queues, in the order in which a figure shows them.
QUEUE_STYLES = (
    SeriesStyle(BLUE, "o"),
    SeriesStyle(VERMILLION, "D"),
    SeriesStyle(GREEN, "^"),
    SeriesStyle(PURPLE, "s"),
    SeriesStyle(ORANGE, "v"),
    SeriesStyle(BLACK, "P"),
)


def series_styles(
    names: Iterable[str], variants: Mapping[str, str] | None = None
) -> dict[str, SeriesStyle]:
    """Return a style for each series, in the usual order of the variants.

    `variants` has the variant of a series that is not called like it. Its flows share the
    variant's colour; the second and those after it have other markers and dashes.
    """
    of = {name: (variants or {}).get(name) or name for name in names}
    ordered = sorted(of, key=lambda name: (variant_key(of[name]), by_number(name)))
    colours = variant_colours(dict.fromkeys(of[name] for name in ordered))
    others = itertools.cycle(OTHER_MARKERS)
    styles: dict[str, SeriesStyle] = {}
    for name in ordered:
        variant = of[name]
        before = sum(of[each] == variant for each in styles)
        marker = MARKERS.get(variant, "") if not before else ""
        dash = DASHES[before % len(DASHES)]
        styles[name] = SeriesStyle(colours[variant], marker or next(others), dash)
    return styles


def styles_of(rows: pd.DataFrame, series: str) -> dict[str, SeriesStyle]:
    """Return the styles of these flows' series, by their variants."""
    names = rows.drop_duplicates(series)
    variants = dict(zip(names[series].map(str), names["variant"].map(str), strict=True))
    return series_styles(variants, variants)


def style_sheet() -> AbstractContextManager[None]:
    """Return the context in which every figure is drawn and saved."""
    return mpl.rc_context(fname=SHEET)
