"""The numbers of a run as text: for a terminal's width, as Markdown, LaTeX, CSV or JSON.

Rows are strings; printing them is left to the caller.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.metrics.columns import (
    ALL_METRICS,
    NUMBER_COLUMNS,
    is_number_column,
    measured_columns,
    number_columns,
)
from analysis.metrics.metric_rows import invalid
from analysis.statistics.intervals import CONFIDENCE, MIN_SEEDS_OF_A_SPREAD
from analysis.statistics.summary import CellSummary, sum_up
from analysis.transfers.size_classes import CLASSES, by_class
from analysis.trials.labels import by_number
from testbed.errors import UsageError, near, printable_lines
from testbed.scenario.program_numbers import MEASURED_PREFIX
from testbed.store.names import LINKS_CSV, METRICS_CSV
from testbed.store.writing import spreadsheet_frame

NO_VALUE = "–"
GRADES_OF_TRIALS = ("valid", "suspect", "invalid")


@dataclass(frozen=True)
class TextTable:
    """A heading, the lines below it, and a note."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    def columns(self) -> list[tuple[str, ...]]:
        """Return each column: its heading, and its cells."""
        return list(zip(self.header, *self.rows, strict=True))

    def of_columns(self, places: Sequence[int], note: str) -> TextTable:
        """Return the table with only the columns at these places, and with this note."""
        lines = (self.header, *self.rows)
        header, *rows = (tuple(line[place] for place in places) for line in lines)
        return TextTable(header, tuple(rows), note)


def as_markdown(table: TextTable) -> str:
    """Return the table in GitHub's Markdown."""
    lines = [table.header, tuple("---" for _ in table.header), *table.rows]
    text = "\n".join("| " + " | ".join(map(_markdown_cell, line)) + " |" for line in lines)
    return f"{text}\n\n{table.note}\n" if table.note else f"{text}\n"


def _markdown_cell(text: str) -> str:
    """Escape what would end a cell, or be HTML."""
    line = printable_lines(text).replace("\n", " ")
    return line.replace("|", "\\|").replace("<", "&lt;")


def decimals_for_three_digits(value: float) -> int:
    """Return the number of decimals that shows three significant digits."""
    return max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0


def mean_text(mean: float, half: float = math.nan, decimals: int | None = None) -> str:
    """Write `3.20 ± 0.15`, a mean and half of its interval; three digits without `decimals`."""
    if math.isnan(mean):
        return NO_VALUE
    decimals = decimals_for_three_digits(mean) if decimals is None else decimals
    text = f"{mean:.{decimals}f}"
    return text if math.isnan(half) else f"{text} ± {half:.{decimals}f}"


REPEATED_NOTE = (
    "where no interval is shown, all seeds gave the same numbers: nothing in the scenario is "
    "random (drawn_service_times and start_jitter_ms let seeds draw)"
)

# Flows


@dataclass(frozen=True)
class SummaryColumn:
    """A metric in the table: its heading, its scale, and its decimals if they are fixed."""

    metric: str
    heading: str
    factor: float = 1
    decimals: int | None = None  # None: three digits, or all before the point

    def text(self, mean: float, half: float = math.nan) -> str:
        """Return a mean of the metric, with half of its interval if that is known."""
        return mean_text(self.factor * mean, self.factor * half, self.decimals)


