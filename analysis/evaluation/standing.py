"""A subject beside each of the others: better, worse, or not separable.

Seed by seed in each setting that both have, so that only what varies within a setting is the error;
of the comparisons of the whole table that are called better or worse, at most one in twenty is
expected to be false (Benjamini and Hochberg). Where all seeds give the same difference it is exact,
unless it is less than a step of the score's scale: times in whole seconds are often equal.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from analysis.evaluation.outcome_rows import (
    in_settings,
    outcome,
    over_settings,
    scores,
    with_second_half,
)
from analysis.evaluation.trial_view import Score
from analysis.figures.sheet import Cell, Head, Sheet
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.intervals import (
    MIN_SEEDS_OF_A_SPREAD,
    Comparison,
    ComparisonKind,
    compare_in_settings,
    false_discovery,
    known,
)
from analysis.statistics.text_tables import TextTable
from testbed.errors import number_of

LEVEL = 0.05
MUCH = 0.25  # of a mean
UNKNOWN = "–"


class Standing(enum.StrEnum):
    """A subject compared with another."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "the same"  # every seed gives the same number for both
    OPEN = "not separable"
    UNKNOWN = "not known"  # too few trials have both to tell chance from a difference


@dataclass(frozen=True)
class RivalComparison:
    """A comparison with a rival: the subject's score less the rival's."""

    other: str
    found: Comparison
    standing: Standing = Standing.UNKNOWN
    p_corrected: float = math.nan


@dataclass(frozen=True)
class ScoreLine:
    """A score in one evaluation: the subject's mean, and its comparisons with rivals."""

    experiment: str
    score: Score
    mean: float
    seeds: int
    beside: tuple[RivalComparison, ...]


def standings(
    all_results: Iterable[ExperimentResults], subject: str, others: Sequence[str]
) -> tuple[ScoreLine, ...]:
    """Compare every score of every evaluation, corrected for the number of all comparisons."""
    tables = [(each.experiment, outcome(each), scores(each)) for each in all_results]
    if subject in others:
        others = rival_names(subject, others)
        tables = [
            (name, with_second_half(table, subject, others[0]), subject_scores)
            for name, table, subject_scores in tables
        ]
    return corrected([line for each in tables for line in score_lines(*each, subject, others)])


