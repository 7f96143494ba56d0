"""`testbed report`: a trial in figures and checks, several side by side, or results as a page."""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from testbed.bundles.opened import folders_of, is_bundle
from testbed.cli.run_output import collected, print_figures, print_warnings
from testbed.errors import UsageError
from testbed.machine.atomic import replace
from testbed.runs.console import console, wide_console
from testbed.runs.progress import after_a_while
from testbed.store.names import FIGURES, REPORT
from testbed.store.reading import Trial, is_program_run, is_trial, open_trial
from testbed.store.records import FlowRecord
from testbed.store.writing import spreadsheet_cell, spreadsheet_frame

if TYPE_CHECKING:
    from analysis.claims.ledger import Answer
    from analysis.figures.figure import Figure
    from analysis.statistics.text_tables import TextTable


PAGE_STYLE, PAPER_STYLE = "page", "paper"


def report(options: argparse.Namespace) -> int:
    """Run `testbed report`."""
    first, folders = options.results[0], [f for path in options.results for f in folders_of(path)]
    if is_bundle(first) and not options.out:  # beside it: it is unpacked for a moment only
        end = FIGURES if options.style == PAPER_STYLE else REPORT
        options.out = first.with_name(f"{first.stem}-{end}")
    options.results = folders
    if any(is_program_run(path) for path in options.results):
        return _report_program(options)
    trials = [path for path in options.results if is_trial(path)]
    if not trials:
        return _report_results(options)
    if options.single_file:
        raise UsageError(
            f"--single-file: {trials[0]} is a trial, whose page is one file in any case",
            "name results folders, or leave it out",
        )
    if len(trials) < len(options.results):
        other = next(path for path in options.results if path not in trials)
        raise UsageError(
            f"{other}: not a trial, as {trials[0]} is",
            "name one trial, several trials to see them side by side, or results folders",
        )
    if len(trials) > 1:
        return _compare_trials(options, [open_trial(path) for path in trials])
    return _report_trial(options, open_trial(trials[0]))


def _report_program(options: argparse.Namespace) -> int:
    """Write the page of a whole program's run."""
    from analysis.report.program_page import write_program_page

    _refuse_span(options)
    if len(options.results) > 1:
        raise UsageError(f"{options.results[0]}: one run of a program at a time", "name one folder")
    if options.claims or options.single_file or options.reference or options.style != PAGE_STYLE:
        raise UsageError(
            f"{options.results[0]}: a program's run has one page, which is one file",
            "leave out all options but --out",
        )
    [folder] = options.results
    page = write_program_page(folder, options.out or folder / REPORT)
    console.print(f"report: {page}", soft_wrap=True)
    return 0


def _report_results(options: argparse.Namespace) -> int:
    """Write one page about one or several results folders."""
    from analysis.claims.ledger import answers_of
    from analysis.report import make_report
    from analysis.report.make import compared

    _refuse_span(options)
    if options.style == PAPER_STYLE:
        return _save_for_paper(options)
    if options.reference is not None and not any(options.reference.glob("*.csv")):
        raise UsageError(
            f"--reference {options.reference}: no folder with CSV files",
            "name a folder of ns-2's numbers, or leave it out",
        )
    if options.reference and not options.claims:
        raise UsageError("--reference is printed beside the claims", "add --claims")
    results = collected(options.results, options)
    answers = answers_of(results, options.reference) if options.claims else ()
    both = compared(*options.results) if len(options.results) == 2 else None
    out = options.out or options.results[0] / REPORT
    [page] = after_a_while(
        "drawing the page",
        (make_report(each, out, answers, both, options.single_file) for each in [results]),
    )
    print_warnings(results.not_shown)
    if answers and not options.single_file:
        _write_ledger(page, answers)
    _say_counts(answers)
    for line in both.closing if both else ():
        console.print(line, soft_wrap=True)
    console.print(f"report: {page}", soft_wrap=True)
    return 0


def _save_for_paper(options: argparse.Namespace) -> int:
    """Write every figure of the results in the style of papers."""
    from analysis.figures.general.presentation import figures, for_paper
    from analysis.figures.static_renderer import save_pdf

    if options.claims or options.single_file or options.reference:
        raise UsageError("--style paper writes figures, not a page", "leave out the other options")
    folder = options.out or options.results[0] / FIGURES
    for results in collected(options.results, options).experiments:
        print_figures((save_pdf(for_paper(each), folder)[0] for each in figures(results)), ".csv")
        print_warnings(results.not_shown)
    return 0


