"""Theory's numbers beside the measured ones: a row per setting that a law speaks about."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from analysis.evaluation.outcome_rows import outcome
from analysis.figures.sheet import Cell, Head, Sheet, mean_cell, number_cell
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.results.tables import transfers_of
from analysis.throughput_models import Conditions, Invalid, cubic, square_root
from analysis.transfers.transfer_rows import FINISHED
from testbed.scenario.network import FRAME_BYTES
from testbed.scenario.trace import parse_trace

FRAME_BITS = 8 * FRAME_BYTES  # of a full segment, as throughput counts it
DUMBBELL_RTT_MS = 40.0  # of the evaluations' dumbbell
STEP_MS = DUMBBELL_RTT_MS / 7  # Alizadeh and others (2010), 3.3
TARGETS_MS = {"codel": 5.0, "fq_codel": 5.0, "pie": 15.0}  # Linux's defaults
VARIANT_MODELS = {"linux-reno": square_root, "cubic": cubic}
FAIR_QUEUE = "fq_codel"
BBR_MEMORY_S = 10.0
FULL_LINK_PERCENT = 100.0  # percent of the link, from a buffer of BDP/√n on


@dataclass(frozen=True)
class Law:
    """A number that theory predicts for a setting, and its measured values by seed."""

    words: str
    unit: str
    theory: float
    ours: pd.Series


def laws(results: ExperimentResults) -> tuple[Law, ...]:
    """Return the laws that the evaluation declares, for the settings that they speak about."""
    definition = results.definition
    if definition is None or definition.laws is None or results.good.empty:
        return ()
    return tuple(definition.laws(results))


def sheet(law_groups: tuple[Law, ...]) -> Sheet:
    """Tabulate theory's number, ours, and the difference in percent."""
    heads = (
        Head("what"),
        Head("unit"),
        Head("theory", number=True),
        Head("ours", number=True),
        Head("difference (%)", number=True),
    )
    return Sheet(heads, tuple(map(_row, law_groups)))


def _row(law: Law) -> tuple[Cell, ...]:
    away = 100 * (float(law.ours.mean()) / law.theory - 1)
    return (
        Cell(law.words, law.words),
        Cell(law.unit, law.unit),
        number_cell(law.theory, ".3g"),
        mean_cell(law.ours),
        number_cell(away, "+.0f"),
    )


def _groups(rows: pd.DataFrame, *axes: str) -> Iterator[tuple[tuple[object, ...], pd.DataFrame]]:
    """Group the rows by the values of these axes."""
    columns = [AXIS + name for name in axes]
    for key, group in rows.groupby(columns, sort=True):
        yield (key if isinstance(key, tuple) else (key,)), group


def lossy_laws(results: ExperimentResults) -> Iterator[Law]:
    """Compare throughput with the square-root law and RFC 9438, 5.1, at the measured round trip."""
    single = results.tcp[results.tcp[AXIS + "burst"] == 1]
    for (name, percent), rows_of_case in _groups(single, "variant", "loss_percent"):
        model = VARIANT_MODELS.get(str(name))
        if model is None:
            continue
        rtt_s = float(rows_of_case["rtt_mean_ms"].mean()) / 1e3
        predicted = model(Conditions(float(str(percent)) / 100, rtt_s))
        if isinstance(predicted, Invalid):
            continue
        rate = min(predicted * FRAME_BITS / 1e6, _rate(results))
        label = f"{name} at {percent:g} % of random losses"
        yield Law(label, "Mbit/s", rate, rows_of_case["throughput_mbps"])


def _rate(results: ExperimentResults) -> float:
    return results.trials[0].scenario.network.bottleneck_mbit


def parking_lot_laws(results: ExperimentResults) -> Iterator[Law]:
    """Compare the long flow's throughput with its max–min share, half of a link."""
    long = results.tcp[results.tcp["flow"] == "long"]
    for (name, number), rows_of_case in _groups(long, "variant", "bottlenecks"):
        label = f"max–min share of {name} across {number:g}"
        yield Law(label, "Mbit/s", _rate(results) / 2, rows_of_case["throughput_mbps"])


def ecn_laws(results: ExperimentResults) -> Iterator[Law]:
    """Compare DCTCP's queueing delay with the threshold of its step."""
    rows = results.tcp
    step = rows[(rows[AXIS + "aqm"] == "step") & (rows["variant"] == "dctcp")]
    for (beside,), rows_of_case in _groups(step[step["flow"] == "flow"], "beside"):
        yield Law(f"DCTCP's threshold, {beside}", "ms", STEP_MS, rows_of_case["queue_p95_ms"])


