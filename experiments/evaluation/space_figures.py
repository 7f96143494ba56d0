"""What the drawn settings show, as a sentence, a table, and maps of the paired effects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.figures import cases, style
from analysis.figures.figure import Axis, Boxes, Figure, Panel
from analysis.figures.sheet import Sheet, as_sheet
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.text_tables import TextTable
from experiments.evaluation.space import SPACE_AXES
from experiments.evaluation.space_effects import (
    CELL_AXES,
    MARGIN_PERCENT,
    MIN_IN_A_CELL,
    SPACE_LEVEL,
    SpaceCell,
    SpaceEffect,
    SpaceResults,
    bins_of,
    corrected_cells,
    deciding,
    harmless,
    in_words,
    share_of,
    space_effects,
    space_results,
)
from experiments.evaluation.space_scores import OWN_SCORES, SPACE_HARM_SCORES, STARVATION_SCORES
from testbed.scenario.space import NumberRange

MAPPED_SCORES = (*OWN_SCORES[:3], SPACE_HARM_SCORES[0], STARVATION_SCORES[0])
FULL_COLOUR_PERCENT = 60.0  # effects from here on have the whole colour, and white letters
SPACE_HEADS = (
    "variant",
    "score",
    "less the incumbent's",
    "worse in",
    "by chance in",
    "decided by",
)
SPACE_NOTE = (
    "Effects are in percentage points, with their 95 % intervals over settings; * is significant "
    f"at {SPACE_LEVEL:g} (Benjamini and Hochberg). Worse: by more than {MARGIN_PERCENT:g} points. "
    "By chance: where the incumbent's second seed is worse than its first by as much. Decided by: "
    "the axes that explain most of the effect's variance."
)
NOTHING_DRAWN = "no setting has trials of a variant and of an incumbent, alone and beside it"


def sentence(space: SpaceResults, effects: Sequence[SpaceEffect], subject: str) -> str:
    """Say how often a subject is no worse for the incumbent than itself, and where it is worst."""
    chance = harmless(effects, space.incumbent)
    good = harmless(effects, subject)
    if good.empty:
        return f"No setting has valid trials of {subject} beside {space.incumbent}."
    harm = next(e for e in effects if (e.subject, e.score) == (subject, SPACE_HARM_SCORES[0]))
    worst = float((-harm.score.better * harm.by_setting).max())
    statement = (
        f"{subject} is no worse for {space.incumbent} than {space.incumbent} itself in "
        f"{share_of(good)} of {len(good)} settings: in throughput, delay and losses, within "
        f"{MARGIN_PERCENT:g} points"
    )
    if len(chance):
        statement += (
            f"; by chance, as a second seed of {space.incumbent} shows, in {share_of(chance)}"
        )
    if prior := prior_words(harm.by_setting):
        statement += f". Settings are drawn evenly from {prior}: not as often as networks have them"
    much = f"{abs(worst):.0f} points {'more' if worst >= 0 else 'less'} harm to throughput"
    return f"{statement}. Worst, with {much}: {harm.worst}."


def prior_words(of: pd.Series[float]) -> str:
    """Say from which ranges the numbers of settings were drawn, unless one was the same in all."""
    values = {name: of.index.get_level_values(name) for name in map(str, of.index.names)}
    ranges = {
        axis.name: f"{axis.low:g} to {axis.high:g}"
        for axis in SPACE_AXES
        if isinstance(axis, NumberRange) and len(set(values.get(AXIS + axis.name, ()))) > 1
    }
    return f"{cases.case_words(ranges)} (by the logarithm)" if ranges else ""


def space_conclusion(results: ExperimentResults, subject: str) -> str:
    """Say how often a subject is no worse for the incumbent than itself, and where it is worst."""
    space = space_results(results)
    if space is None or subject not in space.subjects:
        return ""
    return sentence(space, space_effects(space), subject)


def space_summary(results: ExperimentResults) -> TextTable:
    """Tabulate the effects for the terminal, with the sentences below them."""
    space = space_results(results)
    if space is None:
        return TextTable(SPACE_HEADS, (), NOTHING_DRAWN)
    effects = space_effects(space)
    rows = tuple(_rows(space, effects))
    sentences = (sentence(space, effects, subject) for subject in space.subjects)
    return TextTable(SPACE_HEADS, rows, " ".join((*sentences, SPACE_NOTE)))


def space_tables(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Tabulate the effects, the worst parts of the space, and the worst settings."""
    if (space := space_results(results)) is None:
        return
    effects = space_effects(space)
    yield f"Effects beside {space.incumbent}", as_sheet(SPACE_HEADS, _rows(space, effects))
    yield "Worst parts of the space", _worst_cells(space, effects)
    yield "Worst settings", _worst_settings(space, effects)


def _rows(space: SpaceResults, effects: Sequence[SpaceEffect]) -> Iterator[tuple[str, ...]]:
    chance = {each.score: each for each in effects if each.subject == space.incumbent}
    for each in effects:
        if each.subject == space.incumbent:
            continue
        yield (
            each.subject,
            each.score.words,
            _effect_words(each),
            str(share_of(each.loses)),
            str(share_of(chance[each.score].loses)) if each.score in chance else "–",
            _deciding_words(each),
        )


def _effect_words(each: SpaceEffect) -> str:
    effect = each.found
    ends = f" ({effect.low:.1f} … {effect.high:.1f})" if math.isfinite(effect.low) else ""
    return f"{effect.difference:+.1f}{ends}{'*' if each.is_discovery else ''}"


def _deciding_words(each: SpaceEffect) -> str:
    """Name the two axes that explain most: `flows 34 %, rate 12 %`."""
    parts = [(name, part) for name, part in deciding(each).items() if part >= 1][:2]
    return ", ".join(f"{name.split('_')[0]} {part:.0f} %" for name, part in parts) or "none"