def _write_ledger(page: Path, answers: Sequence[Answer]) -> None:
    """Write the claims and their numbers as files beside the page."""
    from analysis.claims import ledger

    stem = page.with_name(f"{page.stem}-claims")
    replace(stem.with_suffix(".json"), lambda p: p.write_text(ledger.ledger_json(answers)))
    table = spreadsheet_frame(ledger.ledger_frame(answers))
    replace(stem.with_suffix(".csv"), lambda p: table.to_csv(p, index=False))
    numbers = spreadsheet_frame(ledger.numbers_frame(answers))
    aside = page.with_name(f"{page.stem}-claims-numbers.csv")
    replace(aside, lambda p: numbers.to_csv(p, index=False))


def _say_counts(answers: Sequence[Answer]) -> None:
    counts = Counter(str(each.verdict) for each in answers)
    summary = ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())
    if summary:
        console.print(f"claims: {summary}")


def _report_trial(options: argparse.Namespace, trial: Trial) -> int:
    """Print a trial's verdict and the checks that decide it, and draw its flow's figures."""
    from analysis.captures.inspection import flow_record
    from analysis.figures.general.presentation import for_paper
    from analysis.figures.static_renderer import save, save_pdf
    from analysis.report.trial_page import write_trial_page

    flow = flow_record(trial, options.flow)
    _print_checks(trial)
    folder = options.out or trial.path / FIGURES
    drawn = _figures(trial, flow, options.start, options.stop)
    if options.style == PAPER_STYLE:
        print_figures((save_pdf(for_paper(figure), folder)[0] for figure in drawn), ".csv")
        return 0
    pictures = print_figures(save(figure, folder)[0] for figure in drawn)
    files = [each.with_suffix(end) for each in pictures for end in (".png", ".svg", ".csv")]
    page = write_trial_page(trial, flow, folder, files)
    console.print(f"report: {page}", soft_wrap=True)
    return 0


def _compare_trials(options: argparse.Namespace, trials: Sequence[Trial]) -> int:
    """Print the trials' checks side by side: what was measured, and what was expected."""
    from analysis.report.verdict_tables import side_by_side

    _refuse_span(options)
    if options.style == PAPER_STYLE:
        raise UsageError("--style paper: several trials have no figure", "name one trial, or a run")
    shown = side_by_side(trials)
    if options.out:
        replace(options.out, lambda path: _write_csv(path, (shown.header, *shown.rows)))
        console.print(options.out, soft_wrap=True)
    else:
        wide_console().print(_rich_table(shown))
    console.print(f"verdicts: {shown.note or 'none ran'}")
    return 0


def _refuse_span(options: argparse.Namespace) -> None:
    """Raise for options that choose a flow or a span of one trial."""
    if options.flow or options.start is not None or options.stop is not None:
        raise UsageError(
            "--flow, --from and --to apply to a single trial", "name one, or leave them out"
        )


def _write_csv(path: Path, rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([map(spreadsheet_cell, row) for row in rows])


def _print_checks(trial: Trial) -> None:
    from analysis.report.verdict_tables import checks_table
    from analysis.results.reduction import verdict_of

    verdict = verdict_of(trial)
    if verdict is None:
        reason = trial.record.reason or "its verdict is lost, as are its captures: run it again"
        console.print(f"{trial.record.status}: {reason}")
        return
    shown = checks_table(verdict, with_valid=False)
    console.print(f"verdict: {verdict.verdict} ({shown.note}; the page has all checks)")
    if shown.rows:
        console.print(_rich_table(shown))


def _rich_table(shown: TextTable) -> Table:
    table = Table(*shown.header, box=None)
    for column in table.columns:
        column.overflow = "fold"
        column.no_wrap = column.header == "of"  # names of interfaces differ at their ends
    for row in shown.rows:
        table.add_row(*row)
    return table


def _figures(
    trial: Trial, flow: FlowRecord, start_s: float | None, stop_s: float | None
) -> Iterator[Figure]:
    """Yield the flow's timeline, and for TCP its time-sequence diagram."""
    from analysis.figures.time_sequence import sequence_figure
    from analysis.figures.timeline import timeline_figure
    from analysis.figures.timeline.timeline_data import flow_span
    from analysis.figures.timeline.timeline_text import stem

    whole, asked = flow_span(flow, None, None), flow_span(flow, start_s, stop_s)
    name = stem(flow, start_s, stop_s)
    yield timeline_figure.checked(trial, flow, asked, f"{name}-timeline")
    one = flow.protocol == "tcp" and not flow.has_many_connections
    if one and trial.capture(f"sender:{flow.name}"):
        near = None if start_s is None and stop_s is None else asked
        yield sequence_figure.figure(trial, flow, whole, near, f"{name}-sequence")
