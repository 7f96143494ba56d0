"""The kernels of trials: those that this machine has, each built before the first trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from testbed.engines.base import Engine
from testbed.kernels import known
from testbed.kernels.building import make_ready
from testbed.plan.plan import make_plan
from testbed.plan.task import Task
from testbed.scenario.kernel_axis import AXIS, on_kernels
from testbed.scenario.model import BASE_KERNEL


def with_ready_kernels(
    engine: Engine, planned: Sequence[Task], tell: Callable[[str], None], *, named: bool
) -> list[Task]:
    """The trials with the kernels that they will run on, which are built if they are not yet.

    A machine may not have the source of the first kernel: there, unless kernels were named, what
    would run on it runs on the newest that there is.
    """
    if not engine.virtual_time:
        return list(planned)
    default = known.default()
    if default != BASE_KERNEL and not named and any(_on_first(task) for task in planned):
        tell(
            f"this machine has no Linux {BASE_KERNEL}: trials that name no kernel run on {default}"
        )
        planned = [_on(task, default) if _on_first(task) else task for task in planned]
    make_ready((task.scenario.kernel for task in planned), tell)
    return list(planned)


def _on_first(task: Task) -> bool:
    """And not because an experiment's own axis says so."""
    return task.scenario.kernel == BASE_KERNEL and AXIS not in task.scenario.axes


def _on(task: Task, kernel: str) -> Task:
    (scenario,) = on_kernels([task.scenario], [kernel])
    return Task(scenario, make_plan(scenario))
