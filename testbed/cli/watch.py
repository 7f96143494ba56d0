"""`testbed watch`: a page on which the packets of a trial, or of any capture, move."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from typing import TYPE_CHECKING

from testbed.errors import TestbedError, UsageError, number_of
from testbed.runs.console import console, errors
from testbed.store.names import FIGURES, WATCH_PAGE
from testbed.store.reading import Trial, is_trial, open_named_trial

if TYPE_CHECKING:
    from analysis.watch.excerpt import Watched


def watch(options: argparse.Namespace) -> int:
    """Run `testbed watch`: write the page, and say what is on it."""
    from analysis.report.watch_page import write_watch_page
    from analysis.watch.excerpt import Span, watched_capture, watched_trial

    span, subject = Span(options.start, options.stop), options.trial
    if options.video:
        from testbed.cli import watch_film

        watch_film.check(options.video, options.seconds)
    if subject.is_dir() or is_trial(subject):
        trial = open_named_trial(subject)
        watched = watched_trial(trial, options.flow, span)
        if options.why:
            watched = _with_calls(watched, trial, options)
        out = options.out or trial.path / FIGURES / WATCH_PAGE
    elif subject.is_file():
        if options.why:
            raise UsageError(f"--why: {subject} is a capture, and cannot run again", "name a trial")
        watched = watched_capture(subject, options.flow, span)
        out = options.out or subject.with_name(f"{subject.name}.html")
    else:
        raise UsageError(f"{subject}: no such file or folder", "name a trial, or a capture")
    page = write_watch_page(watched, out, shlex.join(["testbed", *options.arguments]))
    start_s, stop_s = ((ns - watched.zero_ns) / 1e9 for ns in (watched.start_ns, watched.stop_ns))
    count = number_of(len(watched.journeys), "packet")
    console.print(f"{count} from {start_s:.6f} to {stop_s:.6f} s")
    for note in watched.notes:
        console.print(note, soft_wrap=True)
    console.print(f"page: {page}", soft_wrap=True)
    if options.video:
        watch_film.film(page, (start_s, stop_s), options.seconds, options.video)
        console.print(f"film: {options.video}", soft_wrap=True)
    return 0


def _with_calls(watched: Watched, trial: Trial, options: argparse.Namespace) -> Watched:
    """Run the trial again under gdb, and add the calls that sent the packet."""
    from testbed.kernels.rewind import RewindRequest, orders_for, sending_of

    orders = orders_for(trial, RewindRequest(packet=options.why, flow=options.flow))
    assert orders.packet
    interface, number = orders.packet.interface, orders.packet.frame
    row = watched.sent(interface, number)
    if row < 0:
        raise UsageError(
            f"--why: packet {number} of {interface} is not on this page, or was not sent there",
            f"testbed inspect {trial.path} --packets 20",
        )
    sending = sending_of(trial, orders, lambda line: errors.print(line, soft_wrap=True))
    if not sending.functions:
        raise TestbedError(f"--why: packet {number} of {interface}: TCP did not send it")
    flow = watched.journeys.paths[int(watched.journeys.columns["path"][row])].flow
    calls = sending.functions[::-1]
    console.print(f"packet {number} of {interface}: {' → '.join(calls)}", soft_wrap=True)
    return dataclasses.replace(watched, asked=row, calls=calls, flow=flow.name)
