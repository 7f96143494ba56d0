"""`testbed check` and `testbed clean`: what this machine can run, and what is left on it."""

from __future__ import annotations

import argparse

from testbed.cli.console import console, errors
from testbed.machine import leftovers


def check(options: argparse.Namespace) -> int:
    """`testbed check`."""
    from testbed.runs import check as checks

    if options.variants:
        for line in checks.variant_lines():
            console.print(line, soft_wrap=True)
        return 0
    status = 0
    for finding in checks.findings():
        mark = "ok     " if finding.ok else "missing" if finding.needed else "-      "
        console.print(f"{mark} {finding.what}: {finding.state}", soft_wrap=True)
        if not finding.ok and finding.mend:
            console.print(f"        {finding.mend}", soft_wrap=True)
        status |= finding.needed and not finding.ok
    return int(status)


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
