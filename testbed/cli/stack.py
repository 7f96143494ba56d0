"""`testbed stack`: list the transports in user space, build them, and try them out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from testbed.errors import TestbedError, UsageError, nearest
from testbed.own_files.scenario_file import Document, in_document
from testbed.runs.console import console, errors, folding_table, print_error
from testbed.runs.orchestration import RunListener, RunOptions, plan_and_carry_out
from testbed.runs.selection import select_scenarios
from testbed.stacks.stack import build, shipped, stack_of

CHECKED_NETWORK = {
    "experiment": "stack-check",
    "topology": {
        "kind": "dumbbell",
        "bottleneck": {
            "rate_mbit": 10,
            "delay_ms": 10,
            "queue": {"discipline": "pfifo", "limit_bdp": 1},
        },
        "access": {"delay_ms": 5},
    },
    "duration_s": 5,
}
CHECKED_ENDS = {"src": "sender1", "dst": "receiver1"}


def stack(options: argparse.Namespace) -> int:
    """Run `testbed stack`."""
    what, *arguments = options.words or ["list"]
    if what not in STACK_ACTS:
        raise UsageError(f"stack {what}: unknown action", nearest(what, STACK_ACTS))
    return STACK_ACTS[what](arguments)


def _list(arguments: Sequence[str]) -> int:
    table = folding_table("stack", "state", "controls", "what")
    for each in map(stack_of, arguments or shipped()):
        description = each.description
        state = "built" if each.is_built else "not built"
        table.add_row(each.name, state, ", ".join(description.variants), description.about)
    console.print(table)
    return 0


def _build(arguments: Sequence[str]) -> int:
    """Build each of the stacks; one that fails is a line, and the others are built."""
    status = 0
    for each in map(stack_of, arguments or shipped()):
        try:
            built = build(each, lambda line: errors.print(line, soft_wrap=True, highlight=False))
        except TestbedError as error:
            error.message = f"stack {each.name}: {error.message}"
            status = print_error(error, 1)
        else:
            console.print(f"stack {each.name}: {built}", soft_wrap=True, highlight=False)
    return status


def _check(arguments: Sequence[str]) -> int:
    """Let each stack send with each of its controls, alone through a small network."""
    from analysis.results.tables import write_metrics

    status = 0
    for each in map(stack_of, arguments or shipped()):
        flow = {"name": "it", "kind": "stack", "stack": each.reference, **CHECKED_ENDS}
        document = in_document(
            Document({**CHECKED_NETWORK, "flows": [flow]}), f"stack check {each.name}"
        )
        controls = tuple(each.description.variants)
        selection = select_scenarios([document], {"flows.it.variant": controls}, each.name, False)
        options = RunOptions(engine="guest", name=f"check-{each.name}")
        call = f"testbed stack check {each.reference}"
        _, done = plan_and_carry_out(selection, options, call, RunListener())
        for _, row in write_metrics(done.folder).iterrows():
            sound = row["verdict"] == "valid"
            result = f"{row['goodput_mbps']:.2f} Mbit/s" if sound else row["why"] or row["status"]
            console.print(f"{row['variant']}: {result}", soft_wrap=True, highlight=False)
            status |= not sound
    return status


STACK_ACTS = {"list": _list, "build": _build, "check": _check}
