"""Comparisons of samples, and the parts of a claim that they decide.

Each comparison is one interval of what the typical network shows, and one margin. It is beyond the
margin, within it, or beyond it on the other side; else it is not clear. Orders and equalities ask
the same interval, so that more networks make neither rarer.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from analysis.claims.judgement import (
    ClaimPart,
    ClaimVerdict,
    JudgedPart,
    combine_verdicts,
    combined_p,
    decides,
    each_text_once,
)
from analysis.statistics.estimates import (
    CLAIM_LEVEL,
    Estimate,
    EstimateKind,
    coin_p,
    networks_needed,
    of_values,
    share_interval,
    share_of_all,
)
from analysis.statistics.intervals import ROUNDING, deviation, holm, known, student_p


@dataclass(frozen=True)
class ClaimMeasure:
    """A measure's notation, and the difference that is too small to matter, with the reason."""

    unit: str
    decimals: int
    factor: float = 1
    relative: float = 0.0
    absolute: float = 0.0
    why: str = ""  # the margin: a clause

    def write(self, value: float, sign: str = "") -> str:
        """Write a number with its unit."""
        if not math.isfinite(value):
            return "not known"
        return f"{value * self.factor:{sign}.{self.decimals}f} {self.unit}".rstrip()

    def margin(self, a: float, b: float) -> float:
        """Return the difference of two values up to which it is too small to matter."""
        return max(self.absolute, self.relative * (abs(a) + abs(b)) / 2)

    def half_of(self, printed: tuple[float, float]) -> ClaimMeasure:
        """Return the measure whose margin is half of the difference that a paper prints.

        It is relative where the measure's is, since a ratio can be met by other absolute numbers.
        """
        half = abs(printed[0] - printed[1]) / 2
        if self.relative:
            half /= (abs(printed[0]) + abs(printed[1])) / 2
            margins: dict[str, Any] = {"relative": half, "absolute": 0.0}
        else:
            margins = {"absolute": half}
        return replace(self, **margins, why="half of the difference that the paper prints")


RATE = ClaimMeasure("Mbit/s", 3, relative=0.02, why="what `testbed compare` has as the same rate")
DROP_RATE = ClaimMeasure(
    *("%", 3),
    factor=100,
    relative=0.05,
    absolute=1e-4,
    why="one packet in ten thousand is about one drop in a trial",
)
DELAY = ClaimMeasure(
    *("ms", 2),
    absolute=0.1,
    why="an eighth of the time of a packet of 1000 bytes at 10 Mbit/s",
)
SHARE = ClaimMeasure("%", 1, factor=100, absolute=0.01, why="2 % of a half")
RATIO = ClaimMeasure("", 3, relative=0.02, why="2 %, as for rates")
MEASURES = {
    "throughput_mbps": RATE,
    "goodput_mbps": RATE,
    "drop_rate": DROP_RATE,
    "owd_mean_ms": DELAY,
    "srtt_mean_ms": DELAY,
    "recovery_latency_mean_ms": DELAY,
    "share": SHARE,
}


Sample = Mapping[int, float]  # by seed
Pair = tuple[str, Sample, str, Sample]
SHARE_TEST = "share of the networks, exact binomial interval (Clopper–Pearson)"
LISTED_COMPARISONS = 4  # up to this many comparisons are listed one by one
EXAMPLES = 2  # of more than these, this many are given as examples


class ComparisonOutcome(enum.StrEnum):
    """The result of comparing the first sample with the second."""

    ABOVE = "above"
    EQUAL = "equal to"
    BELOW = "below"
    UNCLEAR = "not clearly different from"


