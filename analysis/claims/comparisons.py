"""Comparisons of samples, and the parts of a claim that they decide."""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from analysis.claims.judgement import (
    ClaimPart,
    ClaimVerdict,
    JudgedPart,
    combine_verdicts,
    decides,
)
from analysis.statistics.intervals import (
    Comparison,
    ComparisonKind,
    compare,
    compare_paired,
    half_width,
    known,
    more_than_half,
    student_p,
)


@dataclass(frozen=True)
class ClaimMeasure:
    """A measure's notation, and the difference below which two values count as equal."""

    unit: str
    decimals: int
    factor: float = 1
    relative: float = 0.0
    absolute: float = 0.0

    def write(self, value: float, sign: str = "") -> str:
        """Write a number with its unit."""
        if not math.isfinite(value):
            return "not known"
        return f"{value * self.factor:{sign}.{self.decimals}f} {self.unit}".rstrip()

    def margin(self, a: float, b: float) -> float:
        """Return the difference of two values up to which they count as equal."""
        return max(self.absolute, self.relative * (abs(a) + abs(b)) / 2)


# 2 %: what `testbed compare` treats as the same rate; 5 % of a drop rate, or one packet in ten
# thousand: about one drop in a trial; 0.1 ms: an eighth of the time that a packet of 1000 bytes
# takes at 10 Mbit/s; 1 percentage point of a share: 2 % of a half.
RATE = ClaimMeasure("Mbit/s", 3, relative=0.02)
DROP_RATE = ClaimMeasure("%", 3, factor=100, relative=0.05, absolute=1e-4)
DELAY = ClaimMeasure("ms", 2, absolute=0.1)
SHARE = ClaimMeasure("%", 1, factor=100, absolute=0.01)
RATIO = ClaimMeasure("", 3, relative=0.02)
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
SIGNIFICANT = 0.05
WELCH = "Welch's t, two-sided, Holm over the claim's comparisons"
PAIRED = "paired t (by seed), two-sided, Holm over the claim's comparisons"
STUDENT = "Student's 95 % interval of the mean over seeds, Holm over the claim's comparisons"
SIGN_TEST = "sign test of the seeds (two-sided, Clopper–Pearson), Holm over the claim's comparisons"
LISTED_COMPARISONS = 4  # up to this many comparisons are listed one by one
EXAMPLES = 2  # of more than these, this many are given as examples


class ComparisonOutcome(enum.StrEnum):
    """The result of comparing the first sample with the second."""

    ABOVE = "above"
    EQUAL = "equal to"
    BELOW = "below"
    UNCLEAR = "not significantly different from"


@dataclass(frozen=True)
class Contrast:
    """Two samples and how they compare."""

    a: str
    b: str
    mean_a: float
    mean_b: float
    comparison: Comparison
    p: float  # of the outcome; NaN if there is nothing to test
    outcome: ComparisonOutcome  # of this comparison alone, until `among` has judged it
    measure: ClaimMeasure
    test: str = WELCH

    @property
    def said(self) -> str:
        """The comparison as a clause, with both means."""
        write = self.measure.write
        return f"{self.a} {self.outcome} {self.b} ({write(self.mean_a)}, {write(self.mean_b)})"

    @property
    def effect(self) -> str:
        """The difference, and Cohen's d."""
        d = self.comparison.cohen_d
        size = f", d = {d:.3g}" if math.isfinite(d) and d else ""
        return f"{self.a} − {self.b}: {self.measure.write(self.comparison.difference, '+')}{size}"

    @property
    def interval(self) -> str:
        """The interval of the difference, and p."""
        c = self.comparison
        if not math.isfinite(c.low):
            return "no interval"
        write = self.measure.write
        constant = "" if c.kind is ComparisonKind.TESTED else f", {c.kind}"
        return f"{write(c.low, '+')} to {write(c.high, '+')}{constant}{_p(self.p)}"

    @property
    def n(self) -> int:
        """The number of seeds of the smaller sample."""
        return min(self.comparison.n_a, self.comparison.n_b)

    def verdict(
        self, wanted: ComparisonOutcome, also: Collection[ComparisonOutcome]
    ) -> ClaimVerdict:
        """Judge the outcome by the one that a claim wants, or others that it allows."""
        if self.outcome is wanted or self.outcome in also:
            return ClaimVerdict.SUPPORTED
        if self.outcome is ComparisonOutcome.EQUAL:
            return ClaimVerdict.TOO_SMALL
        near = min(abs(self.comparison.low), abs(self.comparison.high))
        margin = self.measure.margin(self.mean_a, self.mean_b)
        perhaps = wanted is ComparisonOutcome.EQUAL and near <= margin
        if self.outcome is ComparisonOutcome.UNCLEAR or perhaps:
            return ClaimVerdict.OPEN
        return ClaimVerdict.CONTRADICTED

    def among(self, corrected: float) -> Contrast:
        """Return this comparison with p corrected for the number of the claim's comparisons."""
        outcome = self.outcome if _sure(corrected) else ComparisonOutcome.UNCLEAR
        return replace(self, p=corrected, outcome=outcome)


