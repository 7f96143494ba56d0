"""The standard evaluations: a congestion control or a queue compared with others."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import UsageError, nearest
from testbed.guest import kernels
from testbed.guest.engine import GuestEngine
from testbed.host.engine import HostEngine
from testbed.plan.plan import tasks
from testbed.runs import estimate
from testbed.runs.orchestration import (
    CompletedRun,
    PlannedRun,
    RunListener,
    RunOptions,
    plan_and_carry_out,
    refuse_misspelt,
)
from testbed.runs.selection import RunSelection, Settings, select_experiment
from testbed.scenario.experiment import ALONE, Experiment
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.variants import spelling_hint, variant
from testbed.scenario.variations import KERNEL_AXIS
from testbed.stacks.flows import check_stack, is_stack
from testbed.store.names import results_folder

OTHER_VARIANTS = ("cubic", "bbr", "linux-reno")
OTHER_QUEUES = ("pfifo", "codel", "fq_codel", "pie")
INCUMBENTS = ("cubic", "linux-reno")  # what the Internet has, and had
VARIANT_OF_QUEUES = "cubic"  # with which queues are compared
VICTIM_AXIS = "victim"
FULL_SEEDS, QUICK_SEEDS = 5, 3


@dataclass(frozen=True)
class StandardEvaluation:
    """What is evaluated, what it is compared with, and the axis that tells them apart."""

    axis: str
    subject: str
    others: tuple[str, ...]  # the subject alone: it is compared with itself, with other seeds
    fixed: Mapping[str, str]  # axis → value, the same for all
    realistic: bool = False  # whether links aggregate, and hosts take time to receive
    kernel: str = ""  # on which all of it runs, unless the default one

    @property
    def name(self) -> str:
        """The name of its runs, and of the folder with its report."""
        parts = ("evaluate", self.subject, self.kernel, "realistic" if self.realistic else "")
        name = "-".join(filter(None, parts)).replace("./", "")
        return re.sub(r"[^\w.-]+", "-", name)  # quinn:bbr

    def selection(self, experiment: Experiment, *, quick: bool) -> RunSelection:
        """Return what is run of an experiment."""
        selection = select_experiment(experiment, self.settings(experiment), quick=quick)
        return selection.made_realistic() if self.realistic else selection

    def settings(self, experiment: Experiment) -> Settings:
        """Return the values of an experiment's axes."""
        everyone = tuple(dict.fromkeys((self.subject, *self.others)))
        settings: dict[str, Sequence[str]] = {self.axis: everyone}
        settings[VICTIM_AXIS] = (*everyone, ALONE)
        settings |= {axis: (value,) for axis, value in self.fixed.items()}
        own_axes = {axis: values for axis, values in settings.items() if axis in experiment.axes}
        return {**own_axes, KERNEL_AXIS: (self.kernel,)} if self.kernel else own_axes

    def experiments(self, experiments: Iterable[Experiment]) -> list[Experiment]:
        """Return those experiments that compare its axis."""
        return [each for each in experiments if self.axis in each.compares]


def standard_evaluation(
    control: str, queue: str, against: Sequence[str] = ()
) -> StandardEvaluation:
    """Return the evaluation of a congestion control (with a queue, if one is named), or a queue."""
    if not control and not queue:
        raise UsageError("name a congestion control or a queue", "testbed evaluate veno --quick")
    if queue:
        _check_queue(queue)
    if not control:
        others = _without(queue, against or OTHER_QUEUES)
        for other in others:
            _check_queue(other)
        return StandardEvaluation("queue", queue, others, {"variant": VARIANT_OF_QUEUES})
    others = _without(control, against or OTHER_VARIANTS)
    for name in (control, *others):
        (check_stack if is_stack(name) else variant)(name)  # raises for what cannot be one
    fixed = {"queue": queue} if queue else {}
    return StandardEvaluation("variant", control, others, fixed)


def usual_incumbent(control: str) -> str:
    """Return the variant that a congestion control is to be deployed beside."""
    return next(name for name in INCUMBENTS if name != control)


def _check_queue(name: str) -> None:
    if name not in DISCIPLINES:
        raise UsageError(f"unknown queue {name!r}", nearest(name, DISCIPLINES))


def _without(subject: str, others: Sequence[str]) -> tuple[str, ...]:
    """Return the others, each once, without the subject; the subject if there is no other."""
    return tuple(dict.fromkeys(each for each in others if each != subject)) or (subject,)


