"""Losses by chance: a program at the last router's door that only counts, and steps through runs.

Of the flow's segments it lets the run's first ones pass and loses the next ones, all of them or
every k-th; then comes the next run. What the runs are was thrown before (losses.py).
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
    *("losing", "mending", "lost_end"),  # of the event
)
_PLACES = {name: 4 * number for number, name in enumerate(STATE)}
_STATE = 6  # the register that has its address


class LossDropper:
    """A program at work at a router's interface."""

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
        """Where it is; segments of data seen, and of new data; runs of losses begun, segments
        dropped; segments that came when the runs had run out."""
        found = self._state.read()
        return {"interface": self.plan.interface, **{name: found[name] for name in COUNTED}}

    def complaint(self) -> str:
        """What did not go as asked: more segments than the dice were thrown for."""
        undecided = self._state.read()["undecided"]
        if not undecided:
            return ""
        return (
            f"{self.plan.flow}: its {len(self._runs)} runs of losses had run out: "
            f"{undecided} segments more passed without a chance to be lost"
        )

    def close(self) -> None:
        """Let go of the counters; the program ends with its interface."""
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
    """r7: whether the data ends after all that was seen; numbers wrap, so the difference tells."""
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
    """What is sent again ends an event's losses: the rest would be of another window."""
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
    """While an event is not mended, all pass; what has the last byte that was lost mends it."""
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
    """r0 is the run: what passes goes to "pass"."""
    return (
        # r3: how far behind those that pass
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
