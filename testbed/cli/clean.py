"""`testbed clean`: removes what killed runs left behind."""

from __future__ import annotations

import argparse

from testbed.cli.console import console, errors
from testbed.machine import leftovers


def clean(_options: argparse.Namespace) -> int:
    """`testbed clean`; the exit status is 1 if something could not be removed."""
    result = leftovers.clean()
    for each in result.done:
        console.print(each, soft_wrap=True)
    for each in result.left:
        console.print(f"left alone: {each}", soft_wrap=True)
    for each in result.failed:
        errors.print(f"testbed: not removed: {each}", soft_wrap=True)
    if not (result.done or result.left or result.failed):
        console.print("nothing was left behind")
    return 1 if result.failed else 0
