"""The search for a subject's worst setting, and for the plainest setting that still shows it.

scipy's differential evolution searches the space: it needs no gradient, takes whole generations at
once, which run in parallel, and does not mind that a setting says little about its neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.evaluate.drawn_settings import drawn_settings, in_settings, with_fixed
from testbed.evaluate.evaluation import StandardEvaluation
from testbed.runs.orchestration import RunListener, RunOptions, plan_and_carry_out
from testbed.runs.selection import RunSelection
from testbed.scenario.experiment import ALONE, Experiment
from testbed.scenario.model import Scenario
from testbed.scenario.space import Adversary, DrawnSetting, NumberRange

GENERATION = 16  # settings
SEARCH_PART = 0.7  # of the budget; the rest is for making the setting plainer
KEPT_PART = 0.85  # of the worst effect, which a plainer setting must still have
SEARCH_SEED = 1
CONFIRMING_SEEDS = (2, 3)
FRESH_SEEDS = (4, 5)  # that chose nothing: what they show is what the setting does
CANDIDATES = 5  # of which the worst is taken that other seeds confirm
CONFIRMING_PART = 0.5  # of the effect, which each of them must show

Key = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class WorstSetting:
    """A setting with the effect that an adversary looks for, in percentage points."""

    setting: DrawnSetting
    effect: float


@dataclass(frozen=True)
class AdversaryFinding:
    """The worst setting that was found, a plainer one, and its effect with fresh seeds."""

    tried: int
    worst: WorstSetting
    plain: WorstSetting
    fresh: tuple[float, ...]  # the plain setting's effect with seeds that chose nothing
    scenario: Scenario  # of the subject in the plain setting


@dataclass
class AdversarySearch:
    """The trials that a search needs, and what it knows of settings already."""

    evaluation: StandardEvaluation
    experiment: Experiment
    adversary: Adversary
    options: RunOptions
    listener: RunListener  # of the trials
    say: Callable[[str], None]  # how far the search is
    command: str
    collect: Callable[[Path], Any]  # the results of the experiment in a run's folder
    known: dict[tuple[Key, int], float] = field(default_factory=dict)

    def selection(self, settings: Sequence[DrawnSetting], seed: int) -> RunSelection:
        """Return the trials of subject and incumbent in these settings."""
        incumbent = self.evaluation.others[0]
        compared = (self.evaluation.subject, incumbent)
        return in_settings(
            self.evaluation,
            self.experiment,
            settings,
            victims=[incumbent if each != ALONE else each for each in self.adversary.victims],
            seeds=seed,
            wanted=lambda s: s.seed == seed and s.axes[self.evaluation.axis] in compared,
        )

    def effects(self, settings: Sequence[DrawnSetting], seed: int = SEARCH_SEED) -> list[float]:
        """Return the adversary's effect in each setting, 0 where there is no valid one."""
        assert self.experiment.space is not None
        settings = [with_fixed(each, self.evaluation.fixed) for each in settings]
        fitting = {_key(each): each for each in settings if not self.experiment.space.refuse(each)}
        if new := [each for key, each in fitting.items() if (key, seed) not in self.known]:
            _, done = plan_and_carry_out(
                self.selection(new, seed), self.options, self.command, self.listener
            )
            results = self.collect(done.folder)
            by_setting: Mapping[Key, float] = self.adversary.effects(
                results, self.evaluation.subject
            )
            self.known |= {(_key(each), seed): by_setting.get(_key(each), 0.0) for each in new}
        return [self.known.get((_key(each), seed), 0.0) for each in settings]

    def is_confirmed(self, setting: DrawnSetting, effect: float) -> bool:
        """Say whether other seeds show most of an effect: by chance alone, a setting can be bad.

        A connection whose first packets are all lost is starved.
        """
        least = CONFIRMING_PART * effect
        return all(self.effects([setting], seed)[0] >= least for seed in CONFIRMING_SEEDS)


def _key(setting: DrawnSetting) -> Key:
    """Return a setting as it compares: numbers are equal however they are written."""
    return tuple(sorted((name, _plain_text(value)) for name, value in setting.items()))


def _plain_text(value: str) -> str:
    try:
        return f"{float(value):g}"
    except ValueError:
        return value