def rival_names(subject: str, others: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the others; the subject itself runs with other seeds."""
    return (f"{subject} with other seeds",) if subject in others else tuple(others)


def corrected(lines: Sequence[ScoreLine]) -> tuple[ScoreLine, ...]:
    """Judge the comparisons of all lines, corrected for their number."""
    flat = [beside for line in lines for beside in line.beside]
    p_values = iter(false_discovery(each.found.p for each in flat))
    return tuple(
        replace(
            line,
            beside=tuple(_judged(each, line.score, next(p_values)) for each in line.beside),
        )
        for line in lines
    )


def score_lines(
    experiment: str,
    table: pd.DataFrame,
    definitions: Sequence[Score],
    subject: str,
    others: Sequence[str],
) -> Iterator[ScoreLine]:
    """Yield a line for each score of an evaluation, whose comparisons are not judged yet."""
    for score in definitions:
        values = known(over_settings(table, subject, score.name).values())
        beside = tuple(
            RivalComparison(
                other, compare_in_settings(*in_settings(table, subject, other, score.name))
            )
            for other in others
        )
        mean = float(values.mean()) if len(values) else math.nan
        yield ScoreLine(experiment, score, mean, len(values), beside)


def _judged(beside: RivalComparison, score: Score, p: float) -> RivalComparison:
    return replace(beside, standing=_standing(beside.found, score, p), p_corrected=p)


def _standing(comparison: Comparison, score: Score, p_corrected: float) -> Standing:
    if comparison.kind is ComparisonKind.IDENTICAL:
        return Standing.SAME
    if comparison.kind is ComparisonKind.NOT_KNOWN or comparison.n_a < MIN_SEEDS_OF_A_SPREAD:
        return Standing.UNKNOWN
    if not p_corrected < LEVEL or abs(comparison.difference) < score.step:
        return Standing.OPEN
    return Standing.BETTER if comparison.difference * score.better > 0 else Standing.WORSE


def heads(subject: str, others: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the summary's columns."""
    rivals = rival_names(subject, others)
    return ("evaluation", "score", subject, *(f"beside {other}" for other in rivals))


def words(beside: RivalComparison, score: Score) -> str:
    """Write a comparison as `+1.2 (0.9 … 1.5): better`, with its uncorrected interval.

    No end of the interval is a difference that is not possible.
    """
    comparison = beside.found
    if beside.standing is Standing.UNKNOWN:
        if math.isnan(comparison.difference):
            return UNKNOWN
        return f"{comparison.difference:+.3g}, {number_of(comparison.n_a, 'trial')} of each"
    if beside.standing is Standing.SAME:
        return str(beside.standing)
    least, largest = score.possible
    low, high = max(comparison.low, least - largest), min(comparison.high, largest - least)
    return f"{comparison.difference:+.3g} ({low:.3g} … {high:.3g}): {beside.standing}"


def text_table(lines: Sequence[ScoreLine], subject: str, others: Sequence[str]) -> TextTable:
    """Return all comparisons as text."""
    rows = tuple(
        (
            line.experiment,
            line.score.words,
            _mean(line),
            *(words(e, line.score) for e in line.beside),
        )
        for line in lines
    )
    return TextTable(heads(subject, others), rows, note(lines))


def screen(lines: Sequence[ScoreLine], subject: str, others: Sequence[str]) -> TextTable:
    """Return what differs, for a terminal: better lines first; the note names the others."""
    order = list(Standing)
    different = [
        (min(order.index(each.standing) for each in line.beside), line)
        for line in lines
        if {each.standing for each in line.beside} & {Standing.BETTER, Standing.WORSE}
    ]
    shown = [line for _, line in sorted(different, key=lambda each: each[0])]
    rest = Counter(line.experiment for line in lines if line not in shown)
    names = ", ".join(f"{name} ({n})" if n > 1 else name for name, n in rest.items())
    remark = f"{note(lines)} Not better or worse: {names}." if names else note(lines)
    return replace(text_table(shown, subject, others), note=remark)


def _mean(line: ScoreLine) -> str:
    return UNKNOWN if math.isnan(line.mean) else f"{line.mean:.3g}"


def sheet(lines: Sequence[ScoreLine], subject: str, others: Sequence[str]) -> Sheet:
    """Return the summary for the page."""
    names = [Head(name) for name in heads(subject, others)]
    rows = tuple(
        (
            Cell(line.experiment, line.experiment),
            Cell(line.score.words, line.score.words),
            Cell(_mean(line), f"{line.mean:.9g}", True),
            *(_cell(each, line.score) for each in line.beside),
        )
        for line in lines
    )
    return Sheet(tuple(names), rows)


def _cell(beside: RivalComparison, score: Score) -> Cell:
    p = beside.p_corrected
    hint = f" p {p:.2g}" if beside.found.kind is ComparisonKind.TESTED else ""
    return Cell(words(beside, score) + hint, f"{beside.standing} {beside.found.difference:.9g}")


def changes(exact: Sequence[ScoreLine], realistic: Sequence[ScoreLine]) -> Iterator[str]:
    """Yield the scores that are judged otherwise in a realistic network, or differ much in it."""
    others = {(line.experiment, line.score.name): line for line in realistic}
    judged = 0
    for line in exact:
        other = others[(line.experiment, line.score.name)]
        pairs = list(zip(line.beside, other.beside, strict=True))
        turned = [
            f"beside {one.other}: {one.standing} becomes {two.standing}"
            for one, two in pairs
            if one.standing is not two.standing
        ]
        judged += len(turned)
        differs = abs(other.mean - line.mean) > MUCH * abs(line.mean)  # not if one is not known
        if turned or differs:
            means = f"{line.experiment}, {line.score.words}: {_mean(line)} becomes {_mean(other)}"
            yield "; ".join((means, *turned))
    total = sum(len(line.beside) for line in exact)
    yield f"{judged} of {total} comparisons are judged otherwise"


def note(lines: Sequence[ScoreLine]) -> str:
    """Write the tally of the summary, and how its numbers are made."""
    flat = [each for line in lines for each in line.beside]
    seeds = {line.seeds for line in lines} or {0}
    tested = sum(not math.isnan(each.found.p) for each in flat)
    tally = ", ".join(
        f"{sum(each.standing is kind for each in flat)} {kind}"
        for kind in Standing
        if any(each.standing is kind for each in flat)
    )
    return (
        f"{tally}. Means over the settings; differences by setting and seed (n = "
        f"{'–'.join(str(n) for n in sorted({min(seeds), max(seeds)}))}) with their 95 % intervals; "
        f"of {tested} comparisons, at most {LEVEL:.0%} of those called better or worse are "
        "expected to be false."
    )
