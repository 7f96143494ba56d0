"""`testbed rewind`: a trial again, stopped at an instant or a packet."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

from testbed.errors import UsageError
from testbed.machine.atomic import workplace
from testbed.runs.console import console, errors
from testbed.store.reading import Trial, open_named_trial


def rewind_trial(options: argparse.Namespace) -> int:
    """Run `testbed rewind`: exit status 1 if the packets were others."""
    from testbed.kernels import rewind

    if options.at is not None and options.packet:
        raise UsageError("--at and --packet: it stops at one of them", "leave out the other")
    trial = open_named_trial(options.trial)
    functions, expressions = _functions(options)
    request = rewind.RewindRequest(
        options.at,
        options.packet,
        options.flow,
        options.point,
        functions,
        expressions,
        options.until,
        options.gdb,
    )
    orders = rewind.orders_for(trial, request)
    while True:
        with contextlib.ExitStack() as stack:
            out = options.out or stack.enter_context(workplace("rewind-trial"))
            end = rewind.rewind(trial, orders, Path(out), _say)
        status = _report(trial, end.differences, end.captures)
        if end.back_s is None:
            if status == 0 and not (options.gdb or functions):
                _say("next: the same with --gdb stays there, with --trace 'tcp_*' prints calls")
            return status
        orders = rewind.going_back(orders, end.back_s)


def _functions(options: argparse.Namespace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the functions whose calls are printed, and the expressions printed with each."""
    if options.gdb and (options.trace or options.probe):
        raise UsageError("--gdb: gdb prints what is typed", "leave out --trace and --probe")
    if options.probe:
        function, _, rest = options.probe.partition(":")
        return (function,), tuple(filter(None, rest.split(",")))
    return tuple(filter(None, options.trace.split(","))), ()


def _report(trial: Trial, differences: tuple[str, ...], captures: int) -> int:
    """Say whether looking has changed a packet."""
    for line in differences:
        console.print(f"other packets: {line}", soft_wrap=True)
    if differences:
        return 1
    console.print(f"the same packets as {trial.path}, in all {captures} captures", soft_wrap=True)
    return 0


def _say(line: str) -> None:
    errors.print(line, soft_wrap=True)