def _sure(p: float) -> bool:
    """Return whether a comparison is significant; without a p it is not."""
    return p < SIGNIFICANT


def _p(p: float) -> str:
    return f", p = {p:.2g}" if math.isfinite(p) else ""


def mean(sample: Sample) -> float:
    """Return the mean of the known values; NaN if there are none."""
    values = known(sample.values())
    return float(values.mean()) if len(values) else math.nan


def spread(measure: ClaimMeasure, sample: Sample) -> str:
    """Write the mean, and half of its interval where there is one."""
    half = half_width(sample.values())
    value = measure.write(mean(sample))
    return (
        f"{value} ± {half * measure.factor:.{measure.decimals}f}" if math.isfinite(half) else value
    )


def contrasts(
    measure: ClaimMeasure, pairs: Iterable[tuple[str, Sample, str, Sample]], *, paired: bool = False
) -> tuple[Contrast, ...]:
    """Compare the two samples of every pair.

    `paired` is for numbers of one seed that are not independent: of two flows of a trial, or of two
    trials that share the seed's CBR, dropper or radio. Their differences seed by seed are tested.
    """
    compared = compare_paired if paired else _independent
    test = PAIRED if paired else WELCH
    result = []
    for a, first, b, second in pairs:
        comparison, means = compared(first, second), (mean(first), mean(second))
        margin = measure.margin(*means)
        outcome = _outcome(comparison, margin)
        p = comparison.p
        if outcome is ComparisonOutcome.EQUAL:  # how clearly the difference is below the margin
            nearer = math.copysign(margin, comparison.difference)
            moved = {seed: value - nearer for seed, value in first.items()}
            p = compared(moved, second).p
        result.append(Contrast(a, b, *means, comparison, p, outcome, measure, test))
    return tuple(result)


def _independent(first: Sample, second: Sample) -> Comparison:
    return compare(first.values(), second.values())


def _outcome(found: Comparison, margin: float) -> ComparisonOutcome:
    if found.kind is ComparisonKind.NOT_KNOWN:
        return ComparisonOutcome.UNCLEAR
    if max(abs(found.low), abs(found.high)) <= margin:
        return ComparisonOutcome.EQUAL
    if found.low > 0:
        return ComparisonOutcome.ABOVE
    return ComparisonOutcome.BELOW if found.high < 0 else ComparisonOutcome.UNCLEAR


def all_are(
    wanted: ComparisonOutcome,
    found: Sequence[Contrast],
    where: str = "",
    also: tuple[ComparisonOutcome, ...] = (),
) -> ClaimPart:
    """Require that every contrast has the outcome `wanted`, or one of `also`.

    One within the margin is too small to matter, an unclear one is open, and another refutes.
    """
    judge = partial(_all_judged, wanted, also, tuple(found), where)
    return ClaimPart(tuple(each.p for each in found), judge)


def _all_judged(
    wanted: ComparisonOutcome,
    also: tuple[ComparisonOutcome, ...],
    alone: Sequence[Contrast],
    where: str,
    p: Sequence[float],
) -> JudgedPart:
    found = [each.among(corrected) for each, corrected in zip(alone, p, strict=True)]
    verdicts = [each.verdict(wanted, also) for each in found]
    verdict = combine_verdicts(verdicts)
    told = [each for each, one in zip(found, verdicts, strict=True) if decides(verdict, one)]
    told = sorted(told, key=lambda each: -abs(each.comparison.difference))
    alike = len(found) <= LISTED_COMPARISONS and verdict is not ClaimVerdict.PARTLY
    tally = "" if alike else f"{_outcome_tally(found)}; e.g. "
    texts = _said(told[: EXAMPLES if tally else LISTED_COMPARISONS])
    return JudgedPart(
        verdict,
        f"{where + ': ' if where else ''}{tally}{', '.join(texts)}",
        ", ".join(dict.fromkeys(each.test for each in found)),
        ", ".join(each.effect for each in told[:LISTED_COMPARISONS]),
        ", ".join(each.interval for each in told[:LISTED_COMPARISONS]),
        min((each.n for each in found), default=0),
    )


