"""What the drawn settings show: paired effects, where they are worst, and which axis decides.

A variant is compared with the incumbent in every setting: alone, by what it does to the incumbent's
flows, and by how it starves them. The incumbent's second seed, compared with its first in the same
way, says how much of it is chance.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.evaluation.outcome_rows import (
    SUBJECT,
    VICTIM,
    scored_trials,
    setting_columns,
    with_harm,
)
from analysis.evaluation.trial_view import Score
from analysis.figures import cases
from analysis.metrics.metric_rows import AXIS
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.distributions import t_quantile
from analysis.statistics.estimates import share_interval
from analysis.statistics.intervals import CONFIDENCE, Comparison, compare_paired, false_discovery
from experiments.evaluation.space_scores import OWN_SCORES, SPACE_HARM_SCORES, STARVATION_SCORES
from testbed.scenario.experiment import ALONE

SAME, OTHER = 1, 2  # the seed that all subjects have, and the incumbent's second
SettingKey = tuple[tuple[str, str], ...]  # axis and value, by the axis's name
MARGIN_PERCENT = 5.0  # percentage points from which on an effect counts in a setting
SPACE_LEVEL = 0.05
CELL_AXES = (("rate_mbit", "rtt_ms"), ("buffer_bdp", "flows"))
CELLS_OF_AXIS = 4
MIN_IN_A_CELL = 3
MIN_TO_DECOMPOSE = 16
SPACE_SCORES_SHOWN = (*OWN_SCORES, *SPACE_HARM_SCORES, *STARVATION_SCORES)


@dataclass(frozen=True)
class SpaceResults:
    """The trials of all settings, and the variant that the others are compared with."""

    incumbent: str
    subjects: tuple[str, ...]  # the others
    places: list[str]  # the columns of the axes that settings differ in, or could
    alone: pd.DataFrame  # indexed by subject, seed and place, as the others are
    beside: pd.DataFrame

    def values(self, score: Score, subject: str, seed: int) -> pd.Series[float]:
        """Return a score of a subject, by setting."""
        table = self.alone if score in OWN_SCORES else self.beside
        names, seeds = (table.index.get_level_values(level) for level in (SUBJECT, "seed"))
        values = table.loc[(names == subject) & (seeds == seed), score.name]
        return values.droplevel([SUBJECT, "seed"])

    def effect(self, score: Score, subject: str) -> pd.Series[float]:
        """Return the subject's score less the incumbent's, in the settings that both have.

        Of the incumbent itself, its second seed is compared with its first.
        """
        seed = OTHER if subject == self.incumbent else SAME
        differences = self.values(score, subject, seed) - self.values(score, self.incumbent, SAME)
        return differences.dropna()


def space_results(results: ExperimentResults) -> SpaceResults | None:
    """Sort the trials of the drawn settings; None if there is nothing to compare."""
    raw = scored_trials(results)
    if raw.empty or VICTIM not in raw:
        return None
    victims = [str(name) for name in raw[VICTIM].unique() if name != ALONE]
    if len(victims) != 1:
        return None
    places = [name for name in setting_columns(raw) if name != VICTIM]
    index = [SUBJECT, "seed", *places]
    raw = raw.assign(seed=raw["seed"].astype(int))
    alone = raw[raw[VICTIM] == ALONE].set_index(index).sort_index()
    beside = with_harm(raw, SPACE_HARM_SCORES).set_index(index).sort_index()
    others = tuple(name for name in dict.fromkeys(raw[SUBJECT]) if name != victims[0])
    return SpaceResults(victims[0], others, places, alone, beside)


@dataclass(frozen=True)
class SpaceEffect:
    """A score of a subject less the incumbent's, over all settings."""

    subject: str
    score: Score
    by_setting: pd.Series[float]
    found: Comparison
    p: float = math.nan  # corrected for false discoveries among all that is tested

    @property
    def loses(self) -> pd.Series[bool]:
        """Return the settings in which the subject is worse by more than the margin."""
        return -self.score.better * self.by_setting > MARGIN_PERCENT

    @property
    def worst(self) -> str:
        """The setting in which the subject is worst, in words."""
        if self.by_setting.empty:
            return ""
        return in_words((-self.score.better * self.by_setting).idxmax(), self.by_setting)

    @property
    def is_discovery(self) -> bool:
        """Whether the mean effect is significant."""
        return self.p < SPACE_LEVEL