def find_worst(search: AdversarySearch, budget_s: float) -> AdversaryFinding:
    """Search for the worst setting, make it plainer, and run it with fresh seeds."""
    space = search.experiment.space
    assert space is not None
    next(drawn_settings(space, search.evaluation.fixed))  # raises if no setting can run
    import numpy as np  # here, as every command imports this module
    from scipy.optimize import differential_evolution
    from scipy.stats import qmc

    begun = time.monotonic()

    def negated(points: Any) -> Any:
        settings = [space.at(parts) for parts in points.T]
        return -np.asarray(search.effects(settings), dtype=np.float64)

    last = [begun]  # when the last generation ended

    def is_over(*_others: Any, **_more: Any) -> bool:
        best, now = max(search.known.values(), default=0.0), time.monotonic()
        search.say(f"{len(search.known)} settings, the worst with {best:+.0f} points")
        generation_s, last[0] = now - last[0], now
        return now + generation_s - begun > SEARCH_PART * budget_s

    first = qmc.Sobol(len(space.axes), rng=SEARCH_SEED).random(GENERATION)
    differential_evolution(
        negated,
        [(0.0, 1.0)] * len(space.axes),
        init=first,
        maxiter=10_000,
        vectorized=True,
        updating="deferred",
        polish=False,
        callback=is_over,
        rng=SEARCH_SEED,
        tol=0.0,
    )
    if not search.known or max(search.known.values()) <= 0:
        raise TestbedError(
            f"in none of {len(search.known)} settings is {search.evaluation.subject} worse than "
            f"{search.evaluation.others[0]}",
            "give it more time: --budget 1h",
        )

    def has_time() -> bool:
        return time.monotonic() - begun < budget_s

    worst = confirmed(search, has_time)
    plain = plainest(search, worst, has_time)
    fresh = tuple(search.effects([plain.setting], seed)[0] for seed in FRESH_SEEDS)
    tried = len({key for key, seed in search.known if seed == SEARCH_SEED})
    shown = search.selection([plain.setting], SEARCH_SEED).scenarios(1)
    subject = search.evaluation.subject
    scenario = next(each for each in shown if each.axes[search.evaluation.axis] == subject)
    return AdversaryFinding(tried, worst, plain, fresh, scenario)


def confirmed(search: AdversarySearch, has_time: Callable[[], bool]) -> WorstSetting:
    """Return the worst setting that other seeds confirm, of a few; the very worst if none does."""
    worse = [(effect, key) for (key, seed), effect in search.known.items() if seed == SEARCH_SEED]
    ranked = [WorstSetting(dict(key), effect) for effect, key in sorted(worse, reverse=True)]
    for each in ranked[:CANDIDATES]:
        if each.effect <= 0 or not has_time():
            break
        if search.is_confirmed(each.setting, each.effect):
            return each
    return ranked[0]


def plainest(
    search: AdversarySearch, worst: WorstSetting, has_time: Callable[[], bool]
) -> WorstSetting:
    """Make a setting plainer, axis by axis, for as long as most of the effect is still there.

    Other seeds must show it at each step, else the search goes where chance leads.
    An axis is plain at the experiment's usual value, else with a number of one digit.
    """
    now, changed = worst, True
    while changed and has_time():
        changed = False
        for simpler in _simpler(search.experiment, now.setting):
            if not has_time():
                break
            (effect,) = search.effects([simpler])
            if effect >= KEPT_PART * worst.effect and search.is_confirmed(simpler, worst.effect):
                now, changed = WorstSetting(simpler, effect), True
                break
    return now


def _simpler(experiment: Experiment, setting: DrawnSetting) -> list[DrawnSetting]:
    """Return the settings that differ in one axis, which is plain in them."""
    assert experiment.space is not None
    plain: list[DrawnSetting] = []
    for axis in experiment.space.axes:
        usual = experiment.axes[axis.name][0]
        texts = [usual if isinstance(usual, str) else f"{usual:g}"]
        if isinstance(axis, NumberRange):
            texts.append(f"{float(f'{float(setting[axis.name]):.1g}'):g}")
        if _plain_text(setting[axis.name]) == texts[0]:
            continue
        plain += [
            {**setting, axis.name: text}
            for text in texts
            if text != _plain_text(setting[axis.name])
        ]
    return plain
