"""Whether a variant can be deployed beside another: its harm, against that of the other's own kind.

Ware and others (2019): a new algorithm α is acceptable beside β if harm(α → β) is not larger than
harm(β → β), that is, if a flow of β suffers no more from α than from a second flow of β. The test
is one of non-inferiority, for each metric by itself: the interval of the difference, seed by seed,
has to lie below a margin.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from analysis.evaluation.outcome_rows import SUBJECT, VICTIM
from analysis.evaluation.trial_view import Score
from analysis.figures.sheet import Cell, Head, Sheet, mean_cell
from analysis.statistics.intervals import Comparison, compare_paired, false_discovery
from analysis.trials.labels import variant_key

MARGIN_POINTS = 5.0  # percentage points of harm
DEPLOYABILITY_LEVEL = 0.05
DEPLOYABILITY_NOTE = (
    f"Percent of what β has alone (Ware and others, 2019). Deployable: seed by seed, α harms β by "
    f"less than {MARGIN_POINTS:g} points more than another β does, at {DEPLOYABILITY_LEVEL:g} "
    "(two-sided), corrected for all rows (Benjamini and Hochberg)."
)


class Deployability(enum.StrEnum):
    """Whether a variant harms another more than that harms itself, by a margin."""

    YES = "deployable"
    NO = "more harmful"
    OPEN = "open"


@dataclass(frozen=True)
class HarmComparison:
    """The harm of α to β and that of β to β, in percent, and their difference by seed."""

    score: Score
    harming: str
    harmed: str
    harm: tuple[float, ...]  # of α to β, by seed
    own: tuple[float, ...]  # of β to β
    difference: Comparison
    p: float  # of a difference as large as the margin, corrected

    @property
    def deployable(self) -> Deployability:
        """Whether α is no worse for β than β itself."""
        if not self.p < DEPLOYABILITY_LEVEL:
            return Deployability.OPEN
        return Deployability.YES if self.difference.difference < MARGIN_POINTS else Deployability.NO


def harm_comparisons(table: pd.DataFrame, scores: Sequence[Score]) -> tuple[HarmComparison, ...]:
    """Compare, for every metric, each variant's harm to each other with that one's to itself."""
    names = sorted(set(table[SUBJECT]), key=variant_key)
    pairs = [(score, a, b) for score in scores for b in names for a in names if a != b]
    comparisons = []
    for score, harming, harmed in pairs:
        first, second = (_by_seed(table, score, each, harmed) for each in (harming, harmed))
        if not first:
            continue
        beyond = {seed: harm - MARGIN_POINTS for seed, harm in first.items()}
        comparisons.append(
            HarmComparison(
                score,
                harming,
                harmed,
                tuple(first.values()),
                tuple(second.values()),
                compare_paired(first, second),
                compare_paired(beyond, second).p,
            )
        )
    corrected = false_discovery(each.p for each in comparisons)
    return tuple(replace(each, p=float(p)) for each, p in zip(comparisons, corrected, strict=True))


def _by_seed(table: pd.DataFrame, score: Score, harming: str, harmed: str) -> dict[int, float]:
    pair_rows = table[(table[SUBJECT] == harming) & (table[VICTIM] == harmed)]
    values = pair_rows.groupby("seed")[score.name].mean().dropna()
    return {int(float(str(seed))): float(value) for seed, value in values.items()}


def deployability_sheet(comparisons: Sequence[HarmComparison]) -> Sheet:
    """Tabulate both harms, their difference with its interval, and what follows."""
    heads = ("metric", "α", "β", "harm(α → β)", "harm(β → β)", "difference", "so α beside β is")
    return Sheet(tuple(map(Head, heads)), tuple(tuple(_cells(each)) for each in comparisons))


def _cells(each: HarmComparison) -> Iterator[Cell]:
    for text in (each.score.words, each.harming, each.harmed):
        yield Cell(text, text)
    yield mean_cell(pd.Series(each.harm, dtype=float))
    yield mean_cell(pd.Series(each.own, dtype=float))
    difference = each.difference
    ends = (
        f" ({difference.low:.1f} … {difference.high:.1f})" if math.isfinite(difference.low) else ""
    )
    yield Cell(f"{difference.difference:+.1f}{ends}", f"{difference.difference:.9g}", True)
    yield Cell(each.deployable, each.deployable)