def _worst_cells(space: SpaceResults, effects: Sequence[SpaceEffect]) -> Sheet:
    """Tabulate the worst cell of each score, of those whose effect is significant."""
    heads = ("variant", "score", "where", "settings", "effect")
    rows = []
    for effect, cells in corrected_cells(_of_subjects(space, effects)):
        bad = [
            c for c in cells if c.p < SPACE_LEVEL and c.found.difference * effect.score.better < 0
        ]
        if not bad:
            continue
        worst = min(bad, key=lambda cell: cell.found.difference * effect.score.better)
        where = _cell_words(effect, worst)
        number = f"{worst.found.difference:+.1f}"
        texts = (effect.subject, effect.score.words, where, str(worst.settings), number)
        rows.append(texts)
    return as_sheet(heads, rows)


def _of_subjects(space: SpaceResults, effects: Sequence[SpaceEffect]) -> list[SpaceEffect]:
    return [each for each in effects if each.subject in space.subjects]


def _cell_words(effect: SpaceEffect, cell: SpaceCell) -> str:
    frame = effect.by_setting.reset_index()
    parts = []
    for axis, place in zip(cell.axes, cell.place, strict=True):
        label = bins_of(frame[AXIS + axis])[1][place]
        parts.append(cases.case_words({axis: label}))
    return ", ".join(parts)


WORST_SETTINGS = 3


def _worst_settings(space: SpaceResults, effects: Sequence[SpaceEffect]) -> Sheet:
    """Tabulate the settings with the worst effects of each score."""
    heads = ("variant", "score", "effect", "setting")
    rows = []
    for each in _of_subjects(space, effects):
        losses = -each.score.better * each.by_setting
        for place, loss in losses.nlargest(WORST_SETTINGS).items():
            value = f"{-each.score.better * loss:+.1f}"
            texts = (each.subject, each.score.words, value, in_words(place, losses))
            rows.append(texts)
    return as_sheet(heads, rows)


def space_figures(results: ExperimentResults) -> Iterator[Figure]:
    """Draw the paired effects of each variant over rate and round trip, and buffer and flows."""
    if (space := space_results(results)) is None:
        return
    effects = space_effects(space)
    with_cells = corrected_cells(_of_subjects(space, effects))
    for subject in space.subjects:
        of_subject = [
            (e, c) for e, c in with_cells if e.subject == subject and e.score in MAPPED_SCORES
        ]
        if not any(cells for _, cells in of_subject):
            continue
        settings = len(of_subject[0][0].by_setting)
        panels = [
            [_map(effect, cells, axes, first=n == 0, top=axes is CELL_AXES[0])
             for n, (effect, cells) in enumerate(of_subject)]
            for axes in CELL_AXES
        ]  # fmt: skip
        yield Figure(
            stem=cases.stem(results.key, subject, "effects"),
            title=f"{subject} less {space.incumbent} in drawn settings, in percentage points",
            panels=panels,
            caption=sentence(space, effects, subject),
            reading="Means of the settings in a cell, blank where there are fewer than "
            f"{MIN_IN_A_CELL}: orange is worse than the incumbent, blue is better; a star is "
            f"significant at {SPACE_LEVEL:g} among all cells (Benjamini and Hochberg).",
            foot=f"{settings} settings · engine {results.engine}",
            row_inches=1.6,
            data=_data(of_subject),
            static=True,
        )


def _data(with_cells: Sequence[tuple[SpaceEffect, Sequence[SpaceCell]]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "score": effect.score.name,
            "where": _cell_words(effect, cell),
            "settings": cell.settings,
            "effect": cell.found.difference,
            "low": cell.found.low,
            "high": cell.found.high,
            "p": cell.p,
        }
        for effect, cells in with_cells
        for cell in cells
    )


def _map(
    effect: SpaceEffect,
    cells: Sequence[SpaceCell],
    axes: tuple[str, str],
    *,
    first: bool,
    top: bool,
) -> Panel:
    """Return a map of mean effects over two axes."""
    frame = effect.by_setting.reset_index()
    x_words, y_words = (bins_of(frame[AXIS + name])[1] for name in axes)
    axis_cells = [cell for cell in cells if cell.axes == axes]
    x = [float(cell.place[0]) for cell in axis_cells]
    y = [float(cell.place[1]) for cell in axis_cells]
    parts = [cell.found.difference * effect.score.better for cell in axis_cells]
    shades = [min(1.0, abs(part) / FULL_COLOUR_PERCENT) for part in parts]
    box = Boxes(
        [value - 0.5 for value in x],
        [value + 0.5 for value in x],
        [value - 0.5 for value in y],
        [value + 0.5 for value in y],
        [style.VERMILLION if part < 0 else style.BLUE for part in parts],
        shades,
        texts=[f"{c.found.difference:+z.0f}{'*' if c.p < SPACE_LEVEL else ''}" for c in axis_cells],
        text_colours=["#ffffff" if shade == 1 else style.BLACK for shade in shades],
    )
    return Panel(
        (box,),
        Axis(_axis_words(axes[0]), names=x_words, rotation=45, grid=False),
        Axis(_axis_words(axes[1]) if first else "", names=y_words, names_shown=first, grid=False),
        title=effect.score.words if top else "",
        empty="" if axis_cells else "too few settings",
    )


def _axis_words(name: str) -> str:
    return {"rate_mbit": "rate (Mbit/s)", "rtt_ms": "round trip (ms)",
            "buffer_bdp": "buffer (BDP)", "flows": "flows"}[name]  # fmt: skip
