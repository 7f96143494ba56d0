"""The metrics as a compact text table: one line per variant and flow, averaged over the seeds.

Rows are strings; printing them is left to the caller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.metrics.columns import CELL
from analysis.metrics.valid_trials import counted, invalid
from analysis.statistics.intervals import CONFIDENCE, half_width
from analysis.trials.labels import variant_key

GROUP = list(CELL)
ALWAYS = ("variant", "flow")  # the rest of the group only where it differs
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

    def write(self, values: pd.Series[float]) -> str:
        """The mean and its confidence interval over the seeds."""
        known = values.dropna() * self.factor
        if known.empty:
            return UNKNOWN
        mean = float(known.mean())
        decimals = _decimals(mean) if self.decimals is None else self.decimals
        text = f"{mean:.{decimals}f}"
        return text if len(known) < 2 else f"{text} ± {half_width(known):.{decimals}f}"


def _decimals(value: float) -> int:
    """The number of decimals that shows three significant digits."""
    return max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0


SHOWN = (
    Shown("throughput_mbps", "throughput Mbit/s"),
    Shown("goodput_mbps", "goodput Mbit/s"),
    Shown("drop_rate", "dropped %", factor=100, decimals=2),
    Shown("retransmitted", "retransmitted", decimals=0),
    Shown("timeouts", "timeouts", decimals=0),
    Shown("rtt_mean_ms", "RTT ms"),
    Shown("rtt_p95_ms", "RTT 95 % ms"),
    Shown("owd_mean_ms", "one-way ms"),
)


def summary(metrics: pd.DataFrame) -> Table:
    """One line per variant and flow; n counts the trials that ran and are not invalid."""
    groups = [(dict(zip(GROUP, key, strict=True)), rows) for key, rows in _groups(metrics)]
    groups.sort(key=_order)
    differing = [name for name in GROUP if len({key[name] for key, _ in groups}) > 1]
    # a setting's hash says nothing to people; the label does, and is of the variant too
    several_settings = len({tuple(key[n] for n in GROUP if n != "setting") for key, _ in groups})
    differing = [n for n in differing if n != "setting"]
    keys = [name for name in GROUP if name in ALWAYS or name in differing]
    lines = tuple((*(key[name] for name in keys), *_numbers(rows)) for key, rows in groups)
    if several_settings < len(groups):
        keys.insert(0, "label")
        lines = tuple(
            (str(rows["label"].iloc[0]), *line)
            for (_, rows), line in zip(groups, lines, strict=True)
        )
    several = any(_ran(rows) > 1 for _, rows in groups)
    notes = [f"mean ± {100 * CONFIDENCE:.0f} % confidence interval over n seeds"] * several
    if invalid(metrics).any():
        notes.append("invalid trials are left out")
    header = (*keys, *(shown.heading for shown in SHOWN), "n", "verdict", "status")
    return Table(header, lines, "; ".join(notes))


def _groups(metrics: pd.DataFrame) -> list[tuple[tuple[str, ...], pd.DataFrame]]:
    grouped = metrics.groupby(GROUP, sort=False, dropna=False)
    return [(tuple(map(str, key)), rows) for key, rows in grouped]


def _order(group: tuple[dict[str, str], pd.DataFrame]) -> tuple[object, ...]:
    key = group[0]
    label = str(group[1]["label"].iloc[0])
    return (key["experiment"], key["queue"], key["engine"], variant_key(key["variant"]), label)


def _ran(rows: pd.DataFrame) -> int:
    return len(counted(rows))


def _numbers(rows: pd.DataFrame) -> Sequence[str]:
    values = [shown.write(counted(rows)[shown.metric]) for shown in SHOWN]
    counts = rows["status"].value_counts(sort=False)
    status = "ok" if list(counts.index) == ["ok"] else ", ".join(_counted(counts))
    return (*values, str(_ran(rows)), _verdicts(rows["verdict"]), status)


def _verdicts(verdicts: pd.Series[str]) -> str:
    """`5 valid`, `4 valid, 1 suspect`; trials that did not run have none."""
    counts = verdicts[verdicts.isin(VERDICTS)].value_counts()
    return ", ".join(_counted(counts.reindex(VERDICTS).dropna().astype(int))) or UNKNOWN


def _counted(counts: pd.Series[int]) -> list[str]:
    """`2 ok`, `1 failed`; a single trial's status stands alone."""
    if len(counts) == 1 and counts.iloc[0] == 1:
        return [str(counts.index[0])]
    return [f"{count} {status}" for status, count in counts.items()]
