"""The engines, and the choice of one for a set of trials, with its reason."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from testbed.engine import Engine
from testbed.errors import TestbedError, UsageError, nearest
from testbed.guest.engine import GuestEngine
from testbed.host.engine import HostEngine
from testbed.plan.requirements import Need

# One line per engine. The first one works for any user; `auto` prefers the others, the last most.
ENGINES: Mapping[str, type[Engine]] = {each.name: each for each in (GuestEngine, HostEngine)}
AUTO = "auto"
CHOICES = (AUTO, *ENGINES)


@dataclass(frozen=True)
class Choice:
    """An engine and the reason for choosing it."""

    engine: Engine
    reason: str


def choose(name: str, needs: Iterable[Need], kernel: str = "") -> Choice:
    """Return the engine of that name, or for `auto` the preferred one that can run all trials.

    The engine must be ready to run trials on the kernel, or on its default one.
    """
    if name not in CHOICES:
        raise UsageError(f"unknown engine {name!r}", nearest(name, CHOICES))
    if name == AUTO:
        choice = _automatic(tuple(dict.fromkeys(needs)))
    else:
        choice = Choice(ENGINES[name](), f"--engine {name}")
    engine = choice.engine.with_kernel(kernel) if kernel else choice.engine
    if problem := engine.ready():
        raise TestbedError(problem, "`testbed check` shows what can run here")
    return choice


def _automatic(needs: tuple[Need, ...]) -> Choice:
    first, *others = ENGINES.values()
    if os.geteuid():
        return Choice(first(), "virtual time, no root needed")
    reasons = []
    for kind in reversed(others):
        engine = kind()
        if not (reason := _unfit(engine, needs)):
            return Choice(engine, f"the {engine.name} has everything that the trials need")
        reasons.append(reason)
    return Choice(first(), "; ".join(reasons))


def _unfit(engine: Engine, needs: tuple[Need, ...]) -> str:
    """Return why the engine cannot run these trials, or nothing if it can."""
    if problem := engine.ready():
        return problem
    missing = engine.missing(needs)
    return f"the {engine.name} lacks {', '.join(map(str, missing))}" if missing else ""
