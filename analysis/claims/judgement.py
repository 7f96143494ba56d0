"""Verdicts on the parts of a claim, and how they make one verdict."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from analysis.statistics.estimates import CLAIM_LEVEL
from analysis.statistics.intervals import holm


class ClaimVerdict(enum.StrEnum):
    """The answer to a claim, or to one of its parts."""

    SUPPORTED = "supported"  # beyond the margin, as the claim has it
    TOO_SMALL = "too small to matter"  # any difference lies within the margin of the test
    REFUTED = "refuted"  # within the margin, and what the paper prints is excluded
    CONTRADICTED = "contradicted"  # beyond the margin in the other direction, or beyond a bound
    OPEN = "open"  # not enough data, or nothing was measured
    NOT_TESTABLE = "not testable here"  # the claim says why
    PARTLY = "in part"  # some of its parts are contradicted, others not
    BY_READING = "by reading"  # a word is undefined, and its readings have different answers


AGAINST = frozenset({ClaimVerdict.REFUTED, ClaimVerdict.CONTRADICTED, ClaimVerdict.PARTLY})


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
    readings: tuple[tuple[str, ClaimVerdict], ...] = ()  # of an undefined word
    p: float = math.nan  # of the verdict; NaN if it is open
    needed: int = 0  # networks with which the plan's power is reached; 0 if nothing was measured


@dataclass(frozen=True)
class ClaimPart:
    """One or more comparisons that decide a claim, not yet judged.

    A part that must hold is supported at the level by itself, however many others there are: the
    whole is supported only if all are (an intersection–union test). That something speaks against
    the claim is said of at least one of its comparisons, so that p of this is corrected for them.
    """

    against: tuple[float, ...]  # p of each comparison's being otherwise than the claim has it
    judge: Callable[[Sequence[float], float], JudgedPart]  # by the same p, corrected; the level


@dataclass(frozen=True)
class Finding:
    """The result of a claim's test on one group of trials: comparisons and numbers, no prose.

    `parts` are the head, the paper's main statement: all of them must hold. Those of `beside` have
    a name, a line and an answer each, and do not decide. The paper's page explains why an answer
    came out as it did: a sentence here would be printed whatever the present numbers say.
    """

    parts: tuple[ClaimPart, ...]
    rows: tuple[NumberRow, ...] = ()
    beside: Mapping[str, ClaimPart] = field(default_factory=dict)


def judge_parts(parts: Iterable[ClaimPart], level: float = CLAIM_LEVEL) -> tuple[JudgedPart, ...]:
    """Judge the parts of a claim, of which all must hold."""
    judged = tuple(parts)
    return _judge(judged, list(holm(_all_against(judged))), level)


def _judge(
    parts: tuple[ClaimPart, ...], corrected: Sequence[float], level: float
) -> tuple[JudgedPart, ...]:
    numbers = iter(corrected)
    return tuple(part.judge([float(next(numbers)) for _ in part.against], level) for part in parts)


def merge_parts(
    parts: Iterable[ClaimPart], merge: Callable[[tuple[JudgedPart, ...]], JudgedPart]
) -> ClaimPart:
    """Make one part of several whose results are merged."""
    merged = tuple(parts)
    return ClaimPart(_all_against(merged), lambda p, level: merge(_judge(merged, p, level)))


def _all_against(parts: Iterable[ClaimPart]) -> tuple[float, ...]:
    return tuple(p for part in parts for p in part.against)


def combine_verdicts(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """Combine verdicts on parts that must all hold: theirs if they agree.

    One contradicted part refutes no other: the whole is then answered in part.
    """
    distinct = set(verdicts)
    if len(distinct) > 1:
        distinct.discard(ClaimVerdict.NOT_TESTABLE)
    if len(distinct) == 1:
        return distinct.pop()
    if distinct == {ClaimVerdict.REFUTED, ClaimVerdict.CONTRADICTED}:
        return ClaimVerdict.CONTRADICTED
    if distinct & AGAINST:
        return ClaimVerdict.PARTLY
    if distinct and ClaimVerdict.OPEN not in distinct:
        by_reading = ClaimVerdict.BY_READING in distinct
        return ClaimVerdict.BY_READING if by_reading else ClaimVerdict.TOO_SMALL
    return ClaimVerdict.OPEN


def combined_p(verdict: ClaimVerdict, parts: Iterable[tuple[ClaimVerdict, float]]) -> float:
    """Return p of the verdict on a whole: the largest of what must all hold, else the smallest."""
    deciding = [p for part, p in parts if decides(verdict, part) and not math.isnan(p)]
    if not deciding or verdict is ClaimVerdict.OPEN:
        return math.nan
    return min(deciding) if verdict in AGAINST else max(deciding)


def decides(verdict: ClaimVerdict, part: ClaimVerdict) -> bool:
    """Return whether a part is among those that made the verdict on the whole what it is."""
    return part in AGAINST if verdict in AGAINST else part is verdict


def by_definition(name: str, parts: Iterable[tuple[str, ClaimPart]]) -> ClaimPart:
    """Make a part of an undefined word's readings, which are answered side by side.

    It is answered by reading if their answers differ, and open if a reading is.
    """
    labels, merged = zip(*parts, strict=True)
    return merge_parts(merged, lambda results: _by_reading(name, labels, results))


def _by_reading(name: str, labels: Sequence[str], results: Sequence[JudgedPart]) -> JudgedPart:
    pairs = tuple(zip(labels, results, strict=True))
    verdicts = {part.verdict for part in results}
    is_open = ClaimVerdict.OPEN in verdicts
    agreed = verdicts.pop() if len(verdicts) == 1 else ClaimVerdict.BY_READING
    return JudgedPart(
        ClaimVerdict.OPEN if is_open else agreed,
        f"{name}: "
        + "; ".join(f"by {label}, {part.verdict}: {part.said}" for label, part in pairs),
        each_text_once(part.test for part in results) + f"; for each reading of {name}",
        "; ".join(f"{label}: {part.effect}" for label, part in pairs),
        "; ".join(f"{label}: {part.interval}" for label, part in pairs),
        min(part.n for part in results),
        tuple((label, part.verdict) for label, part in pairs),
        math.nan if is_open else max((part.p for part in results), default=math.nan),
        max(part.needed for part in results),
    )


def require_all(parts: Iterable[ClaimPart]) -> ClaimPart:
    """Make one part of several that must all hold, as a reading of a word may need several."""
    return merge_parts(parts, _all_hold)


def _all_hold(results: tuple[JudgedPart, ...]) -> JudgedPart:
    verdict = combine_verdicts(part.verdict for part in results)
    return JudgedPart(
        verdict,
        ", ".join(part.said for part in results),
        each_text_once(part.test for part in results),
        ", ".join(part.effect for part in results),
        ", ".join(part.interval for part in results),
        min(part.n for part in results),
        p=combined_p(verdict, [(part.verdict, part.p) for part in results]),
        needed=max(part.needed for part in results),
    )


def not_testable(part: ClaimPart, because: str) -> ClaimPart:
    """Answer a part by why it cannot be tested here; its numbers are shown."""

    def without_answer(results: tuple[JudgedPart, ...]) -> JudgedPart:
        (result,) = results
        statement = f"{result.said}, and {because}"
        return replace(result, verdict=ClaimVerdict.NOT_TESTABLE, said=statement, p=math.nan)

    shown = merge_parts((part,), without_answer)
    return ClaimPart((), lambda _, level: shown.judge(part.against, level))


def each_text_once(texts: Iterable[str]) -> str:
    """Join the distinct texts in their order."""
    return "; ".join(dict.fromkeys(text for text in texts if text))
