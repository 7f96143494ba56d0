"""The claims of Parvez, Mahanti and Williamson, and how each is judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from analysis.claims.comparisons import (
    RATE,
    ClaimMeasure,
    ComparisonOutcome,
    Sample,
    all_are,
    contrasts,
    left_open,
    spread,
    within,
)
from analysis.claims.judgement import ClaimPart, ClaimVerdict, Finding, JudgedPart, NumberRow
from analysis.claims.ledger import Claim, Paper
from analysis.claims.samples import Group, Reference, means, sample, samples, sweeps
from analysis.metrics.digest import NotMeasured
from analysis.throughput_models import Conditions, Invalid
from experiments.parvez_mahanti_williamson.models import (
    MODEL_OF,
    Regions,
    imp_window,
    predict,
    with_model,
)
from experiments.parvez_mahanti_williamson.printed import (
    PMW_CRITICAL_LOSSES,
    PMW_CROSSINGS,
    PMW_FIRST_IMPATIENT,
    PMW_LOSSES_PER_EVENT,
    PMW_MEAN_ERROR,
    PMW_MODEL_ERRORS,
    PMW_STEADY_AHEAD,
    PMW_TABLE_2,
    PMW_WORST_ERROR,
)

FINE_TICK_S = 0.01  # of ns-2's timers: with 0.1 s, four losses cause no timeout


def ns2_newreno(reference: Reference, *, impatient: bool, p: float) -> pd.DataFrame:
    """By m, with a timer of at least 0.2 s: `goodput_pps`, and `p`, the rate of events met."""
    table = reference.table("parvez_ns2.csv")
    if table.empty:
        return pd.DataFrame(columns=["goodput_pps", "p"], dtype=float)
    chosen = (table["mode"] == "B") & (table["tick"] == FINE_TICK_S) & (table["p"] == p)
    own = table[chosen & (table["imp"] == impatient)]
    means = own.groupby("m")[["goodput_pps", "p_meas"]].mean()
    return means.rename(columns={"p_meas": "p"})


SBS, IMP = "newreno", "newreno-impatient"
NAMES = {SBS: "Slow-but-Steady", IMP: "Impatient"}
PERCENT = ClaimMeasure("%", 2, factor=100, absolute=1e-3)
EVENT_LOSSES = ClaimMeasure("losses", 1, absolute=0.5)
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
    and, where they were run, with evenly spaced ones, as its equations assume.
    """
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


def events_accuracy(group: Group) -> Finding:
    """The models' largest errors, m*, and where the forms cross."""
    parts: list[ClaimPart] = []
    rows: list[NumberRow] = []
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


def _of_means(what: str, value: float, most: float, seeds: int) -> ClaimPart:
    """A number from all seeds at once, which has no spread over them, compared with a bound."""
    if seeds < SEEDS or not math.isfinite(value):
        verdict = ClaimVerdict.OPEN
    else:
        verdict = ClaimVerdict.SUPPORTED if value <= most else ClaimVerdict.CONTRADICTED
    said = f"{what} {PERCENT.write(value)} (required: at most {PERCENT.write(most)})"
    effect = f"{what} {PERCENT.write(value)}"
    result = JudgedPart(verdict, said, "largest over m, of the means over seeds", effect, n=seeds)
    return ClaimPart((), lambda _: result)