def aqm_laws(results: ExperimentResults) -> Iterator[Law]:
    """Compare the queueing delay of the disciplines with their targets, in medium traffic."""
    medium = results.tcp[results.tcp[AXIS + "traffic"] == "medium"]
    for (queue,), rows_of_case in _groups(medium, "queue"):
        if str(queue) in TARGETS_MS:
            mean = rows_of_case.groupby("trial")["queue_mean_ms"].mean()
            yield Law(f"{queue}'s target, medium traffic", "ms", TARGETS_MS[str(queue)], mean)


def buffer_sizing_laws(results: ExperimentResults) -> Iterator[Law]:
    """Compare Reno's use of the link with the √n rule, and BBR's queue with its cap in flight.

    BBR keeps two BDP in flight at most: a queue of one, however long the buffer is.
    """
    rows = results.tcp
    reno = rows[rows["variant"] == "linux-reno"]
    for (flows,), rows_of_case in _groups(reno, "flows"):
        n = float(str(flows))
        large = rows_of_case[rows_of_case[AXIS + "buffer_bdp"] >= 1 / math.sqrt(n)]
        if large.empty:
            continue
        least = large[large[AXIS + "buffer_bdp"] == large[AXIS + "buffer_bdp"].min()]
        used = 100 * least.groupby("trial")["throughput_mbps"].sum() / _rate(results)
        bdp = float(least[AXIS + "buffer_bdp"].iloc[0])
        yield Law(
            f"link used by {n:g} of Reno with {bdp:g} BDP (√n rule)", "%", FULL_LINK_PERCENT, used
        )
    alone = rows[(rows["variant"] == "bbr") & (rows[AXIS + "flows"] == 1)]
    for (bdp_,), rows_of_case in _groups(alone, "buffer_bdp"):
        if float(str(bdp_)) > 1:
            label = f"BBR's queue with {bdp_:g} BDP (2 BDP in flight)"
            yield Law(label, "ms", DUMBBELL_RTT_MS, rows_of_case["queue_p95_ms"])


def completion_laws(results: ExperimentResults) -> Iterator[Law]:
    """Compare the slowdown of long transfers with that of processor sharing.

    Shared fairly, a link at load ρ slows every transfer down 1/(1-ρ) times in the mean, whatever
    the distribution of sizes (M/G/1; Kleinrock, 1976, 4.4). Short transfers take mostly round
    trips, which no load makes longer.
    """
    fair = results.good[results.good[AXIS + "queue"] == FAIR_QUEUE]
    if fair.empty:
        return
    transfers = transfers_of(results.trials)
    long = transfers[(transfers["size_class"] == "long") & (transfers["state"] == FINISHED)]
    for (name, load), rows_of_case in _groups(fair, "variant", "load"):
        mean = long[long["trial"].isin(rows_of_case["trial"])].groupby("trial")["slowdown"].mean()
        label = f"slowdown of long ones with {FAIR_QUEUE}, {name} at load {load:g}"
        yield Law(label, "times", 1 / (1 - float(str(load))), mean)


def cellular_laws(results: ExperimentResults) -> Iterator[Law]:
    """Compare throughput with the mean rate of the trace, which is an upper bound."""
    rows = results.tcp
    for (name, trace), rows_of_case in _groups(rows, "variant", "trace"):
        trial = next(
            each for each in results.trials if each.path.name in set(rows_of_case["trial"])
        )
        content = trial.scenario.network.bottleneck.trace
        if content is not None:
            label = f"{name} on {trace}: the trace's mean, at most"
            yield Law(
                label, "Mbit/s", parse_trace(content).mean_mbit, rows_of_case["throughput_mbps"]
            )


def path_change_laws(results: ExperimentResults) -> Iterator[Law]:
    """Compare BBR's time to use a longer path with the memory of its least round trip.

    BBR believes its least round trip for 10 s (Cardwell and others, 2016); until then it keeps two
    BDP of the shorter path in flight.
    """
    table = outcome(results)
    longer = table[(table[AXIS + "variant"] == "bbr") & (table[AXIS + "step"] == "delay-up")]
    if len(longer) and longer[AXIS + "duration_s"].astype(float).min() > 2 * BBR_MEMORY_S:
        label = "BBR's memory of the shorter path: until it uses the longer one"
        yield Law(label, "s", BBR_MEMORY_S, longer["settling_s"])
