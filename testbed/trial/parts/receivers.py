"""Misbehaving receivers: eBPF programs between a receiver's TCP and the capture at its interface.

**ACK division.** An acknowledgement that advances becomes eight, sent at one instant, which advance
by an eighth of it each.

**Optimistic acknowledgements.** The receiver's TCP never learns of losses: the numbers of what
arrives are lowered by all that was missing before, and those of acknowledgements raised by it, and
by up to eight segments more. A segment that comes again shows that the sender lacks something: from
then on acknowledgements run ahead by nothing, and with each new segment by one more.

**Bleached ECN.** What arrives becomes Not-ECT, so that TCP sees no mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from testbed.plan.ebpf_plans import ReceiverPlan
from testbed.runner import bpf
from testbed.runner.bpf import (
    AND,
    AT_MAX_SIGNED,
    BELOW_SIGNED,
    BPF_BYTE,
    BPF_HALF,
    BPF_WORD,
    DIFFERENT,
    EQUAL,
    ETHERNET_BYTES,
    Line,
)
from testbed.runner.programme import Answers
from testbed.scenario.model import Misbehaviour
from testbed.scenario.transfers import SEGMENT_BYTES
from testbed.store.names import RECEIVERS_FILE
from testbed.store.records import Record
from testbed.store.writing import write_json
from testbed.trial.parts.packet_filters import (
    PASSED,
    ProgramState,
    data_segments,
    is_ipv6,
    of_connection,
)
from testbed.trial.parts.part import Part, PlannedTrial

DIVISION = 8
MAX_AHEAD = 8 * SEGMENT_BYTES
# what is reported, then the rest of the state
MISBEHAVIOUR_COUNTS = ("changed", "added", "concealed_bytes")
_RECEIVER_STATE = ProgramState(7, (*MISBEHAVIOUR_COUNTS, "started", "reached", "ahead"))
_SKB_MARK, _SKB_INTERFACE = 8, 40  # offsets in struct __sk_buff
_OWN_MARK = 0x7EAD  # the mark of an acknowledgement that the program has made
# offsets in TCP's header, and in IPv4's
_TCP_NUMBER, _TCP_ACKNOWLEDGEMENT, _TCP_FLAGS, _TCP_CHECKSUM = 4, 8, 13, 16
_IP_CHECKSUM = 10
_FIN_BIT, _SYN_BIT, _RST_BIT = 1, 2, 4
# the stack, below r10: -4 is the index of an element
_OLD, _NEW, _BASE, _ADVANCE = -8, -12, -16, -20


class MisbehavingReceivers(Part):
    """The programs of misbehaving receivers, and their counters."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        self._counted: dict[str, int] = {}  # flow → the instruction that reads its counters

    @classmethod
    def wanted(cls, trial: PlannedTrial) -> bool:
        """Return whether any receiver misbehaves."""
        return bool(trial.plan.receivers)

    def open(self) -> None:
        """Attach the programs."""
        for plan in self._trial.plan.receivers:
            state = self._trial.arrays.add(
                _counters(plan), len(_RECEIVER_STATE.at_first), _RECEIVER_STATE.at_first
            )
            for side, lines in listings(plan, state).items():
                name = f"receiver of {plan.flow}, {'in' if side == bpf.INGRESS else 'out'}"
                self._programme.add("program", name, bpf.assemble(lines).hex())
                place = (plan.node, plan.interface, side)
                bpf.attach(self._programme, *place, name, "testbed-receiver")

    def close(self) -> None:
        """Read each program's counters."""
        for plan in self._trial.plan.receivers:
            self._counted[plan.flow] = self._programme.add("counters", _counters(plan))

    def _counts(self, flow: str, answers: Answers) -> dict[str, int]:
        values = _RECEIVER_STATE.values(answers.of(self._counted[flow]))
        return {name: values[name] for name in MISBEHAVIOUR_COUNTS}

    def write(self, folder: Path, answers: Answers) -> None:
        """Write each program's counters."""
        counts = {
            plan.flow: self._counts(plan.flow, answers) for plan in self._trial.plan.receivers
        }
        write_json(folder, RECEIVERS_FILE, counts)

    def describe(self, record: Record, answers: Answers) -> Record:
        """Add a warning about each receiver that had nothing to misbehave with."""
        idle = (
            f"{plan.flow}: its receiver found nothing for {plan.misbehaviour}"
            for plan in self._trial.plan.receivers
            if not self._counts(plan.flow, answers)["changed"]
        )
        return replace(record, warnings=(*record.warnings, *idle))


def _counters(plan: ReceiverPlan) -> str:
    return f"receiver of {plan.flow}"


def listings(plan: ReceiverPlan, state: int) -> dict[int, Sequence[Line]]:
    """Return the receiver's programs by the side of its interface."""
    match plan.misbehaviour:
        case Misbehaviour.ACK_DIVISION:
            return {bpf.EGRESS: _ack_division(plan, state)}
        case Misbehaviour.OPTIMISTIC_ACKS:
            return {
                bpf.INGRESS: _concealed_losses(plan, state),
                bpf.EGRESS: _optimistic_acks(plan, state),
            }
        case Misbehaviour.BLEACHED_ECN:
            return {bpf.INGRESS: _bleached(plan, state)}


