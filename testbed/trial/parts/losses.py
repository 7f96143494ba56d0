"""Deliberate losses: an eBPF program for each flow that loses segments, at a router's interface.

The program steps through runs that were computed before the trial: in each it lets the flow's first
segments pass and drops the next ones, all of them or every k-th, then the next run begins. Listed
segments (`drops`) are runs at the ingress of the first router, where a capture on the interface
sees a segment before the program does, so that the loss looks like one at the bottleneck. Random
losses (`loss`) happen at the egress of the last router.
"""

from __future__ import annotations

import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from testbed.plan.ebpf_plans import AtInterface, DropPlan, LossPlan
from testbed.runner import bpf
from testbed.runner.bpf import (
    AT_MAX_SIGNED,
    BELOW_SIGNED,
    DIFFERENT,
    EQUAL,
    MOD,
    MUL,
    SUB,
    Line,
)
from testbed.runner.programme import Answers
from testbed.scenario.losses import Run, throw
from testbed.store.names import DROPS_FILE
from testbed.store.records import Record
from testbed.store.writing import write_json
from testbed.trial.parts.packet_filters import PASSED, ProgramState, data_segments, element
from testbed.trial.parts.part import Part, PlannedTrial

REPORTED = ("seen", "segments", "events", "dropped", "undecided")
STATE = (
    *REPORTED,
    *("started", "next_sequence", "run", "place"),
    *("losing", "repairing", "lost_end"),  # per-event state
)
_LOSS_STATE = ProgramState(6, STATE)


@dataclass(frozen=True)
class Rules:
    """How the program applies its runs."""

    spacing: int = 1  # from one lost segment of a run to the next
    spare_retransmissions: bool = True
    one_at_a_time: bool = False  # a run's losses must be repaired before the next run begins


class DeliberateLosses(Part):
    """The programs that drop packets on purpose, and their counters."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        plan = trial.plan
        self._droppers: list[Dropper] = [
            *(ListedDropper(drops) for drops in plan.drops),
            *(RandomDropper(losses) for losses in plan.losses),
        ]
        self._counted: dict[str, int] = {}  # flow → the instruction that reads its counters

    @classmethod
    def wanted(cls, trial: PlannedTrial) -> bool:
        """Return whether any flow loses listed or random segments."""
        return bool(trial.plan.drops or trial.plan.losses)

    def open(self) -> None:
        """Attach the programs."""
        for dropper in self._droppers:
            dropper.attach(self._trial)

    def close(self) -> None:
        """Read each program's counters."""
        for dropper in self._droppers:
            name = dropper.counters
            self._counted[name] = self._programme.add("counters", name)

    def _counts(self, dropper: Dropper, answers: Answers) -> dict[str, int]:
        return _LOSS_STATE.values(answers.of(self._counted[dropper.counters]))

    def write(self, folder: Path, answers: Answers) -> None:
        """Write each program's counters."""
        counts = {
            each.plan.flow: each.reported(self._counts(each, answers)) for each in self._droppers
        }
        write_json(folder, DROPS_FILE, counts)

    def describe(self, record: Record, answers: Answers) -> Record:
        """Add warnings about losses that did not happen as specified."""
        complaints = (each.complaint(self._counts(each, answers)) for each in self._droppers)
        return replace(record, warnings=(*record.warnings, *filter(None, complaints)))


class Dropper:
    """A program at a router's interface."""

    side: int

    def __init__(self, plan: AtInterface, rules: Rules, runs: Sequence[Run]) -> None:
        self.plan = plan
        self._rules = rules
        self._runs = runs

    @property
    def counters(self) -> str:
        """The name of its counters in the programme."""
        return f"losses of {self.plan.flow}"

    def attach(self, trial: PlannedTrial) -> None:
        """Load the program and attach it."""
        state = trial.arrays.add(self.counters, len(_LOSS_STATE.at_first), _LOSS_STATE.at_first)
        pairs = (number for run in self._runs for number in (run.passing, run.losing))
        runs = trial.arrays.add(f"runs of {self.plan.flow}", 8, array.array("I", pairs).tobytes())
        code = bpf.assemble(listing(self.plan, self._rules, state, runs))
        name = f"dropper of {self.plan.flow}"
        trial.programme.add("program", name, code.hex())
        place = (self.plan.node, self.plan.interface, self.side)
        bpf.attach(trial.programme, *place, name, "testbed-loss")

    def reported(self, counts: Mapping[str, int]) -> Mapping[str, int | str]:
        """Return the counters that are written for the trial."""
        raise NotImplementedError

    def complaint(self, counts: Mapping[str, int]) -> str:
        """Return how the losses differ from what was specified; empty if they do not."""
        raise NotImplementedError


class ListedDropper(Dropper):
    """Drops the listed segments of a flow, each once."""

    side = bpf.INGRESS

    def __init__(self, plan: DropPlan) -> None:
        super().__init__(plan, Rules(), listed_runs(plan.segments))
        self._listed = len(plan.segments)

    def reported(self, counts: Mapping[str, int]) -> Mapping[str, int | str]:
        """Return the numbers of new-data segments seen and dropped."""
        return {name: counts[name] for name in ("segments", "dropped")}

    def complaint(self, counts: Mapping[str, int]) -> str:
        """Describe drops that never happened; empty if all did."""
        if counts["dropped"] == self._listed:
            return ""
        return (
            f"{self.plan.flow}: {counts['dropped']} of {self._listed} drops: "
            f"the flow sent {counts['segments']} segments"
        )


