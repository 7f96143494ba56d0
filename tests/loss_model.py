"""What a dropper by chance has to do, in Python: the reference for the kernel's program."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.scenario.losses import Loss, Run

HALF = 1 << 31


def after(one: int, other: int) -> int:
    """How far one sequence number is behind the other."""
    return (one - other + HALF) % (2 * HALF) - HALF


class LossModel:
    """Says of each data segment whether it is lost, and counts as the program counts."""

    def __init__(self, loss: Loss, runs: Sequence[Run]) -> None:
        self.loss = loss
        self.runs = list(runs)
        self.counts = dict.fromkeys(("seen", "segments", "events", "dropped", "undecided"), 0)
        self.lost_numbers: list[int] = []  # of new data, from 1
        self._edge: int | None = None
        self._place = 0
        self._losing = False
        self._mending = False
        self._lost_end = 0

    def loses(self, seq: int, size: int) -> bool:
        """Whether the segment is lost."""
        end = (seq + size) % (2 * HALF)
        new = self._see(seq, end)
        if self._losing and self.loss.one_at_a_time and not new:
            self._end_run()  # what is sent again ends an event's losses
            self._mending = True
        if self._mending:
            # it has the last byte that was lost
            self._mending = not (after(end, self._lost_end) >= 0 > after(seq, self._lost_end))
            return False
        if not new and self.loss.spare_retransmissions:
            return False
        if not self.runs:
            self.counts["undecided"] += 1
            return False
        lost = self._step(end)
        if lost and new:
            self.lost_numbers.append(self.counts["segments"])
        return lost

    def _end_run(self) -> None:
        self.runs.pop(0)
        self._place = 0
        self._losing = False

    def _see(self, seq: int, end: int) -> bool:
        self.counts["seen"] += 1
        new = after(end, seq if self._edge is None else self._edge) > 0
        if new:
            self._edge = end
            self.counts["segments"] += 1
        return new

    def _step(self, end: int) -> bool:
        run, behind = self.runs[0], self._place - self.runs[0].passing
        self._place += 1
        if behind < 0 or behind % self.loss.spacing:
            return False
        self.counts["dropped"] += 1
        if behind == 0:
            self.counts["events"] += 1
            self._losing = True
        self._lost_end = end
        if behind == (run.losing - 1) * self.loss.spacing:
            self._end_run()
            self._mending = self.loss.one_at_a_time
        return True
