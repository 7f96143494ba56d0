"""The page on which a scenario's fields are moved by hand; what it shows of each position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from analysis.report import page
from analysis.report.page_plot import script_json
from analysis.results.reduction import Reduction
from analysis.statistics.text_tables import SUMMARY_COLUMNS

EXPLORE_SCRIPTS = (*page.SHARED, "overlay.js", "explore.js")
TOLD_METRICS = ("goodput_mbps", "share", "drop_rate", "retransmitted", "rtt_mean_ms", "owd_mean_ms")
TOLD_COLUMNS = [each for each in SUMMARY_COLUMNS if each.metric in TOLD_METRICS]

Json = dict[str, Any]


@dataclass(frozen=True)
class Slider:
    """A field of the scenario's file, by its place, with the values that it is moved through."""

    place: str
    label: str
    values: tuple[str, ...]
    first: int = 0  # the value's number when the page opens


@dataclass(frozen=True)
class Explored:
    """What is explored: the scenario's file as JSON, two of its flows, and the sliders."""

    title: str
    document: str
    flows: tuple[str, str]
    sliders: tuple[Slider, ...]


def position_json(reduction: Reduction) -> Json:
    """Return what the page shows of a trial: its series, its flows' numbers, and its verdict."""
    flows, verdict = reduction.flows, reduction.verdict
    rows = [
        [
            str(row["flow"]),
            str(row["variant"]),
            *(c.text(float(row[c.metric])) for c in TOLD_COLUMNS),
        ]
        for _, row in flows.iterrows()
    ]
    told = {"grade": str(verdict.verdict), "why": verdict.why} if verdict else {}
    return {"series": reduction.plotted, "rows": rows, **told}


def explore_page(
    explored: Explored, positions: Mapping[str, Json] | None, allowed: str = ""
) -> str:
    """Return the page: with the positions that it has, or None if it asks for each."""
    data = {
        "flows": explored.flows,
        "sliders": [asdict(each) for each in explored.sliders],
        "header": ["flow", "variant", *(each.heading for each in TOLD_COLUMNS)],
        "positions": positions,
    }
    return page.fill(
        "explore.html", EXPLORE_SCRIPTS, allowed, explored=explored, data=script_json(data)
    )


def policy(allowed: str) -> str:
    """Return the page's content security policy."""
    return page.policy_of(EXPLORE_SCRIPTS, allowed)


def key_of(position: Sequence[int]) -> str:
    """Return a position, the numbers of its sliders' values, as the page names it."""
    return ".".join(map(str, position))
