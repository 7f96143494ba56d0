"""NewReno's two forms under loss events (p, m): the tests of PMW's figures 2 and 4.

The bounds, chosen beforehand. A model's *error* is that of the mean over seeds, since the paper has
one long run per point. The forms are *alike* while they differ by no more than 2 % of their mean.
*Where they cross* is where a straight line through their difference over m, from 10 losses on, is
zero: single points of the two are closer to each other there than their own noise. A crossing
within 2 losses of the paper's first m agrees with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.claims.engine.answers import Finding, JudgedPart, Part, Row, Verdict
from analysis.claims.engine.contrasts import Outcome, Sample, all_are, contrasts, spread, within
from analysis.claims.engine.quantities import RATE, Measure
from analysis.claims.engine.reference import Reference
from analysis.claims.engine.selection import Group, samples, sweeps
from analysis.claims.parvez_mahanti_williamson.ns2_newreno import ns2_newreno
from analysis.claims.parvez_mahanti_williamson.pmw_numbers import (
    PMW_CRITICAL_LOSSES,
    PMW_CROSSINGS,
    PMW_FIRST_IMPATIENT,
    PMW_MODEL_ERRORS,
)
from analysis.metrics.digest import NotMeasured
from analysis.models.all_models import predict
from analysis.models.conditions import Conditions, Invalid
from analysis.models.flow_against_model import MODEL_OF, with_model
from analysis.models.newreno import imp_window
from analysis.models.regions import Regions

SBS, IMP = "newreno", "newreno-impatient"
NAMES = {SBS: "Slow-but-Steady", IMP: "Impatient"}
PERCENT = Measure("%", 2, factor=100, absolute=1e-3)
LOSSES = Measure("losses", 1, absolute=0.5)
ALIKE = 0.02
NEAR_LOSSES = 2.0
EVEN = "even"  # the dropper with evenly spaced events
LINE_FROM = 10  # losses: below, the difference over m is not linear
APART = 3  # losses around the crossing, within which either may be ahead
SEEDS = 2  # fewer say nothing
PAPER_RTT_S, NS2_RTO_S = 0.07, 0.2
EQUATIONS_NEAR = 1.0  # losses, of m_t by the equations


def readings(group: Group) -> list[tuple[str, Group]]:
    """The trials like the paper's, with ns-2's timer: with random events, as the paper defines p,
    and, where they were run, with evenly spaced ones, as its equations assume."""
    found = [("", paper_group(group))]
    if EVEN in group.values("dropper"):
        found.append((", evenly spaced events", paper_group(group, EVEN)))
    return found


def paper_group(group: Group, dropper: str = "consecutive") -> Group:
    """The group's rows with this dropper."""
    own = group
    for name, value in (("dropper", dropper), ("timer", "ns2")):
        if own.values(name):
            own = own.asked(name, [value])
    if not {SBS, IMP} <= set(own.rows["variant"]):
        raise NotMeasured("no usable trials of both forms", f"testbed run {group.experiment}")
    return own


def chances(group: Group) -> list[float]:
    """The loss event rates of the paper that were run, as parts of one."""
    return [p for p in PMW_FIRST_IMPATIENT if 100 * p in group.values("p_percent")]


def of_chance(group: Group, p: float) -> pd.DataFrame:
    """The flows with that loss event rate, compared with their models."""
    return with_model(group.where(p_percent=100 * p).rows)


def accuracy(group: Group) -> Finding:
    """The models' largest errors, m*, and where the forms cross."""
    parts: list[Part] = []
    rows: list[Row] = []
    for reading, own in readings(group):
        for p in chances(own):
            flows, at = of_chance(own, p), f"p = {p:.2%}{reading}"
            for variant, printed in _errors_of(p).items():
                error = largest_error(flows, variant)
                what = f"largest error of {NAMES[variant]}'s model at {at}"
                parts.append(_of_means(what, error, printed[1], int(flows["seed"].nunique())))
                ns2 = _ns2_errors(own.reference, variant, p)
                rows.append(_error_row(flows, variant, at, printed, ns2 if not reading else None))
            parts += _where_they_part(flows, p, at)
    return Finding(tuple(parts), tuple(rows))


