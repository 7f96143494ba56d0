"""A control against itself: chance is found as seldom as the level says, a difference always."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.evaluation.outcome_rows import SUBJECT
from analysis.evaluation.trial_view import MORE, Score
from benchmarks.self_check import EvaluationRows, against_itself, false_findings

SCORE = Score("x", "x (%)", MORE, lambda seen: 0.0)
SEEDS, COUNT = 3, 40


def rows(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> EvaluationRows:
    """Return one evaluation's rows, a seed for each value, in two settings.

    What differs in one says nothing of the other, as in an evaluation: there a seed has the value
    that it would have two repetitions earlier.
    """
    seeds = np.arange(1, len(values) + 1)
    parts = [
        pd.DataFrame({SUBJECT: "a", "axis_variant": "a", "axis_n": n, "seed": seeds, "x": x})
        for n, x in ((1.0, values), (2.0, np.roll(values, 2 * SEEDS)))
    ]
    return {"made-up": (pd.concat(parts), (SCORE,))}


def test_an_evaluation_compares_its_own_seeds_with_as_many_others() -> None:
    (line,) = against_itself(rows(np.arange(1.0, 25)), "a", SEEDS, 1)
    # seeds 7 to 9, of 8 in one setting and 2 in the other; the others are 10 to 12
    assert line.mean == (8 + 2) / 2 and line.seeds == SEEDS
    (beside,) = line.beside
    assert beside.found.difference == -SEEDS


def test_chance_is_found_as_seldom_as_the_level_says_and_a_difference_always() -> None:
    noise = np.random.default_rng(1).normal(size=2 * SEEDS * COUNT)
    second = np.arange(len(noise)) // SEEDS % 2

    def findings(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[int, int, int]:
        return false_findings([against_itself(rows(values), "a", SEEDS, n) for n in range(COUNT)])

    wrong, comparisons, below = findings(noise)
    assert comparisons == COUNT and wrong == below <= 6  # more of 40 in 1 of 100 such tests
    assert findings(noise + 100 * second)[0] == COUNT
