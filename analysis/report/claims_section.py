"""The ledger of claims as the page shows it: each with its numbers and links to its evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from analysis.figures.cases import text

TOLD = 2  # headlines of a verdict, of a paper
ORDER = ("contradicted", "supported", "open")


class Row(Protocol):
    """A number of a claim: ours, the paper's, ns-2's."""

    @property
    def what(self) -> str: ...
    @property
    def ours(self) -> object: ...
    @property
    def paper(self) -> object: ...
    @property
    def ns2(self) -> object: ...


class Evidence(Protocol):
    """A pointer to the evidence: the trials of an experiment, and the figure that shows them."""

    @property
    def experiment(self) -> str: ...
    @property
    def trials(self) -> Sequence[str]: ...
    @property
    def figure(self) -> str: ...


class Answer(Protocol):
    """A claim and what became of it."""

    @property
    def id(self) -> str: ...
    @property
    def paper(self) -> str: ...
    @property
    def authors(self) -> str: ...
    @property
    def claim(self) -> str: ...
    @property
    def tested(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def statement(self) -> str: ...
    @property
    def test(self) -> str: ...
    @property
    def effect(self) -> object: ...
    @property
    def interval(self) -> object: ...
    @property
    def n(self) -> object: ...
    @property
    def profile(self) -> str: ...
    @property
    def setting(self) -> str: ...
    @property
    def reading(self) -> str: ...
    @property
    def rows(self) -> Sequence[Row]: ...
    @property
    def why(self) -> str: ...
    @property
    def evidence(self) -> Sequence[Evidence]: ...
    @property
    def comparisons(self) -> int: ...
    @property
    def ledger_verdict(self) -> str: ...
    @property
    def survival(self) -> str: ...


@dataclass(frozen=True)
class Link:
    """A link to a figure of the page, or to some of its trials (`1-5 9`)."""

    words: str
    figure: str = ""
    trials: str = ""


@dataclass(frozen=True)
class Entry:
    """A line of the ledger."""

    answer: Answer
    key: str
    rows: tuple[tuple[str, str, str, str], ...]
    numbers: tuple[tuple[str, str], ...]  # test, effect, interval, n, …: those that are there
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Paper:
    """A paper's entries; what became of them in short, each claim once."""

    name: str
    entries: tuple[Entry, ...]
    counts: Mapping[str, int]
    headlines: tuple[Entry, ...]


def papers(
    answers: Iterable[Answer], numbers: Mapping[str, int], figures: Sequence[str]
) -> tuple[Paper, ...]:
    """The ledger by paper, in the order of the claims."""
    groups: dict[str, list[Entry]] = {}
    for place, answer in enumerate(answers):
        entry = _entry(answer, f"claim-{answer.id}-{place}", numbers, figures)
        groups.setdefault(answer.paper, []).append(entry)
    return tuple(
        Paper(found[0].answer.authors, tuple(found), counts(_once(found)), headlines(found))
        for name, found in groups.items()
    )


def headlines(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Some supported and some contradicted claims, from as many experiments as possible."""
    once = _once(entries)
    return tuple(
        entry
        for verdict in ("supported", "contradicted")
        for entry in _of_many([e for e in once if str(e.answer.verdict) == verdict])[:TOLD]
    )


def ledger_note(answers: Sequence[Answer]) -> str:
    """How far the ledger as a whole can be trusted: each answer allows for chance by itself."""
    decided = [each for each in answers if str(each.verdict) != "open"]
    lost = [each for each in decided if str(each.ledger_verdict) != str(each.verdict)]
    names = ", ".join(dict.fromkeys(_named(each) for each in lost))
    return (
        "Each answer is corrected (Holm) for the number of its own comparisons, so that by itself "
        f"it is wrong by chance in at most one case of twenty; {len(decided)} are decided. "
        f"Corrected for all {sum(each.comparisons for each in answers)} comparisons of this ledger "
        f"at once, {len(decided) - len(lost)} of them stay decided"
        + (f"; these would be open: {names}." if names else ".")
    )


def _named(answer: Answer) -> str:
    told = [each for each in (answer.profile, answer.setting, answer.reading) if each]
    return f"{answer.id} ({', '.join(told)})" if told else answer.id


def _once(entries: Iterable[Entry]) -> list[Entry]:
    """The first profile, setting and reading of each claim: the papers' own, if they were run."""
    found: dict[str, Entry] = {}
    for entry in entries:
        found.setdefault(entry.answer.id, entry)
    return list(found.values())


def _of_many(entries: Sequence[Entry]) -> list[Entry]:
    """The first of each experiment before the others."""
    seen: set[str] = set()
    first = []
    for entry in entries:
        experiment = entry.answer.evidence[0].experiment if entry.answer.evidence else ""
        if experiment not in seen:
            seen.add(experiment)
            first.append(entry)
    return first + [entry for entry in entries if entry not in first]


def counts(found: Iterable[Answer | Entry]) -> dict[str, int]:
    """The number of claims by verdict."""
    answers = (each.answer if isinstance(each, Entry) else each for each in found)
    verdicts = [str(answer.verdict) for answer in answers]
    return {verdict: verdicts.count(verdict) for verdict in ORDER if verdict in verdicts}


def _entry(answer: Answer, key: str, numbers: Mapping[str, int], figures: Sequence[str]) -> Entry:
    rows = tuple((row.what, show(row.ours), show(row.paper), show(row.ns2)) for row in answer.rows)
    facts = (
        ("test", show(answer.test)),
        ("effect", show(answer.effect)),
        ("95 % interval", show(answer.interval)),
        ("n", show(answer.n)),
        ("comparisons", show(answer.comparisons)),
        ("profile", show(answer.profile)),
        ("set to the variant", show(answer.setting)),
        ("reading", show(answer.reading)),
    )
    links = [link for each in answer.evidence for link in _links(each, numbers, figures)]
    return Entry(answer, key, rows, tuple(f for f in facts if f[1]), tuple(links))


def _links(
    evidence: Evidence, numbers: Mapping[str, int], figures: Sequence[str]
) -> Iterable[Link]:
    name = str(evidence.figure or "")
    found = [stem for stem in figures if name and (stem == name or stem.startswith(f"{name}-"))]
    found = found or [s for s in figures if s.startswith(evidence.experiment) and name in s][:1]
    yield from (Link(f"figure {stem}", figure=stem) for stem in found)
    own = sorted(numbers[trial] for trial in evidence.trials if trial in numbers)
    if own:
        words = f"{len(own)} trial{'s' * (len(own) > 1)} of {evidence.experiment}"
        yield Link(words, trials=ranges(own))


def ranges(numbers: Sequence[int]) -> str:
    """`1-3 7` for 1, 2, 3, 7, to keep a thousand trials short."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return " ".join("-".join(map(str, part)) for part in parts)


def show(value: object) -> str:
    """A number with four digits, an interval with its ends, nothing for what is not known."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, tuple | list):
        ends = [show(each) for each in value]
        return f"{ends[0]} … {ends[1]}" if len(ends) == 2 and all(ends) else ", ".join(ends)
    if isinstance(value, float):
        return f"{value:.4g}"
    return text(value)
