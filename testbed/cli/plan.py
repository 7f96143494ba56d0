"""`testbed list` and `testbed plan`: the experiments, and what one of them would run."""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from testbed.cli.run import selected
from testbed.errors import number_of
from testbed.guest import kernels
from testbed.guest.engine import OVERHEAD_MB, check_memory, memory_mb
from testbed.plan.plan import Plan, Task
from testbed.plan.traffic_control import QueuePlan
from testbed.runs import estimate
from testbed.runs.console import console, errors, folding_table, print_folded
from testbed.runs.engine_choice import ENGINES
from testbed.runs.experiment_file import files_with_experiments
from testbed.runs.orchestration import planned_trials, refuse_unknown_controls
from testbed.runs.selection import RunSelection, SettableAxis
from testbed.scenario.model import Scenario

MAX_LISTED_VALUES = 12  # of an axis
MAX_PLANNED_LINES = 24
MINUTE_S = 60
VARIANT_VALUES = "names: `testbed check --variants`"


def list_experiments(options: argparse.Namespace) -> int:
    """Run `testbed list`."""
    table = folding_table("experiment", "trials", "guest", "what")
    table.columns[0].no_wrap = True
    for each in options.experiments.values():
        scenarios = each.scenarios({}, 1, quick=False)
        seconds = estimate.guest_seconds_of(scenarios)
        paper = f" ({each.paper})" if each.paper else ""
        table.add_row(each.name, str(len(scenarios)), f"{seconds:.0f} s", each.about + paper)
    for path, purpose in files_with_experiments(Path()):
        table.add_row(f"./{path.name}", "", "", purpose)
    console.print(table)
    console.print()
    for note in LIST_NOTES:
        print_folded(note, 4)
    return 0


LIST_NOTES = (
    "in brackets: the paper and the part of it that is repeated (docs/papers/), or the document "
    "that requires a standard evaluation (`testbed evaluate`)",
    "trials: with one seed and without --quick",
    "guest: about how long they take on one core, without root (`testbed plan NAME` says more)",
    "./NAME.py: a file in this folder (`testbed new NAME`); listing does not run it",
)


def show_plan(options: argparse.Namespace) -> int:
    """Run `testbed plan`."""
    selection = selected(options)
    for note in selection.notes:
        errors.print(f"testbed: {note}", soft_wrap=True)
    planned = planned_trials(selection, options.seeds, errors.print)
    kernels.require_known({task.scenario.kernel for task in planned})
    refuse_unknown_controls(planned, *(engine() for engine in ENGINES.values()))
    check_memory(planned)
    seconds = estimate.all_guest_seconds((task.plan, task.scenario) for task in planned)
    guest_mb = sorted({memory_mb(task) + OVERHEAD_MB for task in planned})
    memory = " to ".join(dict.fromkeys(f"{mb}" for mb in (guest_mb[0], guest_mb[-1])))
    disk_mb = sum(estimate.disk_mb(task.plan, task.scenario) for task in planned)
    print_folded(
        f"{number_of(len(planned), 'trial')}; about {_time(seconds)} on one core, "
        f"{_size(disk_mb)} of disk, {memory} MB of memory for each guest that runs"
    )
    if disk_mb > (free_mb := shutil.disk_usage(".").free / 1e6):
        print_folded(
            f"warning: {_size(free_mb)} are free here: --captures zstd takes less, and --captures "
            "drop keeps tables and verdicts alone"
        )
    for warning in dict.fromkeys(warning for task in planned for warning in task.plan.warnings):
        console.print(f"warning: {warning}")
    console.print()
    listed = planned if options.all else planned[:MAX_PLANNED_LINES]
    console.print(_trials(listed))
    console.print()
    shown = [axis for axis in selection.axes if options.all or not axis.is_usual]
    console.print(_axes(selection, shown, [task.scenario for task in planned]))
    left_out = {"trial": len(planned) - len(listed), "field": len(selection.axes) - len(shown)}
    if more := [number_of(number, word) for word, number in left_out.items() if number]:
        usual = ", which have their defaults" if left_out["field"] else ""
        print_folded(f"{' and '.join(more)} more{usual}: --all")
    if options.commands:
        for task in planned:
            _print_commands(task.scenario, task.plan)
    request = (each for each in options.arguments[1:] if each not in ("--all", "--commands"))
    console.print(f"next: {shlex.join(('testbed', 'run', *request))}", soft_wrap=True)
    return 0


