"""Theory's number beside ours, where there is one: a row per setting that a law speaks about."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from analysis.evaluation.outcome_rows import outcome
from analysis.figures.sheet import Cell, Head, Sheet, mean_cell
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.results.tables import transfers_of
from analysis.throughput_models import Conditions, Invalid, cubic, square_root
from analysis.transfers.transfer_rows import FINISHED
from testbed.scenario.queues import FRAME_BYTES
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
    """What theory says of a setting, and what the seeds gave."""

    words: str
    unit: str
    theory: float
    ours: pd.Series


def laws(results: ExperimentResults) -> tuple[Law, ...]:
    """The laws that speak about an evaluation's settings."""
    find = LAWS.get(results.experiment)
    return tuple(find(results)) if find and not results.good.empty else ()


def sheet(found: tuple[Law, ...]) -> Sheet:
    """Theory's number, ours, and how far ours is from it."""
    heads = (
        Head("what"),
        Head("unit"),
        Head("theory", number=True),
        Head("ours", number=True),
        Head("difference (%)", number=True),
    )
    return Sheet(heads, tuple(map(_row, found)))


def _row(law: Law) -> tuple[Cell, ...]:
    away = 100 * (float(law.ours.mean()) / law.theory - 1)
    return (
        Cell(law.words, law.words),
        Cell(law.unit, law.unit),
        Cell(f"{law.theory:.3g}", f"{law.theory:.9g}", True),
        mean_cell(law.ours),
        Cell("–" if math.isnan(away) else f"{away:+.0f}", f"{away:.9g}", True),
    )


def _groups(rows: pd.DataFrame, *axes: str) -> Iterator[tuple[tuple[object, ...], pd.DataFrame]]:
    """The rows by these axes, one row per trial: the mean of its flows."""
    columns = [AXIS + name for name in axes]
    for key, own in rows.groupby(columns, sort=True):
        yield (key if isinstance(key, tuple) else (key,)), own


def _lossy(results: ExperimentResults) -> Iterator[Law]:
    """The square-root law and RFC 9438, 5.1, at the round trip that the flow saw."""
    single = results.tcp[results.tcp[AXIS + "burst"] == 1]
    for (name, percent), own in _groups(single, "variant", "loss_percent"):
        model = VARIANT_MODELS.get(str(name))
        if model is None:
            continue
        rtt_s = float(own["rtt_mean_ms"].mean()) / 1e3
        found = model(Conditions(float(str(percent)) / 100, rtt_s))
        if isinstance(found, Invalid):
            continue
        rate = min(found * FRAME_BITS / 1e6, _rate(results))
        words = f"{name} at {percent:g} % of random losses"
        yield Law(words, "Mbit/s", rate, own["throughput_mbps"])


def _rate(results: ExperimentResults) -> float:
    return results.trials[0].scenario.network.bottleneck_mbit


def _parking_lot(results: ExperimentResults) -> Iterator[Law]:
    long = results.tcp[results.tcp["flow"] == "long"]
    for (name, number), own in _groups(long, "variant", "bottlenecks"):
        words = f"max–min share of {name} across {number:g}"
        yield Law(words, "Mbit/s", _rate(results) / 2, own["throughput_mbps"])


def _ecn(results: ExperimentResults) -> Iterator[Law]:
    rows = results.tcp
    step = rows[(rows[AXIS + "aqm"] == "step") & (rows["variant"] == "dctcp")]
    for (beside,), own in _groups(step[step["flow"] == "flow"], "beside"):
        yield Law(f"DCTCP's threshold, {beside}", "ms", STEP_MS, own["queue_p95_ms"])


def _aqm(results: ExperimentResults) -> Iterator[Law]:
    medium = results.tcp[results.tcp[AXIS + "traffic"] == "medium"]
    for (queue,), own in _groups(medium, "queue"):
        if str(queue) in TARGETS_MS:
            mean = own.groupby("trial")["queue_mean_ms"].mean()
            yield Law(f"{queue}'s target, medium traffic", "ms", TARGETS_MS[str(queue)], mean)


