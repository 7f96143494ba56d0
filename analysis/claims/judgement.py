"""Verdicts on the parts of a claim, and how they make one verdict."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from analysis.statistics.intervals import holm


class ClaimVerdict(enum.StrEnum):
    """The answer to a claim, or to one of its parts."""

    SUPPORTED = "supported"
    TOO_SMALL = "too small to matter"  # any difference lies within the margin of the test
    CONTRADICTED = "contradicted"  # significant, and of the other sign or beyond a bound
    OPEN = "open"  # not enough data, or nothing was measured
    NOT_TESTABLE = "not testable here"  # the claim says why
    PARTLY = "in part"  # some of its parts are contradicted, others not


@dataclass(frozen=True)
class DeclaredAnswer:
    """The best answer that this laboratory can give to a claim, and why; the test is shown."""

    verdict: ClaimVerdict
    because: str  # a sentence


@dataclass(frozen=True)
class TrialEvidence:
    """The trials behind an answer."""

    experiment: str
    trials: tuple[str, ...]  # folders: a few that represent the rest
    figure: str = ""


@dataclass(frozen=True)
class NumberRow:
    """One quantity: our number, the paper's, and ns-2's."""

    what: str
    ours: str
    paper: str = ""
    ns2: str = ""


@dataclass(frozen=True)
class JudgedPart:
    """The result of a part of a claim."""

    verdict: ClaimVerdict
    said: str
    test: str
    effect: str = ""
    interval: str = ""
    n: int = 0
    undefined: str = ""  # a word that decides it and that the paper leaves undefined


@dataclass(frozen=True)
class ClaimPart:
    """One or more comparisons that decide a claim, not yet judged.

    Whether a p is small enough depends on how many comparisons the whole claim makes.
    """

    p: tuple[float, ...]  # of each comparison by itself; NaN where there is nothing to test
    judge: Callable[[Sequence[float]], JudgedPart]  # asks for the same p, corrected


@dataclass(frozen=True)
class Finding:
    """The result of a claim's test on one group of trials: comparisons and numbers, no prose.

    The paper's page explains why an answer came out as it did, with the numbers of the runs that
    showed it: a sentence here would be printed whatever the present numbers say.
    """

    parts: tuple[ClaimPart, ...]
    rows: tuple[NumberRow, ...] = ()

    @property
    def p(self) -> tuple[float, ...]:
        """The p of all comparisons, in order."""
        return _all_p(self.parts)


def judge_parts(parts: Iterable[ClaimPart], corrected: Iterable[float]) -> tuple[JudgedPart, ...]:
    """Judge the parts by their p, which were corrected together."""
    numbers = iter(corrected)
    return tuple(part.judge([float(next(numbers)) for _ in part.p]) for part in parts)


def merge_parts(
    parts: Iterable[ClaimPart], merge: Callable[[tuple[JudgedPart, ...]], JudgedPart]
) -> ClaimPart:
    """Make one part of several whose results are merged."""
    own = tuple(parts)
    return ClaimPart(_all_p(own), lambda corrected: merge(judge_parts(own, corrected)))


def _all_p(parts: Iterable[ClaimPart]) -> tuple[float, ...]:
    return tuple(p for part in parts for p in part.p)


def verdicts_over_all(findings: Sequence[Finding]) -> tuple[ClaimVerdict, ...]:
    """Return the verdict on each finding if all comparisons of all findings are one family."""
    numbers = iter(holm(p for found in findings for p in found.p))
    return tuple(
        combine_verdicts(
            part.verdict for part in judge_parts(found.parts, [next(numbers) for _ in found.p])
        )
        for found in findings
    )


def combine_verdicts(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """Combine verdicts on parts: theirs if they agree; one contradicted part refutes no other."""
    distinct = set(verdicts)
    if len(distinct) > 1:
        distinct.discard(ClaimVerdict.NOT_TESTABLE)
    if len(distinct) == 1:
        return distinct.pop()
    if distinct & {ClaimVerdict.CONTRADICTED, ClaimVerdict.PARTLY}:
        return ClaimVerdict.PARTLY
    small = distinct == {ClaimVerdict.SUPPORTED, ClaimVerdict.TOO_SMALL}
    return ClaimVerdict.TOO_SMALL if small else ClaimVerdict.OPEN


def decides(verdict: ClaimVerdict, part: ClaimVerdict) -> bool:
    """Return whether a part is among those that made the verdict on the whole what it is."""
    refutes = (ClaimVerdict.PARTLY, ClaimVerdict.CONTRADICTED)
    return part in refutes if verdict is ClaimVerdict.PARTLY else part is verdict


def by_definition(name: str, parts: Iterable[tuple[str, ClaimPart]]) -> ClaimPart:
    """Make a part of an undefined word's readings: open unless all readings agree."""
    labels, own = zip(*parts, strict=True)
    return merge_parts(own, lambda results: _by_reading(name, labels, results))


def _by_reading(name: str, labels: Sequence[str], results: Sequence[JudgedPart]) -> JudgedPart:
    pairs = tuple(zip(labels, results, strict=True))
    verdicts = {part.verdict for part in results}
    disagree = len(verdicts - {ClaimVerdict.OPEN}) > 1
    agreed = verdicts.pop() if len(verdicts) == 1 else ClaimVerdict.OPEN
    return JudgedPart(
        agreed,
        f"{name}: "
        + "; ".join(f"by {label}, {part.verdict}: {part.said}" for label, part in pairs),
        each_text_once(part.test for part in results) + f"; for each reading of {name}",
        "; ".join(f"{label}: {part.effect}" for label, part in pairs),
        "; ".join(f"{label}: {part.interval}" for label, part in pairs),
        min(part.n for part in results),
        undefined=name * disagree,
    )


def require_both(first: ClaimPart, second: ClaimPart) -> ClaimPart:
    """Make one part of two that must both hold."""
    return merge_parts((first, second), _both_parts)


def _both_parts(results: tuple[JudgedPart, ...]) -> JudgedPart:
    first, second = results
    return JudgedPart(
        combine_verdicts(part.verdict for part in results),
        f"{first.said}, {second.said}",
        first.test,
        f"{first.effect}, {second.effect}",
        f"{first.interval}, {second.interval}",
        min(first.n, second.n),
    )


def each_text_once(texts: Iterable[str]) -> str:
    """Join the distinct texts in their order."""
    return "; ".join(dict.fromkeys(text for text in texts if text))
