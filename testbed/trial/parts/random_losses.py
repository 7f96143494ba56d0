"""Random losses: an eBPF program at the last router's egress steps through precomputed runs.

In each run it passes the flow's first segments and drops the next ones, all of them or every k-th;
then the next run begins. The runs were drawn in advance (losses.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from testbed.machine import bpf
from testbed.machine.bpf import BELOW_SIGNED, DIFFERENT, EQUAL, MOD, MUL, SUB, Line
from testbed.plan.losses import LossPlan
from testbed.scenario.losses import Loss, throw
from testbed.trial.parts.exact_losses import data_segments, element

COUNTED = ("seen", "segments", "events", "dropped", "undecided")
STATE = (
    *COUNTED,
    *("started", "next_sequence", "run", "place"),
    *("losing", "mending", "lost_end"),  # per-event state
)
_PLACES = {name: 4 * number for number, name in enumerate(STATE)}
_STATE = 6  # the register that has its address


class LossDropper:
    """A loaded program at a router's interface."""

    def __init__(self, plan: LossPlan, pid: int | None) -> None:
        self.plan = plan
        self._runs = throw(plan.loss, plan.dice, plan.packets)
        self._state = bpf.Counters(STATE)
        runs = bpf.pairs([(run.passing, run.losing) for run in self._runs])
        try:
            program = bpf.load_program(listing(plan, self._state.descriptor, runs))
        finally:
            os.close(runs)  # the program holds it
        try:
            bpf.attach(pid, plan.interface, bpf.EGRESS, program, "testbed-loss")
        finally:
            os.close(program)

    def counts(self) -> Mapping[str, int | str]:
        """The program's interface and counters: data segments, new-data segments, runs of losses
        begun, segments dropped, and segments after the last run."""
        found = self._state.read()
        return {"interface": self.plan.interface, **{name: found[name] for name in COUNTED}}

    def complaint(self) -> str:
        """Describe segments beyond the runs drawn in advance; empty if they sufficed."""
        undecided = self._state.read()["undecided"]
        if not undecided:
            return ""
        return (
            f"{self.plan.flow}: its {len(self._runs)} runs of losses had run out: "
            f"{undecided} segments more passed without a chance to be lost"
        )

    def close(self) -> None:
        """Release the counters; the program goes with its interface."""
        self._state.close()


def _load(register: int, name: str) -> Line:
    return bpf.load(register, _STATE, _PLACES[name])


def _store(name: str, register: int) -> Line:
    return bpf.store(_STATE, _PLACES[name], register)


def _set(name: str, value: int) -> Sequence[Line]:
    return (bpf.constant(1, value), _store(name, 1))


def _count(name: str) -> Sequence[Line]:
    return (_load(1, name), bpf.compute(bpf.ADD, 1, 1), _store(name, 1))


def listing(plan: LossPlan, state: int, runs: int) -> Sequence[Line]:
    """The program; behind the beginning r6 is the state."""
    loss = plan.loss
    return (
        *data_segments(plan),
        bpf.constant(1, 0),
        *element(state, "pass"),
        bpf.copy(_STATE, 0),
        *_is_new(),
        *((*_cut(), *_mended()) if loss.one_at_a_time else ()),
        *([bpf.jump(EQUAL, 7, 0, "pass")] if loss.spare_retransmissions else ()),
        _load(1, "run"),
        *element(runs, "undecided"),
        *_decide(loss),
        "undecided",
        *_count("undecided"),
        "pass",
        bpf.constant(0, bpf.PASS),
        bpf.LEAVE,
    )


def _is_new() -> Sequence[Line]:
    """r7: whether the data ends beyond the highest end seen (a signed, wrap-safe difference)."""
    return (
        _load(1, "started"),
        bpf.jump(DIFFERENT, 1, 0, "started"),
        *_set("started", 1),
        _store("next_sequence", 8),
        "started",
        *_count("seen"),
        bpf.constant(7, 0),
        _load(1, "next_sequence"),
        bpf.copy(2, 9),
        bpf.compute_with(SUB, 2, 1),
        bpf.jump(bpf.AT_MOST_SIGNED, 2, 0, "old"),
        bpf.constant(7, 1),
        _store("next_sequence", 9),
        *_count("segments"),
        "old",
    )


def _cut() -> Sequence[Line]:
    """End an event's losses at a retransmission: later segments belong to another window."""
    return (
        _load(1, "losing"),
        bpf.jump(EQUAL, 1, 0, "whole"),
        bpf.jump(DIFFERENT, 7, 0, "whole"),
        *_end_run(),
        *_set("mending", 1),
        "whole",
    )


def _end_run() -> Sequence[Line]:
    return (*_set("losing", 0), *_set("place", 0), *_count("run"))


def _mended() -> Sequence[Line]:
    """Let everything pass until the segment with the event's last lost byte repairs it."""
    return (
        _load(1, "mending"),
        bpf.jump(EQUAL, 1, 0, "armed"),
        _load(1, "lost_end"),
        bpf.copy(2, 9),
        bpf.compute_with(SUB, 2, 1),
        bpf.jump(BELOW_SIGNED, 2, 0, "pass"),
        bpf.compute_with(SUB, 1, 8),
        bpf.jump(bpf.AT_MOST_SIGNED, 1, 0, "pass"),
        *_set("mending", 0),
        bpf.jump_always("pass"),
        "armed",
    )


def _decide(loss: Loss) -> Sequence[Line]:
    """Decide by the run in r0; segments that pass go to "pass"."""
    return (
        # r3: distance behind the segments that pass
        _load(3, "place"),
        bpf.copy(1, 3),
        bpf.compute(bpf.ADD, 1, 1),
        _store("place", 1),
        bpf.load(1, 0, 0),
        bpf.compute_with(SUB, 3, 1),
        bpf.jump(BELOW_SIGNED, 3, 0, "pass"),
        bpf.copy(1, 3),
        bpf.compute(MOD, 1, loss.spacing),
        bpf.jump(DIFFERENT, 1, 0, "pass"),
        *_count("dropped"),
        bpf.jump(DIFFERENT, 3, 0, "begun"),
        *_count("events"),
        *_set("losing", 1),
        "begun",
        _store("lost_end", 9),
        # was it the run's last?
        bpf.load(1, 0, 4),
        bpf.compute(SUB, 1, 1),
        bpf.compute(MUL, 1, loss.spacing),
        bpf.compute_with(SUB, 1, 3),
        bpf.jump(DIFFERENT, 1, 0, "drop"),
        *_end_run(),
        *(_set("mending", 1) if loss.one_at_a_time else ()),
        "drop",
        bpf.constant(0, bpf.DROP),
        bpf.LEAVE,
    )
