"""`testbed clean`: what killed runs left behind."""

from __future__ import annotations

import argparse

from testbed import leftovers
from testbed.console import console


def clean(_options: argparse.Namespace) -> int:
    """`testbed clean`."""
    removed = leftovers.clean()
    for each in removed:
        console.print(f"removed {each}", markup=False, soft_wrap=True)
    if not removed:
        console.print("nothing was left behind")
    return 0
