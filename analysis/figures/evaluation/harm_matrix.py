"""Who harms whom: a matrix for each of throughput, delay and losses (Ware and others, 2019)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from analysis.evaluation import findings
from analysis.evaluation.outcome_rows import SUBJECT, VICTIM, outcome, scores
from analysis.figures.plotting import cases, figure_layout, style
from analysis.figures.plotting.named_figure import AnyFigure, NamedFigure
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.intervals import half_width
from analysis.trials.labels import variant_key

DARK = 60.0  # percent of harm, from which letters on it are white
READING = (
    "each row does harm to each column, beside what two of the column's own kind have; "
    "± half of the 95 % interval (Student's t)"
)


def draw(results: ExperimentResults) -> Iterator[AnyFigure]:
    """One panel per kind of harm."""
    table = outcome(results)
    if table.empty:
        return
    own = scores(results.experiment)
    names = sorted(set(table[SUBJECT]) | set(table[VICTIM].astype(str)), key=variant_key)
    figure, grid = figure_layout.grid(1, len(own), panel=0.3 * len(names) + 0.9, head=0.3)
    for place, (axes, score) in enumerate(zip(grid[0], own, strict=True)):
        _matrix(axes, table, score.name, names, place == 0)
        figure_layout.panel_title(axes, score.words)
    figure_layout.title_and_foot(
        figure, f"{results.experiment}: of each to each", cases.foot(results, table, READING)
    )
    columns = [SUBJECT, VICTIM, "seed", "verdict", *(score.name for score in own)]
    stem = cases.stem(results.key, "matrix")
    reading = "Rows harm columns: 0 is none, 100 is all, below 0 does the victim good."
    yield NamedFigure(stem, findings.sentence(table, own), figure, table[columns], reading)


def _matrix(axes: Axes, table: pd.DataFrame, metric: str, names: list[str], first: bool) -> None:
    """The means as colours and as numbers with their intervals."""
    for row, subject in enumerate(names):
        for column, victim in enumerate(names):
            own = table[(table[SUBJECT] == subject) & (table[VICTIM] == victim)][metric]
            mean, half = float(own.mean()), half_width(own)
            if math.isnan(mean):
                continue
            shade = float(np.clip(abs(mean) / 100, 0, 1))
            colour = style.VERMILLION if mean > 0 else style.BLUE
            box = (column - 0.5, row - 0.5)
            axes.add_patch(_box(box, colour, shade))
            text = f"{mean:.0f}" + (f"\n±{half:.0f}" if math.isfinite(half) else "")
            axes.text(
                *(column, row, text),
                ha="center",
                va="center",
                fontsize=5.5,
                color=style.PAPER if abs(mean) > DARK else style.BLACK,
            )
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=6)
    axes.set_yticks(range(len(names)), names if first else [""] * len(names), fontsize=6)
    axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5), xlabel="harmed")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    if first:
        axes.set_ylabel("harming")


def _box(corner: tuple[float, float], colour: str, shade: float) -> Rectangle:
    return Rectangle(corner, 1, 1, facecolor=colour, alpha=shade, edgecolor="none")
