"""The ledger: the claims of papers, answered from the metrics of their experiments."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import pandas as pd

from analysis.claims.judgement import (
    AGAINST,
    ClaimVerdict,
    Finding,
    JudgedPart,
    NumberRow,
    TrialEvidence,
    combine_verdicts,
    combined_p,
    decides,
    each_text_once,
    judge_parts,
)
from analysis.claims.samples import (
    MODERN,
    Group,
    Reference,
    Selection,
    split_kernels,
    unusable_rows,
    usable,
    values_of,
)
from analysis.metrics.columns import METRIC_COLUMNS
from analysis.metrics.digest import NotMeasured
from analysis.results.experiment_results import ExperimentResults, ResultSet
from analysis.statistics.estimates import CLAIM_LEVEL
from analysis.statistics.intervals import holm
from testbed.errors import UsageError

PARTS_IN_STATEMENT = 3  # parts in an answer's statement
VERDICT_RANGE = (  # from one end to the other
    ClaimVerdict.SUPPORTED,
    ClaimVerdict.BY_READING,
    ClaimVerdict.TOO_SMALL,
    ClaimVerdict.OPEN,
    ClaimVerdict.NOT_TESTABLE,
    ClaimVerdict.PARTLY,
    ClaimVerdict.REFUTED,
    ClaimVerdict.CONTRADICTED,
)


@dataclass(frozen=True)
class Reading:
    """One way to take what a paper leaves open; a claim with readings has an answer for each."""

    name: str
    words: str  # a sentence that says it
    where: Mapping[str, object]  # the trials that were run so, as for a claim


@dataclass(frozen=True)
class Sentence:
    """An answer in a sentence that a student understands, with the paper's number and ours.

    Ours are filled in: `{share of bbr}` is the number of that row, without its interval. It is
    wrong as soon as the answer is another than the one that it was written for.
    """

    trials: str  # whose answer it is: profile, setting and reading, as in a page's table
    answer: str  # that it was written for
    template: str

    def filled(self, numbers: Mapping[str, str]) -> str:
        """Return the sentence with numbers by their rows' names; raises KeyError without one."""
        return NUMBER_IN_SENTENCE.sub(
            lambda name: INTERVAL.sub("", numbers[name[1]]).removeprefix("median "), self.template
        )


NUMBER_IN_SENTENCE = re.compile(r"\{([^{}]+)\}")
INTERVAL = re.compile(r" ± .*| \(.* to .*\)|, from .* to .*| in all$")


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
    # whose congestion control was set, each with a sentence that says it: one answer for each
    settings: Mapping[str, str] = field(default_factory=dict)
    readings: tuple[Reading, ...] = ()  # the paper's own words first; one answer for each
    not_testable: str = ""  # why no outcome of the test would be an answer: a sentence
    sentences: tuple[Sentence, ...] = ()  # for a student, by hand; for some of its answers
    # planned, by the spread in a pilot's: its head is decided in nine of ten cases, at twice the
    # margin, or where a comment says so as often as the budget allows
    networks: int = 20

    def answered(self, computed: ClaimVerdict) -> ClaimVerdict:
        """Return the answer for what the test alone gives."""
        return ClaimVerdict.NOT_TESTABLE if self.not_testable else computed


@dataclass(frozen=True)
class Paper:
    """A paper, its claims, and the page that discusses them."""

    id: str
    authors: str
    page: str
    claims: tuple[Claim, ...]
    # for claims about a simulator: its results as our metrics have them, by experiment
    simulated: Callable[[Reference], Mapping[str, pd.DataFrame]] | None = None


@dataclass(frozen=True)
class Varied:
    """The verdict on another kernel."""

    what: str
    verdict: ClaimVerdict
    in_words: str  # likewise, of an undefined word the readings' side by side