@dataclass(frozen=True)
class SpaceCell:
    """A part of the space: two axes' ranges, and the mean effect there."""

    axes: tuple[str, str]
    place: tuple[int, int]
    settings: int
    found: Comparison
    p: float = math.nan


def in_words(place: object, of: pd.Series[float]) -> str:
    """Write a setting: `4.2 Mbit/s, 20 ms, 0.3 BDP, …`."""
    names = [str(name).removeprefix(AXIS) for name in of.index.names]
    values = place if isinstance(place, tuple) else (place,)
    return cases.case_words(cases.case(names, values))


def space_effects(space: SpaceResults) -> tuple[SpaceEffect, ...]:
    """Compare every subject, and the incumbent's second seed, with the incumbent."""
    made = []
    for subject in (*space.subjects, space.incumbent):
        for score in SPACE_SCORES_SHOWN:
            values = space.effect(score, subject)
            if len(values):
                made.append(SpaceEffect(subject, score, values, _mean_of(values)))
    corrected = false_discovery([each.found.p for each in made])
    return tuple(
        dataclasses.replace(each, p=float(p)) for each, p in zip(made, corrected, strict=True)
    )


def _mean_of(effects: pd.Series[float]) -> Comparison:
    """Test a mean of effects against none."""
    values = dict(enumerate(map(float, effects)))
    return compare_paired(values, dict.fromkeys(values, 0.0))


