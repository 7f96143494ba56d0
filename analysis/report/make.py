"""Writes the page of collected results, with its figures beside it or in it."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from analysis.claims.ledger import Answer
from analysis.figures import static_renderer
from analysis.figures.figure import Figure
from analysis.figures.general import presentation
from analysis.figures.sheet import as_sheet
from analysis.report import (
    claims_section,
    facts,
    listing,
    network_drawing,
    page,
    verdict_tables,
)
from analysis.report.overlay import Overlay, overlay
from analysis.results.experiment_results import ExperimentResults, ResultSet
from analysis.statistics.comparison import compare_results, in_common
from analysis.statistics.comparison_table import closing_lines, report_table
from analysis.statistics.tolerances import choose_tolerances
from testbed.machine.atomic import replace, workplace
from testbed.machine.safe_files import make_folder

FIGURE_COLOURS = 32  # of a PNG in a single file: letters with their soft edges, and a dozen inks
MAX_PLAIN_BYTES = 16_000  # of a file in a single file; longer ones are compressed
MEDIA = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv"}


def make_report(
    result_set: ResultSet,
    out: Path,
    answers: Sequence[Answer] = (),
    compared: page.Compared | None = None,
    single: bool = False,
    standings: page.Standings | None = None,
) -> Path:
    """Write the page of what was collected to `out`.

    Its figures are in `STEM-figures/` and its trials' series in `STEM-series/` beside it.
    `answers` is the ledger of claims; without any the page has none. `compared` has the
    differences between two folders, `standings` the summary of an evaluation; a suite of test cases
    has its steps there. A `single` file has everything in it and nothing beside it.
    """
    with _folder(out, single) as folder:
        parts = [_part(results, folder, out, single) for results in result_set.experiments]
    laid = overlay(result_set.experiments, None if single else out.with_name(f"{out.stem}-series"))
    first = (standings,) if standings else tuple(_suites_steps(result_set))
    text = page.render(_whole(result_set, parts, answers, compared, laid, first))
    replace(out, lambda path: path.write_text(text, encoding="utf-8"))
    return out


def _suites_steps(result_set: ResultSet) -> Iterator[page.Standings]:
    """Yield the steps of each suite of test cases, with the number of those that are met."""
    for results in result_set.experiments:
        if (suite := results.definition) and suite.is_suite and suite.summary:
            steps = suite.summary(results)
            yield page.Standings(suite.paper, (steps.note,), as_sheet(steps.header, steps.rows), "")


@contextlib.contextmanager
def _folder(out: Path, single: bool) -> Iterator[Path]:
    """Where the figures' files go; those of a single file only for as long as it is made."""
    make_folder(out.parent)
    if single:
        with workplace("report") as folder:
            yield folder
    else:
        folder = out.with_name(f"{out.stem}-figures")
        make_folder(folder)
        yield folder


def _part(results: ExperimentResults, folder: Path, out: Path, single: bool) -> page.PagePart:
    """Return what the page shows of an experiment on an engine."""
    numbers = dict(zip(results.rows["trial"], results.rows["number"].map(int), strict=True))
    drawn = presentation.figures(results)
    figures = tuple(_shown(figure, folder, numbers, single) for figure in drawn)
    return page.PagePart(
        key=results.key,
        name=results.experiment,
        engine=results.engine,
        folder=results.folder,
        lead=facts.lead(results.trials),
        network=network_drawing.drawing([trial.scenario for trial in results.trials]),
        axes=tuple(facts.axes(results)),
        settings=tuple(facts.settings(results.trials)),
        command=facts.command(results),
        command_note=facts.command_note(results),
        figures=figures,
        tables=tuple(presentation.tables(results)),
        cells=listing.cells(results),
        trials=tuple(listing.trials(results, None if single else out)),
        statuses=listing.statuses(results),
        verdicts=listing.verdicts(results),
        doubts=tuple(listing.doubts(results)),
        has_repeats=results.rows["seed"].nunique() > 1,
    )


def _shown(figure: Figure, folder: Path, numbers: Mapping[str, int], single: bool) -> page.Shown:
    """Save the figure, and show it with links to its files."""
    saved = static_renderer.save(figure, folder)
    return page.shown(figure, folder, numbers, [_file(path, single) for path in saved])


def _file(path: Path, single: bool) -> tuple[str, str]:
    """Return a file's kind and its address: in a single file the file itself."""
    kind = path.suffix.removeprefix(".")
    if not single:
        return kind, quote(f"{path.parent.name}/{path.name}")
    content, media = path.read_bytes(), MEDIA[kind]
    if kind == "png":
        content = _with_few_colours(content)
    elif len(content) > MAX_PLAIN_BYTES:
        kind, media, content = f"{kind}.gz", "application/gzip", gzip.compress(content, mtime=0)
    return kind, f"data:{media};base64,{base64.b64encode(content).decode()}"


def _with_few_colours(png: bytes) -> bytes:
    """Return a figure's PNG with a palette: a third of the size, with no visible difference."""
    from PIL import Image  # matplotlib brings it

    packed = io.BytesIO()
    few = Image.open(io.BytesIO(png)).convert("RGB").quantize(FIGURE_COLOURS)
    few.save(packed, "png", optimize=True)
    return packed.getvalue()


def _whole(
    results: ResultSet,
    parts: Sequence[page.PagePart],
    answers: Sequence[Answer],
    compared: page.Compared | None,
    laid: Overlay | None,
    standings: tuple[page.Standings, ...],
) -> page.Page:
    numbers = {trial.path.name: place for place, trial in enumerate(results.trials, start=1)}
    stems = [figure.stem for part in parts for figure in part.figures]
    return page.Page(
        parts=tuple(parts),
        papers=claims_section.papers(answers, numbers, stems),
        ledger_note=claims_section.ledger_note(answers),
        counts=claims_section.counts(answers),
        checks=verdict_tables.checks_sheet(results.grades),
        warnings=(*results.warnings, *results.not_shown),
        again=len(results.again),
        compared=compared,
        overlay=laid,
        standings=standings,
    )


def compared(first: Path, second: Path) -> page.Compared | None:
    """Compare two folders by the usual tolerances; None if no scenario is in both."""
    if not in_common(first, second):
        return None
    report = compare_results(first, second, choose_tolerances("", []))
    shown = report_table(report, everything=False)
    sheet, closing = as_sheet(shown.header, shown.rows), tuple(closing_lines(report))
    return page.Compared(str(first), str(second), sheet, shown.note, closing)