@dataclass(frozen=True)
class Answer:
    """One entry of the ledger: a claim with one profile of the stacks, setting and reading."""

    id: str
    paper: str
    authors: str
    claim: str
    tested: str
    verdict: ClaimVerdict
    statement: str
    test: str
    effect: str
    interval: str
    n: int
    profile: str
    setting: str
    reading: str
    rows: tuple[NumberRow, ...]
    why: str
    evidence: tuple[TrialEvidence, ...]
    comparisons: int = 0  # that have a p
    seeds: int = 0  # that were run; n is smaller where a number is not defined in all of them
    unusable: int = 0  # trials of this claim that failed or were judged invalid
    computed: ClaimVerdict = ClaimVerdict.OPEN  # what the test alone gives
    ledger_verdict: ClaimVerdict = ClaimVerdict.OPEN  # with p corrected over the whole ledger
    p: float = math.nan  # of the verdict; NaN if it is open
    needed: int = 0  # networks that decide it with the plan's power, by the spread in these
    readings: tuple[tuple[str, ClaimVerdict], ...] = ()  # of an undefined word, if they differ
    sentences: tuple[Sentence, ...] = ()  # the claim's
    beside: tuple[tuple[str, ClaimVerdict, str], ...] = ()  # name, answer and statement of each
    varied: tuple[Varied, ...] = ()  # the other kernels that were run

    @property
    def survival(self) -> str:
        """The range of answers on all kernels; empty if one was run.

        As `the same on each kernel` or `supported to contradicted: contradicted with kernel 6.12`.
        """
        if not self.varied:
            return ""
        others = [f"{v.in_words} with {v.what}" for v in self.varied if v.in_words != self.in_words]
        if not others:
            return "the same on each kernel"
        there = {self.verdict, *(v.verdict for v in self.varied)}
        first, *_, last = (each for each in VERDICT_RANGE if each in there)
        return f"{first} to {last}: {'; '.join(others)}"

    @property
    def is_measured(self) -> bool:
        """Whether there were numbers to test."""
        return bool(self.test)

    @property
    def trials(self) -> str:
        """The profile, setting and reading."""
        return ", ".join(filter(None, (self.profile, self.setting, self.reading)))

    @property
    def in_words(self) -> str:
        """The verdict; of an undefined word, the readings' side by side."""
        if not self.readings:
            return str(self.verdict)
        return ", ".join(f"by {name} {verdict}" for name, verdict in self.readings)

    @property
    def sentence(self) -> str:
        """The sentence that was written for this answer, or none."""
        numbers = {row.what: row.ours for row in self.rows}
        written = [
            each
            for each in self.sentences
            if (each.trials, each.answer) == (self.trials, self.in_words)
        ]
        return written[0].filled(numbers) if written else ""

    @property
    def out_of(self) -> str:
        """The number of seeds behind the answer, and what dropped out."""
        seeds = f"{self.n} of {self.seeds}" if self.n < self.seeds else f"{self.n}"
        return f"{seeds}; {self.unusable} trials left out" if self.unusable else seeds


def answer(
    paper: Paper,
    claim: Claim,
    group: Group,
    finding: Finding,
    tested: str,
    level: float = CLAIM_LEVEL,
) -> Answer:
    """Make the ledger's entry; its statement is that of the parts that decided."""
    parts = judge_parts(finding.parts, level)
    beside = {name: judge_parts([part], level)[0] for name, part in finding.beside.items()}
    computed = combine_verdicts(part.verdict for part in parts)
    seeds = int(group.rows["seed"].nunique())
    return Answer(
        id=claim.id,
        paper=paper.id,
        authors=paper.authors,
        claim=claim.words,
        tested=tested,
        verdict=claim.answered(computed),
        statement=_statement(claim, computed, parts),
        test=each_text_once(part.test for part in parts),
        effect="; ".join(part.effect for part in parts if part.effect),
        interval="; ".join(part.interval for part in parts if part.interval),
        n=min((part.n for part in parts), default=0),
        profile=group.profile,
        setting=group.setting,
        reading=group.reading,
        rows=(*_part_rows(parts, seeds), *finding.rows),
        why=claim.not_testable or _why(parts, computed, paper.page),
        evidence=(group.evidence(),),
        comparisons=sum(math.isfinite(p) for part in finding.parts for p in part.against),
        seeds=seeds,
        unusable=group.unusable,
        computed=computed,
        p=combined_p(computed, [(part.verdict, part.p) for part in parts]),
        needed=max((part.needed for part in parts), default=0),
        readings=_readings_of(computed, parts),
        sentences=claim.sentences,
        beside=tuple((name, each.verdict, f"{each.said}.") for name, each in beside.items()),
    )


def _readings_of(
    computed: ClaimVerdict, parts: tuple[JudgedPart, ...]
) -> tuple[tuple[str, ClaimVerdict], ...]:
    """Return the answers of an undefined word's readings to the whole claim, if they differ."""
    if computed is not ClaimVerdict.BY_READING:
        return ()
    names = dict.fromkeys(name for part in parts for name, _ in part.readings)
    return tuple(
        (name, combine_verdicts(dict(part.readings).get(name, part.verdict) for part in parts))
        for name in names
    )


