"""The command line with this project's experiments: `testbed`, or an experiment's own file."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.catalogue import EXPERIMENTS
from testbed import cli


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit status."""
    return cli.main(arguments, EXPERIMENTS)
