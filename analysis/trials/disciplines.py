"""The final statistics of the queue disciplines, as tc reported them when the flows had ended."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from testbed.store import LEAF_HANDLE, QDISCS, WIRES, Trial, read_json


class Disciplines:
    """Every queue discipline of a trial; nothing where the report is missing."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    @cached_property
    def _by_node(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = read_json(self._trial.path, QDISCS) or {}
        return found

    @cached_property
    def leaves(self) -> dict[str, dict[str, Any]]:
        """The queue of each shaped interface."""
        return {
            each["dev"]: each
            for node in self._by_node.values()
            for each in node
            if each["handle"] == LEAF_HANDLE
        }

    def drops(self) -> dict[str, int]:
        """The number of packets dropped by each shaped interface's queue."""
        return {name: int(leaf["drops"]) for name, leaf in self.leaves.items()}

    def put_ahead(self) -> list[tuple[float, int, int]]:
        """Of each link that lets packets overtake: their chance, how many it let overtake, and how
        many crossed it. netem counts those that it puts ahead as queued anew."""
        links = [each for each in self._by_node.get(WIRES, []) if each["kind"] == "netem"]
        found = ((each["options"].get("reorder"), each) for each in links)
        return [
            (float(chance["reorder"]), int(each["requeues"]), int(each["packets"]))
            for chance, each in found
            if chance
        ]

    def lost_by_netem(self) -> int:
        """Packets that links lost at random, as asked for: netem there drops nothing else."""
        links = self._by_node.get(WIRES, [])
        return sum(int(each["drops"]) for each in links if each["kind"] == "netem")