def _reverse(plan: ReceiverPlan) -> ReceiverPlan:
    """Return the connection in the direction of its acknowledgements."""
    return replace(
        plan,
        src_address=plan.dst_address,
        src_port=plan.dst_port,
        dst_address=plan.src_address,
        dst_port=plan.src_port,
    )


def _tcp(plan: ReceiverPlan) -> int:
    """Return where TCP's header is: our hosts send no options of IP."""
    return ETHERNET_BYTES + (40 if is_ipv6(plan) else 20)


def _set_word(plan: ReceiverPlan, offset: int) -> Sequence[Line]:
    """Put the number at _NEW in place of that at _OLD into TCP's header, and mend the checksum."""
    tcp = _tcp(plan)
    mended = _with_checksum(bpf.L4_CHECKSUM, tcp + _TCP_CHECKSUM, 4)
    return (*mended, *_stored(tcp + offset, 4))


def _with_checksum(function: int, place: int, size: int) -> Sequence[Line]:
    """Mend the checksum at a place for the number at _NEW in place of that at _OLD."""
    return (
        bpf.move(1, 6),
        bpf.set_constant(2, place),
        bpf.load(3, 10, _OLD),
        bpf.load(4, 10, _NEW),
        bpf.set_constant(5, size),
        bpf.call(function),
    )


def _stored(offset: int, size: int) -> Sequence[Line]:
    return (
        bpf.move(1, 6),
        bpf.set_constant(2, offset),
        bpf.move(3, 10),
        bpf.alu(bpf.ADD, 3, _NEW),
        bpf.set_constant(4, size),
        bpf.set_constant(5, 0),
        bpf.call(bpf.STORE_BYTES),
    )


def _put(register: int, place: int) -> Sequence[Line]:
    """Put a number on the stack, in the order of the network."""
    return (
        bpf.move(1, register),
        bpf.to_network_order(1, 32),
        bpf.store(10, place, 1),
    )


def _acknowledgement(plan: ReceiverPlan, state: int, skipped: int) -> Sequence[Line]:
    """Set r8 to a packet's acknowledgement number; packets with any of the `skipped` flags pass."""
    return (
        *of_connection(_reverse(plan)),
        bpf.load_packet_at(9, BPF_BYTE, ETHERNET_BYTES + _TCP_FLAGS),
        bpf.alu(AND, 0, skipped),
        bpf.jump(DIFFERENT, 0, 0, "pass"),
        bpf.load_packet_at(9, BPF_WORD, ETHERNET_BYTES + _TCP_ACKNOWLEDGEMENT),
        bpf.move(8, 0),
        *_RECEIVER_STATE.find(state),
    )


def _ack_division(plan: ReceiverPlan, state: int) -> Sequence[Line]:
    set_mark = (bpf.set_constant(1, _OWN_MARK), bpf.store(6, _SKB_MARK, 1))
    clear_mark = (bpf.set_constant(1, 0), bpf.store(6, _SKB_MARK, 1))
    return (
        *_acknowledgement(plan, state, _FIN_BIT | _SYN_BIT | _RST_BIT),
        bpf.load(1, 6, _SKB_MARK),
        bpf.jump(EQUAL, 1, _OWN_MARK, "own"),
        _RECEIVER_STATE.load(1, "started"),
        bpf.jump(DIFFERENT, 1, 0, "started"),
        bpf.set_constant(1, 1),
        _RECEIVER_STATE.store("started", 1),
        _RECEIVER_STATE.store("reached", 8),
        bpf.jump_to("pass"),
        "started",
        _RECEIVER_STATE.load(1, "reached"),
        bpf.store(10, _BASE, 1),
        bpf.move(2, 8),
        bpf.alu_reg(bpf.SUB, 2, 1),
        bpf.low_word(2),
        bpf.jump(BELOW_SIGNED, 2, DIVISION, "pass"),
        bpf.store(10, _ADVANCE, 2),
        _RECEIVER_STATE.store("reached", 8),
        *_RECEIVER_STATE.count("changed"),
        *_put(8, _OLD),
        *set_mark,
        *(line for part in range(1, DIVISION) for line in _part_of_ack(plan, part)),
        *clear_mark,
        *_put(8, _NEW),
        *_set_word(plan, _TCP_ACKNOWLEDGEMENT),
        bpf.jump_to("pass"),
        "own",
        *_RECEIVER_STATE.count("added"),
        *clear_mark,
        *PASSED,
    )


