"""`testbed report`: a trial's flow in figures."""

from __future__ import annotations

import argparse
from pathlib import Path

from testbed.console import console
from testbed.errors import TestbedError
from testbed.store import FlowRecord, Trial, is_trial, open_trial

FIGURES = "figures"  # in the trial's folder


def report(options: argparse.Namespace) -> int:
    """`testbed report`."""
    from analysis.inspection import flow_record

    if not is_trial(options.results):
        raise TestbedError(
            f"{options.results}: not a trial",
            "name the directory of one trial (trial.json is in it)",
        )
    trial = open_trial(options.results)
    flow = flow_record(trial, options.flow)
    folder = options.out or trial.path / FIGURES
    for path in _draw(trial, flow, options.start, options.stop, folder):
        console.print(path, markup=False, soft_wrap=True)
    return 0


def _draw(
    trial: Trial, flow: FlowRecord, start_s: float | None, stop_s: float | None, folder: Path
) -> list[Path]:
    """The flow's timeline; of TCP also its time-sequence diagram."""
    from analysis.time_sequence import figure as time_sequence
    from analysis.timeline import figure as timeline
    from analysis.timeline.data import flow_span
    from analysis.timeline.text import stem

    folder.mkdir(parents=True, exist_ok=True)
    whole, asked = flow_span(flow, None, None), flow_span(flow, start_s, stop_s)
    name = stem(flow, start_s, stop_s)
    paths = timeline.draw(trial, flow, asked, folder, name)
    if flow.protocol == "tcp" and trial.capture(f"sender:{flow.name}"):
        near = None if start_s is None and stop_s is None else asked
        paths += time_sequence.draw(trial, flow, whole, near, folder, name)
    return paths
