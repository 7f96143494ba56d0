"""The command line with this project's experiments: `testbed`, or an experiment's own file."""

from __future__ import annotations

import signal
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit status."""
    # until there is somebody to unwind for, ^C ends the process and says nothing
    interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from experiments.catalogue import EXPERIMENTS
    from testbed import cli

    signal.signal(signal.SIGINT, interrupt)
    return cli.main(arguments, EXPERIMENTS)
