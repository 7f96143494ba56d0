"""The page of one trial: its flows on one time axis, its checks, commands and files."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np

from analysis.captures.inspection import View, flow_filter
from analysis.figures.figure import Figure
from analysis.figures.time_sequence.sequence_data import sequence
from analysis.figures.time_sequence.sequence_figure import legend, page_panel
from analysis.figures.timeline.timeline_data import Timeline, flow_span, timeline
from analysis.figures.timeline.timeline_events import RESENT, Kind
from analysis.figures.timeline.timeline_figure import drawn
from analysis.report import inline, page, page_plot
from analysis.report.facts import lead, settings
from analysis.report.verdict_tables import CHECK_HEADER, checks_table
from analysis.results.page_series import packed
from analysis.results.reduction import verdict_of
from analysis.results.tables import transfers_of
from analysis.statistics.text_tables import TextTable, transfers_summary
from analysis.trials.packets import TrialPackets
from testbed.machine import safe_files
from testbed.machine.atomic import replace
from testbed.store.names import COMMANDS, TRIAL_PAGE, WATCH_PAGE
from testbed.store.reading import Trial, again
from testbed.store.records import FlowRecord

SEGMENTS_INCHES = 2.7  # of the panel of packets
MAX_PLOTTED_FLOWS = 8  # that are plotted; `--flow` draws any other
MAX_LOG = 400_000  # letters of the commands' log in the page; the file has all


@dataclass(frozen=True)
class Plotted:
    """A flow's plot, and how Wireshark opens its packets at the sender."""

    name: str
    data: str
    wireshark: str  # JSON: the file's name, the flow's filter, the command without its filter


@dataclass(frozen=True)
class Static:
    """A figure for print."""

    caption: str
    element: str


@dataclass(frozen=True)
class Download:
    """A file of the trial."""

    name: str
    link: str
    size: str


@dataclass(frozen=True)
class TrialPage:
    """Everything on the page."""

    name: str
    experiment: str
    label: str
    lead: str
    status: str
    reason: str
    verdict: str
    why: str
    facts: tuple[tuple[str, str], ...]
    flows: tuple[Plotted, ...]
    figures: tuple[Static, ...]
    checks: TextTable | None
    commands: str
    again: str
    downloads: tuple[Download, ...]
    transfers: TextTable | None = None  # of workloads, by size
    watch: str = ""  # the page on which its packets move; empty: it has not been made
    graded: int = CHECK_HEADER.index("verdict")  # the column of the checks


def write_trial_page(
    trial: Trial, first: FlowRecord, folder: Path, figures: Sequence[Path]
) -> Path:
    """Write the page beside the static figures, which it has for those without scripts.

    The `first` flow is the one that is shown until another is chosen.
    """
    out = folder / TRIAL_PAGE
    verdict = verdict_of(trial)
    trial_page = TrialPage(
        name=trial.path.name,
        experiment=trial.scenario.experiment,
        label=trial.scenario.label or trial.scenario.experiment,
        lead=lead([trial]),
        status=str(trial.record.status),
        reason=trial.record.reason,
        verdict=str(verdict.verdict) if verdict else "",
        why=verdict.why if verdict else "",
        facts=tuple(settings([trial])),
        flows=tuple(_plots(trial, first)),
        figures=tuple(_static(path) for path in figures if path.suffix == ".svg"),
        checks=checks_table(verdict) if verdict else None,
        commands=_commands(trial),
        again=again(trial.path),
        downloads=tuple(downloads(trial.path, out)),
        transfers=_transfers(trial),
        watch=WATCH_PAGE if (folder / WATCH_PAGE).is_file() else "",
    )
    text = page.fill("trial_page.html", (*page.SHARED, "trial.js"), trial=trial_page)
    replace(out, lambda path: path.write_text(text, encoding="utf-8"))
    return out


def _plots(trial: Trial, first: FlowRecord) -> Iterator[Plotted]:
    others = (flow for flow in trial.record.flows if flow is not first)
    for flow in (first, *itertools.islice(others, MAX_PLOTTED_FLOWS - 1)):
        history = timeline(trial, flow, flow_span(flow, None, None))
        figure = drawn(trial, flow, history)
        if figure is not None:
            yield _plotted(trial, flow, history, _with_segments(trial, flow, figure))


def _with_segments(trial: Trial, flow: FlowRecord, figure: Figure) -> Figure:
    """Add the flow's packets below its timeline, if its one connection was captured."""
    inches = (*_inches(figure), SEGMENTS_INCHES)
    figure = dataclasses.replace(figure, title="", subtitle="", warning="", foot="")
    sent = TrialPackets(trial).flow("sender", flow)
    if flow.protocol != "tcp" or flow.has_many_connections or sent is None:
        return figure
    steps = sequence(trial, flow)
    if not len(steps.new) or not len(steps.ack):
        return figure
    (lanes,) = figure.panels[-1]
    assert lanes is not None
    panel = page_panel(steps)
    time_axis = dataclasses.replace(lanes.x, label="time (s)")
    rest = dataclasses.replace(lanes, x=dataclasses.replace(lanes.x, label="", names_shown=False))
    panels = (*figure.panels[:-1], (rest,), (dataclasses.replace(panel, x=time_axis),))
    return dataclasses.replace(
        figure, panels=panels, row_inches=inches, legend=tuple(legend(steps))
    )


def _inches(figure: Figure) -> Sequence[float]:
    heights = figure.row_inches
    return [heights] if isinstance(heights, float | int) else heights


def _plotted(trial: Trial, flow: FlowRecord, history: Timeline, figure: Figure) -> Plotted:
    name = f"Flow {flow.name} over time. Arrow keys go from point to point, plus and minus zoom."
    troubles = [history.events[kind] for kind in (Kind.DROP, *RESENT) if kind in history.events]
    times = np.unique(np.concatenate(troubles)) if troubles else np.zeros(0)
    spec = {**page_plot.plot(figure, name, {}), "troubles": packed(times)}
    capture = trial.capture(f"sender:{flow.name}")
    known = {}
    if capture is not None:
        known = {
            "file": os.fspath(capture.relative_to(trial.path)),
            "flow": flow_filter(flow),
            "command": shlex.join(View(capture).command),
        }
    return Plotted(flow.name, page_plot.script_json(spec), page_plot.script_json(known))


def _transfers(trial: Trial) -> TextTable | None:
    """Return the trial's transfers by size, if it has workloads."""
    rows = transfers_of([trial])
    return transfers_summary(rows) if len(rows) else None


def _static(path: Path) -> Static:
    text = path.read_text(encoding="utf-8")
    return Static(path.stem, inline.element(text, path.stem, path.stem))


def _commands(trial: Trial) -> str:
    if COMMANDS not in trial.record.files:
        return ""
    if fault := trial.file_fault(COMMANDS):
        return f"{COMMANDS}: {fault}"
    return safe_files.head(trial.path / COMMANDS, MAX_LOG)


def downloads(folder: Path, out: Path) -> Iterator[Download]:
    """Yield the files of a folder, linked from a page; not the page, nor what is beside it."""
    page_folder = out.resolve().parent
    left_out = page_folder if page_folder != folder.resolve() else out.resolve()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and left_out not in (path.resolve(), *path.resolve().parents):
            link = quote(os.path.relpath(path.resolve(), page_folder))
            yield Download(os.fspath(path.relative_to(folder)), link, _size(path))


def _size(path: Path) -> str:
    size = float(path.stat().st_size)
    for unit in ("bytes", "kB", "MB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
