"""An evaluation's outcome: a row per subject, setting and seed, with its scores as columns.

The subject is the variant, or the queue where only that varies; a setting is a place on the other
axes. Everything that is said of an evaluation (figure, table, sentence, comparison) is made of
these rows.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.evaluation.trial_view import MAX_HARM_PERCENT, MORE, Score, TrialView
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from testbed.scenario.experiment import ALONE
from testbed.scenario.model import GREEDY, FlowKind

SUBJECT = "subject"
PLANE_DELAY, PLANE_THROUGHPUT = "owd_mean_ms", "throughput_mbps"  # of all flows: the plane's
VICTIM = f"{AXIS}victim"
KEPT_RESULTS = 64  # more than there are evaluations
SCORED_KINDS = (*GREEDY, FlowKind.WORKLOAD)


def scores(results: ExperimentResults) -> tuple[Score, ...]:
    """Return the scores of the experiment, none if it is no evaluation."""
    definition = results.definition
    return tuple(definition.scores()) if definition and definition.scores else ()


def subject_axis(results: ExperimentResults) -> str:
    """`variant`, unless only the queue varies."""
    varied = results.varied()
    axes = [name for name in ("variant", "queue") if AXIS + name in results.good]
    return next((name for name in axes if name in varied), axes[0])


def judged(results: ExperimentResults) -> pd.DataFrame:
    """Select the flows that an evaluation scores: background traffic is not scored."""
    return results.good[results.good["kind"].isin(SCORED_KINDS)]


def outcome(results: ExperimentResults) -> pd.DataFrame:
    """Return a row of scores for each valid trial; victims' numbers as the harm that was done."""
    table = scored_trials(results)
    return table if table.empty else with_harm(table, scores(results))


@functools.lru_cache(maxsize=KEPT_RESULTS)  # each figure and table of a page begins with it
def scored_trials(results: ExperimentResults) -> pd.DataFrame:
    """Return a row of scores for each valid trial, with its axes, seed and verdict.

    Without one, the table is empty and has the columns that a comparison reads.
    """
    known = {trial.path.name: trial for trial in results.trials}
    axis = subject_axis(results)
    rows: list[dict[str, object]] = []
    for name, flows in judged(results).groupby("trial", sort=False):
        digest = results.digest[results.digest["trial"] == name]
        seen = TrialView(known[str(name)], flows, digest)
        first = flows.iloc[0]
        axes = {name: first[name] for name in map(str, flows) if name.startswith(AXIS)}
        subject = str(first[AXIS + axis])
        rows.append(
            {
                SUBJECT: subject,
                "variant": subject,
                **{key: first[key] for key in ("trial", "number", "seed", "verdict", "experiment")},
                **axes,
                PLANE_DELAY: float(flows[PLANE_DELAY].mean()),
                PLANE_THROUGHPUT: float(flows[PLANE_THROUGHPUT].sum()),
                **{score.name: score.of(seen) for score in scores(results)},
            }
        )
    if not rows:
        return pd.DataFrame(columns=[SUBJECT, "seed", *(each.name for each in scores(results))])
    return pd.DataFrame(rows)


def with_harm(table: pd.DataFrame, scores: Sequence[Score]) -> pd.DataFrame:
    """Turn the numbers of victims into what they lose against the link to themselves.

    They are compared in the same setting, seed by seed.

    That is the harm of Ware and others (2019), in percent: (x - y) / x where more is better, and
    (y - x) / y where less is, of the number x alone and y beside the other. A gain of the
    victim is negative, down to -100. The harm to a variant that never ran alone is NaN.
    """
    harms = [score for score in scores if score.harm]
    if not harms:
        return table
    place = ["seed", *(name for name in setting_columns(table) if name != VICTIM)]
    solo = table[table[VICTIM] == ALONE].set_index([SUBJECT, *place])
    table = table[table[VICTIM] != ALONE]
    keys = pd.MultiIndex.from_frame(table[[VICTIM, *place]])
    harmed = {}
    for score in harms:
        x = solo[score.name].reindex(keys).to_numpy(dtype=float)
        y = table[score.name].to_numpy(dtype=float)
        lost, whole = (x - y, x) if score.harm is MORE else (y - x, y)
        least = np.where(lost < 0, -np.inf, 0.0)  # of a number that was or is 0
        parts = np.divide(lost, whole, out=least, where=whole > 0)
        harm = 100 * np.where(np.isfinite(lost), parts, np.nan)
        harmed[score.name] = np.maximum(harm, -MAX_HARM_PERCENT)
    return table.assign(**harmed)


def setting_columns(table: pd.DataFrame) -> list[str]:
    """Return the axes that distinguish settings, without the axis of the subject."""
    columns = [str(name) for name in table if str(name).startswith(AXIS)]
    return [name for name in columns if name not in _subjects(table, columns)]


def _subjects(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if table[name].astype(str).equals(table[SUBJECT])]


def with_second_half(table: pd.DataFrame, subject: str, name: str) -> pd.DataFrame:
    """Give the later half of a subject's seeds another name, and the first half's numbers.

    A subject is compared with itself so: what is called better or worse then is chance.
    """
    seeds = sorted(table["seed"].unique())
    half = len(seeds) // 2
    first = dict(zip(seeds[half:], seeds[:half], strict=False))
    later = (table[SUBJECT] == subject) & table["seed"].isin(first)
    return table.assign(
        **{SUBJECT: table[SUBJECT].mask(later, name)},
        seed=table["seed"].mask(later, table["seed"].map(first)),
    )


def over_settings(table: pd.DataFrame, subject: str, metric: str) -> dict[int, float]:
    """Return a score's mean over the settings, by seed.

    Only seeds count that have the score in all settings in which any seed of the subject has it.
    """
    of_subject = table[table[SUBJECT] == subject]
    return _by_seed(of_subject, metric)


def _by_seed(rows: pd.DataFrame, metric: str) -> dict[int, float]:
    known = rows[rows[metric].notna()]
    counts = known.groupby("seed")[metric].agg(["mean", "count"])
    whole = counts[counts["count"] == counts["count"].max()]
    return {int(seed): float(mean) for seed, mean in whole["mean"].items()}


def in_settings(
    table: pd.DataFrame, one: str, other: str, metric: str
) -> tuple[list[dict[int, float]], list[dict[int, float]]]:
    """Return two subjects' values by seed, in each setting that both have."""
    known = table[table[metric].notna() & table[SUBJECT].isin((one, other))]
    columns = setting_columns(table)
    settings = known.groupby(columns, sort=False, dropna=False) if columns else [((), known)]
    by_subject = [
        [_by_seed(rows[rows[SUBJECT] == name], metric) for name in (one, other)]
        for _, rows in settings
    ]
    both = [(first, second) for first, second in by_subject if first and second]
    return [first for first, _ in both], [second for _, second in both]