@dataclass(frozen=True)
class Contrast:
    """Two samples, the difference of a network's two numbers, and what is too small to matter."""

    a: str
    b: str
    value_a: float  # of the typical network
    value_b: float
    estimate: Estimate  # of a − b, seed by seed
    margin: float
    measure: ClaimMeasure
    printed: tuple[float, float] | None = None  # what the paper has of the two

    def p_of(self, outcome: ComparisonOutcome) -> float:
        """Return the least level at which the interval shows this outcome."""
        beyond = math.nextafter(self.margin, math.inf)  # no difference is beyond no margin
        low, high = {
            ComparisonOutcome.ABOVE: (beyond, math.inf),
            ComparisonOutcome.BELOW: (-math.inf, -beyond),
            ComparisonOutcome.EQUAL: (-self.margin, self.margin),
        }[outcome]
        return self.estimate.p_within(low, high)

    @property
    def outcome(self) -> ComparisonOutcome:
        """The outcome of this comparison by itself."""
        shown = [each for each in ComparisonOutcome if each is not ComparisonOutcome.UNCLEAR]
        return next((o for o in shown if self.p_of(o) <= CLAIM_LEVEL), ComparisonOutcome.UNCLEAR)

    def said_as(self, outcome: ComparisonOutcome) -> str:
        """Write the comparison as a clause, with both numbers."""
        ours, theirs = (
            ", ".join(map(self.measure.write, values)) if values else ""
            for values in ((self.value_a, self.value_b), self.printed)
        )
        printed = f"; the paper: {theirs}" if theirs else ""
        return f"{self.a} {outcome} {self.b} ({ours}{printed})"

    @property
    def effect(self) -> str:
        """The difference."""
        return f"{self.a} − {self.b}: {self.measure.write(self.estimate.centre, '+')}"

    @property
    def interval(self) -> str:
        """The interval of the difference, with the margin; of constant numbers, how many."""
        write, (low, high) = self.measure.write, self.estimate.interval()
        why = f", {self.measure.why}" if self.measure.why else ""
        margin = f"margin {write(self.margin)}{why}"
        if not math.isfinite(low):
            return f"no interval; {margin}"
        if self.estimate.kind is EstimateKind.CONSTANT:
            return f"{write(low, '+')} {_in_all(self.n)}; {margin}"
        return f"{write(low, '+')} to {write(high, '+')}; {margin}"

    @property
    def n(self) -> int:
        """The number of seeds that both samples have."""
        return self.estimate.n

    def needed(self, wanted: ComparisonOutcome) -> int:
        """Return how many networks decide this in nine of ten cases.

        Of an order, one that is twice the margin; of an equality, one without any difference.
        """
        values = self.estimate.values
        if len(values) < 2:
            return 0
        is_equality = wanted is ComparisonOutcome.EQUAL
        return networks_needed(deviation(values), self.margin, two_sided=is_equality)


def _in_all(n: int) -> str:
    """Say that n networks have one number, and of how many that is known."""
    return f"in {n} of {n} networks (95 %: in at least {share_of_all(n):.0%} of networks)"


def mean(sample: Sample) -> float:
    """Return the mean of the known values; NaN if there are none."""
    values = known(sample.values())
    return float(values.mean()) if len(values) else math.nan


def spread(measure: ClaimMeasure, sample: Sample) -> str:
    """Write the mean ± half of its interval, or the median with its interval of ranks.

    Without an interval, as of a few numbers of two kinds, their range stands in its place.
    """
    seen = of_values(sample.values())
    value = measure.write(seen.centre)
    low, high = seen.interval()
    if seen.kind is EstimateKind.CONSTANT and seen.n:
        return f"{value} in all"
    if seen.kind is EstimateKind.STUDENT:
        return f"{value} ± {(high - low) / 2 * measure.factor:.{measure.decimals}f}"
    if seen.kind is EstimateKind.RANKS:
        return f"median {value} ({measure.write(low)} to {measure.write(high)})"
    if seen.n < 2:
        return value
    return f"{value}, from {measure.write(min(seen.values))} to {measure.write(max(seen.values))}"


def contrasts(
    measure: ClaimMeasure,
    pairs: Iterable[Pair],
    printed: Sequence[tuple[float, float] | None] = (),
) -> tuple[Contrast, ...]:
    """Compare the two samples of every pair, seed by seed.

    Numbers of one seed may depend on each other (two flows of a trial; trials with the same CBR,
    dropper or radio); of those that do not, pairs lose nothing. `printed` has what the paper prints
    of each pair: half of its difference is then too small to matter.
    """
    all_pairs = tuple(pairs)
    theirs = printed or (None,) * len(all_pairs)
    return tuple(_contrast(measure, *each) for each in zip(all_pairs, theirs, strict=True))


