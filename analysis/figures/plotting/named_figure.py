"""A figure with its name, its caption and the data that it shows; and how figures are saved."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as DrawnFigure

from analysis.figures import style
from analysis.figures.figure import Figure
from analysis.figures.plotting.point_evidence import TRIALS
from testbed.machine.atomic import replace
from testbed.machine.safe_files import make_folder

_LONG_DECIMALS = re.compile(r"(?<![\d.])-?\d+\.\d{3,}")  # no version, 6.1.192


@dataclass(frozen=True)
class NamedFigure:
    """A figure; its caption says what is to be seen, its data are what is drawn."""

    stem: str
    caption: str
    figure: DrawnFigure
    data: pd.DataFrame
    reading: str = ""  # how to read it, where that is not said in the figure

    def save(self, folder: Path) -> list[Path]:
        """Write it as PNG and SVG, and its data as CSV."""
        table = self.data.rename(columns=lambda name: str(name).removeprefix("axis_"))
        table = table.drop(columns=TRIALS, errors="ignore")  # which the page has
        data = folder / f"{self.stem}.csv"
        written = save(self.figure, folder, self.stem)
        replace(data, lambda path: table.to_csv(path, index=False, float_format="%.6g"))
        return [*written, data]


AnyFigure = NamedFigure | Figure  # until all figures are data


def save(figure: DrawnFigure, folder: Path, stem: str) -> list[Path]:
    """Write the figure as PNG and as SVG."""
    make_folder(folder)
    figure.set_dpi(style.PNG_DPI)
    _settle(figure)
    png, svg = folder / f"{stem}.png", folder / f"{stem}.svg"
    with style.style_sheet():  # how SVGs name their parts and write their letters
        text = svg_text(figure)
    replace(svg, lambda path: path.write_text(text, encoding="utf-8"))
    figure.set_dpi(style.PNG_DPI)  # which the SVG has changed
    replace(png, FigureCanvasAgg(figure).print_png)
    return [png, svg]


def svg_text(figure: DrawnFigure) -> str:
    """The figure as SVG, the text of a whole file."""
    file = io.StringIO()
    # not savefig: it draws twice, and drawing is what a report's time goes into
    none = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    FigureCanvasSVG(figure).print_svg(file, metadata=none)  # type: ignore[no-untyped-call]
    return _LONG_DECIMALS.sub(_shortened, file.getvalue())


def _shortened(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _settle(figure: DrawnFigure) -> None:
    """Lay the figure out once, to a millionth of its size: the solver's last digits are not the
    same in every call, and the SVG's names are made of them."""
    engine = figure.get_layout_engine()
    if engine is None:
        return
    engine.execute(figure)
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(float(part), 6) for part in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))
