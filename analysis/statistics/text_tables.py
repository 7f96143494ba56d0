"""The summary of a run as text: for a terminal, as Markdown, CSV or JSON.

Rows are strings; printing them is left to the caller.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.metrics.columns import METRICS, NUMBERS
from analysis.metrics.valid_trials import invalid
from analysis.statistics.intervals import CONFIDENCE
from analysis.statistics.summary import Line, Summary, sum_up
from testbed.errors import UsageError, nearest

UNKNOWN = "–"
VERDICTS = ("valid", "suspect", "invalid")


@dataclass(frozen=True)
class Table:
    """A heading and the lines below it."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


@dataclass(frozen=True)
class Shown:
    """A metric in the table: its heading, its scale, and its decimals if they are fixed."""

    metric: str
    heading: str
    factor: float = 1
    decimals: int | None = None  # None: three digits, or all before the point

    def write(self, line: Line) -> str:
        """The mean and its confidence interval over the seeds."""
        mean, half = (self.factor * f(self.metric) for f in (line.mean, line.half_width))
        if math.isnan(mean):
            return UNKNOWN
        decimals = _decimals(mean) if self.decimals is None else self.decimals
        text = f"{mean:.{decimals}f}"
        return text if math.isnan(half) else f"{text} ± {half:.{decimals}f}"


def _decimals(value: float) -> int:
    """The number of decimals that shows three significant digits."""
    return max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0


SHOWN = (
    Shown("throughput_mbps", "throughput Mbit/s"),
    Shown("goodput_mbps", "goodput Mbit/s"),
    Shown("share", "share %", factor=100, decimals=1),
    Shown("drop_rate", "dropped %", factor=100, decimals=2),
    Shown("mark_rate", "marked %", factor=100, decimals=2),
    Shown("retransmitted", "retrans.", decimals=0),
    Shown("timeouts", "timeouts", decimals=0),
    Shown("rtt_mean_ms", "RTT ms"),
    Shown("rtt_p95_ms", "RTT 95 % ms"),
    Shown("owd_mean_ms", "one-way ms"),
)
USUAL = ("goodput_mbps", "drop_rate", "retransmitted", "rtt_mean_ms")


def usual_columns(metrics: pd.DataFrame) -> tuple[str, ...]:
    """The metrics that matter at a glance, in the table's order."""
    several = metrics.groupby("trial")["flow"].nunique().gt(1).any()
    marked = metrics["mark_rate"].gt(0).any()
    wanted = {*USUAL, "share" if several else "rtt_p95_ms", *(("mark_rate",) * bool(marked))}
    return tuple(shown.metric for shown in SHOWN if shown.metric in wanted)


def every_column() -> tuple[str, ...]:
    """The metrics of the wide table."""
    return tuple(shown.metric for shown in SHOWN)


def parse_columns(text: str) -> tuple[str, ...]:
    """`goodput_mbps,jain`: the columns of metrics.csv that the user names."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in NUMBERS:
            raise UsageError(f"--columns {name}: no such column", nearest(name, NUMBERS))
    return names


def _shown(name: str) -> Shown:
    known = {shown.metric: shown for shown in SHOWN}
    unit = next((metric.unit for metric in METRICS if metric.name == name), "")
    return known.get(name) or Shown(name, f"{name} ({unit})" if unit else name)


def summary(metrics: pd.DataFrame, columns: Sequence[str] | None = None) -> Table:
    """One line per cell: the keys that tell the lines apart, then the metrics."""
    found = sum_up(metrics)
    shown = [_shown(name) for name in columns or usual_columns(metrics)]
    around = _Around.of(found)
    lines = tuple(
        (
            *line.write(found.keys),
            *(each.write(line) for each in shown),
            *around.write(line),
        )
        for line in found.lines
    )
    header = (*(key.name for key in found.keys), *(each.heading for each in shown), *around.header)
    return Table(header, lines, _note(metrics, found, around))


@dataclass(frozen=True)
class _Around:
    """The columns that are shown only where they tell something: n, verdict and status."""

    repeats: bool
    verdicts: bool

    @staticmethod
    def of(found: Summary) -> _Around:
        return _Around(
            any(len(line.counted) != 1 for line in found.lines),
            any(_verdicts(line) != _all_valid(line) for line in found.lines),
        )

    @property
    def header(self) -> tuple[str, ...]:
        return ("n",) * self.repeats + ("verdict", "status") * self.verdicts

    def write(self, line: Line) -> tuple[str, ...]:
        own = (str(len(line.counted)),) * self.repeats
        return own + (_verdicts(line), _status(line)) * self.verdicts


def _all_valid(line: Line) -> str:
    count = len(line.rows)
    return "valid" if count == 1 else f"{count} valid"


def _note(metrics: pd.DataFrame, found: Summary, around: _Around) -> str:
    several = any(len(line.counted) > 1 for line in found.lines)
    notes = [f"mean ± {100 * CONFIDENCE:.0f} % confidence interval over n seeds"] * several
    if invalid(metrics).any():
        notes.append("invalid trials are left out")
    elif found.lines and not around.verdicts:
        trials = metrics["trial"].nunique()
        notes.append("the trial is valid" if trials == 1 else f"all {trials} trials are valid")
    return "; ".join(notes)


def _status(line: Line) -> str:
    counts = line.rows["status"].value_counts(sort=False)
    return "ok" if list(counts.index) == ["ok"] else ", ".join(_counted(counts))


def _verdicts(line: Line) -> str:
    """`5 valid`, `4 valid, 1 suspect`; trials that did not run have none."""
    verdicts = line.rows["verdict"]
    counts = verdicts[verdicts.isin(VERDICTS)].value_counts()
    return ", ".join(_counted(counts.reindex(VERDICTS).dropna().astype(int))) or UNKNOWN


def _counted(counts: pd.Series[int]) -> list[str]:
    """`2 ok`, `1 failed`; a single trial's status stands alone."""
    if len(counts) == 1 and counts.iloc[0] == 1:
        return [str(counts.index[0])]
    return [f"{count} {status}" for status, count in counts.items()]


def as_markdown(table: Table) -> str:
    """The table in GitHub's Markdown."""
    lines = [table.header, tuple("---" for _ in table.header), *table.rows]
    text = "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
    return f"{text}\n\n{table.note}\n" if table.note else f"{text}\n"


def as_frame(metrics: pd.DataFrame, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The summary for programs: unrounded means in the metrics' units, with `_ci` half widths."""
    found = sum_up(metrics)
    names = columns or usual_columns(metrics)
    rows = []
    for line in found.lines:
        row: dict[str, object] = {key.name: line.keys.get(key, "") for key in found.keys}
        for name in names:
            row |= {name: line.mean(name), f"{name}_ci": line.half_width(name)}
        row |= {"n": len(line.counted), "verdict": _verdicts(line), "status": _status(line)}
        rows.append(row)
    return pd.DataFrame(rows)


def as_csv(frame: pd.DataFrame) -> str:
    """The frame as CSV; what is not known is empty."""
    return frame.to_csv(index=False)


def as_json(frame: pd.DataFrame) -> str:
    """The frame as a JSON list of objects; what is not known is null."""
    return json.dumps(json.loads(frame.to_json(orient="records")), indent=2) + "\n"