def _contrast(measure: ClaimMeasure, pair: Pair, printed: tuple[float, float] | None) -> Contrast:
    a, first, b, second = pair
    used = measure.half_of(printed) if printed else measure
    estimate = of_values(_differences(first, second))
    by_ranks = estimate.kind is EstimateKind.RANKS
    value_a, value_b = (_typical(each, by_ranks) for each in (first, second))
    margin = used.margin(value_a, value_b)
    return Contrast(a, b, value_a, value_b, estimate, margin, used, printed)


def _typical(sample: Sample, by_ranks: bool) -> float:
    return float(np.median(known(sample.values()))) if by_ranks else mean(sample)


def _differences(first: Sample, second: Sample) -> list[float]:
    """Return the differences by seed, exactly 0 where only rounding differs."""
    pairs = [(first[seed], second[seed]) for seed in sorted(first.keys() & second.keys())]
    return [0.0 if abs(a - b) <= ROUNDING * max(abs(a), abs(b)) else a - b for a, b in pairs]


OPPOSITE_ORDER = {
    ComparisonOutcome.ABOVE: ComparisonOutcome.BELOW,
    ComparisonOutcome.BELOW: ComparisonOutcome.ABOVE,
}


@dataclass(frozen=True)
class _Judgement:
    """A comparison's verdict, and p of the verdicts that it might have."""

    wanted: ComparisonOutcome

    def p_supported(self, contrast: Contrast) -> float:
        return contrast.p_of(self.wanted)

    def p_against(self, contrast: Contrast) -> float:
        if not contrast.n or contrast.estimate.kind is EstimateKind.NOT_KNOWN:
            return math.nan
        return min(p for p, _ in self._against(contrast))

    def _against(self, contrast: Contrast) -> list[tuple[float, ComparisonOutcome]]:
        if self.wanted is ComparisonOutcome.EQUAL:
            shown = [ComparisonOutcome.ABOVE, ComparisonOutcome.BELOW]
        else:
            shown = [OPPOSITE_ORDER[self.wanted], ComparisonOutcome.EQUAL]
        return [(contrast.p_of(outcome), outcome) for outcome in shown]

    def judged(
        self, contrast: Contrast, corrected: float, level: float
    ) -> tuple[ClaimVerdict, ComparisonOutcome, float]:
        """Return the verdict, the outcome in words, and p of the verdict."""
        supported = self.p_supported(contrast)
        if supported <= level:
            return ClaimVerdict.SUPPORTED, self.wanted, supported
        if not corrected <= level:
            return ClaimVerdict.OPEN, ComparisonOutcome.UNCLEAR, math.nan
        _, outcome = min(self._against(contrast))
        verdict = ClaimVerdict.CONTRADICTED
        if outcome is ComparisonOutcome.EQUAL:
            # the margin is half of what is printed, so that this is excluded
            verdict = ClaimVerdict.REFUTED if contrast.printed else ClaimVerdict.TOO_SMALL
        return verdict, outcome, corrected


def all_are(wanted: ComparisonOutcome, compared: Sequence[Contrast], where: str = "") -> ClaimPart:
    """Require that every contrast has the outcome `wanted`.

    One within the margin is too small to matter, or refuted if the paper's number is known and
    excluded. An unclear one is open, and another contradicts.
    """
    judgement = _Judgement(wanted)
    against = tuple(judgement.p_against(each) for each in compared)
    return ClaimPart(against, partial(_all_judged, judgement, tuple(compared), where))


