"""A claim, what the data says about each of its parts, and the resulting answer."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analysis.statistics.intervals import holm

if TYPE_CHECKING:
    from analysis.claims.engine.selection import Group

TOLD = 3  # parts in an answer's statement


class Verdict(enum.StrEnum):
    """The answer to a claim, or to one of its parts."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    OPEN = "open"  # not enough data, or it cannot be measured


@dataclass(frozen=True)
class Evidence:
    """The trials behind an answer."""

    experiment: str
    trials: tuple[str, ...]  # folders: a few that represent the rest
    figure: str = ""


@dataclass(frozen=True)
class Row:
    """One quantity: our number, the paper's, and ns-2's."""

    what: str
    ours: str
    paper: str = ""
    ns2: str = ""


@dataclass(frozen=True)
class JudgedPart:
    """The result of a part of a claim."""

    verdict: Verdict
    said: str
    test: str
    effect: str = ""
    interval: str = ""
    n: int = 0
    undefined: str = ""  # a word that decides it and that the paper leaves undefined


@dataclass(frozen=True)
class Part:
    """One or more comparisons that a claim comes down to, not yet judged: whether a p is small
    enough depends on how many comparisons the whole claim makes."""

    p: tuple[float, ...]  # of each comparison by itself; NaN where there is nothing to test
    judge: Callable[[Sequence[float]], JudgedPart]  # asks for the same p, corrected


@dataclass(frozen=True)
class Finding:
    """The result of a claim's test on one group of trials: comparisons and numbers, no prose.

    The paper's page explains why an answer came out as it did, with the numbers of the runs that
    showed it: a sentence here would be printed whatever the present numbers say.
    """

    parts: tuple[Part, ...]
    rows: tuple[Row, ...] = ()

    @property
    def p(self) -> tuple[float, ...]:
        """Those of all its comparisons, in order."""
        return _all_p(self.parts)


@dataclass(frozen=True)
class Reading:
    """One way to take what a paper leaves open; a claim with readings has an answer for each."""

    name: str
    words: str  # a sentence that says it
    where: Mapping[str, object]  # the trials that were run so, as for a claim


@dataclass(frozen=True)
class Claim:
    """A claim of a paper and its test, fixed in words before there was data."""

    id: str
    words: str
    tested: str
    experiment: str
    judge: Callable[[Group], Finding]
    window: str = ""  # the TCP window that fits the paper's figures
    # the trials to which it applies: for each axis one value, or several
    where: Mapping[str, object] = field(default_factory=dict)
    settings: tuple[str, ...] = ()  # whose congestion control was set: one answer for each
    readings: tuple[Reading, ...] = ()  # the paper's own words first; one answer for each


@dataclass(frozen=True)
class Paper:
    """A paper, its claims, and the page that discusses them."""

    id: str
    authors: str
    page: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Varied:
    """The verdict where something was varied that the paper leaves open."""

    what: str
    verdict: Verdict


@dataclass(frozen=True)
class Answer:
    """One entry of the ledger: a claim with one profile of the stacks, setting and reading."""

    id: str
    paper: str
    authors: str
    claim: str
    tested: str
    verdict: Verdict
    statement: str
    test: str
    effect: str
    interval: str
    n: int
    profile: str
    setting: str
    reading: str
    rows: tuple[Row, ...]
    why: str
    evidence: tuple[Evidence, ...]
    comparisons: int = 0  # that have a p
    ledger_verdict: Verdict = Verdict.OPEN  # with p corrected over the whole ledger
    varied: tuple[Varied, ...] = ()  # those variations that were run

    @property
    def survival(self) -> str:
        """`in 6 of 8 readings; contradicted with buffers 5 % smaller`; empty if none was varied.

        The trials as the paper has them are the first reading.
        """
        if not self.varied:
            return ""
        others = [f"{v.verdict} with {v.what}" for v in self.varied if v.verdict != self.verdict]
        count = len(self.varied) + 1
        return "; ".join((f"in {count - len(others)} of {count} readings", *others))


def judged(parts: Iterable[Part], corrected: Iterable[float]) -> tuple[JudgedPart, ...]:
    """The parts, judged by their p, which were corrected together."""
    numbers = iter(corrected)
    return tuple(part.judge([float(next(numbers)) for _ in part.p]) for part in parts)


def merged(parts: Iterable[Part], merge: Callable[[tuple[JudgedPart, ...]], JudgedPart]) -> Part:
    """One part of several, whose results are merged."""
    own = tuple(parts)
    return Part(_all_p(own), lambda corrected: merge(judged(own, corrected)))


def _all_p(parts: Iterable[Part]) -> tuple[float, ...]:
    return tuple(p for part in parts for p in part.p)


def over_the_ledger(findings: Sequence[Finding]) -> tuple[Verdict, ...]:
    """The verdict on each finding if all comparisons of all of them are one family."""
    numbers = iter(holm(p for found in findings for p in found.p))
    return tuple(
        together(judged(found.parts, [next(numbers) for _ in found.p])) for found in findings
    )


def together(parts: Iterable[JudgedPart]) -> Verdict:
    """One contradicted part refutes a claim; only if all are supported is it supported."""
    verdicts = {part.verdict for part in parts}
    if Verdict.CONTRADICTED in verdicts:
        return Verdict.CONTRADICTED
    return Verdict.SUPPORTED if verdicts == {Verdict.SUPPORTED} else Verdict.OPEN


