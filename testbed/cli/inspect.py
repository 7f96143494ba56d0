"""`testbed inspect`: a trial's flow in Wireshark."""

from __future__ import annotations

import argparse

from testbed.runs.console import console
from testbed.store.reading import open_named_trial


def inspect_trial(options: argparse.Namespace) -> int:
    """Run `testbed inspect`."""
    from analysis.captures import inspection

    view = inspection.view_of(open_named_trial(options.trial), options.flow, options.point)
    if options.packets:
        for line in inspection.aligned(inspection.packet_table(view, options.packets)):
            console.print(line, soft_wrap=True)
        return 0
    for line in inspection.description(view):
        console.print(line, soft_wrap=True)
    obstacle = "" if options.print else inspection.obstacle()
    if options.print or obstacle:
        for line in inspection.instructions(obstacle):
            console.print(line, soft_wrap=True)
        return 0
    inspection.open_window(view)
    return 0
