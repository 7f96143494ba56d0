"""The page: what its template is given, and the template with its style and script filled in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.figures.figure import Figure
from analysis.figures.sheet import Sheet
from analysis.metrics.columns import ALL_METRICS
from analysis.report import inline
from analysis.report.claims_section import LedgerPaper
from analysis.report.listing import Listed
from analysis.report.overlay import Overlay
from analysis.report.page_plot import plot_json

TEMPLATES = Path(__file__).with_name("templates")
PLOTS = ("vendor/uplot/uPlot.iife.min.js", "plot.js")
SHARED = (*PLOTS, "tables.js")
STYLES = ("vendor/uplot/uPlot.min.css", "page.css")


@dataclass(frozen=True)
class Shown:
    """A figure: its element, and links to it as files: their kinds and addresses."""

    stem: str
    finding: str  # a sentence: the figure's title, or the caption of one whose title is a name
    caption: str  # what is to be seen
    reading: str  # how to read it
    element: str
    files: tuple[tuple[str, str], ...]
    data: str = ""  # for the page's own plot; none where only the element can show all of it


def shown(
    figure: Figure,
    folder: Path,
    numbers: Mapping[str, int],
    files: Sequence[tuple[str, str]] = (),
) -> Shown:
    """Make a figure that was saved in a folder an element, and data for the page's own plot.

    `numbers` are those of the page's trials.
    """
    svg = (folder / f"{figure.stem}.svg").read_text(encoding="utf-8")
    finding = figure.title if figure.title.endswith(".") else figure.caption
    seen = figure.caption or finding
    element = inline.element(svg, figure.stem, seen)
    data = ""
    if not figure.static:
        data = plot_json(figure, f"{seen} Arrow keys go from point to point.", numbers)
    return Shown(figure.stem, finding, figure.caption, figure.reading, element, tuple(files), data)


@dataclass(frozen=True)
class PagePart:
    """An experiment on an engine, as the page shows it."""

    key: str
    name: str
    engine: str
    folder: str  # where two folders have trials of the same names
    lead: str  # what was run, in a sentence
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
    has_repeats: bool  # of a setting: only then there are intervals


@dataclass(frozen=True)
class Compared:
    """Two folders, the lines of their comparison, and what came of it."""

    a: str
    b: str
    sheet: Sheet
    note: str
    closing: tuple[str, ...]


@dataclass(frozen=True)
class Standings:
    """The beginning of a page: an evaluation's outcome, or the steps of a suite."""

    title: str
    conclusions: tuple[str, ...]
    sheet: Sheet
    note: str


@dataclass(frozen=True)
class Page:
    """Everything on the page."""

    parts: tuple[PagePart, ...]
    papers: tuple[LedgerPaper, ...]
    ledger_note: str
    counts: Mapping[str, int]
    checks: Sheet
    warnings: tuple[str, ...]
    again: int  # trials that lay in more than one folder
    compared: Compared | None = None
    overlay: Overlay | None = None  # of any two trials
    standings: tuple[Standings, ...] = ()

    @property
    def profiles(self) -> list[str]:
        """The profiles that the answers are about."""
        profiles = (entry.answer.profile for paper in self.papers for entry in paper.entries)
        return sorted(set(filter(None, profiles)))


def render(page: Page) -> str:
    """Return the page's HTML."""
    metrics = [metric for metric in ALL_METRICS if metric.unit or metric.count]
    scripts = (*SHARED, "figures.js", "page.js", "overlay.js")
    return fill("page.html", scripts, page=page, metrics=metrics)


def fill(template: str, scripts: Sequence[str], allowed: str = "", **values: object) -> str:
    """Fill a template with its style and scripts, and a policy that lets only `allowed` in.

    Every value is escaped unless the template says `raw`, which is for elements that we made.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    inline_parts = _style_and_script(scripts)
    return environment.get_template(template).render(
        **values,
        **{name: Markup(text) for name, text in inline_parts.items()},
        policy=policy_of(scripts, allowed),
        raw=Markup,
    )


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _style_and_script(scripts: Sequence[str]) -> dict[str, str]:
    return {"style": "".join(map(_read, STYLES)), "script": "".join(map(_read, scripts))}


def policy_of(scripts: Sequence[str], allowed: str = "") -> str:
    """Return the content security policy of a page with these scripts.

    It allows the page's style, its script with what that loads (the trials' series), and pictures
    that are in the page.
    """
    digests = {name: _digest(text) for name, text in _style_and_script(scripts).items()}
    policy = (
        f"default-src 'none'; style-src '{digests['style']}'; "
        f"script-src '{digests['script']}' 'strict-dynamic'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return f"{policy}; {allowed}" if allowed else policy


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
