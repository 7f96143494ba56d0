"""`testbed demo`: the experiment of README's first picture, and what to do next."""

from __future__ import annotations

import argparse
import shlex

from testbed.cli.parser import build_parser
from testbed.cli.run import run_experiment
from testbed.runs.console import console

WORDS = "run router-bottleneck --set queue=bfifo --set path=receiver".split()
NEXT = (
    ("testbed run router-bottleneck --quick --set queue=codel", "the same with another queue"),
    ("testbed list", "all experiments; `testbed --help` lists the verbs"),
)


def demo(options: argparse.Namespace) -> int:
    """Run `testbed demo`; the exit status is that of the run."""
    console.print(f"running: {shlex.join(('testbed', *WORDS))}", soft_wrap=True)
    parser = build_parser(WORDS)
    parser.set_defaults(experiments=options.experiments, parser=parser, arguments=WORDS)
    status = run_experiment(parser.parse_args(WORDS))
    if not status:
        console.print("open the figure, or the page that this makes; then:")
        for command, what in NEXT:
            console.print(f"    {command:58}{what}", soft_wrap=True, highlight=False)
    return status
