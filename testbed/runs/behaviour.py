"""What our code does to packets: the behaviours that were certified, and the code that has them.

The packets of a trial follow from its scenario and its seed, so code that sends the same packets in
a set of trials (benchmarks/recipes.py) has the same behaviour. The ledger names the behaviours, b1
being the first; for each it has the hash of the captures of every recipe, and of each part of our
code (`sources.parts_of`) the states that were seen to behave so. `python -m
benchmarks.same_packets --certify` adds to it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from testbed.machine import atomic

LEDGER = Path(__file__).with_name("behaviour.json")

Parts = Mapping[str, str]  # the name of a part of our code → a hash of it


@dataclass(frozen=True)
class Behaviour:
    """One behaviour: what its recipes send, and the states of the code that do."""

    recipes: Mapping[str, str]  # name → hash of its captures, "/", and of their times and lengths
    states: Mapping[str, tuple[str, ...]]  # a part of our code → hashes

    def has(self, parts: Parts) -> bool:
        """Return whether code of these parts was seen to behave so."""
        return all(state in self.states.get(name, ()) for name, state in parts.items())

    def moved(self, later: Behaviour) -> dict[str, bool]:
        """Return whether each recipe that both have sends other packets in the other one.

        Packets that differ in what is random, such as payloads and IP's identifications, are the
        same to every number of a table.
        """
        both = self.recipes.keys() & later.recipes.keys()
        return {name: _differ(self.recipes[name], later.recipes[name]) for name in both}


def _differ(one: str, other: str) -> bool:
    """Return whether packets differ in time or length; in any byte where that was not noted."""
    (captures, _, packets), (others, _, theirs) = one.partition("/"), other.partition("/")
    return packets != theirs if packets and theirs else captures != others


@dataclass(frozen=True)
class Ledger:
    """The behaviours by their ids, the oldest first."""

    behaviours: Mapping[str, Behaviour]
    programs: Mapping[str, str] = field(default_factory=dict)  # versions, as the recipes ran
    postponed: str = ""  # why stale tables of pages are not made again yet
    drawn: Mapping[str, str] = field(default_factory=dict)  # trials of tables → their captures

    @property
    def newest(self) -> str:
        """The id of the last behaviour."""
        return list(self.behaviours)[-1]

    def id_of(self, parts: Parts) -> str:
        """Return the first behaviour that code of these parts has; empty if none is known."""
        return next((name for name, each in self.behaviours.items() if each.has(parts)), "")


def ledger() -> Ledger:
    """Return the behaviours that are known."""
    return _read(LEDGER.stat().st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _read(_changed_ns: int) -> Ledger:
    data = json.loads(LEDGER.read_text(encoding="utf-8"))
    behaviours = {
        name: Behaviour(
            each["recipes"], {part: tuple(states) for part, states in each["states"].items()}
        )
        for name, each in data.pop("behaviours").items()
    }
    return Ledger(behaviours, **data)


def write(changed: Ledger) -> None:
    """Write the ledger."""
    sorted_each = {
        name: Behaviour(dict(sorted(each.recipes.items())), dict(sorted(each.states.items())))
        for name, each in changed.behaviours.items()
    }
    data = asdict(replace(changed, behaviours=sorted_each))
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    atomic.replace(LEDGER, lambda path: path.write_text(text, encoding="utf-8"))


def identity_of(parts: Parts) -> Parts:
    """Return what identifies a trial in place of our sources: its behaviour, else all of them."""
    known = ledger().id_of(parts)
    return {"behaviour": known} if known else parts
