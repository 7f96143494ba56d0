"""Deliberate losses: one eBPF program per flow at a router's interface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from testbed.plan.plan import Plan
from testbed.store import DROPS, Record, write_json
from testbed.trial.parts.exact_losses import Dropper
from testbed.trial.parts.part import Part, RunningTrial
from testbed.trial.parts.random_losses import LossDropper


class InjectedLosses(Part):
    """All programs that drop packets on purpose, and their counters."""

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._droppers: list[Dropper | LossDropper] = []

    @classmethod
    def wanted(cls, plan: Plan) -> bool:
        """True if any flow loses listed or random segments."""
        return bool(plan.drops or plan.losses)

    def open(self) -> None:
        """Attach the programs."""
        self._droppers += self._attached()

    def _attached(self) -> Iterator[Dropper | LossDropper]:
        plan, places = self._trial.plan, self._trial.places
        for drops in plan.drops:
            yield Dropper(drops, places[drops.node].pid)
        for losses in plan.losses:
            yield LossDropper(losses, places[losses.node].pid)

    def write(self, folder: Path) -> None:
        """Write each program's counters."""
        counts = {dropper.plan.flow: dropper.counts() for dropper in self._droppers}
        write_json(folder, DROPS, counts)

    def describe(self, record: Record) -> Record:
        """Add warnings about losses that did not happen as specified."""
        complaints = filter(None, (dropper.complaint() for dropper in self._droppers))
        return replace(record, warnings=(*record.warnings, *complaints))

    def close(self) -> None:
        """Release the programs' counters."""
        for dropper in self._droppers:
            dropper.close()
