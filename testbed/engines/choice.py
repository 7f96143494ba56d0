"""The choice of the engine for a set of trials, with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from testbed.engines.base import Engine
from testbed.engines.guest import GuestEngine
from testbed.engines.host import HostEngine
from testbed.errors import TestbedError, UsageError, nearest
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


def choose(name: str, needs: Iterable[Need]) -> Choice:
    """The engine of that name, or for `auto` the preferred one that can run everything."""
    if name not in CHOICES:
        raise UsageError(f"unknown engine {name!r}", nearest(name, CHOICES))
    if name == AUTO:
        choice = _automatic(tuple(dict.fromkeys(needs)))
    else:
        choice = Choice(ENGINES[name](), f"--engine {name}")
    if problem := choice.engine.ready():
        raise TestbedError(problem, "`testbed check` shows what can run here")
    return choice


def _automatic(needs: tuple[Need, ...]) -> Choice:
    first, *others = ENGINES.values()
    reasons = []
    for kind in reversed(others):
        engine = kind()
        if not (reason := _unfit(engine, needs)):
            return Choice(engine, f"the {engine.name} has everything that the trials need")
        reasons.append(reason)
    return Choice(first(), "; ".join(reasons))


def _unfit(engine: Engine, needs: tuple[Need, ...]) -> str:
    """Why the engine cannot run these trials; empty if it can."""
    if problem := engine.ready():
        return problem
    missing = engine.missing(needs)
    return f"the {engine.name} lacks {', '.join(map(str, missing))}" if missing else ""