def _buffers(results: ExperimentResults) -> Iterator[Law]:
    """The √n rule for Reno; BBR's cap of two BDP in flight: a queue of one, however long it may
    be.
    """
    rows = results.tcp
    reno = rows[rows["variant"] == "linux-reno"]
    for (flows,), own in _groups(reno, "flows"):
        n = float(str(flows))
        large = own[own[AXIS + "buffer_bdp"] >= 1 / math.sqrt(n)]
        if large.empty:
            continue
        least = large[large[AXIS + "buffer_bdp"] == large[AXIS + "buffer_bdp"].min()]
        used = 100 * least.groupby("trial")["throughput_mbps"].sum() / _rate(results)
        bdp = float(least[AXIS + "buffer_bdp"].iloc[0])
        yield Law(
            f"link used by {n:g} of Reno with {bdp:g} BDP (√n rule)", "%", FULL_LINK_PERCENT, used
        )
    alone = rows[(rows["variant"] == "bbr") & (rows[AXIS + "flows"] == 1)]
    for (bdp_,), own in _groups(alone, "buffer_bdp"):
        if float(str(bdp_)) > 1:
            words = f"BBR's queue with {bdp_:g} BDP (2 BDP in flight)"
            yield Law(words, "ms", DUMBBELL_RTT_MS, own["queue_p95_ms"])


def _completion(results: ExperimentResults) -> Iterator[Law]:
    """Shared fairly, a link at load ρ slows every transfer down 1/(1-ρ) times in the mean, whatever
    the distribution of sizes (M/G/1 with processor sharing; Kleinrock, 1976, 4.4). Long ones: of
    short ones most is round trips, which no load makes longer.
    """
    fair = results.good[results.good[AXIS + "queue"] == FAIR_QUEUE]
    if fair.empty:
        return
    found = transfers_of(results.trials)
    long = found[(found["size_class"] == "long") & (found["state"] == FINISHED)]
    for (name, load), own in _groups(fair, "variant", "load"):
        mean = long[long["trial"].isin(own["trial"])].groupby("trial")["slowdown"].mean()
        words = f"slowdown of long ones with {FAIR_QUEUE}, {name} at load {load:g}"
        yield Law(words, "times", 1 / (1 - float(str(load))), mean)


def _cellular(results: ExperimentResults) -> Iterator[Law]:
    """A trace is an upper bound, here over whole periods."""
    rows = results.tcp
    for (name, trace), own in _groups(rows, "variant", "trace"):
        trial = next(each for each in results.trials if each.path.name in set(own["trial"]))
        content = trial.scenario.network.bottleneck.trace
        if content is not None:
            words = f"{name} on {trace}: the trace's mean, at most"
            yield Law(words, "Mbit/s", parse_trace(content).mean_mbit, own["throughput_mbps"])


def _path_change(results: ExperimentResults) -> Iterator[Law]:
    """BBR believes its least round trip for 10 s (Cardwell and others, 2016), so that a longer path
    has two of the shorter one's BDP in flight until then.
    """
    table = outcome(results)
    longer = table[(table[AXIS + "variant"] == "bbr") & (table[AXIS + "step"] == "delay-up")]
    if len(longer) and longer[AXIS + "duration_s"].astype(float).min() > 2 * BBR_MEMORY_S:
        words = "BBR's memory of the shorter path: until it uses the longer one"
        yield Law(words, "s", BBR_MEMORY_S, longer["settling_s"])


LAWS: Mapping[str, Callable[[ExperimentResults], Iterator[Law]]] = {
    "completion": _completion,
    "cellular": _cellular,
    "lossy": _lossy,
    "path-change": _path_change,
    "parking-lot": _parking_lot,
    "ecn": _ecn,
    "aqm": _aqm,
    "buffer-sizing": _buffers,
}