def _trials(planned: Sequence[Task]) -> Table:
    """Return a table of the trials, with a line for each of their sampled queues."""
    table = folding_table("trial", "queue", "limit", "guest", "disk")
    for task in planned:
        scenario, plan = task.scenario, task.plan
        queues = [_queue(queue) for queue in plan.queues if queue.sampled]
        seconds = f"{estimate.guest_seconds(plan, scenario):.0f} s"
        disk = f"{estimate.disk_mb(plan, scenario):.1f} MB"
        for number, (name, limit) in enumerate(queues or [("none sampled", "")]):
            costs = (seconds, disk) if number == 0 else ("", "")
            table.add_row("" if number else scenario.name, name, limit, *costs)
    return table


def _queue(queue: QueuePlan) -> tuple[str, str]:
    hop = queue.hop
    name = f"{queue.interface} {hop.rate_mbit:g} Mbit/s"
    return name, f"{hop.queue.discipline} {hop.limit}"


def _time(seconds: float) -> str:
    if seconds < MINUTE_S:
        return f"{seconds:.0f} s"
    minutes = round(seconds / MINUTE_S)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _size(mb: float) -> str:
    return f"{mb:.0f} MB" if mb < 1000 else f"{mb / 1000:.1f} GB"


def _axes(
    selection: RunSelection, axes: Sequence[SettableAxis], scenarios: Sequence[Scenario]
) -> Table:
    """Return a table of what `--set` can change: this plan's values, the default, what it takes."""
    table = folding_table("--set", "this plan", "default", "takes")
    seen = [selection.values(scenario) for scenario in scenarios]
    for axis in axes:
        values = tuple(dict.fromkeys(each[axis.name] for each in seen if axis.name in each))
        same = set(values) == set(axis.default)
        takes = VARIANT_VALUES if axis.name == "variant" else axis.takes
        table.add_row(axis.name, _listed(values), "" if same else _listed(axis.default), takes)
    return table


def _listed(values: Sequence[str]) -> str:
    more = f", … ({len(values)})" if len(values) > MAX_LISTED_VALUES else ""
    return ", ".join(values[:MAX_LISTED_VALUES]) + more


def _print_commands(scenario: Scenario, plan: Plan) -> None:
    console.print(f"\n{scenario.name}")
    for parameter in plan.parameters:
        console.print(f"{parameter.file}: {parameter.value}", soft_wrap=True)
    for node, settings in plan.sysctls:
        assignments = " ".join(f"{name}={value!r}" for name, value in settings)
        console.print(f"[{node}] sysctl -w {assignments}", soft_wrap=True)
    for drops in plan.drops:
        numbers = ", ".join(map(str, drops.segments))
        console.print(
            f"[{drops.node}] {drops.interface}: {drops.flow} loses segments {numbers}",
            soft_wrap=True,
        )
    for loss in plan.losses:
        console.print(
            f"[{loss.node}] {loss.interface}: {loss.flow} random losses: {loss.loss}",
            soft_wrap=True,
        )
    if plan.radio:
        console.print(" ".join(plan.radio.medium), soft_wrap=True)
    flows = [command for flow in plan.flows for command in (flow.server, flow.client)]
    for command in (*plan.setup, *flows):
        line = f"[{command.node}] {' '.join(command.argv)}"
        console.print(line, soft_wrap=True)