def with_settings(
    evaluation: StandardEvaluation, settings: Settings, experiments: Iterable[Experiment]
) -> StandardEvaluation:
    """Return an evaluation in which the axes of `settings`, or the kernel, have one value.

    `experiments` are those that the evaluation runs: one of them has to have each axis.
    """
    kernel, fixed = "", dict(evaluation.fixed)
    axes = {axis for each in experiments for axis in each.axes}
    for axis, values in settings.items():
        if len(values) > 1 or axis in (evaluation.axis, VICTIM_AXIS):
            raise UsageError(
                f"--set {axis}={','.join(values)}: an evaluation has one value of it",
                "what is compared: testbed evaluate NAME --against NAME,…",
            )
        if axis == KERNEL_AXIS:
            kernel = values[0]
        elif axis == "queue" and axis in fixed:
            raise UsageError(
                f"--set {axis}: it is {fixed[axis]} already", "leave out one of the two"
            )
        elif axis not in axes:
            raise UsageError(
                f"--set {axis}: no evaluation has such an axis", nearest(axis, (*axes, KERNEL_AXIS))
            )
        else:
            fixed[axis] = values[0]
    return dataclasses.replace(evaluation, fixed=fixed, kernel=kernel)


def check_controls(evaluation: StandardEvaluation) -> None:
    """Raise if the kernel of an evaluation lacks a control, before anything runs.

    A kernel that is not built yet is built when the first trials run, and is not asked.
    """
    engine = GuestEngine(evaluation.kernel)
    if evaluation.kernel and not engine.kernel and evaluation.kernel not in kernels.debian_names():
        raise kernels.not_built(evaluation.kernel)
    if evaluation.axis != "variant" or not engine.kernel:
        return
    for name in (evaluation.subject, *evaluation.others):
        if not is_stack(name) and variant(name).control not in engine.controls():
            raise UsageError(
                f"kernel {engine.kernel_name} has no congestion control {name}",
                f"{spelling_hint(name)}; one of yours: testbed kernel build VERSION --add DIR "
                "--name NAME, then --kernel NAME",
            )


def check_spelling(evaluation: StandardEvaluation) -> None:
    """Raise for a variant that no engine here can have, before its trials are planned."""
    if evaluation.axis == "variant":
        subjects = (evaluation.subject, *evaluation.others)
        names = (variant(name).control for name in subjects if not is_stack(name))
        refuse_misspelt(names, GuestEngine().controls() | HostEngine().controls())


def taking_part(
    evaluation: StandardEvaluation, experiments: Iterable[Experiment]
) -> tuple[list[Experiment], list[str]]:
    """Return the experiments of an evaluation, and the names of those that its stacks cannot do.

    A stack sends one stream for as long as it may: no transfers, no number of bytes, no connections
    side by side, nothing that is lost by its number.
    """
    able, unable = list[Experiment](), list[str]()
    has_stacks = any(map(is_stack, (evaluation.subject, *evaluation.others)))
    for each in evaluation.experiments(experiments):
        try:
            if has_stacks:
                tasks(evaluation.selection(each, quick=True).scenarios(1))
            able.append(each)
        except UsageError:
            unable.append(each.name)
    return able, unable


@dataclass(frozen=True)
class EvaluationCost:
    """How many trials an evaluation has, how many exist, and how long the rest takes on a core."""

    trials: int
    existing: int
    seconds: float


def evaluation_cost(
    evaluation: StandardEvaluation, experiments: Iterable[Experiment], seeds: int, quick: bool
) -> EvaluationCost:
    """Estimate what an evaluation costs."""
    planned = [
        task
        for each in evaluation.experiments(experiments)
        for task in tasks(evaluation.selection(each, quick=quick).scenarios(seeds))
    ]
    missing = [
        task
        for task in planned
        if not any(results_folder(task.scenario.experiment).glob(f"{task.scenario.name}-*"))
    ]
    seconds = estimate.all_guest_seconds((task.plan, task.scenario) for task in missing)
    return EvaluationCost(len(planned), len(planned) - len(missing), seconds)


def evaluate(
    evaluation: StandardEvaluation,
    experiments: Iterable[Experiment],
    options: RunOptions,
    listener: RunListener,
    *,
    quick: bool,
    command: Sequence[str],
    after_each: Callable[[PlannedRun, CompletedRun], None],
) -> list[Path]:
    """Run all experiments of an evaluation; returns the folders of their runs.

    `command` has the user's words that every run is recorded with.
    """
    options = dataclasses.replace(options, name=evaluation.name)
    chosen = evaluation.experiments(experiments)
    folders = []
    for number, experiment in enumerate(chosen, start=1):
        listener.say(f"evaluation {number} of {len(chosen)}: {experiment.name}")
        settings = evaluation.settings(experiment)
        argv = ["testbed", "run", experiment.name, "--seeds", str(options.seeds)]
        argv += ["--name", evaluation.name, *(["--quick"] if quick else [])]
        argv += ["--realistic"] if evaluation.realistic else []
        argv += [w for key, v in settings.items() for w in ("--set", f"{key}={','.join(v)}")]
        selection = evaluation.selection(experiment, quick=quick)
        planned, done = plan_and_carry_out(
            selection, options, shlex.join([*argv, *command]), listener
        )
        after_each(planned, done)
        folders.append(done.folder)
    return folders