def unanswered(
    paper: Paper, claim: Claim, why: str, *, profile: str = "", setting: str = "", reading: str = ""
) -> Answer:
    """Make the entry of a claim for which nothing was measured."""
    return Answer(
        id=claim.id,
        paper=paper.id,
        authors=paper.authors,
        claim=claim.words,
        tested=claim.tested,
        verdict=claim.answered(ClaimVerdict.OPEN),
        statement="Not measured.",
        test="",
        effect="",
        interval="",
        n=0,
        profile=profile,
        setting=setting,
        reading=reading,
        rows=(),
        why=claim.not_testable or why,
        evidence=(TrialEvidence(claim.experiment, ()),),
    )


def _statement(claim: Claim, computed: ClaimVerdict, parts: tuple[JudgedPart, ...]) -> str:
    """Write the tally of the parts and the first of those that decided; rows have the others."""
    decisive = [part for part in parts if decides(computed, part.verdict)]
    more = len(decisive) - PARTS_IN_STATEMENT
    rest = f"; and {more} more" if more > 0 else ""
    tally = "" if len(decisive) == len(parts) else f"{_tally(computed, parts)}: "
    by_test = f"by the test alone {computed}: " if claim.not_testable else ""
    statements = "; ".join(part.said for part in decisive[:PARTS_IN_STATEMENT])
    return f"{by_test}{tally}{statements}{rest}."


def _tally(computed: ClaimVerdict, parts: tuple[JudgedPart, ...]) -> str:
    """Count the verdicts, the decisive one last: `31 of 33 parts supported, 2 contradicted`."""
    order = sorted(VERDICT_RANGE, key=lambda each: decides(computed, each))
    counts = [(each, sum(part.verdict is each for part in parts)) for each in order]
    (first, number), *others = [(each, count) for each, count in counts if count]
    tally = f"{number} of {len(parts)} parts {first}"
    return ", ".join((tally, *(f"{count} {each}" for each, count in others)))


def _part_rows(parts: tuple[JudgedPart, ...], seeds: int) -> tuple[NumberRow, ...]:
    """Return a row with the verdict on each part, if there are several, and its n if smaller."""
    if len(parts) == 1:
        return ()
    return tuple(
        NumberRow(
            part.said,
            str(part.verdict) + (f" (n = {part.n} of {seeds})" if part.n < seeds else ""),
        )
        for part in parts
    )


def _why(parts: tuple[JudgedPart, ...], verdict: ClaimVerdict, page: str) -> str:
    """Say why a claim is open and what would decide it, or where to read about a refutation."""
    if verdict in AGAINST:
        return f"What earlier runs showed, with their numbers: {page}."
    if verdict is ClaimVerdict.BY_READING:
        return "The paper does not define a word, and its readings have different answers."
    if verdict is ClaimVerdict.TOO_SMALL:
        return (
            "Whatever difference there is lies within the margin that the test set beforehand: it "
            "neither supports an order nor refutes one."
        )
    if verdict is not ClaimVerdict.OPEN:
        return ""
    undecided = [part for part in parts if part.verdict is ClaimVerdict.OPEN]
    if min((part.n for part in undecided), default=0) < 2:
        return "Fewer than two seeds say nothing about the spread: run with --seeds 10."
    needed = max(part.needed for part in undecided)
    plan = f"with {needed}, nine of ten such cases are decided" if needed else "more may decide it"
    return f"The interval reaches across the margin or bound of the test: {plan}."


SIMULATED = "in ns-2"  # the profile of a simulator's results; all others are on Linux
PROFILES = (SIMULATED, "ns2", MODERN)  # in this order


def groups(
    claim: Claim, rows: Selection, folder: Path | None, reference: Reference
) -> Iterator[Group]:
    """Yield the usable rows, a group for each profile, setting and reading that was run.

    Of the windows only the one that fits the claim's paper is taken. There is no group if no trial
    has it, or the axes that the claim is about.
    """
    try:
        asked = rows.where(claim.where)
    except NotMeasured:
        return
    for name, of_profile in _profiles(asked):
        measured_rows, window = of_profile, ""
        if claim.window and "axis_window" in of_profile.rows:
            measured_rows, window = of_profile.where({"window": claim.window}), claim.window
        if measured_rows.rows.empty:
            continue
        for setting, (reading, read) in product(
            claim.settings or ("",), _readings(claim, measured_rows)
        ):
            yield Group(claim.experiment, name, read, folder, reference, window, setting, reading)


def _profiles(rows: Selection) -> list[tuple[str, Selection]]:
    """Return the rows of each profile that was run; trials that name none have the modern one."""
    if "axis_profile" not in rows.rows:
        return [] if rows.rows.empty else [(MODERN, rows)]
    there = rows.values("profile")
    return [(name, rows.where({"profile": name})) for name in PROFILES if name in there]


