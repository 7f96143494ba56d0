"""Losses that the scenario asked for, as the droppers counted them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from analysis.trials.documents import Droppers, read_trial_document
from analysis.trials.packets import BEHIND, capture_interface, queue_roles
from testbed.store.names import DROPS_FILE
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, QueueRecord


@dataclass(frozen=True)
class Injected:
    """One flow's dropper.

    Losses by chance happen at the interface by which the flow leaves for its receiver; exact
    losses (which name no interface) where the flow enters its first router.
    """

    dropped: int
    interface: str
    undecided: int  # segments that came when its runs had run out


def read_injected(trial: Trial) -> dict[str, Injected]:
    """Read the droppers, by the names of their flows."""
    injected = read_trial_document(trial, DROPS_FILE, Droppers) or {}
    return {
        flow: Injected(counts["dropped"], counts.get("interface", ""), counts.get("undecided", 0))
        for flow, counts in injected.items()
    }


class InjectedLosses:
    """The droppers of a trial, and where they stand beside its captures."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self.droppers: Mapping[str, Injected] = read_injected(trial)

    def at_queue(self, queue: QueueRecord) -> int:
        """Packets dropped between the captures before and behind a queue."""
        return sum(
            dropper.dropped
            for dropper in self._through(queue)
            if dropper.interface in ("", queue.interface)
        )

    def _through(self, queue: QueueRecord) -> Iterable[Injected]:
        """Yield the droppers beside this queue.

        Exact losses happen before a flow's first queue, losses by chance at its last or behind it.
        """
        for flow in self._trial.record.flows:
            dropper = self.droppers.get(flow.name)
            if dropper and self._queue(flow, -1 if dropper.interface else 0) == queue.interface:
                yield dropper

    def _queue(self, flow: FlowRecord, place: int) -> str:
        """Return the interface of one of the flow's queues."""
        roles = queue_roles(self._trial, flow)
        role = f"{roles[place]}{BEHIND}" if roles else ""
        return capture_interface(self._trial, role, flow)

    def behind_queues(self, flow: FlowRecord) -> int:
        """Packets of a flow dropped on the last link before its receiver."""
        dropper = self.droppers.get(flow.name)
        if dropper is None or dropper.interface in ("", self._queue(flow, -1)):
            return 0
        return dropper.dropped
