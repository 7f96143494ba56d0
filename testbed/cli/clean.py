"""`testbed clean`: removes what killed runs left behind."""

from __future__ import annotations

import argparse

from testbed.cli.console import console
from testbed.machine import journal


def clean(_options: argparse.Namespace) -> int:
    """`testbed clean`."""
    removed = journal.clean()
    for each in removed:
        console.print(f"removed {each}", soft_wrap=True)
    if not removed:
        console.print("nothing was left behind")
    return 0
