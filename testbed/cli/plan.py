"""`testbed list` and `testbed plan`: the experiments, and what one of them would run."""

from __future__ import annotations

import argparse

from rich.table import Table

from testbed.cli.choosing import chosen
from testbed.cli.console import console
from testbed.plan.plan import Plan, make_plan
from testbed.runs import estimate
from testbed.scenario.model import Scenario


def list_experiments(options: argparse.Namespace) -> int:
    """`testbed list`."""
    table = Table("experiment", "paper", "trials", "guest", "what", box=None)
    for each in options.experiments.values():
        scenarios = each.scenarios({}, 1, quick=False)
        seconds = sum(estimate.guest_seconds(make_plan(s), s) for s in scenarios)
        table.add_row(each.name, each.paper, str(len(scenarios)), f"{seconds:.0f} s", each.about)
    console.print(table)
    return 0


def show_plan(options: argparse.Namespace) -> int:
    """`testbed plan`."""
    _, scenarios = chosen(options)
    plans = [make_plan(scenario) for scenario in scenarios]
    table = Table("trial", "queue", "limit", "guest", "disk", box=None)
    for scenario, plan in zip(scenarios, plans, strict=True):
        for queue in plan.queues:
            if queue.sampled:
                table.add_row(
                    scenario.name,
                    f"{queue.interface} {queue.shaper.rate_mbit:g} Mbit/s",
                    f"{queue.shaper.queue.discipline} {queue.shaper.limit}",
                    f"{estimate.guest_seconds(plan, scenario):.0f} s",
                    f"{estimate.disk_mb(plan, scenario):.1f} MB",
                )
    console.print(table)
    seconds = sum(estimate.guest_seconds(p, s) for s, p in zip(scenarios, plans, strict=True))
    disk = sum(estimate.disk_mb(p, s) for s, p in zip(scenarios, plans, strict=True))
    console.print(
        f"{len(plans)} trials; about {seconds:.0f} s on one core, {disk:.0f} MB of disk, "
        f"{estimate.GUEST_MB} MB of memory for each guest that runs"
    )
    for warning in dict.fromkeys(warning for plan in plans for warning in plan.warnings):
        console.print(f"warning: {warning}")
    if options.commands:
        for scenario, plan in zip(scenarios, plans, strict=True):
            _print_commands(scenario, plan)
    return 0


def _print_commands(scenario: Scenario, plan: Plan) -> None:
    console.print(f"\n{scenario.name}")
    for parameter in plan.parameters:
        console.print(f"{parameter.file}: {parameter.value}", soft_wrap=True)
    for node, settings in plan.sysctls:
        words = " ".join(f"{name}={value!r}" for name, value in settings)
        console.print(f"[{node}] sysctl -w {words}", soft_wrap=True)
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
    if plan.background:
        flows += [plan.background.server, plan.background.client]
    for command in (*plan.setup, *flows):
        line = f"[{command.node}] {' '.join(command.argv)}"
        console.print(line, soft_wrap=True)
