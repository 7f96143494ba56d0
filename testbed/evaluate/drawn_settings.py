"""An evaluation in settings that are drawn from a space, as many as there is time for or need of.

Settings are points of a Sobol sequence, which is the same on every machine: who has more time gets
the same settings and more of them. All subjects have the same ones.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError, UsageError
from testbed.evaluate.evaluation import VICTIM_AXIS, StandardEvaluation
from testbed.runs.estimate import SPENT_PART
from testbed.runs.orchestration import (
    CompletedRun,
    PlannedRun,
    RunListener,
    RunOptions,
    plan_and_carry_out,
)
from testbed.runs.selection import RunSelection, select_experiment
from testbed.scenario.experiment import ALONE, Experiment
from testbed.scenario.model import Scenario
from testbed.scenario.space import DrawnSetting, SettingSpace

SEQUENCE_SEED = 1  # of the sequence's scrambling
FIRST_SETTINGS = 4
MAX_DRAWN = 1024
MAX_REFUSED = 1024  # settings in a row, after which the search is given up
DECIDED = "decided"


@dataclass(frozen=True)
class StoppingRule:
    """The rule for stopping: after a time, or when `decided` says so of the run's folder."""

    budget_s: float
    decided: Callable[[Path], bool] | None


def drawn_settings(space: SettingSpace, fixed: DrawnSetting) -> Iterator[DrawnSetting]:
    """Yield settings of the space without end, leaving out those that it refuses.

    `fixed` holds the values of axes that are not drawn. Raises if the space refuses every setting
    with these values.
    """
    try:
        from scipy.stats import qmc
    except ModuleNotFoundError as error:
        hint = "pip install 'tcp-testbed[evaluate]'"
        raise TestbedError("drawn settings need scipy", hint) from error
    sequence = qmc.Sobol(len(space.axes), rng=SEQUENCE_SEED)
    refused = 0
    while refused < MAX_REFUSED:
        for parts in sequence.random(FIRST_SETTINGS):
            setting = with_fixed(space.at(parts), fixed)
            why = space.refuse(setting)
            refused = refused + 1 if why else 0
            if not why:
                yield setting
    assignments = " ".join(f"--set {name}={value}" for name, value in fixed.items())
    raise UsageError(
        f"{assignments}: none of {refused} drawn settings can run: {why}", "other values"
    )


def with_fixed(setting: DrawnSetting, fixed: DrawnSetting) -> DrawnSetting:
    """Return the setting with some of its values replaced by fixed ones."""
    return {name: fixed.get(name, value) for name, value in setting.items()}


def in_settings(
    evaluation: StandardEvaluation,
    experiment: Experiment,
    drawn: Sequence[DrawnSetting],
    *,
    victims: Sequence[str],
    seeds: int,
    wanted: Callable[[Scenario], bool],
) -> RunSelection:
    """Return the wanted ones of the trials of all subjects and seeds in these settings."""
    fixed = {**evaluation.settings(experiment), VICTIM_AXIS: victims}
    parts = [
        select_experiment(experiment, {**{k: (v,) for k, v in each.items()}, **fixed})
        for each in drawn
    ]

    def scenarios(_seeds: int) -> list[Scenario]:
        return [each for part in parts for each in part.scenarios(seeds) if wanted(each)]

    selection = dataclasses.replace(parts[0], scenarios=scenarios)
    return selection.made_realistic() if evaluation.realistic else selection


def compared_in(
    evaluation: StandardEvaluation, experiment: Experiment, drawn: Sequence[DrawnSetting]
) -> RunSelection:
    """Return the trials of all subjects in these settings, alone and beside the incumbent.

    The incumbent is the first of the others. It has a second seed: how much differs by chance.
    """
    incumbent = evaluation.others[0]
    return in_settings(
        evaluation,
        experiment,
        drawn,
        victims=(incumbent, ALONE),
        seeds=2,
        wanted=lambda each: each.seed == 1 or each.axes[evaluation.axis] == incumbent,
    )


def evaluate_space(
    evaluation: StandardEvaluation,
    experiment: Experiment,
    options: RunOptions,
    listener: RunListener,
    *,
    effort: StoppingRule,
    command: str,
    after_each: Callable[[PlannedRun, CompletedRun], None],
) -> Path:
    """Run settings until the effort ends; return the folder of the run.

    Each round has as many settings as fit into the time that is left, and at most as many as there
    were before it. The results are looked at whenever there are twice as many settings as at the
    last look: each further look makes a decision by chance more likely.
    """
    assert experiment.space is not None
    begun, source = time.monotonic(), drawn_settings(experiment.space, evaluation.fixed)
    options = dataclasses.replace(options, name=evaluation.name)
    drawn = [next(source) for _ in range(FIRST_SETTINGS)]
    next_look = FIRST_SETTINGS
    while True:
        selection = compared_in(evaluation, experiment, drawn)
        planned, done = plan_and_carry_out(selection, options, command, listener)
        after_each(planned, done)
        spent_s = time.monotonic() - begun
        listener.say(f"{len(drawn)} settings, {len(done.trials)} trials, {spent_s / 60:.1f} min")
        fitting = SPENT_PART * (effort.budget_s - spent_s) * len(drawn) / spent_s
        more = int(min(len(drawn), fitting, MAX_DRAWN - len(drawn)))
        if more < 1:
            return done.folder
        if effort.decided and len(drawn) >= next_look:
            if effort.decided(done.folder):
                return done.folder
            next_look = 2 * len(drawn)
        drawn += [next(source) for _ in range(more)]
