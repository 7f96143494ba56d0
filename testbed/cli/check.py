"""`testbed check`: what this machine can run."""

from __future__ import annotations

import argparse

from testbed.cli.console import console


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
