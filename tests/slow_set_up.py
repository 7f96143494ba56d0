"""A trial whose set-up takes longer, and draws random numbers."""

from __future__ import annotations

import os
import runpy
import time
from collections.abc import Mapping

from testbed.machine.process import Place
from testbed.plan.plan import Plan
from testbed.trial import build, session

LONGER_S = 0.0123
DRAWS = 3000


def apply_slowly(plan: Plan, places: Mapping[str, Place]) -> None:
    """What the session calls instead of `apply`."""
    time.sleep(LONGER_S)
    build.apply(plan, places)
    for _ in range(DRAWS):
        os.urandom(16)


if __name__ == "__main__":
    vars(session)["apply"] = apply_slowly
    runpy.run_module("testbed.engines.inside", run_name="__main__")