def bins_of(values: pd.Series) -> tuple[pd.Series[int], list[str]]:
    """Divide an axis into ranges with equally many settings, or by its names; and their words."""
    names = sorted(values.unique())
    if not pd.api.types.is_numeric_dtype(values) or len(names) <= CELLS_OF_AXIS:
        labels = [cases.text(name) for name in names]
        return values.map({name: n for n, name in enumerate(names)}), labels
    cells = min(CELLS_OF_AXIS, max(2, math.isqrt(len(values) // MIN_IN_A_CELL)))
    cut, edges = pd.qcut(values, cells, labels=False, retbins=True, duplicates="drop")
    ends = [cases.text(float(f"{edge:.2g}")) for edge in edges]
    labels = [f"{low} – {high}" for low, high in itertools.pairwise(ends)]
    return cut, labels


def cells_of(effect: SpaceEffect) -> Iterator[SpaceCell]:
    """Yield the mean effect in each part of the space that has enough settings."""
    frame = effect.by_setting.rename("effect").reset_index()
    for one, other in CELL_AXES:
        bins = [bins_of(frame[AXIS + name])[0] for name in (one, other)]
        groups = frame.groupby([bins[0].rename("x"), bins[1].rename("y")])
        for (x, y), rows in groups:
            if len(rows) >= MIN_IN_A_CELL:
                place = int(str(x)), int(str(y))
                yield SpaceCell((one, other), place, len(rows), _mean_of(rows["effect"]))


def corrected_cells(effects: Sequence[SpaceEffect]) -> list[tuple[SpaceEffect, list[SpaceCell]]]:
    """Return each effect's cells, corrected for false discoveries among all of them."""
    cells = [list(cells_of(effect)) for effect in effects]
    flat = iter(false_discovery([cell.found.p for each in cells for cell in each]))
    return [
        (effect, [dataclasses.replace(cell, p=float(next(flat))) for cell in each])
        for effect, each in zip(effects, cells, strict=True)
    ]


def deciding(effect: SpaceEffect) -> dict[str, float]:
    """Return the part of the effect's variance that each axis explains by itself, in percent.

    It is epsilon squared of an analysis of variance over the ranges of the axis: corrected for what
    that many ranges explain by chance, and so around 0 where the axis decides nothing. Of few
    settings nothing is said.
    """
    if len(effect.by_setting) < MIN_TO_DECOMPOSE:
        return {}
    frame = effect.by_setting.rename("effect").reset_index()
    values = frame["effect"].to_numpy(dtype=float)
    total = float(((values - values.mean()) ** 2).sum())
    parts = {}
    for column in frame.columns[:-1]:
        bins, _ = bins_of(frame[column])
        groups = bins.nunique()
        if groups < 2 or len(values) <= groups or not total:
            continue
        within = frame.groupby(bins)["effect"].transform("mean").to_numpy(dtype=float)
        rest = float(((values - within) ** 2).sum()) / (len(values) - groups)
        explained = 1 - rest * (len(values) - 1) / total
        parts[str(column).removeprefix(AXIS)] = 100 * max(0.0, explained)
    return dict(sorted(parts.items(), key=lambda pair: -pair[1]))


@dataclass(frozen=True)
class Share:
    """A share of settings with its interval (Clopper and Pearson), in percent."""

    percent: float
    low: float
    high: float

    def __str__(self) -> str:
        """Write `94 % (88–97)`."""
        return f"{self.percent:.0f} % ({self.low:.0f}–{self.high:.0f})"


def share_of(flags: pd.Series[bool]) -> Share:
    """Return the share of settings in which something is true."""
    count, n = int(flags.sum()), len(flags)
    low, high = share_interval(count, n, 1 - CONFIDENCE)
    return Share(100 * count / n, 100 * low, 100 * high)


def harmless(effects: Sequence[SpaceEffect], subject: str) -> pd.Series[bool]:
    """Return in which settings a subject harms no metric more than the incumbent does itself."""
    of_subject = [
        each for each in effects if each.subject == subject and each.score in SPACE_HARM_SCORES
    ]
    if not of_subject:
        return pd.Series(dtype=bool)
    loses = pd.concat([each.loses for each in of_subject], axis=1).dropna()
    return ~loses.astype(bool).any(axis=1)


MAX_LOOKS = 9  # at the results, at most: from 4 settings to 1024, twice as many each time


def is_decided(results: ExperimentResults) -> bool:
    """Return whether every mean effect is known to be there, or to be within the margin.

    As results are looked at again and again, each look has its share of the level alone.
    """
    space = space_results(results)
    return space is not None and all(
        _is_known(each) for each in space_effects(space) if each.subject in space.subjects
    )


def _is_known(effect: SpaceEffect) -> bool:
    values = effect.by_setting.to_numpy(dtype=float)
    if len(values) < MIN_IN_A_CELL:
        return False
    quantile = t_quantile(1 - SPACE_LEVEL / MAX_LOOKS, len(values) - 1)
    wide = quantile * values.std(ddof=1) / math.sqrt(len(values))
    mean = abs(float(values.mean()))
    return bool(mean > wide or mean + wide < MARGIN_PERCENT)


def starvation(results: ExperimentResults, subject: str) -> Mapping[SettingKey, float]:
    """Return how much more a subject starves the incumbent's flows than the incumbent does."""
    return _by_key(results, STARVATION_SCORES[0], subject)


def stall(results: ExperimentResults, subject: str) -> Mapping[SettingKey, float]:
    """Return how much longer a subject's flows stall, alone, than the incumbent's do."""
    return _by_key(results, STARVATION_SCORES[1], subject, alone=True)


def harm(results: ExperimentResults, subject: str) -> Mapping[SettingKey, float]:
    """Return how much more a subject harms the incumbent's throughput than the incumbent does."""
    return _by_key(results, SPACE_HARM_SCORES[0], subject)


def _by_key(
    results: ExperimentResults, score: Score, subject: str, *, alone: bool = False
) -> Mapping[SettingKey, float]:
    """Return a score's effect by setting, as a search knows settings; more is worse."""
    raw = scored_trials(results)
    if raw.empty or results.definition is None or results.definition.space is None:
        return {}
    if score in SPACE_HARM_SCORES:
        raw = with_harm(raw, SPACE_HARM_SCORES)
    places = [AXIS + axis.name for axis in results.definition.space.axes]
    index = pd.MultiIndex.from_frame(raw[places].map(cases.text))
    values = raw.assign(place=index.to_flat_index())[raw[VICTIM].eq(ALONE) == alone]
    table = values.pivot_table(score.name, "place", SUBJECT)
    if subject not in table or table.shape[1] != 2:
        return {}
    (incumbent,) = (name for name in table if name != subject)
    effect = (-score.better * (table[subject] - table[incumbent])).dropna()
    names = [name.removeprefix(AXIS) for name in places]
    keys = (dict(zip(names, map(str, place), strict=True)) for place in effect.index)
    return {tuple(sorted(k.items())): float(v) for k, v in zip(keys, effect, strict=True)}