def _part_of_ack(plan: ReceiverPlan, part: int) -> Sequence[Line]:
    """Send a copy of the acknowledgement that advances by `part` eighths of the whole advance."""
    return (
        bpf.load(2, 10, _ADVANCE),
        bpf.alu(bpf.MUL, 2, part),
        bpf.alu(bpf.DIV, 2, DIVISION),
        bpf.load(1, 10, _BASE),
        bpf.alu_reg(bpf.ADD, 2, 1),
        *_put(2, _NEW),
        *_set_word(plan, _TCP_ACKNOWLEDGEMENT),
        bpf.load(1, 10, _NEW),
        bpf.store(10, _OLD, 1),  # what is in the packet now
        bpf.move(1, 6),
        bpf.load(2, 6, _SKB_INTERFACE),
        bpf.set_constant(3, 0),
        bpf.call(bpf.CLONE_REDIRECT),
    )


def _concealed_losses(plan: ReceiverPlan, state: int) -> Sequence[Line]:
    """Lower the sequence numbers of what arrives, so that TCP sees no gap where data is missing.

    `reached` is the highest end of data so far, and `concealed_bytes` what is missing below it.
    """
    return (
        *data_segments(plan, "no data"),
        *_RECEIVER_STATE.find(state),
        _RECEIVER_STATE.load(1, "started"),
        bpf.jump(DIFFERENT, 1, 0, "started"),
        bpf.set_constant(1, 1),
        _RECEIVER_STATE.store("started", 1),
        _RECEIVER_STATE.store("reached", 8),
        "started",
        _RECEIVER_STATE.load(1, "reached"),
        bpf.move(2, 8),
        bpf.alu_reg(bpf.SUB, 2, 1),
        bpf.low_word(2),
        bpf.jump(BELOW_SIGNED, 2, 0, "again"),
        _RECEIVER_STATE.load(3, "concealed_bytes"),
        bpf.alu_reg(bpf.ADD, 3, 2),
        _RECEIVER_STATE.store("concealed_bytes", 3),
        _RECEIVER_STATE.load(3, "ahead"),
        bpf.alu(bpf.ADD, 3, SEGMENT_BYTES),
        bpf.jump(AT_MAX_SIGNED, 3, MAX_AHEAD, "still ahead"),
        bpf.set_constant(3, MAX_AHEAD),
        "still ahead",
        _RECEIVER_STATE.store("ahead", 3),
        _RECEIVER_STATE.store("reached", 9),
        bpf.jump_to("lower"),
        "again",
        bpf.set_constant(3, 0),
        _RECEIVER_STATE.store("ahead", 3),
        bpf.move(2, 9),
        bpf.alu_reg(bpf.SUB, 2, 1),
        bpf.low_word(2),
        bpf.jump(AT_MAX_SIGNED, 2, 0, "lower"),
        _RECEIVER_STATE.store("reached", 9),
        bpf.jump_to("lower"),
        "no data",
        *_RECEIVER_STATE.find(state),
        "lower",
        _RECEIVER_STATE.load(1, "concealed_bytes"),
        bpf.jump(EQUAL, 1, 0, "pass"),
        bpf.move(9, 8),
        bpf.alu_reg(bpf.SUB, 9, 1),
        *_put(8, _OLD),
        *_put(9, _NEW),
        *_set_word(plan, _TCP_NUMBER),
        *PASSED,
    )


def _optimistic_acks(plan: ReceiverPlan, state: int) -> Sequence[Line]:
    return (
        *_acknowledgement(plan, state, _SYN_BIT | _RST_BIT),
        _RECEIVER_STATE.load(1, "started"),
        bpf.jump(EQUAL, 1, 0, "pass"),
        _RECEIVER_STATE.load(1, "concealed_bytes"),
        _RECEIVER_STATE.load(2, "ahead"),
        bpf.alu_reg(bpf.ADD, 1, 2),
        bpf.move(9, 8),
        bpf.alu_reg(bpf.ADD, 9, 1),
        *_RECEIVER_STATE.count("changed"),
        *_put(8, _OLD),
        *_put(9, _NEW),
        *_set_word(plan, _TCP_ACKNOWLEDGEMENT),
        *PASSED,
    )


def _bleached(plan: ReceiverPlan, state: int) -> Sequence[Line]:
    bits = 0x30 if is_ipv6(plan) else 0x3  # of the first 16 bits of IP's header
    checksum = _with_checksum(bpf.L3_CHECKSUM, ETHERNET_BYTES + _IP_CHECKSUM, 2)
    return (
        *of_connection(plan),
        bpf.load_packet(BPF_HALF, ETHERNET_BYTES),
        bpf.move(8, 0),
        bpf.alu(AND, 0, bits),
        bpf.jump(EQUAL, 0, 0, "pass"),
        *_RECEIVER_STATE.find(state),
        *_RECEIVER_STATE.count("changed"),
        bpf.move(1, 8),
        bpf.to_network_order(1, 16),
        bpf.store(10, _OLD, 1),
        bpf.move(1, 8),
        bpf.alu(AND, 1, 0xFFFF & ~bits),
        bpf.to_network_order(1, 16),
        bpf.store(10, _NEW, 1),
        *(() if is_ipv6(plan) else checksum),
        *_stored(ETHERNET_BYTES, 2),
        *PASSED,
    )