def _said(told: Sequence[Contrast]) -> list[str]:
    """Put contrasts into words; one that holds against several samples is stated once."""
    groups: dict[tuple[str, ComparisonOutcome, float], list[Contrast]] = {}
    for each in told:
        groups.setdefault((each.a, each.outcome, each.mean_a), []).append(each)
    return [own[0].said if len(own) == 1 else _to_several(own) for own in groups.values()]


def _to_several(own: Sequence[Contrast]) -> str:
    first = own[0]
    means = [first.measure.write(each.mean_b) for each in own]
    mine = first.measure.write(first.mean_a)
    names = [each.b for each in own]
    if {mine} == set(means):
        listed = f"{', '.join(names[:-1])} and {names[-1]} (all {mine})"
        return f"{first.a} {first.outcome} {listed}"
    listed = ", ".join(f"{name} ({value})" for name, value in zip(names, means, strict=True))
    return f"{first.a} ({mine}) {first.outcome} {listed}"


def _outcome_tally(found: Sequence[Contrast]) -> str:
    """Count the outcomes, as in `above in 3 of 30, equal in 27`."""
    words = {
        ComparisonOutcome.EQUAL: "equal",
        ComparisonOutcome.UNCLEAR: "not significantly different",
    }
    counts = {
        outcome: sum(each.outcome is outcome for each in found)
        for outcome in ComparisonOutcome
        if any(each.outcome is outcome for each in found)
    }
    texts = [f"{words.get(outcome, str(outcome))} in {n}" for outcome, n in counts.items()]
    return f"of {len(found)} comparisons " + ", ".join(texts)


def within(
    what: str, measure: ClaimMeasure, sample: Sample, low: float = -math.inf, high: float = math.inf
) -> ClaimPart:
    """Require that the mean lies between bounds; open if its interval crosses one of them."""
    centre = mean(sample)
    nearer = min(low, high, key=lambda bound: abs(centre - bound))
    p = compare_paired(sample, dict.fromkeys(sample, nearer)).p
    return ClaimPart((p,), partial(_bounded, what, measure, sample, low, high))


def in_most(what: str, holds: Mapping[int, bool | None], detail: str = "") -> ClaimPart:
    """Require that something holds in more than half of the seeds.

    For numbers of two kinds, whose mean no trial has. A seed without an answer (None) counts
    against whichever side the others are on.
    """
    unknown = sum(each is None for each in holds.values())
    yes = sum(each is True for each in holds.values())
    n = len(holds)
    ahead = 2 * yes > n - unknown
    successes = yes if ahead else yes + unknown
    low, high, p = more_than_half(successes, n) if n else (0.0, 1.0, math.nan)
    if (2 * successes <= n) if ahead else (2 * successes >= n):
        p = 1.0
    verdict = ClaimVerdict.SUPPORTED if ahead else ClaimVerdict.CONTRADICTED
    missing = f", not known in {unknown}" if unknown else ""
    effect = f"{what} in {yes} of {n} seeds{missing}{f' ({detail})' if detail else ''}"
    share = f"{SHARE.write(low)} to {SHARE.write(high)} of the seeds"

    def judge(corrected: Sequence[float]) -> JudgedPart:
        decided = verdict if _sure(corrected[0]) else ClaimVerdict.OPEN
        interval = f"{share}{_p(corrected[0])}"
        return JudgedPart(decided, effect, SIGN_TEST, effect, interval, n - unknown)

    return ClaimPart((p,), judge)


def left_open(part: ClaimPart, because: str) -> ClaimPart:
    """Keep a part open, since the set-up is not the paper's and cannot be made so."""
    return ClaimPart((), lambda _: _without_answer(part.judge(part.p), because))


def _without_answer(found: JudgedPart, because: str) -> JudgedPart:
    said = f"{found.said}, and {because}"
    return replace(found, verdict=ClaimVerdict.OPEN, said=said)


def _bounded(
    what: str, measure: ClaimMeasure, sample: Sample, low: float, high: float, p: Sequence[float]
) -> JudgedPart:
    values = known(sample.values())
    half = half_width(values)
    centre = mean(sample)
    if not math.isfinite(half) or not _sure(p[0]):
        verdict = ClaimVerdict.OPEN
    elif centre - half >= low and centre + half <= high:
        verdict = ClaimVerdict.SUPPORTED
    elif centre + half < low or centre - half > high:
        verdict = ClaimVerdict.CONTRADICTED
    else:
        verdict = ClaimVerdict.OPEN
    interval = (
        f"{measure.write(centre - half)} to {measure.write(centre + half)}{_p(p[0])}"
        if math.isfinite(half)
        else "no interval"
    )
    said = f"{what} {measure.write(centre)} (required: {_bounds(measure, low, high)})"
    effect = f"{what} {measure.write(centre)}"
    return JudgedPart(verdict, said, STUDENT, effect, interval, len(values))


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