VIDEO_COLUMNS = (
    SummaryColumn("startup_s", "starts s"),
    SummaryColumn("stalls", "stalls", decimals=0),
    SummaryColumn("stall_s", "stalled s"),
)
SUMMARY_COLUMNS = (
    SummaryColumn("throughput_mbps", "throughput Mbit/s"),
    SummaryColumn("goodput_mbps", "goodput Mbit/s"),
    SummaryColumn("share", "share %", factor=100, decimals=1),
    SummaryColumn("drop_rate", "dropped %", factor=100, decimals=2),
    SummaryColumn("loss_rate", "lost in all %", factor=100, decimals=2),
    SummaryColumn("mark_rate", "marked %", factor=100, decimals=2),
    SummaryColumn("retransmitted", "retrans.", decimals=0),
    SummaryColumn("timeouts", "timeouts", decimals=0),
    SummaryColumn("rtt_mean_ms", "RTT ms"),
    SummaryColumn("rtt_p95_ms", "RTT 95 % ms"),
    SummaryColumn("owd_mean_ms", "one-way ms"),
    SummaryColumn("owd_p95_ms", "one-way 95 %"),
    SummaryColumn("completion_s", "completion s"),
    SummaryColumn("datagram_loss_rate", "lost %", factor=100, decimals=2),
    SummaryColumn("jitter_ms", "jitter ms"),
    *VIDEO_COLUMNS,
)
CALLS_METRICS = ("owd_mean_ms", "owd_p95_ms")  # what a voice is late by
SEEN_LOSS_RATE = 5e-4
ON_THE_WAY = 0.2  # of the drops: the queue counts packets later than the sender
USUAL_METRICS = ("goodput_mbps", "drop_rate", "retransmitted", "rtt_mean_ms")
# of datagrams, and of flows of a number of bytes: where a flow of the run has them
WHERE_KNOWN = ("completion_s", "datagram_loss_rate", "jitter_ms")


SINGLE_FLOWS = 12  # of a trial: of more, a row is of all flows of a variant
SPREAD_COLUMNS = (
    SummaryColumn("goodput_least", "least Mbit/s"),
    SummaryColumn("goodput_most", "most Mbit/s"),
)
FLOWS_COLUMN = SummaryColumn("flow_count", "flows", decimals=0)
SUMMED_METRICS = ("share", "retransmitted", "timeouts")


