"""Which engine runs a set of trials, and why."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.engines.base import Engine
from testbed.engines.guest import GuestEngine
from testbed.engines.host import HostEngine
from testbed.errors import TestbedError, UsageError, nearest
from testbed.plan.requirements import Need

ENGINES = ("auto", "guest", "host")


@dataclass(frozen=True)
class Choice:
    """An engine, and why it was chosen."""

    engine: Engine
    reason: str


def choose(name: str, needs: Iterable[Need]) -> Choice:
    """The engine of that name, or for `auto` the one that can run everything."""
    if name not in ENGINES:
        raise UsageError(f"unknown engine {name!r}", nearest(name, ENGINES))
    choice = _automatic(tuple(dict.fromkeys(needs))) if name == "auto" else _named(name)
    if problem := choice.engine.ready():
        raise TestbedError(problem, "`testbed check` shows what can run here")
    return choice


def _named(name: str) -> Choice:
    engine: Engine = GuestEngine() if name == "guest" else HostEngine()
    return Choice(engine, f"--engine {name}")


def _automatic(needs: tuple[Need, ...]) -> Choice:
    """Guest for anyone but root; for root the host if it has everything, else the guest."""
    guest, host = GuestEngine(), HostEngine()
    if os.geteuid() != 0:
        return Choice(guest, "not root, so not the host's kernel")
    missing = host.missing(needs)
    if missing:
        names = ", ".join(str(each) for each in missing)
        return Choice(guest, f"the host's kernel lacks {names}")
    return Choice(host, "root, and the host's kernel has everything that the trials need")
