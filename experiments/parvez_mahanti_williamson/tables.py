"""The tables of Parvez, Mahanti, Williamson in the paper's form, printed numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from analysis.figures import cases
from analysis.figures.sheet import Cell, Head, Sheet, mean_cell, number_cell
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from experiments.parvez_mahanti_williamson.claims import NEWRENO_NAMES, SBS
from experiments.parvez_mahanti_williamson.models import with_model
from experiments.parvez_mahanti_williamson.printed import PMW_TABLE_2, BackgroundRow

ERROR_HEADS = (
    Head("p", "%", number=True),
    Head("m", number=True),
    Head("n", number=True),
    *(Head(name, "Mbit/s", number=True) for name in NEWRENO_NAMES.values()),
    *(
        Head(f"model's error, {name}", "%", "positive: it predicts more than was measured", True)
        for name in NEWRENO_NAMES.values()
    ),
)
TABLE_TWO_HEADS = (
    Head("sessions", number=True),
    Head("n", number=True),
    Head("loss events", "%", "of the segments sent: p", True),
    Head("paper", "%", number=True),
    Head("losses", "%", "of the segments sent", True),
    Head("paper", "%", number=True),
    Head("goodput", "segments/RTT", number=True),
    Head("paper", "segments/RTT", number=True),
    Head("model", "segments/RTT", "equation 4, at the p, m and round trip of each flow", True),
    Head("paper", "segments/RTT", number=True),
    Head("Slow-but-Steady ahead of Impatient", "%", "by goodput", True),
)


def model_errors(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Yield figure 2 point by point for each dropper: goodputs, and the models' errors."""
    rows = with_model(results.tcp)
    for case, flows in cases.split(rows, ("dropper",), ("p_percent", "m", "variant")):
        yield f"Figure 2, {cases.case_words(case)}", Sheet(ERROR_HEADS, tuple(_point_lines(flows)))


def _point_lines(rows: pd.DataFrame) -> Iterator[tuple[Cell, ...]]:
    for (p_percent, m), flows in rows.groupby([f"{AXIS}p_percent", f"{AXIS}m"]):
        forms = [flows[flows["variant"] == variant] for variant in NEWRENO_NAMES]
        yield (
            number_cell(float(str(p_percent)), ".2f"),
            number_cell(float(str(m))),
            number_cell(flows["seed"].nunique()),
            *(mean_cell(form["goodput_mbps"]) for form in forms),
            *(mean_cell(100 * form["model_error"]) for form in forms),
        )


def table_two(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Yield table II for each queue; the paper has DropTail's."""
    rows = with_model(results.tcp)
    for case, flows in cases.split(rows, ("queue",), ("sessions",)):
        printed_rows = PMW_TABLE_2 if case.get("queue") == "droptail" else ()
        lines = _table_two_lines(flows, {row.flows: row for row in printed_rows})
        title = f"Table II: Slow-but-Steady, {cases.case_words(case)}"
        yield title, Sheet(TABLE_TWO_HEADS, tuple(lines))


def _table_two_lines(
    rows: pd.DataFrame, printed_rows: Mapping[int, BackgroundRow]
) -> Iterator[tuple[Cell, ...]]:
    for sessions, flows in rows.groupby(f"{AXIS}sessions"):
        steady = flows[flows["variant"] == SBS]
        row = printed_rows.get(int(float(str(sessions))))
        theirs: Sequence[float | None] = (
            (100 * row.loss_event_rate, 100 * row.loss_rate, row.simulated, row.predicted)
            if row
            else (None,) * 4
        )
        rtt_s = steady["srtt_mean_ms"] / 1e3
        ours = (
            100 * steady["loss_event_rate"],
            100 * steady["loss_rate"],
            steady["goodput_pps"] * rtt_s,
            steady["expected_pps"] * rtt_s,
        )
        lead = pd.Series([_lead(members) for _, members in flows.groupby("seed")])
        yield (
            number_cell(float(str(sessions))),
            number_cell(len(steady)),
            *(
                cell
                for number, paper_number in zip(ours, theirs, strict=True)
                for cell in (
                    mean_cell(number),
                    number_cell(None if paper_number is None else round(paper_number, 2)),
                )
            ),
            mean_cell(100 * lead),
        )


def _lead(rows: pd.DataFrame) -> float:
    """Return Slow-but-Steady's goodput over Impatient's, less one."""
    rates = rows.groupby("variant")["goodput_mbps"].mean()
    steady, impatient = (float(rates.get(variant, float("nan"))) for variant in NEWRENO_NAMES)
    return steady / impatient - 1 if impatient else float("nan")