def _readings(claim: Claim, rows: Selection) -> list[tuple[str, Selection]]:
    """Return the rows of each reading that was run; all rows for a claim without readings."""
    if not claim.readings:
        return [("", rows)]
    there = [each for each in claim.readings if _all_run(each, rows)]
    read = [(each.name, rows.where(each.where)) for each in there]
    return [(name, chosen) for name, chosen in read if len(chosen.rows)]


def _all_run(reading: Reading, rows: Selection) -> bool:
    return all(
        set(values_of(value)) <= set(rows.values(name)) for name, value in reading.where.items()
    )


# the rows of the first kernel, and those of each other one
Selections = tuple[Selection, Mapping[str, Selection]]


def answers(
    papers: Sequence[Paper],
    metrics: Mapping[str, pd.DataFrame],
    folders: Mapping[str, Path] | None = None,
    reference: Path | None = None,
    level: float = CLAIM_LEVEL,
) -> tuple[Answer, ...]:
    """Answer every claim once per profile with data, and per setting and reading of the claim.

    `metrics` and `folders` are by experiment: its table, and the folder with its trials, which
    claims about the course of a trial need. `reference` is a folder of ns-2's numbers as CSV.
    An answer's `ledger_verdict` is open if its p is not sure enough among those of all.
    """
    asked = {claim.experiment for paper in papers for claim in paper.claims}
    rows = {name: _selections(table) for name, table in metrics.items() if name in asked}
    places, ns2 = folders or {}, Reference(reference)
    simulators = {paper.id: _simulated(paper, ns2) for paper in papers}
    kept = [
        each
        for paper in papers
        for claim in paper.claims
        for each in (
            *_in_simulator(paper, claim, simulators[paper.id].get(claim.experiment), ns2, level),
            *_answers(
                *(paper, claim, rows.get(claim.experiment)),
                *(places.get(claim.experiment), ns2, level),
            ),
        )
    ]
    corrected = holm(each.p for each in kept)
    return tuple(
        replace(each, ledger_verdict=ClaimVerdict.OPEN if p > level else each.verdict)
        for each, p in zip(kept, corrected, strict=True)
    )


def _simulated(paper: Paper, reference: Reference) -> dict[str, Selections]:
    """Return a simulator's results by experiment, for a paper whose claims are about it."""
    tables = paper.simulated(reference) if paper.simulated else {}
    return {name: _selections(table) for name, table in tables.items() if len(table)}


def _in_simulator(
    paper: Paper, claim: Claim, rows: Selections | None, reference: Reference, level: float
) -> Iterator[Answer]:
    """Yield a claim's answers in the simulator that it is about, where that has the numbers."""
    if rows is None:
        return
    yield from (
        each for each in _answers(paper, claim, rows, None, reference, level) if each.is_measured
    )


def answers_of(results: ResultSet, reference: Path | None = None) -> tuple[Answer, ...]:
    """Answer the claims that the experiments among the results can decide."""
    if results.apart:
        raise UsageError(
            f"{results.apart[0]} is in two of the folders, and is not the same trial there",
            "answer the claims of one folder at a time, or leave out --claims to compare them",
        )
    # the columns of all: another experiment's axes would look like this one's without values
    tables = {
        str(name): rows
        for name, rows in results.metrics[list(METRIC_COLUMNS)].groupby("experiment")
    }
    folders = {trial.scenario.experiment: trial.path.parent for trial in results.trials}
    return answers(papers_of(results.experiments), tables, folders, reference)


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


def undecided(
    papers: Sequence[Paper], experiment: str, metrics: pd.DataFrame, folder: Path, level: float
) -> tuple[tuple[Answer, ...], int]:
    """Return the answers that are open at a level, and how many an experiment's trials give."""
    narrowed = [
        replace(paper, claims=tuple(c for c in paper.claims if c.experiment == experiment))
        for paper in papers
    ]
    given = answers(narrowed, {experiment: metrics}, {experiment: folder}, level=level)
    measured = [each for each in given if each.is_measured]
    return tuple(e for e in measured if e.verdict is ClaimVerdict.OPEN), len(measured)


def _selections(metrics: pd.DataFrame) -> Selections:
    plain, varied = split_kernels(usable(metrics))
    return (
        Selection(plain, unusable_rows(metrics, plain)),
        {name: Selection(rows) for name, rows in varied.items()},
    )