class RandomDropper(Dropper):
    """Drops the segments of a flow that the seed has drawn."""

    side = bpf.EGRESS

    def __init__(self, plan: LossPlan) -> None:
        super().__init__(plan, rules_of(plan), throw(plan.loss, plan.dice, plan.packets))

    def reported(self, counts: Mapping[str, int]) -> Mapping[str, int | str]:
        """Return the interface and the counters of segments and runs.

        They are data segments, new-data segments, runs of losses begun, segments dropped, and
        segments after the last run.
        """
        return {"interface": self.plan.interface, **{name: counts[name] for name in REPORTED}}

    def complaint(self, counts: Mapping[str, int]) -> str:
        """Describe segments beyond the runs drawn in advance; empty if they sufficed."""
        if not counts["undecided"]:
            return ""
        return (
            f"{self.plan.flow}: its {len(self._runs)} runs of losses had run out: "
            f"{counts['undecided']} segments more passed without a chance to be lost"
        )


def rules_of(plan: LossPlan) -> Rules:
    """Return the rules of a flow's random losses."""
    loss = plan.loss
    return Rules(loss.spacing, loss.spare_retransmissions, loss.one_at_a_time)


def listed_runs(segments: Sequence[int]) -> list[Run]:
    """Return the runs that lose exactly these segments, numbered from 1 in rising order."""
    return [Run(number - before - 1, 1) for before, number in pairwise((0, *segments))]


def _set(name: str, value: int) -> Sequence[Line]:
    return (bpf.set_constant(1, value), _LOSS_STATE.store(name, 1))


def listing(plan: AtInterface, rules: Rules, state: int, runs: int) -> Sequence[Line]:
    """Return the program; after its first part r6 is the state."""
    return (
        *data_segments(plan),
        *_LOSS_STATE.find(state),
        *_is_new(),
        *((*_cut(), *_repaired()) if rules.one_at_a_time else ()),
        *([bpf.jump(EQUAL, 7, 0, "pass")] if rules.spare_retransmissions else ()),
        _LOSS_STATE.load(1, "run"),
        *element(runs, "undecided"),
        *_decide(rules),
        "undecided",
        *_LOSS_STATE.count("undecided"),
        *PASSED,
    )


def _is_new() -> Sequence[Line]:
    """Set r7 to whether the data ends beyond the highest end so far (a signed difference wraps)."""
    return (
        _LOSS_STATE.load(1, "started"),
        bpf.jump(DIFFERENT, 1, 0, "started"),
        *_set("started", 1),
        _LOSS_STATE.store("next_sequence", 8),
        "started",
        *_LOSS_STATE.count("seen"),
        bpf.set_constant(7, 0),
        _LOSS_STATE.load(1, "next_sequence"),
        bpf.move(2, 9),
        bpf.alu_reg(SUB, 2, 1),
        bpf.jump(AT_MAX_SIGNED, 2, 0, "old"),
        bpf.set_constant(7, 1),
        _LOSS_STATE.store("next_sequence", 9),
        *_LOSS_STATE.count("segments"),
        "old",
    )


def _cut() -> Sequence[Line]:
    """End an event's losses at a retransmission: later segments belong to another window."""
    return (
        _LOSS_STATE.load(1, "losing"),
        bpf.jump(EQUAL, 1, 0, "not cut"),
        bpf.jump(DIFFERENT, 7, 0, "not cut"),
        *_end_run(),
        *_set("repairing", 1),
        "not cut",
    )


def _end_run() -> Sequence[Line]:
    return (*_set("losing", 0), *_set("place", 0), *_LOSS_STATE.count("run"))


def _repaired() -> Sequence[Line]:
    """Let everything pass until the segment with the event's last lost byte repairs it."""
    return (
        _LOSS_STATE.load(1, "repairing"),
        bpf.jump(EQUAL, 1, 0, "armed"),
        _LOSS_STATE.load(1, "lost_end"),
        bpf.move(2, 9),
        bpf.alu_reg(SUB, 2, 1),
        bpf.jump(BELOW_SIGNED, 2, 0, "pass"),
        bpf.alu_reg(SUB, 1, 8),
        bpf.jump(AT_MAX_SIGNED, 1, 0, "pass"),
        *_set("repairing", 0),
        bpf.jump_to("pass"),
        "armed",
    )


def _decide(rules: Rules) -> Sequence[Line]:
    """Decide by the run in r0; segments that pass go to "pass"."""
    return (
        # r3: distance behind the segments that pass
        _LOSS_STATE.load(3, "place"),
        bpf.move(1, 3),
        bpf.alu(bpf.ADD, 1, 1),
        _LOSS_STATE.store("place", 1),
        bpf.load(1, 0, 0),
        bpf.alu_reg(SUB, 3, 1),
        bpf.jump(BELOW_SIGNED, 3, 0, "pass"),
        bpf.move(1, 3),
        bpf.alu(MOD, 1, rules.spacing),
        bpf.jump(DIFFERENT, 1, 0, "pass"),
        *_LOSS_STATE.count("dropped"),
        bpf.jump(DIFFERENT, 3, 0, "begun"),
        *_LOSS_STATE.count("events"),
        *_set("losing", 1),
        "begun",
        _LOSS_STATE.store("lost_end", 9),
        # was it the run's last?
        bpf.load(1, 0, 4),
        bpf.alu(SUB, 1, 1),
        bpf.alu(MUL, 1, rules.spacing),
        bpf.alu_reg(SUB, 1, 3),
        bpf.jump(DIFFERENT, 1, 0, "drop"),
        *_end_run(),
        *(_set("repairing", 1) if rules.one_at_a_time else ()),
        "drop",
        bpf.set_constant(0, bpf.DROP),
        bpf.EXIT,
    )
