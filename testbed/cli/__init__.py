"""The command line: a file a verb, above everything else of the testbed."""

from testbed.cli.entry import main

__all__ = ["main"]