def _errors_of(p: float) -> dict[str, tuple[float, float]]:
    return {name: bounds for (name, at), bounds in PMW_MODEL_ERRORS.items() if at == p}


def errors(flows: pd.DataFrame, variant: str) -> pd.Series[float]:
    """By m: the model's error, of the means over seeds; where the model holds."""
    own = flows[(flows["variant"] == variant) & flows["expected_pps"].notna()]
    means = own.groupby("axis_m")[["goodput_pps", "expected_pps"]].mean()
    return means["expected_pps"] / means["goodput_pps"] - 1


def largest_error(flows: pd.DataFrame, variant: str) -> float:
    """The largest absolute error over all m."""
    found = errors(flows, variant).abs()
    return float(found.max()) if len(found) else math.nan


def _of_means(what: str, value: float, most: float, seeds: int) -> Part:
    """A number from all seeds at once, which has no spread over them, compared with a bound."""
    if seeds < SEEDS or not math.isfinite(value):
        verdict = Verdict.OPEN
    else:
        verdict = Verdict.SUPPORTED if value <= most else Verdict.CONTRADICTED
    said = f"{what} {PERCENT.write(value)} (required: at most {PERCENT.write(most)})"
    effect = f"{what} {PERCENT.write(value)}"
    result = JudgedPart(verdict, said, "largest over m, of the means over seeds", effect, n=seeds)
    return Part((), lambda _: result)


def _error_row(
    flows: pd.DataFrame,
    variant: str,
    at: str,
    printed: tuple[float, float],
    ns2: pd.Series[float] | None,
) -> Row:
    return Row(
        f"error of {NAMES[variant]}'s model, {at}",
        _written(errors(flows, variant)) or "the model does not hold",
        " to ".join(PERCENT.write(each) for each in printed),
        "" if ns2 is None else _written(ns2),
    )


def _written(found: pd.Series[float]) -> str:
    """The range of errors, without and with their sign, and the mean."""
    if found.empty:
        return ""
    absolute = found.abs()
    return (
        f"{PERCENT.write(float(absolute.min()))} to {PERCENT.write(float(absolute.max()))}, mean "
        f"{PERCENT.write(float(absolute.mean()))}; with sign {PERCENT.write(found.min(), '+')} to "
        f"{PERCENT.write(found.max(), '+')}"
    )


def difference(flows: pd.DataFrame) -> dict[int, pd.Series[float]]:
    """By seed, over m: Slow-but-Steady minus Impatient, as a fraction of their mean."""
    rates = {
        each: sweeps(flows[flows["variant"] == each], "goodput_mbps", "axis_m")
        for each in (SBS, IMP)
    }
    found = {}
    for seed in sorted(rates[SBS].keys() & rates[IMP].keys()):
        steady, impatient = rates[SBS][seed], rates[IMP][seed]
        found[seed] = 2 * (steady - impatient) / (steady + impatient)
    return found


def first_apart(series: pd.Series[float]) -> float:
    """The least m from which the forms differ."""
    apart = [float(m) for m, value in series.items() if abs(value) > ALIKE]  # type: ignore[arg-type]
    return min(apart, default=math.nan)


def crossing(series: pd.Series[float]) -> float:
    """The zero of a straight line through the differences."""
    m = series.index.to_numpy(dtype=float)
    far = m >= LINE_FROM
    if far.sum() < 3:
        return math.nan
    slope, start = np.polyfit(m[far], series.to_numpy(dtype=float)[far], 1)
    return float(-start / slope) if slope < 0 else math.nan


def _ns2_errors(reference: Reference, variant: str, p: float) -> pd.Series[float]:
    found = ns2_newreno(reference, impatient=variant == IMP, p=p)
    expected = {
        m: predict(
            MODEL_OF[variant], Conditions(float(each), PAPER_RTT_S, float(str(m)), NS2_RTO_S)
        )
        for m, each in found["p"].items()
    }
    numbers = pd.Series({m: each for m, each in expected.items() if not isinstance(each, Invalid)})
    return (numbers / found["goodput_pps"] - 1).dropna()


