"""A claim, what the data says of each part of it, and the answer that comes of them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.claims.engine.selection import Group


TOLD = 3  # parts in an answer's statement


class Verdict(enum.StrEnum):
    """What the data says of a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    OPEN = "open"  # not enough data, or it cannot be measured


@dataclass(frozen=True)
class Evidence:
    """Where the numbers come from."""

    experiment: str
    trials: tuple[str, ...]  # folders: a few that stand for the rest
    figure: str = ""


@dataclass(frozen=True)
class Row:
    """Numbers side by side."""

    what: str
    ours: str
    paper: str = ""
    ns2: str = ""


@dataclass(frozen=True)
class Part:
    """One comparison that a claim comes down to."""

    verdict: Verdict
    said: str
    test: str
    effect: str = ""
    interval: str = ""
    n: int = 0
    cause: str = ""  # what explains it if it is not supported
    undefined: str = ""  # the paper's word that decides it, and that the paper does not define

    def because(self, cause: str) -> Part:
        """The same with its explanation."""
        return replace(self, cause=cause)


@dataclass(frozen=True)
class Finding:
    """What a claim's test gives on one group of trials."""

    parts: tuple[Part, ...]
    rows: tuple[Row, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and its test: fixed in words before there was data."""

    id: str
    paper: str
    words: str
    tested: str
    experiment: str
    judge: Callable[[Group], Finding]
    window: str = ""  # the TCP window that fits the paper's figures
    # the part of the axes that it is about: a value, or several
    where: Mapping[str, object] = field(default_factory=dict)
    settings: tuple[str, ...] = ()  # whose congestion control was set: answered for each alone


@dataclass(frozen=True)
class Answer:
    """A claim's line in the ledger, for one profile of the stacks and one setting."""

    id: str
    paper: str
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
    rows: tuple[Row, ...]
    why: str
    evidence: tuple[Evidence, ...]


def together(parts: Iterable[Part]) -> Verdict:
    """One part that is contradicted refutes a claim; all must be supported to support it."""
    verdicts = {part.verdict for part in parts}
    if Verdict.CONTRADICTED in verdicts:
        return Verdict.CONTRADICTED
    return Verdict.SUPPORTED if verdicts == {Verdict.SUPPORTED} else Verdict.OPEN


def by_definition(name: str, parts: Iterable[tuple[str, Part]]) -> Part:
    """A part that a word decides which the paper does not define: open unless all readings
    agree."""
    pairs = tuple(parts)
    verdicts = {part.verdict for _, part in pairs}
    disagree = {Verdict.SUPPORTED, Verdict.CONTRADICTED} <= verdicts
    agreed = verdicts.pop() if len(verdicts) == 1 else Verdict.OPEN
    return Part(
        agreed,
        f"{name}: "
        + "; ".join(f"by {label}, {part.verdict}: {part.said}" for label, part in pairs),
        _joined(part.test for _, part in pairs) + f"; for each reading of {name}",
        "; ".join(f"{label}: {part.effect}" for label, part in pairs),
        "; ".join(f"{label}: {part.interval}" for label, part in pairs),
        min(part.n for _, part in pairs),
        undefined=name * disagree,
    )


def both(first: Part, second: Part) -> Part:
    """Two parts as one."""
    return Part(
        together((first, second)),
        f"{first.said}, {second.said}",
        first.test,
        f"{first.effect}, {second.effect}",
        f"{first.interval}, {second.interval}",
        min(first.n, second.n),
    )


def answer(claim: Claim, group: Group, found: Finding, tested: str) -> Answer:
    """The line in the ledger: its statement is that of the parts that decided."""
    verdict = together(found.parts)
    decisive = [part for part in found.parts if part.verdict is verdict]
    return Answer(
        id=claim.id,
        paper=claim.paper,
        claim=claim.words,
        tested=tested,
        verdict=verdict,
        statement=_statement(decisive),
        test=_joined(part.test for part in found.parts),
        effect="; ".join(part.effect for part in found.parts if part.effect),
        interval="; ".join(part.interval for part in found.parts if part.interval),
        n=min((part.n for part in found.parts), default=0),
        profile=group.profile,
        setting=group.setting,
        rows=(*_part_rows(found.parts), *found.rows),
        why=_why(verdict, decisive, found.why),
        evidence=(group.evidence(),),
    )


def unanswered(claim: Claim, why: str, profile: str = "", setting: str = "") -> Answer:
    """The line of a claim that nothing was measured for."""
    return Answer(
        id=claim.id,
        paper=claim.paper,
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
        rows=(),
        why=why,
        evidence=(Evidence(claim.experiment, ()),),
    )


def _statement(parts: list[Part]) -> str:
    """The first of them; the rest is among the rows."""
    more = len(parts) - TOLD
    rest = f"; and {more} more" if more > 0 else ""
    return "; ".join(part.said for part in parts[:TOLD]) + rest + "."


def _part_rows(parts: tuple[Part, ...]) -> tuple[Row, ...]:
    """What became of each part, where there are several."""
    return tuple(Row(part.said, str(part.verdict)) for part in parts) if len(parts) > 1 else ()


def _why(verdict: Verdict, decisive: list[Part], whole: str) -> str:
    """Why an answer is not a yes: of the parts that decided, else of the claim as a whole."""
    causes = " ".join(dict.fromkeys(part.cause for part in decisive if part.cause))
    if verdict is Verdict.CONTRADICTED:
        return causes or whole
    if verdict is Verdict.SUPPORTED:
        return ""
    if min((part.n for part in decisive), default=0) < 2:
        return "Fewer than two seeds say nothing of the spread: run with --seeds 5."
    words = _joined(part.undefined for part in decisive)
    if words:
        return f"The paper does not define its {words}, and the readings disagree. {whole}".strip()
    return "The interval reaches over the line between yes and no: more seeds would tell."


def _joined(texts: Iterable[str]) -> str:
    """Each once, in their order."""
    return "; ".join(dict.fromkeys(text for text in texts if text))
