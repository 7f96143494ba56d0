"""A trial whose set-up makes thousands of system calls more, and draws random numbers."""

from __future__ import annotations

import os
import runpy
from collections.abc import Mapping

from testbed.machine.process import Place
from testbed.plan.plan import Plan
from testbed.trial import build, session

CALLS = 3000


def apply_busily(plan: Plan, places: Mapping[str, Place]) -> None:
    """What the session calls instead of `apply`."""
    for _ in range(CALLS):
        os.getppid()
    build.apply(plan, places)
    for _ in range(CALLS):
        os.urandom(16)


if __name__ == "__main__":
    vars(session)["apply"] = apply_busily
    runpy.run_module("testbed.engines.inside", run_name="__main__")