def _ns2_crossing(reference: Reference, p: float) -> str:
    steady, impatient = (
        ns2_newreno(reference, impatient=each == IMP, p=p)["goodput_pps"] for each in NAMES
    )
    at = crossing((2 * (steady - impatient) / (steady + impatient)).dropna())
    return LOSSES.write(at) if math.isfinite(at) else ""


def _where_they_part(flows: pd.DataFrame, p: float, at: str) -> list[Part]:
    by_seed = difference(flows)
    critical: Sample = {seed: first_apart(each) for seed, each in by_seed.items()}
    crossings: Sample = {seed: crossing(each) for seed, each in by_seed.items()}
    first = PMW_FIRST_IMPATIENT[p] - 0.5
    return [
        within(
            f"m* at {at}",
            LOSSES,
            critical,
            PMW_CRITICAL_LOSSES - 0.5,
            PMW_CRITICAL_LOSSES + 0.5,
        ),
        within(f"crossing at {at}", LOSSES, crossings, first - NEAR_LOSSES, first + NEAR_LOSSES),
    ]


def regions(group: Group) -> Finding:
    """The leading form in each region, and m_t according to the equations."""
    parts: list[Part] = []
    rows: list[Row] = []
    for reading, own in readings(group):
        for p in chances(own):
            flows, at = of_chance(own, p), f"p = {p:.2%}{reading}"
            parts += [_ahead(flows, *each) for each in _ranges(p, at, flows)]
            turn = _equations_crossing(flows, p)
            wanted = PMW_CROSSINGS[p]
            near = wanted - EQUATIONS_NEAR, wanted + EQUATIONS_NEAR
            parts.append(within(f"m_t by the equations at {at}", LOSSES, turn, *near))
            crossings = {seed: crossing(each) for seed, each in difference(flows).items()}
            ns2 = "" if reading else _ns2_crossing(own.reference, p)
            where = f"where the trials cross, {at}"
            rows.append(Row(where, spread(LOSSES, crossings), f"{wanted}", ns2))
            rows.append(Row(f"m_t by the equations, {at}", spread(LOSSES, turn), f"{wanted}"))
    return Finding(tuple(parts), tuple(rows))


def _ranges(p: float, at: str, flows: pd.DataFrame) -> list[tuple[str, list[float], str, Outcome]]:
    """Each region: its name, its m, and how Slow-but-Steady compares with Impatient there."""
    there = sorted(float(m) for m in flows["axis_m"].unique())
    turn, end = PMW_CROSSINGS[p], imp_window(p) - 3
    found = [
        ("below m*", [m for m in there if m < PMW_CRITICAL_LOSSES], Outcome.EQUAL),
        (
            "between m* and m_t",
            [m for m in there if PMW_CRITICAL_LOSSES < m <= turn - APART],
            Outcome.ABOVE,
        ),
        ("above m_t", [m for m in there if turn + APART <= m <= end], Outcome.BELOW),
    ]
    return [(f"{name}, {at}", ms, NAMES[SBS], wanted) for name, ms, wanted in found if ms]


def _ahead(
    flows: pd.DataFrame, where: str, ms: Sequence[float], hero: str, wanted: Outcome
) -> Part:
    own = flows[flows["axis_m"].isin(ms)]
    found = samples(own, "goodput_mbps", "variant", ["axis_m"])
    pair = (hero, found.get(SBS, {}), NAMES[IMP], found.get(IMP, {}))
    return all_are(wanted, contrasts(RATE, [pair], paired=True), where)


def _equations_crossing(flows: pd.DataFrame, p: float) -> Sample:
    """By seed, with the timer and the round-trip time of Impatient's flows, and the configured
    p."""
    timers = flows[flows["variant"] == IMP]
    turns = {}
    for seed, own in timers.groupby("seed"):
        rto = float(own["rto_at_timeout_ms"].mean())
        if math.isfinite(rto):
            turns[int(float(str(seed)))] = Regions(
                rto / float(own["srtt_mean_ms"].mean())
            ).crossing(p)
    return turns