def _answers(
    paper: Paper,
    claim: Claim,
    rows: Selections | None,
    folder: Path | None,
    reference: Reference,
    level: float,
) -> Iterator[Answer]:
    if rows is None:
        yield unanswered(paper, claim, f"Not run: testbed run {claim.experiment}")
        return
    plain, others = rows
    all_groups = list(groups(claim, plain, folder, reference))
    if not all_groups:
        window = f" --set window={claim.window}" if claim.window else ""
        why = f"No usable trials: testbed run {claim.experiment}{window}"
        yield unanswered(paper, claim, why)
    varied = {
        name: list(groups(claim, varied_rows, folder, reference))
        for name, varied_rows in others.items()
    }
    for group in all_groups:
        given = _answer(paper, claim, group, level)
        yield replace(given, varied=tuple(_varied(paper, claim, group, varied)))


def _varied(
    paper: Paper, claim: Claim, group: Group, varied: Mapping[str, Sequence[Group]]
) -> Iterator[Varied]:
    """Yield the verdict on the same claim and group on each other kernel that matters to it.

    It matters if a trial that the claim is tested on ran on it, and the answer is another one
    without such trials.
    """
    for name, groups_there in varied.items():
        for other in groups_there:
            if other.key == group.key and other.is_varied:
                given = _answer(paper, claim, other)
                if _matter(paper, claim, given, other.without_varied()):
                    yield Varied(name, given.verdict, given.in_words)


def _matter(paper: Paper, claim: Claim, given: Answer, rest: Group) -> bool:
    """Return whether the answer changes if the other kernel's trials are left out."""
    if rest.rows.empty:
        return True
    without = _answer(paper, claim, rest)
    return replace(given, evidence=()) != replace(without, evidence=())


def _answer(paper: Paper, claim: Claim, group: Group, level: float = CLAIM_LEVEL) -> Answer:
    try:
        finding = claim.judge(group)
    except NotMeasured as error:
        why = f"{str(error)[:1].upper()}{str(error)[1:]}."
        place = {"profile": group.profile, "setting": group.setting, "reading": group.reading}
        return unanswered(paper, claim, why, **place)
    return answer(paper, claim, group, finding, claim.tested + _note(claim, group), level)


def _note(claim: Claim, group: Group) -> str:
    """Write a note on the reading, on the end that had the variant, on the window and the plan.

    The first three are mentioned only if there was a choice.
    """
    read = [each.words for each in claim.readings if each.name == group.reading]
    planned = f"Planned: {claim.networks} networks."
    return "".join(
        f" {each}"
        for each in (*read, claim.settings.get(group.setting, ""), _window_note(group), planned)
        if each
    )


def _window_note(group: Group) -> str:
    return f"Window: {group.window}, which fits the paper's figures." if group.window else ""


# a row of the CSV is an answer; lists are only in the JSON
CSV_COLUMNS = tuple(
    field.name
    for field in dataclasses.fields(Answer)
    if field.name not in ("authors", "rows", "evidence", "varied", "sentences", "beside")
)

ANSWER_KEY = ("id", "profile", "setting", "reading")  # what tells an answer from every other


def ledger_frame(given: Iterable[Answer]) -> pd.DataFrame:
    """Return a table with a row per answer, for CSV; `trials` are those that it names."""
    rows = [
        {name: str(getattr(each, name)) for name in CSV_COLUMNS}
        | {"n": each.n, "seeds": each.seeds, "survival": each.survival}
        | {"trials": " ".join(trial for e in each.evidence for trial in e.trials)}
        for each in given
    ]
    return pd.DataFrame(rows, columns=[*CSV_COLUMNS, "survival", "trials"])


def numbers_frame(given: Iterable[Answer]) -> pd.DataFrame:
    """Return a table with a row per number of an answer: ours, the paper's, ns-2's."""
    rows = [
        {name: getattr(each, name) for name in ANSWER_KEY} | dataclasses.asdict(row)
        for each in given
        for row in each.rows
    ]
    return pd.DataFrame(rows, columns=[*ANSWER_KEY, "what", "ours", "paper", "ns2"])


def ledger_json(given: Iterable[Answer]) -> str:
    """Return all answers in full as JSON."""
    entries = [
        dataclasses.asdict(each)
        | {"survival": each.survival, "out_of": each.out_of, "in_words": each.in_words}
        | {"p": each.p if math.isfinite(each.p) else None}
        for each in given
    ]
    for entry in entries:
        del entry["authors"], entry["sentences"]
    return json.dumps(entries, indent=1, ensure_ascii=False)