def _all_judged(
    judgement: _Judgement,
    compared: Sequence[Contrast],
    where: str,
    corrected: Sequence[float],
    level: float,
) -> JudgedPart:
    results = [
        (each, *judgement.judged(each, p, level))
        for each, p in zip(compared, corrected, strict=True)
    ]
    verdicts = [verdict for _, verdict, _, _ in results]
    verdict = combine_verdicts(verdicts)
    told = [each for each in results if decides(verdict, each[1])]
    told = sorted(told, key=lambda each: -abs(each[0].estimate.centre))
    alike = len(compared) <= LISTED_COMPARISONS and verdict is not ClaimVerdict.PARTLY
    tally = "" if alike else f"{_outcome_tally([o for _, _, o, _ in results])}; e.g. "
    if len(compared) > LISTED_COMPARISONS:
        tally = f"{_hold_at_once(judgement, compared)}: {tally}"
    texts = _said(
        [(each, o) for each, _, o, _ in told[: EXAMPLES if tally else LISTED_COMPARISONS]]
    )
    shown = [each for each, *_ in told[:LISTED_COMPARISONS]]
    return JudgedPart(
        verdict,
        f"{where + ': ' if where else ''}{tally}{', '.join(texts)}",
        each_text_once(each.estimate.kind for each in compared),
        ", ".join(each.effect for each in shown),
        ", ".join(each.interval for each in shown),
        min((each.n for each in compared), default=0),
        p=combined_p(verdict, [(v, p) for _, v, _, p in results]),
        needed=max((each.needed(judgement.wanted) for each in compared), default=0),
    )


def _hold_at_once(judgement: _Judgement, compared: Sequence[Contrast]) -> str:
    """Say how many of many comparisons hold, with a simultaneous interval (Holm on either side)."""
    sure, not_so = (
        int((holm(p(each) for each in compared) <= CLAIM_LEVEL).sum())
        for p in (judgement.p_supported, judgement.p_against)
    )
    most = len(compared) - not_so
    many = f"{sure}" if sure == most else f"{sure} to {most}"
    return f"{many} of {len(compared)} hold (95 %, all at once)"


def _said(told: Iterable[tuple[Contrast, ComparisonOutcome]]) -> list[str]:
    """Put contrasts into words; one that holds against several samples is stated once."""
    groups: dict[tuple[object, ...], list[tuple[Contrast, ComparisonOutcome]]] = {}
    for each, outcome in told:
        key = (each.a, outcome, each.value_a, each.printed and each.b)
        groups.setdefault(key, []).append((each, outcome))
    return [
        group[0][0].said_as(group[0][1])
        if len(group) == 1
        else _to_several([each for each, _ in group], group[0][1])
        for group in groups.values()
    ]


def _to_several(group: Sequence[Contrast], outcome: ComparisonOutcome) -> str:
    first = group[0]
    means = [first.measure.write(each.value_b) for each in group]
    mine = first.measure.write(first.value_a)
    names = [each.b for each in group]
    if {mine} == set(means):
        listed = f"{', '.join(names[:-1])} and {names[-1]} (all {mine})"
        return f"{first.a} {outcome} {listed}"
    listed = ", ".join(f"{name} ({value})" for name, value in zip(names, means, strict=True))
    return f"{first.a} ({mine}) {outcome} {listed}"


def _outcome_tally(outcomes: Sequence[ComparisonOutcome]) -> str:
    """Count the outcomes, as in `above in 3 of 30, equal in 27`."""
    phrases = {
        ComparisonOutcome.EQUAL: "equal",
        ComparisonOutcome.UNCLEAR: "not clearly different",
    }
    counts = {each: outcomes.count(each) for each in ComparisonOutcome if each in outcomes}
    texts = [f"{phrases.get(outcome, str(outcome))} in {n}" for outcome, n in counts.items()]
    return f"of {len(outcomes)} comparisons " + ", ".join(texts)


def within(
    what: str, measure: ClaimMeasure, sample: Sample, low: float = -math.inf, high: float = math.inf
) -> ClaimPart:
    """Require that the typical network's number lies within bounds, which are the margin.

    It is open if the interval crosses one of them, and contradicted if it is beyond one.
    """
    estimate = of_values(sample.values())
    if estimate.kind is EstimateKind.NOT_KNOWN:
        against = math.nan
    else:
        sides = (
            (-math.inf, math.nextafter(low, -math.inf)),
            (math.nextafter(high, math.inf), math.inf),
        )
        against = min(estimate.p_within(*each) for each in sides if each[0] < each[1])
    return ClaimPart((against,), partial(_bounded, what, measure, estimate, low, high))


