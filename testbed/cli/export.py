"""`testbed export`: a trial's flow for other viewers."""

from __future__ import annotations

import argparse

from testbed.errors import UsageError
from testbed.machine.atomic import replace
from testbed.runs.console import console
from testbed.store.reading import open_named_trial


def export(options: argparse.Namespace) -> int:
    """Run `testbed export`: write the flow's file, and name the viewer that opens it."""
    from analysis.captures.inspection import flow_record
    from analysis.export.formats import EXPORTS

    trial = open_named_trial(options.trial)
    flow = flow_record(trial, options.flow)
    if flow.protocol != "tcp":
        raise UsageError(f"{flow.name}: a flow of {flow.protocol}", "name one of TCP with --flow")
    viewer, suffix, text_of = EXPORTS[options.format]
    out = options.out or trial.path.parent / f"{trial.path.name}-{flow.name}.{suffix}"
    text = text_of(trial, flow)
    replace(out, lambda path: path.write_text(text, encoding="utf-8"))
    console.print(f"{options.format}: {out} (open it with {viewer})", soft_wrap=True)
    return 0
