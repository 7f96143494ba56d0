"""The ledger of claims as the page shows it: each with its numbers and links to its evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.claims.judgement import ClaimVerdict, TrialEvidence
from analysis.claims.ledger import Answer
from analysis.figures.cases import text
from analysis.report.listing import ranges

HEADLINES = 2  # of each verdict and paper
VERDICT_ORDER = (
    ClaimVerdict.CONTRADICTED,
    ClaimVerdict.REFUTED,
    ClaimVerdict.PARTLY,
    ClaimVerdict.BY_READING,
    ClaimVerdict.SUPPORTED,
    ClaimVerdict.TOO_SMALL,
    ClaimVerdict.OPEN,
    ClaimVerdict.NOT_TESTABLE,
)
UNDECIDED = (ClaimVerdict.OPEN, ClaimVerdict.NOT_TESTABLE)


@dataclass(frozen=True)
class LedgerLink:
    """A link to a figure of the page, or to some of its trials (`1-5 9`)."""

    words: str
    figure: str = ""
    trials: str = ""


@dataclass(frozen=True)
class LedgerEntry:
    """A line of the ledger."""

    answer: Answer
    key: str
    rows: tuple[tuple[str, str, str, str], ...]
    numbers: tuple[tuple[str, str], ...]  # test, effect, interval, n, …: those that are there
    links: tuple[LedgerLink, ...]


@dataclass(frozen=True)
class LedgerPaper:
    """A paper's entries; the counts and headlines have each claim once."""

    name: str
    entries: tuple[LedgerEntry, ...]
    counts: Mapping[str, int]
    headlines: tuple[LedgerEntry, ...]


def papers(
    answers: Iterable[Answer], numbers: Mapping[str, int], figures: Sequence[str]
) -> tuple[LedgerPaper, ...]:
    """Return the ledger by paper, in the order of the claims."""
    groups: dict[str, list[LedgerEntry]] = {}
    for place, answer in enumerate(answers):
        entry = _entry(answer, f"claim-{answer.id}-{place}", numbers, figures)
        groups.setdefault(answer.paper, []).append(entry)
    return tuple(
        LedgerPaper(
            entries[0].answer.authors, tuple(entries), counts(_once(entries)), headlines(entries)
        )
        for name, entries in groups.items()
    )


def headlines(entries: Sequence[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """Choose supported and contradicted claims, from as many experiments as possible."""
    once = _once(entries)
    return tuple(
        entry
        for verdict in (ClaimVerdict.SUPPORTED, ClaimVerdict.CONTRADICTED)
        for entry in _of_many([e for e in once if e.answer.verdict is verdict])[:HEADLINES]
    )


def ledger_note(answers: Sequence[Answer]) -> str:
    """Say how far the ledger as a whole can be trusted: each answer allows for chance alone."""
    decided = [each for each in answers if each.verdict not in UNDECIDED]
    lost = [each for each in decided if each.ledger_verdict is not each.verdict]
    names = ", ".join(dict.fromkeys(_named(each) for each in lost))
    return (
        f"Each answer by itself is wrong by chance in at most one case of twenty; {len(decided)} "
        f"are decided, by {sum(each.comparisons for each in answers)} comparisons. Corrected "
        f"(Holm) for all answers at once, {len(decided) - len(lost)} of them stay as they are"
        + (f"; these would be another: {names}." if names else ".")
    )


def _named(answer: Answer) -> str:
    told = [each for each in (answer.profile, answer.setting, answer.reading) if each]
    return f"{answer.id} ({', '.join(told)})" if told else answer.id


def _once(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Return a claim's first profile, setting and reading: the paper's, if they were run."""
    by_text: dict[str, LedgerEntry] = {}
    for entry in entries:
        by_text.setdefault(entry.answer.id, entry)
    return list(by_text.values())


def _of_many(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Sort the first entry of each experiment before the others."""
    seen: set[str] = set()
    first = []
    for entry in entries:
        experiment = entry.answer.evidence[0].experiment if entry.answer.evidence else ""
        if experiment not in seen:
            seen.add(experiment)
            first.append(entry)
    return first + [entry for entry in entries if entry not in first]


def counts(entries: Iterable[Answer | LedgerEntry]) -> dict[str, int]:
    """Count the claims by verdict."""
    answers = (each.answer if isinstance(each, LedgerEntry) else each for each in entries)
    verdicts = [answer.verdict for answer in answers]
    return {
        str(verdict): verdicts.count(verdict) for verdict in VERDICT_ORDER if verdict in verdicts
    }


def _entry(
    answer: Answer, key: str, numbers: Mapping[str, int], figures: Sequence[str]
) -> LedgerEntry:
    rows = tuple((row.what, show(row.ours), show(row.paper), show(row.ns2)) for row in answer.rows)
    facts = (
        ("test", show(answer.test)),
        ("effect", show(answer.effect)),
        ("95 % interval", show(answer.interval)),
        ("n", show(answer.out_of)),
        ("comparisons", show(answer.comparisons)),
        ("networks needed for power 0.9", show(answer.needed or "")),
        ("profile", show(answer.profile)),
        ("set to the variant", show(answer.setting)),
        ("reading", show(answer.reading)),
    )
    links = [link for each in answer.evidence for link in _links(each, numbers, figures)]
    return LedgerEntry(answer, key, rows, tuple(f for f in facts if f[1]), tuple(links))


def _links(
    evidence: TrialEvidence, numbers: Mapping[str, int], figures: Sequence[str]
) -> Iterable[LedgerLink]:
    name = str(evidence.figure or "")
    stems = [stem for stem in figures if name and (stem == name or stem.startswith(f"{name}-"))]
    stems = stems or [s for s in figures if s.startswith(evidence.experiment) and name in s][:1]
    yield from (LedgerLink(f"figure {stem}", figure=stem) for stem in stems)
    figure_numbers = sorted(numbers[trial] for trial in evidence.trials if trial in numbers)
    if figure_numbers:
        link_texts = (
            f"{len(figure_numbers)} trial{'s' * (len(figure_numbers) > 1)} of {evidence.experiment}"
        )
        yield LedgerLink(link_texts, trials=ranges(figure_numbers))


def show(value: object) -> str:
    """Write a number with four digits, an interval with its ends, and nothing for an unknown."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, tuple | list):
        ends = [show(each) for each in value]
        return f"{ends[0]} … {ends[1]}" if len(ends) == 2 and all(ends) else ", ".join(ends)
    if isinstance(value, float):
        return f"{value:.4g}"
    return text(value)