ABOUT_HALF = (1 / 3, 2 / 3)  # a share of which neither most nor few networks can be said


def in_most(what: str, holds: Mapping[int, bool | None], detail: str = "") -> ClaimPart:
    """Require that something holds in more than half of the networks.

    For numbers of two kinds, whose mean no trial has. If the share's interval is about a half, the
    answer is in part. A seed without an answer (None) counts against whichever side the others are
    on.
    """
    unknown = sum(each is None for each in holds.values())
    yes, n = sum(each is True for each in holds.values()), len(holds)
    missing = f", not known in {unknown}" if unknown else ""
    effect = f"{what} in {yes} of {n} networks{missing}{f' ({detail})' if detail else ''}"

    def judge(corrected: Sequence[float], level: float) -> JudgedPart:
        low, high = share_interval(yes, n, level)[0], share_interval(yes + unknown, n, level)[1]
        verdict, p = ClaimVerdict.OPEN, math.nan
        if n and coin_p(n - yes, n) <= level:
            verdict, p = ClaimVerdict.SUPPORTED, coin_p(n - yes, n)
        elif corrected[0] <= level:
            verdict, p = ClaimVerdict.CONTRADICTED, corrected[0]
        elif n and ABOUT_HALF[0] <= low and high <= ABOUT_HALF[1]:
            verdict, p = ClaimVerdict.PARTLY, level
        interval = f"{SHARE.write(low)} to {SHARE.write(high)} of the networks"
        return JudgedPart(
            verdict, effect, SHARE_TEST, effect, interval, n - unknown, p=p, needed=NEEDED_OF_SHARES
        )

    return ClaimPart((coin_p(yes + unknown, n) if n else math.nan,), judge)


NEEDED_OF_SHARES = 44  # networks: nine of ten cases, where it holds in one or three of four


def _bounded(
    what: str,
    measure: ClaimMeasure,
    estimate: Estimate,
    low: float,
    high: float,
    corrected: Sequence[float],
    level: float,
) -> JudgedPart:
    inside = estimate.p_within(low, high)
    verdict, p = ClaimVerdict.OPEN, math.nan
    if inside <= level:
        verdict, p = ClaimVerdict.SUPPORTED, inside
    elif corrected[0] <= level:
        verdict, p = ClaimVerdict.CONTRADICTED, corrected[0]
    effect = f"{what} {measure.write(estimate.centre)}"
    ends = estimate.interval()
    interval = " to ".join(map(measure.write, ends)) if math.isfinite(ends[0]) else "no interval"
    if estimate.kind is EstimateKind.CONSTANT:
        interval = f"{measure.write(estimate.centre)} {_in_all(estimate.n)}"
    return JudgedPart(
        verdict,
        f"{effect} (required: {_bounds(measure, low, high)})",
        estimate.kind,
        effect,
        interval,
        estimate.n,
        p=p,
        needed=_needed_within(measure, estimate, low, high),
    )


def _needed_within(measure: ClaimMeasure, estimate: Estimate, low: float, high: float) -> int:
    """Return how many networks show a number in the middle of bounds, or a margin from one."""
    if estimate.n < 2:
        return 0
    two_sided = math.isfinite(low) and math.isfinite(high)
    bound = low if math.isfinite(low) else high
    distance = (high - low) / 2 if two_sided else measure.margin(bound, bound)
    return networks_needed(deviation(estimate.values), distance, two_sided=two_sided)


def _bounds(measure: ClaimMeasure, low: float, high: float) -> str:
    if math.isinf(high):
        return f"at least {measure.write(low)}"
    if math.isinf(low):
        return f"at most {measure.write(high)}"
    return f"{measure.write(low)} to {measure.write(high)}"


def students_p(first: Iterable[float], second: Iterable[float]) -> float:
    """Return p of the papers' t-test: equal variances, one tail, their own samples."""
    return student_p(first, second)


def relative(first: Sample, second: Sample) -> Sample:
    """Return the ratio of the first to the second, seed by seed."""
    seeds = sorted(first.keys() & second.keys())
    return {seed: first[seed] / second[seed] for seed in seeds if second[seed]}
