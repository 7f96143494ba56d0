"""Writes the page of collected results, and its figures beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.figures import figure_catalogue
from analysis.figures.plotting.figure_contents import contents
from analysis.figures.plotting.named_figure import NamedFigure
from analysis.report import (
    checks_section,
    claims_section,
    comparison_section,
    facts,
    inline,
    listing,
    network_drawing,
    page,
)
from analysis.report.claims_section import Answer
from analysis.report.plot_data import plot_json
from analysis.results.material import Collection, Material
from testbed.machine.atomic import replace
from testbed.machine.safe_files import make_folder


def make_report(
    found: Collection,
    out: Path,
    answers: Sequence[Answer] = (),
    compared: comparison_section.Compared | None = None,
) -> Path:
    """Write the page of what was collected to `out`, its figures beside it in `STEM-figures/`.

    `answers` is the ledger of claims; without any the page has none. `compared` has the
    differences between two folders.
    """
    folder = out.with_name(f"{out.stem}-figures")
    make_folder(folder)
    parts = [_part(material, folder, out) for material in found.materials]
    text = page.render(_whole(found, parts, answers, compared))
    replace(out, lambda path: path.write_text(text, encoding="utf-8"))
    return out


def _part(material: Material, folder: Path, out: Path) -> page.Part:
    """An experiment on an engine."""
    numbers = dict(zip(material.rows["trial"], material.rows["number"].map(int), strict=True))
    found = figure_catalogue.figures(material)
    figures = tuple(_shown(figure, folder, numbers) for figure in found)
    return page.Part(
        key=material.key,
        name=material.experiment,
        engine=material.engine,
        folder=material.folder,
        network=network_drawing.drawing([trial.scenario for trial in material.trials]),
        axes=tuple(facts.axes(material)),
        settings=tuple(facts.settings(material.trials)),
        command=facts.command(material),
        command_note=facts.command_note(material),
        figures=figures,
        tables=tuple(figure_catalogue.tables(material)),
        cells=listing.cells(material),
        trials=tuple(listing.trials(material, out)),
        statuses=listing.statuses(material),
        verdicts=listing.verdicts(material),
        doubts=tuple(listing.doubts(material)),
    )


def _shown(figure: NamedFigure, folder: Path, numbers: Mapping[str, int]) -> page.Shown:
    """Save the figure, and make it an element of the page, and data for the page's own plot."""
    _, svg, _ = figure.save(folder)
    element = inline.element(svg.read_text(encoding="utf-8"), figure.stem, figure.caption)
    found = contents(figure.figure)
    name = f"{figure.caption} Arrow keys go from point to point."
    data = plot_json(found, name, numbers) if found else ""
    return page.Shown(figure.stem, figure.caption, figure.reading, element, folder.name, data)


def _whole(
    found: Collection,
    parts: Sequence[page.Part],
    answers: Sequence[Answer],
    compared: comparison_section.Compared | None,
) -> page.Page:
    numbers = {trial.path.name: place for place, trial in enumerate(found.trials, start=1)}
    stems = [figure.stem for part in parts for figure in part.figures]
    return page.Page(
        parts=tuple(parts),
        papers=claims_section.papers(answers, numbers, stems),
        ledger_note=claims_section.ledger_note(answers),
        counts=claims_section.counts(answers),
        checks=checks_section.checks(found.trials),
        warnings=found.warnings,
        again=len(found.again),
        compared=compared,
    )
