"""The command line: one file per verb, above everything else of the testbed."""

from testbed.cli.entry import main

__all__ = ["main"]