def _error_row(
    flows: pd.DataFrame,
    variant: str,
    at: str,
    printed: tuple[float, float],
    ns2: pd.Series[float] | None,
) -> NumberRow:
    return NumberRow(
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
    return EVENT_LOSSES.write(at) if math.isfinite(at) else ""


def _where_they_part(flows: pd.DataFrame, p: float, at: str) -> list[ClaimPart]:
    by_seed = difference(flows)
    critical: Sample = {seed: first_apart(each) for seed, each in by_seed.items()}
    crossings: Sample = {seed: crossing(each) for seed, each in by_seed.items()}
    first = PMW_FIRST_IMPATIENT[p] - 0.5
    return [
        within(
            f"m* at {at}",
            EVENT_LOSSES,
            critical,
            PMW_CRITICAL_LOSSES - 0.5,
            PMW_CRITICAL_LOSSES + 0.5,
        ),
        within(
            f"crossing at {at}", EVENT_LOSSES, crossings, first - NEAR_LOSSES, first + NEAR_LOSSES
        ),
    ]


def regions(group: Group) -> Finding:
    """The leading form in each region, and m_t according to the equations."""
    parts: list[ClaimPart] = []
    rows: list[NumberRow] = []
    for reading, own in readings(group):
        for p in chances(own):
            flows, at = of_chance(own, p), f"p = {p:.2%}{reading}"
            parts += [_ahead(flows, *each) for each in _ranges(p, at, flows)]
            turn = _equations_crossing(flows, p)
            wanted = PMW_CROSSINGS[p]
            near = wanted - EQUATIONS_NEAR, wanted + EQUATIONS_NEAR
            parts.append(within(f"m_t by the equations at {at}", EVENT_LOSSES, turn, *near))
            crossings = {seed: crossing(each) for seed, each in difference(flows).items()}
            ns2 = "" if reading else _ns2_crossing(own.reference, p)
            where = f"where the trials cross, {at}"
            rows.append(NumberRow(where, spread(EVENT_LOSSES, crossings), f"{wanted}", ns2))
            rows.append(
                NumberRow(f"m_t by the equations, {at}", spread(EVENT_LOSSES, turn), f"{wanted}")
            )
    return Finding(tuple(parts), tuple(rows))


def _ranges(
    p: float, at: str, flows: pd.DataFrame
) -> list[tuple[str, list[float], str, ComparisonOutcome]]:
    """Each region: its name, its m, and how Slow-but-Steady compares with Impatient there."""
    there = sorted(float(m) for m in flows["axis_m"].unique())
    turn, end = PMW_CROSSINGS[p], imp_window(p) - 3
    found = [
        ("below m*", [m for m in there if m < PMW_CRITICAL_LOSSES], ComparisonOutcome.EQUAL),
        (
            "between m* and m_t",
            [m for m in there if PMW_CRITICAL_LOSSES < m <= turn - APART],
            ComparisonOutcome.ABOVE,
        ),
        ("above m_t", [m for m in there if turn + APART <= m <= end], ComparisonOutcome.BELOW),
    ]
    return [(f"{name}, {at}", ms, NAMES[SBS], wanted) for name, ms, wanted in found if ms]


def _ahead(
    flows: pd.DataFrame, where: str, ms: Sequence[float], hero: str, wanted: ComparisonOutcome
) -> ClaimPart:
    own = flows[flows["axis_m"].isin(ms)]
    found = samples(own, "goodput_mbps", "variant", ["axis_m"])
    pair = (hero, found.get(SBS, {}), NAMES[IMP], found.get(IMP, {}))
    return all_are(wanted, contrasts(RATE, [pair], paired=True), where)


def _equations_crossing(flows: pd.DataFrame, p: float) -> Sample:
    """By seed, with the timer and the round-trip time of Impatient's flows, and the configured
    p.
    """
    timers = flows[flows["variant"] == IMP]
    turns = {}
    for seed, own in timers.groupby("seed"):
        rto = float(own["rto_at_timeout_ms"].mean())
        if math.isfinite(rto):
            turns[int(float(str(seed)))] = Regions(
                rto / float(own["srtt_mean_ms"].mean())
            ).crossing(p)
    return turns


BACKGROUND_LOSSES = ClaimMeasure("losses", 2, absolute=0.05)
MODERATE = (4, 199)  # sessions: the paper's "4 to 200"; its table ends at 192
MOST = 256
ERROR_NEAR = 0.05
OVER_AT_MOST = 0.10
LEAD_NEAR = 0.055
QUEUES = ("droptail", "red")
# ns-2's drops between the upper threshold and its double with a probability that rises to 1;
# Linux's drops all, so that more of a burst is lost at once.
NOT_GENTLE = "Linux's RED is not gentle, as ns-2's is by default"


def between(rows: pd.DataFrame, low: float, high: float) -> pd.DataFrame:
    """The foreground flows among this many sessions."""
    return rows[rows["axis_sessions"].between(low, high)]


def of_queue(group: Group, queue: str) -> pd.DataFrame:
    """The flows through this queue, compared with their models."""
    if queue not in group.values("queue"):
        raise NotMeasured(f"no usable trials with {queue}", f"testbed run {group.experiment}")
    rows = group.where(queue=queue).rows
    return with_model(rows[rows["kind"] == "tcp"])


def over_sessions(rows: pd.DataFrame, variant: str, metric: str) -> Sample:
    """By seed, the mean over the numbers of sessions."""
    return sample(rows[rows["variant"] == variant], metric, ["axis_sessions"])


def background_accuracy(group: Group) -> Finding:
    """The model's mean error, and the losses per event."""
    parts: list[ClaimPart] = []
    for queue in QUEUES:
        moderate = between(of_queue(group, queue), *MODERATE)
        moderate = moderate.assign(magnitude=moderate["model_error"].abs())
        printed = PMW_MEAN_ERROR[queue]  # of magnitudes: docs/papers explains why
        parts.append(
            within(
                f"mean error of the model, {queue}",
                PERCENT,
                over_sessions(moderate, SBS, "magnitude"),
                printed - ERROR_NEAR,
                printed + ERROR_NEAR,
            )
        )
    plain = of_queue(group, "droptail")
    at_most = over_sessions(between(plain, MOST, MOST), SBS, "model_error")
    parts.append(within(f"error at {MOST} sessions", PERCENT, at_most, low=OVER_AT_MOST))
    for (variant, queue), (low, high) in PMW_LOSSES_PER_EVENT.items():
        rows = of_queue(group, queue)
        rows = between(rows, *MODERATE) if queue == "droptail" else rows
        name = f"losses per event, {NAMES[variant]}, {queue}"
        found = within(
            name, BACKGROUND_LOSSES, over_sessions(rows, variant, "losses_per_event"), low, high
        )
        parts.append(left_open(found, NOT_GENTLE) if queue == "red" else found)
    return Finding(tuple(parts), (*table_rows(plain), _worst_row(at_most)))


def table_rows(rows: pd.DataFrame) -> list[NumberRow]:
    """Table II: ours beside the paper's."""
    found = []
    steady = rows[rows["variant"] == SBS]
    for line in PMW_TABLE_2:
        own = steady[steady["axis_sessions"] == line.flows]
        if own.empty:
            continue
        rtt_s = own["srtt_mean_ms"] / 1e3
        means = (
            f"p {own['loss_event_rate'].mean():.2%}, losses {own['loss_rate'].mean():.2%}, "
            f"{(own['goodput_pps'] * rtt_s).mean():.2f}, "
            f"model {(own['expected_pps'] * rtt_s).mean():.2f}"
        )
        paper = (
            f"p {line.loss_event_rate:.2%}, losses {line.loss_rate:.2%}, {line.simulated:.2f}, "
            f"model {line.predicted:.2f}"
        )
        found.append(NumberRow(f"{line.flows} sessions, segments per round trip", means, paper))
    return found


def _worst_row(at_most: Sample) -> NumberRow:
    return NumberRow(
        f"error of the model at {MOST} sessions",
        spread(PERCENT, at_most),
        PERCENT.write(PMW_WORST_ERROR, "+"),
    )


def lead(rows: pd.DataFrame, low: float, high: float) -> Sample:
    """By seed: the ratio of Slow-but-Steady's goodput to Impatient's, minus one, averaged over the
    numbers of sessions; empty where one of the two was not run.
    """
    own = between(rows, low, high)
    table = means(own, "goodput_mbps", ["seed", "axis_sessions"], "variant")
    table = table.reindex(columns=[SBS, IMP]).dropna()
    ratio = table[SBS] / table[IMP] - 1
    by_seed = ratio.groupby("seed").mean()
    return {int(float(str(seed))): float(value) for seed, value in by_seed.items()}


def ahead(group: Group) -> Finding:
    """By how much Slow-but-Steady is ahead, where, and with which queue."""
    plain, red = (of_queue(group, queue) for queue in QUEUES)
    leads = {bounds: lead(plain, *bounds) for bounds in PMW_STEADY_AHEAD}
    (few, few_printed), (many, _) = PMW_STEADY_AHEAD.items()
    parts = []
    for low, high in PMW_STEADY_AHEAD:
        found = samples(between(plain, low, high), "goodput_mbps", "variant", ["axis_sessions"])
        pair = (NAMES[SBS], found.get(SBS, {}), NAMES[IMP], found.get(IMP, {}))
        parts.append(
            all_are(
                ComparisonOutcome.ABOVE,
                contrasts(RATE, [pair], paired=True),
                f"{low} to {high} sessions",
            )
        )
    low, high = few
    parts.append(
        within(
            f"lead with {low} to {high} sessions",
            PERCENT,
            leads[few],
            few_printed - LEAD_NEAR,
            few_printed + LEAD_NEAR,
        )
    )
    narrow = lead(red, *few)
    pairs = [
        ("lead with many sessions", leads[many], "with few", leads[few]),
        ("lead with RED", narrow, "with DropTail", leads[few]),
    ]
    parts += [
        all_are(ComparisonOutcome.BELOW, contrasts(PERCENT, [pair], paired=True)) for pair in pairs
    ]
    rows = [
        NumberRow(
            f"Slow-but-Steady over Impatient, {low} to {high} sessions, DropTail",
            spread(PERCENT, leads[(low, high)]),
            PERCENT.write(printed),
        )
        for (low, high), printed in PMW_STEADY_AHEAD.items()
    ]
    rows += [
        NumberRow(
            f"Slow-but-Steady over Impatient, {low} to {high} sessions, RED",
            spread(PERCENT, lead(red, low, high)),
        )
        for low, high in PMW_STEADY_AHEAD
    ]
    return Finding(tuple(parts), tuple(rows))


_events = partial(Claim, experiment="newreno-models")
_traffic = partial(Claim, experiment="newreno-background")

CLAIMS: tuple[Claim, ...] = (
    _events(
        id="PMW1",
        words="The models are within 0.15 to 3.11 % (p = 0.05 %) and 0.20 to 6.29 % (0.10 %) of "
        "the measurement for Slow-but-Steady, 0.45 to 3.34 % and 0.74 to 5.54 % for Impatient; m* "
        "= 4; Slow-but-Steady is better up to m = 25 and 20, Impatient from 26 and 21 on.",
        tested="Events of m consecutive segments, with a timer of 200 ms like ns-2's. For each p "
        "and form, the largest error of the model over m, computed from the mean over seeds, given "
        "the measured p, m, RTT and RTO: at most the paper's. The first m from which the two forms "
        "differ by more than 2 %: 4. The m at which a straight line through the difference, from "
        "10 on, crosses zero: within 2 of 25.5 and 20.5. Events begin at random; the same is "
        "tested for evenly spaced events, where those were run (added after the first trials, "
        "which had shown that the paper's errors are those of such events).",
        judge=events_accuracy,
    ),
    _traffic(
        id="PMW2",
        words="The model of Slow-but-Steady is below the measurement by 9.78 % on average for 4 to "
        "200 flows (RED: 7.07 %), and above it by 20.64 % at 256. A loss event has 2.11 to 4.16 "
        "drops for Slow-but-Steady, 1.93 to 2.93 for Impatient; with RED 1.22 (4 flows) to 1.40 "
        "(256).",
        tested="Given the measured p, m and RTT: the mean magnitude of the error over 4 to 192 "
        "sessions is between 4.78 and 14.78 %, with RED between 2.07 and 12.07 %; at 256, the "
        "model is at least 10 % above. Losses per event, as the mean over 4 to 192 sessions, are "
        "within the paper's ranges. With RED, over all, 1.22 to 1.40: shown, but left open, since "
        "Linux's RED drops all above its upper threshold, and ns-2's is gentle.",
        judge=background_accuracy,
    ),
    _traffic(
        id="PMW3",
        words="Slow-but-Steady is ahead of Impatient by about 13.59 % for 4 to 64 background "
        "flows and by 5.54 % for 64 to 256; RED narrows the difference.",
        tested="How far Slow-but-Steady's goodput is ahead of Impatient's, by seed the mean over "
        "the numbers of sessions: above zero in both ranges; 8 to 19 % for 4 to 64, and less for "
        "64 to 256 than for 4 to 64; with RED less than without, over 4 to 64.",
        judge=ahead,
    ),
    _events(
        id="PMW4",
        words="The forms are equal for m up to 4, Slow-but-Steady is better from there to m_t = 27 "
        "at p = 0.05 % and 21 at 0.10 %, and Impatient from there to W − 3.",
        tested="By the trials' goodput, for each p: equal within 2 % for m below 4; "
        "Slow-but-Steady is above from 5 to m_t − 3; Impatient is above from m_t + 3 on. And by "
        "the equations, with the measured RTT and RTO: m_t is within 1 of the paper's.",
        judge=regions,
    ),
)

PAPER = Paper(
    "PMW", "Parvez, Mahanti, Williamson", "experiments/parvez_mahanti_williamson/README.md", CLAIMS
)


def papers() -> tuple[Paper, ...]:
    """Return the paper with its claims."""
    return (PAPER,)
