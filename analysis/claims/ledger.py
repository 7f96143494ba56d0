"""The ledger: every claim of every paper, answered from the metrics of the experiments run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from analysis.claims.engine.answers import (
    Answer,
    Claim,
    Finding,
    Paper,
    Varied,
    answer,
    over_the_ledger,
    unanswered,
)
from analysis.claims.engine.reference import Reference
from analysis.claims.engine.selection import Group, Selection, apart, groups, usable
from analysis.metrics.digest import NotMeasured
from analysis.results.experiment_results import ExperimentResults

# the rows as the papers have them, and those of each variation
Selections = tuple[Selection, Mapping[str, Selection]]
NOTHING = Finding(())  # of a claim without data
SET = {
    "receiver": "The variant was set on the laptop, as in the paper; the server had its own.",
    "sender": "The variant was set on the server.",
}


def answers(
    papers: Sequence[Paper],
    metrics: Mapping[str, pd.DataFrame],
    folders: Mapping[str, Path] | None = None,
    reference: Path | None = None,
) -> tuple[Answer, ...]:
    """Every claim of the papers, once per profile with data, and per setting and reading that the
    claim distinguishes.

    `metrics` and `folders` are by experiment: its table, and the folder with its trials, which
    claims about the course of a trial need. `reference` is a folder of ns-2's numbers as CSV.
    """
    asked = {claim.experiment for paper in papers for claim in paper.claims}
    rows = {name: _selections(table) for name, table in metrics.items() if name in asked}
    places, ns2 = folders or {}, Reference(reference)
    found = [
        each
        for paper in papers
        for claim in paper.claims
        for each in _answers(
            paper, claim, rows.get(claim.experiment), places.get(claim.experiment), ns2
        )
    ]
    verdicts = over_the_ledger([finding for _, finding in found])
    return tuple(
        replace(each, ledger_verdict=verdict)
        for (each, _), verdict in zip(found, verdicts, strict=True)
    )


def papers_of(all_results: Sequence[ExperimentResults]) -> list[Paper]:
    """Return the papers whose claims are tested on these results, with these claims alone."""
    names = {results.experiment for results in all_results}
    carried = [
        paper
        for results in all_results
        if results.definition and results.definition.claims
        for paper in results.definition.claims()
    ]
    return [
        replace(paper, claims=tuple(each for each in paper.claims if each.experiment in names))
        for paper in {paper.id: paper for paper in carried}.values()
    ]


def _selections(metrics: pd.DataFrame) -> Selections:
    plain, varied = apart(usable(metrics))
    return Selection(plain), {name: Selection(own) for name, own in varied.items()}


def _answers(
    paper: Paper,
    claim: Claim,
    rows: Selections | None,
    folder: Path | None,
    reference: Reference,
) -> Iterator[tuple[Answer, Finding]]:
    if rows is None:
        yield unanswered(paper, claim, f"Not run: testbed run {claim.experiment}"), NOTHING
        return
    plain, others = rows
    found = list(groups(claim, plain, folder, reference))
    if not found:
        why = f"No usable trials: testbed run {claim.experiment}"
        yield unanswered(paper, claim, why), NOTHING
    varied = {name: list(groups(claim, own, folder, reference)) for name, own in others.items()}
    for group in found:
        given, finding = _answer(paper, claim, group)
        yield replace(given, varied=tuple(_varied(paper, claim, group, varied))), finding


def _varied(
    paper: Paper, claim: Claim, group: Group, varied: Mapping[str, Sequence[Group]]
) -> Iterator[Varied]:
    """The verdicts of the same claim, profile, setting and reading under each variation that
    changed one of the trials it is tested on: without these the test finds something else."""
    for name, groups_there in varied.items():
        for other in groups_there:
            if other.key == group.key and other.is_varied:
                given, _ = _answer(paper, claim, other)
                if _matter(paper, claim, given, other.without_varied()):
                    yield Varied(name, given.verdict)


def _matter(paper: Paper, claim: Claim, given: Answer, rest: Group) -> bool:
    """Whether the varied trials had a part in the answer: without them, it is another one."""
    if rest.rows.empty:
        return True
    without, _ = _answer(paper, claim, rest)
    return replace(given, evidence=()) != replace(without, evidence=())


def _answer(paper: Paper, claim: Claim, group: Group) -> tuple[Answer, Finding]:
    try:
        finding = claim.judge(group)
    except NotMeasured as error:
        why = f"{str(error)[:1].upper()}{str(error)[1:]}."
        own = {"profile": group.profile, "setting": group.setting, "reading": group.reading}
        return unanswered(paper, claim, why, **own), NOTHING
    return answer(paper, claim, group, finding, claim.tested + _note(claim, group)), finding


def _note(claim: Claim, group: Group) -> str:
    """A note on the reading, on the end that had the variant, and on the chosen window, if there
    was a choice."""
    read = [each.words for each in claim.readings if each.name == group.reading]
    return "".join(
        f" {each}" for each in (*read, SET.get(group.setting, ""), _window(claim, group)) if each
    )


def _window(claim: Claim, group: Group) -> str:
    if not group.window:
        return ""
    if group.window == claim.window:
        return f"Window: {group.window}, which fits the paper's figures."
    return f"Window: {group.window}; the paper's ({claim.window}) was not run with this profile."