def variant_means(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each trial and variant: the mean of its flows, or SUMMED_METRICS' sum."""
    groups = metrics.groupby(["trial", "variant"], sort=False, dropna=False)
    rows = []
    for _, flows in groups:
        row = flows.iloc[0].copy()
        for name in number_columns(metrics):
            row[name] = (
                flows[name].sum(min_count=1) if name in SUMMED_METRICS else flows[name].mean()
            )
        row["flow"], row["setting"] = row["variant"], ""
        goodputs = flows["goodput_mbps"]
        row["goodput_least"], row["goodput_most"] = goodputs.min(), goodputs.max()
        row["flow_count"] = len(flows)
        rows.append(row)
    return pd.DataFrame(rows).infer_objects()


def usual_columns(metrics: pd.DataFrame) -> tuple[str, ...]:
    """Return the metrics that matter at a glance, in the table's order."""
    marked = metrics["mark_rate"].gt(0).any()
    wanted = {
        *USUAL_METRICS,
        "share" if metrics["share"].notna().any() else "rtt_p95_ms",
        *(("mark_rate",) * bool(marked)),
        *(name for name in WHERE_KNOWN if metrics[name].notna().any()),
        *(("loss_rate",) * _loses_behind_queues(metrics)),
        *(CALLS_METRICS * bool(metrics["kind"].eq("call").any())),
        *(each.metric for each in VIDEO_COLUMNS if metrics["kind"].eq("video").any()),
    }
    usual = (column.metric for column in SUMMARY_COLUMNS if column.metric in wanted)
    return (*usual, *measured_columns(metrics.columns))


def _loses_behind_queues(metrics: pd.DataFrame) -> bool:
    """Tell whether flows of TCP lost packets that no queue dropped."""
    few = SEEN_LOSS_RATE + ON_THE_WAY * metrics["drop_rate"]
    lost = (metrics["loss_rate"] - metrics["drop_rate"]).gt(few)
    return bool((metrics["kind"].eq("tcp") & lost).any())


def every_column() -> tuple[str, ...]:
    """Return the metrics of the wide table."""
    return tuple(column.metric for column in SUMMARY_COLUMNS)


def _column_hint(name: str) -> str:
    if longer := [column for column in NUMBER_COLUMNS if name in column.split("_")]:
        return f"name one of {', '.join(longer)}"
    close = near(name, NUMBER_COLUMNS)
    return f"did you mean {close!r}?" if close else "`testbed columns` lists them"


def parse_columns(text: str) -> tuple[str, ...]:
    """Read the columns of metrics.csv that the user names: `goodput_mbps,jain`."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if not is_number_column(name) and any(metric.name == name for metric in ALL_METRICS):
            named = "rows have the flows' names and what differs"
            hint = f"leave it out: {named}; {METRICS_CSV} has all columns"
            raise UsageError(f"--columns {name}: a column of texts, not of numbers", hint)
        if not is_number_column(name):
            raise UsageError(f"--columns {name}: no such column", _column_hint(name))
    return names


def _column(name: str) -> SummaryColumn:
    columns = {column.metric: column for column in SUMMARY_COLUMNS}
    if name.startswith(MEASURED_PREFIX):
        return SummaryColumn(name, name.removeprefix(MEASURED_PREFIX).replace("_", " "))
    unit = next((metric.unit for metric in ALL_METRICS if metric.name == name), "")
    return columns.get(name) or SummaryColumn(name, f"{name} ({unit})" if unit else name)


def summary(metrics: pd.DataFrame, columns: Sequence[str] | None = None) -> TextTable:
    """Return one line per cell: the keys that tell the cells apart, then the metrics.

    n, verdict and status are shown only where they are not the same everywhere.
    """
    many = metrics.groupby("trial")["flow"].nunique().max() > SINGLE_FLOWS
    usual = usual_columns(metrics)
    run = sum_up(variant_means(metrics) if many else metrics)
    shown = [_column(name) for name in columns or usual]
    if many:
        shown += [FLOWS_COLUMN] if columns else [*SPREAD_COLUMNS, _column("jain"), FLOWS_COLUMN]
    repeats = any(len(cell.counted) != 1 for cell in run.cells)
    all_valid = all(cell.rows["verdict"].eq("valid").all() for cell in run.cells)
    header = [key.name for key in run.keys] + [column.heading for column in shown]
    header += ["n"] * repeats + ["verdict", "status"] * (not all_valid)
    rows = []
    for cell in run.cells:
        row = [
            *cell.key_values(run.keys),
            *(_mean_of(cell, column) for column in shown),
        ]
        if repeats:
            row.append(str(len(cell.counted)))
        if not all_valid:
            row += [_grades(cell), _statuses(cell)]
        rows.append(tuple(row))
    notes = []
    several = [cell for cell in run.cells if len(cell.counted) > 1 and not cell.is_repeated]
    if any(len(cell.counted) >= MIN_SEEDS_OF_A_SPREAD for cell in several):
        notes.append(f"mean ± {100 * CONFIDENCE:.0f} % confidence interval over n seeds")
    elif several:
        notes.append(f"means of two seeds: {MIN_SEEDS_OF_A_SPREAD} or more have an interval")
    if any(cell.is_repeated for cell in run.cells):
        notes.append(REPEATED_NOTE)
    if many:
        notes.append(
            f"a row is the mean over a variant's flows ({', '.join(SUMMED_METRICS)}: their sum); "
            "--format csv has each flow"
        )
    if any(column.metric == "drop_rate" for column in shown) and _starts_at_queue(metrics):
        notes.append(
            f"dropped % is unknown for flows whose own host has a queue: {LINKS_CSV} counts "
            "what each queue dropped"
        )
    if invalid(metrics).any():
        notes.append("invalid trials are left out")
    elif run.cells and all_valid:
        trials = metrics["trial"].nunique()
        notes.append("the trial is valid" if trials == 1 else f"all {trials} trials are valid")
    return TextTable(tuple(header), tuple(rows), "; ".join(notes))


def _mean_of(cell: CellSummary, column: SummaryColumn) -> str:
    few = len(cell.counted) < MIN_SEEDS_OF_A_SPREAD  # the interval of two says nothing
    half = math.nan if cell.is_repeated or few else cell.half_width(column.metric)
    return column.text(cell.mean(column.metric), half)


def _starts_at_queue(metrics: pd.DataFrame) -> bool:
    """Tell whether packets of a flow that ran were not seen before they entered a queue."""
    ran = metrics[metrics["kind"].eq("tcp") & metrics["sent_packets"].gt(0)]
    return bool(ran["drop_rate"].isna().any())


def _statuses(cell: CellSummary) -> str:
    counts = cell.rows["status"].value_counts(sort=False)
    return "ok" if list(counts.index) == ["ok"] else _counts(counts)


def _grades(cell: CellSummary) -> str:
    """Write `5 valid`, or `4 valid, 1 suspect`; trials that did not run have none."""
    grades = cell.rows["verdict"]
    counts = grades[grades.isin(GRADES_OF_TRIALS)].value_counts()
    return _counts(counts.reindex(GRADES_OF_TRIALS).dropna().astype(int)) or NO_VALUE


def _counts(counts: pd.Series[int]) -> str:
    """Write `2 ok, 1 failed`; a single trial's status stands alone."""
    if len(counts) == 1 and counts.iloc[0] == 1:
        return str(counts.index[0])
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def as_frame(metrics: pd.DataFrame, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the summary for programs: unrounded means, with `_ci` half widths."""
    run = sum_up(metrics)
    names = columns or usual_columns(metrics)
    rows = []
    for cell in run.cells:
        row: dict[str, object] = {key.name: cell.keys.get(key, "") for key in run.keys}
        for name in names:
            row |= {name: cell.mean(name), f"{name}_ci": cell.half_width(name)}
        row |= {"n": len(cell.counted), "verdict": _grades(cell), "status": _statuses(cell)}
        rows.append(row)
    return pd.DataFrame(rows)


def as_csv(frame: pd.DataFrame) -> str:
    """Return the frame as CSV; what is not known is empty."""
    return spreadsheet_frame(frame).to_csv(index=False)


def as_json(frame: pd.DataFrame) -> str:
    """Return the frame as a JSON list of objects; what is not known is null."""
    return json.dumps(json.loads(frame.to_json(orient="records")), indent=2) + "\n"


# Links

LINK_TABLE_COLUMNS = (
    SummaryColumn("flows", "flows", decimals=0),
    SummaryColumn("throughput_mbps", "throughput Mbit/s", decimals=2),
    SummaryColumn("utilisation", "utilisation %", factor=100, decimals=1),
    SummaryColumn("queue_mean_ms", "queue ms", decimals=1),
    SummaryColumn("queue_p95_ms", "queue 95 % ms", decimals=1),
    SummaryColumn("dropped_packets", "dropped", decimals=0),
    SummaryColumn("marked_packets", "marked", decimals=0),
)


def _by_label(rows: pd.DataFrame, keys: Sequence[str]) -> list[tuple[Any, pd.DataFrame]]:
    """Group rows by their label and other keys, the numbers in labels in their order."""
    return sorted(
        rows.groupby(list(keys), sort=False), key=lambda group: by_number(str(group[0][0]))
    )


def links_table(frame: pd.DataFrame) -> TextTable:
    """Return the means of each link over the seeds, of trials that are not invalid."""
    good = frame[~invalid(frame)]
    labels = good["label"].nunique() > 1
    note = ""
    if good.groupby("trial")["link"].nunique().max() > SINGLE_FLOWS:
        busy = good[good["queue_mean_ms"].notna() & good["dropped_packets"].gt(0)]
        if len(busy):
            left = good["link"].nunique() - busy["link"].nunique()
            note = f"{left} links that dropped nothing are not shown; {LINKS_CSV} has them"
            good = busy
    rows = []
    for (label, link), repeats in _by_label(good, ["label", "link"]):
        means = (c.text(float(repeats[c.metric].mean())) for c in LINK_TABLE_COLUMNS)
        rows.append((*[str(label)] * labels, str(link), *means))
    header = ["trial"] * labels + ["link"] + [each.heading for each in LINK_TABLE_COLUMNS]
    return TextTable(tuple(header), tuple(rows), note)


# Transfers

HIGH_QUANTILE = 0.99
TRANSFER_HEADINGS = (
    *("size", "transfers", "unfinished"),
    *("completion ms", "99 % ms", "slowdown", "99 %", "retrans."),
)
TRANSFER_NOTE = (
    f"{'; '.join(f'{name}: {sizes}' for name, sizes in CLASSES.items())}. Medians and 99th "
    "percentiles of the finished; slowdown: over an empty network's time"
)


def transfers_summary(frame: pd.DataFrame) -> TextTable:
    """Return a line for each label, workload and size, over all seeds of valid trials."""
    good = frame[~invalid(frame)]
    keys = ["label", "flow", "variant"]
    shown = [name for name in keys if name == "variant" or good[name].nunique() > 1]
    rows = []
    for values, transfers in _by_label(good, keys):
        names = dict(zip(keys, map(str, values), strict=True))
        for size, members in by_class(transfers):
            rows.append((*(names[key] for key in shown), size, *_transfer_numbers(members)))
    header = ("trial" if name == "label" else name for name in shown)
    return TextTable((*header, *TRANSFER_HEADINGS), tuple(rows), TRANSFER_NOTE)


def _transfer_numbers(rows: pd.DataFrame) -> tuple[str, ...]:
    took, slowdown = 1e3 * rows["completion_s"], rows["slowdown"]
    values = [float(each.quantile(q)) for each in (took, slowdown) for q in (0.5, HIGH_QUANTILE)]
    return (
        str(len(rows)),
        str(int((rows["state"] != "finished").sum())),
        *map(mean_text, values),
        str(int(rows["retransmissions"].sum())),
    )


PADDING = 2  # between columns on a terminal
LATEX_SIGNS = {  # what TeX would obey, and what its fonts lack
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "→": r"$\to$",
    "…": r"\dots{}",
    "µ": r"\textmu{}",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "−": "$-$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
}


def as_latex(table: TextTable) -> str:
    """Return a `tabular` for LaTeX with the package booktabs; the note is a comment above it."""
    columns = "".join("r" if all(map(is_number, cells)) else "l" for _, *cells in table.columns())
    rows = [r"    " + " & ".join(map(latex_text, line)) + r" \\" for line in table.rows]
    head = "    " + " & ".join(map(latex_text, table.header)) + r" \\"
    note = [f"% {line}" for line in printable_lines(table.note).splitlines()]
    return "\n".join(
        [
            *(note or ["% made by testbed"]),
            r"% \usepackage{booktabs}",
            rf"\begin{{tabular}}{{{columns}}}",
            *(r"    \toprule", head, r"    \midrule", *rows, r"    \bottomrule"),
            r"\end{tabular}",
            "",
        ]
    )


def latex_text(text: str) -> str:
    """Return a text for LaTeX, on one line."""
    line = printable_lines(text).replace("\n", " ")
    return "".join(LATEX_SIGNS.get(sign, sign) for sign in line)


def narrowed(table: TextTable, width: int) -> TextTable:
    """Return the table without columns of one value if it is wider; the note has what they say."""
    if len(table.rows) < 2 or width_of(table) <= width:
        return table
    same = {
        place: f"{heading} {cells[0]}"
        for place, (heading, *cells) in enumerate(table.columns())
        if len(set(cells)) == 1 and (is_number(cells[0]) or heading == "status")
    }
    if not same:
        return table
    left = [place for place in range(len(table.header)) if place not in same]
    notes = (f"in all rows: {', '.join(same.values())}", table.note)
    return table.of_columns(left, "; ".join(filter(None, notes)))


def width_of(table: TextTable) -> int:
    """Return the characters of a line on the terminal, headings in as many lines as they need."""
    return sum(width + PADDING for width in _widths(table))


def _widths(table: TextTable) -> list[int]:
    return [max(map(len, (*heading.split(), *cells))) for heading, *cells in table.columns()]


def headings(table: TextTable, width: int) -> list[str]:
    """Return the headings, in several lines if the table is wider than the terminal otherwise."""
    if sum(max(map(len, column)) + PADDING for column in table.columns()) <= width:
        return list(table.header)
    narrow = zip(table.header, _widths(table), strict=True)
    return ["\n".join(textwrap.wrap(heading, most)) for heading, most in narrow]


def blocks(table: TextTable, width: int) -> list[TextTable]:
    """Return a table that is too wide as several, each with the columns that tell rows apart."""
    if width_of(table) <= width or not table.rows:
        return [table]
    keys = [*range(next((n for n, cell in enumerate(table.rows[0]) if is_number(cell)), 0))]
    parts = [[*keys]]
    for place in range(len(keys), len(table.header)):
        if parts[-1] != keys and width_of(table.of_columns([*parts[-1], place], "")) > width:
            parts.append([*keys])
        parts[-1].append(place)
    *first, last = parts
    return [*(table.of_columns(part, "") for part in first), table.of_columns(last, table.note)]


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number, or the dash that stands for a missing one."""
    return cell[:1] in f"0123456789{NO_VALUE}" or (cell[:1] == "-" and cell[1:2].isdigit())
