"""The kernels of trials: those that this machine has, each built before the first trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from testbed.engines.base import Engine
from testbed.kernels import known
from testbed.kernels.building import make_ready
from testbed.plan.plan import make_plan
from testbed.plan.task import Task
from testbed.scenario.kernel_axis import on_kernels
from testbed.scenario.model import BASE_KERNEL


def with_ready_kernels(
    engine: Engine, planned: Sequence[Task], tell: Callable[[str], None]
) -> list[Task]:
    """The trials with the kernels that they will run on, which are built if they are not yet.

    A machine may not have the source of the first kernel: what names no other runs there on the
    newest that it has.
    """
    if not engine.virtual_time:
        return list(planned)
    default = known.default()
    if default != BASE_KERNEL and any(_unnamed(task) for task in planned):
        tell(
            f"this machine has no Linux {BASE_KERNEL}: trials that name no kernel run on {default}"
        )
        planned = [_on(task, default) if _unnamed(task) else task for task in planned]
    make_ready((task.scenario.kernel for task in planned), tell)
    return list(planned)


def _unnamed(task: Task) -> bool:
    return task.scenario.kernel == BASE_KERNEL


def _on(task: Task, kernel: str) -> Task:
    (scenario,) = on_kernels([task.scenario], [kernel])
    return Task(scenario, make_plan(scenario))
