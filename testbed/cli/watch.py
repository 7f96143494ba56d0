"""`testbed watch`: a page on which the packets of a trial, or of any capture, move."""

from __future__ import annotations

import argparse
import shlex

from testbed.errors import UsageError, number_of
from testbed.runs.console import console
from testbed.store.names import FIGURES, WATCH_PAGE
from testbed.store.reading import is_trial, open_named_trial


def watch(options: argparse.Namespace) -> int:
    """Run `testbed watch`: write the page, and say what is on it."""
    from analysis.report.watch_page import write_watch_page
    from analysis.watch.excerpt import Span, watched_capture, watched_trial

    span, subject = Span(options.start, options.stop), options.trial
    if subject.is_dir() or is_trial(subject):
        trial = open_named_trial(subject)
        watched = watched_trial(trial, options.flow, span)
        out = options.out or trial.path / FIGURES / WATCH_PAGE
    elif subject.is_file():
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
    return 0
