"""How figures look: colours that colour-blind readers tell apart, sizes for A4 and for slides."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from analysis.captures.atomic_write import replace

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


def marker(suspect: bool, colour: str) -> dict[str, Any]:
    """How a point looks: full, or hollow if its trial is suspect."""
    if not suspect:
        return {"color": colour, "markeredgewidth": 0}
    return {"color": colour, "markerfacecolor": "white", "markeredgewidth": 0.8}


def _settle(figure: Figure) -> None:
    """Lay it out once, to a millionth of its size: the solver's last digits are not the same in
    every call, and the SVG's names are made of them."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(float(part), 6) for part in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))


def save(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write the figure as PNG and as SVG."""
    folder.mkdir(exist_ok=True)
    _settle(figure)
    paths = [folder / f"{stem}.png", folder / f"{stem}.svg"]
    for path in paths:
        metadata = {"Date": None} if path.suffix == ".svg" else None
        replace(path, lambda aside, m=metadata: figure.savefig(aside, dpi=PNG_DPI, metadata=m))  # type: ignore[misc]
    return paths
