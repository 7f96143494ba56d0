"""What holds in every figure: ticks, legends, markers, colours, order, words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.axis import Tick
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.text import Text

from analysis.figures.figure_catalogue import figures
from analysis.figures.general import general_figures
from analysis.figures.plotting.named_figure import NamedFigure
from analysis.figures.plotting.style import VARIANT_COLOURS
from analysis.report import collect
from tests import report_writer
from tests.trial_writer import write_trial

EXPERIMENTS = {  # with seeds, and the largest number of trials
    "router-bottleneck": (2, 99),
    "router-fairness": (2, 99),
    "dumbbell-load": (1, 24),
    "dumbbell-pairs": (1, 24),
    "dumbbell-queues": (1, 99),
    "someones-own": (3, 99),
}
MANY = 6  # entries of a legend, from which on it stands beside the panels
ONE = re.compile(r"(?<![\d.,–-])1 (trials|seeds|flows|packets|points|losses|segments|runs)\b")
SEVERAL = re.compile(r"\b([2-9]|\d\d+) (trial|seed|flow|point|segment|run)\b(?!-)")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[NamedFigure]:
    """Every figure of every experiment, as it is written."""
    root = tmp_path_factory.mktemp("results")
    for name, (seeds, most) in EXPERIMENTS.items():
        report_writer.write_experiment(root / name, name, seeds, most)
    found = [f for part in collect(sorted(root.iterdir())).materials for f in figures(part)]
    for each in found:
        FigureCanvasAgg(each.figure).draw()  # type: ignore[no-untyped-call]
    return found


def every_axes(drawn: list[NamedFigure]) -> Iterator[tuple[str, Axes]]:
    for each in drawn:
        for number, axes in enumerate(each.figure.axes):
            if axes.get_visible() and axes.axison:
                yield f"{each.stem}, panel {number}", axes


def test_no_tick_says_what_another_says(drawn: list[NamedFigure]) -> None:
    for where, axes in every_axes(drawn):
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            seen = [
                tick.get_text()
                for place, tick in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
                if tick.get_text() and low - slack <= place <= high + slack
            ]
            assert len(set(seen)) == len(seen), (where, seen)


def test_loads_are_in_the_order_of_their_numbers(drawn: list[NamedFigure]) -> None:
    for where, axes in every_axes(drawn):
        texts = [tick.get_text() for tick in axes.get_xticklabels() if tick.get_text()]
        with_numbers = [re.fullmatch(r"−?\d+(\.\d+)?", text) for text in texts]
        if texts and all(with_numbers):
            values = [float(text.replace("−", "-")) for text in texts]
            assert values == sorted(values), where


def test_no_marker_is_cut(drawn: list[NamedFigure]) -> None:
    """A point at the edge of its panel is drawn whole, or the panel has room for it."""
    for where, axes in every_axes(drawn):
        box = axes.get_window_extent()
        for line in axes.get_lines():
            if line.get_marker() in ("", " ", "None", None, "|", "_") or not line.get_clip_on():
                continue
            places = axes.transData.transform(np.column_stack(line.get_data()))
            inside = places[[bool(box.contains(x, y)) for x, y in places]]
            radius = line.get_markersize() / 2 * axes.figure.dpi / 72
            room = np.minimum(inside - (box.x0, box.y0), (box.x1, box.y1) - inside)
            assert not len(inside) or room.min() > 0.5 * radius, (where, line.get_label())


def test_long_legends_stand_beside_the_panels(drawn: list[NamedFigure]) -> None:
    for each in drawn:
        for legend in [*each.figure.legends, *(a.get_legend() for a in each.figure.axes)]:
            if legend is None or len(legend.get_texts()) < MANY:
                continue
            box = legend.get_window_extent()
            for axes in each.figure.axes:
                panel = axes.get_window_extent()
                over_x = min(box.x1, panel.x1) - max(box.x0, panel.x0)
                over_y = min(box.y1, panel.y1) - max(box.y0, panel.y0)
                assert over_x <= 1 or over_y <= 1, each.stem


def test_all_words_are_inside_the_figure(drawn: list[NamedFigure]) -> None:
    """But for the ticks', of which matplotlib keeps some beyond the view and does not draw them."""
    for each in drawn:
        whole = each.figure.bbox.padded(2)
        ticks = {label for tick in each.figure.findobj(Tick) for label in tick.findobj(Text)}
        for text in each.figure.findobj(Text):
            if text.get_text().strip() and text.get_visible() and text not in ticks:
                box = text.get_window_extent()
                assert whole.x0 <= box.x0 and box.x1 <= whole.x1, (each.stem, text.get_text())
                assert whole.y0 <= box.y0 and box.y1 <= whole.y1, (each.stem, text.get_text())


def test_a_variant_has_one_colour_everywhere(drawn: list[NamedFigure]) -> None:
    """Every legend's sample of a variant has its colour."""
    seen = set()
    for each in drawn:
        for legend in [*each.figure.legends, *(a.get_legend() for a in each.figure.axes)]:
            for text, sample in zip(
                *((legend.get_texts(), legend.legend_handles) if legend else ((), ())), strict=True
            ):
                if text.get_text() in VARIANT_COLOURS and isinstance(sample, Line2D):
                    wanted = VARIANT_COLOURS[text.get_text()].lower()
                    assert to_hex(sample.get_color()) == wanted, (each.stem, text.get_text())
                    seen.add(text.get_text())
    assert len(seen) > 3


def test_one_is_no_plural(drawn: list[NamedFigure]) -> None:
    for each in drawn:
        said = [each.caption, each.reading, *(t.get_text() for t in each.figure.findobj(Text))]
        for text in said:
            assert not ONE.search(text), (each.stem, text)
            assert not SEVERAL.search(text), (each.stem, text)


def test_a_single_trial_has_its_timeline_and_no_figure_of_one_point(tmp_path: Path) -> None:
    write_trial(tmp_path / "one-trial", samples=True)
    [material] = collect([tmp_path]).materials
    kinds = {
        figure.stem.removeprefix(f"{material.key}-") for figure in general_figures.draw(material)
    }
    assert "tcp-timeline" in kinds
    assert not {"sweep", "plane"} & kinds
