"""The page: what its template is given, and the template with its style and script filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.figures.plotting.sheet import Sheet
from analysis.metrics.columns import METRICS
from analysis.report.claims_section import Paper
from analysis.report.comparison_section import Compared
from analysis.report.listing import Listed

TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True)
class Shown:
    """A figure: its element, and the folder that has it as files."""

    stem: str
    caption: str  # what is to be seen
    reading: str  # how to read it
    element: str
    folder: str


@dataclass(frozen=True)
class Part:
    """An experiment on an engine, as the page shows it."""

    key: str
    name: str
    engine: str
    folder: str  # where two folders have trials of the same names
    network: str
    axes: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    command: str
    command_note: str
    figures: tuple[Shown, ...]
    tables: tuple[tuple[str, Sheet], ...]  # in their papers' form
    cells: Sheet
    trials: tuple[Listed, ...]
    statuses: Mapping[str, int]
    verdicts: Mapping[str, int]
    doubts: tuple[tuple[str, int, str, str], ...]


@dataclass(frozen=True)
class Page:
    """Everything on the page."""

    parts: tuple[Part, ...]
    papers: tuple[Paper, ...]
    ledger_note: str
    counts: Mapping[str, int]
    checks: Sheet
    warnings: tuple[str, ...]
    again: int  # trials that lay in more than one folder
    compared: Compared | None = None


def render(page: Page) -> str:
    """The HTML, whole."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("page.html").render(
        page=page,
        metrics=[metric for metric in METRICS if metric.unit or metric.count],
        style=Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
        script=Markup((TEMPLATES / "page.js").read_text(encoding="utf-8")),
        raw=Markup,
    )