def by_definition(name: str, parts: Iterable[tuple[str, Part]]) -> Part:
    """A part decided by a word that the paper does not define: open unless all readings agree."""
    labels, own = zip(*parts, strict=True)
    return merged(own, lambda results: _by_reading(name, labels, results))


def _by_reading(name: str, labels: Sequence[str], results: Sequence[JudgedPart]) -> JudgedPart:
    pairs = tuple(zip(labels, results, strict=True))
    verdicts = {part.verdict for part in results}
    disagree = {Verdict.SUPPORTED, Verdict.CONTRADICTED} <= verdicts
    agreed = verdicts.pop() if len(verdicts) == 1 else Verdict.OPEN
    return JudgedPart(
        agreed,
        f"{name}: "
        + "; ".join(f"by {label}, {part.verdict}: {part.said}" for label, part in pairs),
        _joined(part.test for part in results) + f"; for each reading of {name}",
        "; ".join(f"{label}: {part.effect}" for label, part in pairs),
        "; ".join(f"{label}: {part.interval}" for label, part in pairs),
        min(part.n for part in results),
        undefined=name * disagree,
    )


def both(first: Part, second: Part) -> Part:
    """Two parts that must hold together."""
    return merged((first, second), _both)


def _both(results: tuple[JudgedPart, ...]) -> JudgedPart:
    first, second = results
    return JudgedPart(
        together(results),
        f"{first.said}, {second.said}",
        first.test,
        f"{first.effect}, {second.effect}",
        f"{first.interval}, {second.interval}",
        min(first.n, second.n),
    )


def answer(paper: Paper, claim: Claim, group: Group, found: Finding, tested: str) -> Answer:
    """The entry in the ledger; its statement is that of the parts that decided."""
    corrected = holm(found.p)
    parts = judged(found.parts, corrected)
    verdict = together(parts)
    decisive = [part for part in parts if part.verdict is verdict]
    return Answer(
        id=claim.id,
        paper=paper.id,
        authors=paper.authors,
        claim=claim.words,
        tested=tested,
        verdict=verdict,
        statement=_statement(verdict, parts),
        test=_joined(part.test for part in parts),
        effect="; ".join(part.effect for part in parts if part.effect),
        interval="; ".join(part.interval for part in parts if part.interval),
        n=min((part.n for part in parts), default=0),
        profile=group.profile,
        setting=group.setting,
        reading=group.reading,
        rows=(*_part_rows(parts), *found.rows),
        why=_why(verdict, decisive, paper.page),
        evidence=(group.evidence(),),
        comparisons=sum(math.isfinite(p) for p in corrected),
    )


def unanswered(
    paper: Paper, claim: Claim, why: str, *, profile: str = "", setting: str = "", reading: str = ""
) -> Answer:
    """The entry of a claim for which nothing was measured."""
    return Answer(
        id=claim.id,
        paper=paper.id,
        authors=paper.authors,
        claim=claim.words,
        tested=claim.tested,
        verdict=Verdict.OPEN,
        statement="Not measured.",
        test="",
        effect="",
        interval="",
        n=0,
        profile=profile,
        setting=setting,
        reading=reading,
        rows=(),
        why=why,
        evidence=(Evidence(claim.experiment, ()),),
    )


def _statement(verdict: Verdict, parts: tuple[JudgedPart, ...]) -> str:
    """The tally of the parts, and the first of those that decided; the others are in the rows."""
    decisive = [part for part in parts if part.verdict is verdict]
    more = len(decisive) - TOLD
    rest = f"; and {more} more" if more > 0 else ""
    tally = "" if len(decisive) == len(parts) else f"{_tally(parts)}: "
    return tally + "; ".join(part.said for part in decisive[:TOLD]) + rest + "."


def _tally(parts: tuple[JudgedPart, ...]) -> str:
    """`31 of 33 parts supported, 2 contradicted`; what decides comes last, with its parts."""
    order = (Verdict.SUPPORTED, Verdict.OPEN, Verdict.CONTRADICTED)
    if all(part.verdict is not Verdict.CONTRADICTED for part in parts):
        order = (Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.OPEN)
    counts = [(each, sum(part.verdict is each for part in parts)) for each in order]
    (first, number), *others = [(each, count) for each, count in counts if count]
    said = f"{number} of {len(parts)} parts {first}"
    return ", ".join((said, *(f"{count} {each}" for each, count in others)))


def _part_rows(parts: tuple[JudgedPart, ...]) -> tuple[Row, ...]:
    """The verdict of each part, where there are several."""
    return tuple(Row(part.said, str(part.verdict)) for part in parts) if len(parts) > 1 else ()


def _why(verdict: Verdict, decisive: list[JudgedPart], page: str) -> str:
    """Why a claim is open; where to read about one that is contradicted."""
    if verdict is Verdict.CONTRADICTED:
        return f"What earlier runs showed, with their numbers: {page}."
    if verdict is Verdict.SUPPORTED:
        return ""
    if min((part.n for part in decisive), default=0) < 2:
        return "Fewer than two seeds say nothing about the spread: run with --seeds 5."
    words = _joined(part.undefined for part in decisive)
    if words:
        return f"The paper does not define its {words}, and the readings disagree."
    return (
        "The interval reaches across the bound of the test, or p, corrected for the number of the "
        "claim's comparisons, is not below 0.05: more seeds may decide it."
    )


def _joined(texts: Iterable[str]) -> str:
    """Each text once, in order."""
    return "; ".join(dict.fromkeys(text for text in texts if text))
