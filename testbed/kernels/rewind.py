"""A trial again, with the same packets, stopped at an instant or a packet: `testbed rewind`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.captures.inspection import Point, flow_record, view_of
from analysis.statistics.packet_comparison import capture_differences
from analysis.trials.packets import TrialPackets, capture_files, capture_interface, epoch_ns
from testbed.errors import TestbedError, UsageError
from testbed.guest import kernels
from testbed.kernels.guest_under_gdb import CapturedPacket, DebuggedGuest, DebuggerOrders
from testbed.machine import safe_files
from testbed.machine.atomic import workplace
from testbed.machine.process import interrupts_for_programs, require
from testbed.plan.plan import tasks
from testbed.runs.engine_choice import Choice
from testbed.runs.identity import identify
from testbed.runs.sweep import run_all
from testbed.runs.what_if import refuse_unrepeatable
from testbed.store.reading import Trial, open_trial
from testbed.store.records import Status

RETRANSMISSION = "retransmission"  # in place of a packet's number: the first one
TRANSMIT = "__tcp_transmit_skb"  # through it TCP sends each packet
STACK_LINE = re.compile(r"#\d+\s+(?:0x[0-9a-f]+ in )?([\w.]+) \(")


@dataclass(frozen=True)
class RewindRequest:
    """The part of a trial that the user wants to see."""

    at_s: float | None = None
    packet: str = ""  # its number in the capture, or RETRANSMISSION
    flow: str = ""  # the first, unless named
    point: str = Point.SENDER  # where the packet was captured
    functions: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()
    until_s: float | None = None
    interactive: bool = False


@dataclass(frozen=True)
class RewindEnd:
    """The outcome of the trial that ran again."""

    differences: tuple[str, ...]  # of its captures from the stored ones
    captures: int
    back_s: float | None  # where the user wants to go from here


@dataclass(frozen=True)
class Sending:
    """What the kernel did and knew when it sent a packet."""

    functions: tuple[str, ...]  # TCP's, the inner one first; none: it arrived here, or is not TCP's
    socket: tuple[str, ...]  # lines


def orders_for(trial: Trial, request: RewindRequest) -> DebuggerOrders:
    """Return where gdb is to stop, and for which sockets."""
    refuse_unrepeatable(trial)
    flow = flow_record(trial, request.flow)
    packet, packet_s = None, None
    if request.packet:
        packet, packet_s = _find_packet(trial, request)
    at_s = request.at_s if request.at_s is not None else packet_s
    if at_s is None:
        at_s = 0.0 if request.functions else None
    if at_s is None:
        raise UsageError(
            "rewind: to which instant or packet?",
            "for example --at 3.217, or --packet retransmission",
        )
    _check_second(trial, at_s)
    if request.until_s is not None and request.until_s < at_s:
        raise UsageError(
            f"--until {request.until_s}: before second {at_s}", "calls are printed from --at on"
        )
    return DebuggerOrders(
        at_s,
        epoch_ns(trial),
        flow.src_ports,
        flow.dst_port,
        packet,
        request.functions,
        request.expressions,
        request.until_s,
        request.interactive,
    )


def _check_second(trial: Trial, at_s: float) -> None:
    """Raise if the trial is over at this second, or has not begun."""
    if at_s < 0:
        raise UsageError(f"--at {at_s:g}: a trial begins at second 0", "for example --at 3.217")
    if at_s > trial.scenario.duration_s:  # the last packets come later
        packets = TrialPackets(trial)
        times_ns = [
            packets.read(path).rows["time_ns"].max() for path in capture_files(trial).values()
        ]
        if times_ns and at_s > (last_s := (max(times_ns) - epoch_ns(trial)) / 1e9):
            raise UsageError(
                f"--at {at_s:g}: the trial's last packet is at second {last_s:.6f}",
                "an earlier second",
            )


def _find_packet(trial: Trial, request: RewindRequest) -> tuple[CapturedPacket, float]:
    """Return a packet of a flow's capture, and its second."""
    flow = flow_record(trial, request.flow)
    view = view_of(trial, request.flow, request.point)  # raises where none was taken
    packets = TrialPackets(trial)
    if request.packet == RETRANSMISSION:
        data = packets.at(view.capture, flow).data
        rows = data[np.asarray(retransmitted(data, request.point), dtype=bool)]
        if rows.empty:
            raise TestbedError(
                f"{trial.path}: flow {flow.name} retransmitted nothing", "name another --flow"
            )
    elif request.packet.isdigit():
        captured = packets.read(view.capture).rows
        rows = captured[captured["frame"] == int(request.packet)]
        if rows.empty:
            last = captured["frame"].max()
            raise UsageError(
                f"packet {request.packet}: no such TCP or UDP packet, the capture's last is {last}",
                f"testbed inspect {trial.path} --packets 20",
            )
    else:
        raise UsageError(
            f"packet {request.packet!r}: neither a number nor {RETRANSMISSION!r}",
            f"testbed inspect {trial.path} --packets 20",
        )
    frame, time_ns = int(rows["frame"].iloc[0]), int(rows["time_ns"].iloc[0])
    interface = capture_interface(trial, request.point, flow)
    return CapturedPacket(interface, frame), (time_ns - epoch_ns(trial)) / 1e9


def retransmitted(data: pd.DataFrame, point: str) -> pd.Series[bool]:
    """Return which packets of a flow were sent before.

    Wireshark calls those that follow the loss at once out of order: where the sender captures, none
    can have overtaken another.
    """
    again = data["retransmission"].astype(bool)
    return again | data["out_of_order"].astype(bool) if point == Point.SENDER else again


def rewind(
    trial: Trial,
    orders: DebuggerOrders,
    out: Path,
    say: Callable[[str], None],
    output: Path | None = None,
) -> RewindEnd:
    """Run a trial again under gdb, to its end, and compare the captures.

    What gdb shows goes to the terminal, or to the file `output`.
    """
    require("gdb")
    (task,) = tasks([trial.scenario])
    kernel = trial.scenario.kernel or kernels.default_kernel()
    engine = DebuggedGuest(kernel, kernels.symbols_of(kernel, say), orders, output)
    if problem := engine.ready():
        raise TestbedError(problem)
    if identify(trial.scenario, task.plan, engine) != trial.record.identity:
        say("the trial was run by another version: its packets may have been others")
    with interrupts_for_programs():
        (done,) = run_all([task], Choice(engine, "rewind"), out, lambda _event: None, rerun=True)
    again = open_trial(done.path)
    if again.record.status is not Status.OK:
        raise TestbedError(again.record.reason, again.record.hint)
    return RewindEnd(
        tuple(capture_differences(trial, again)), len(again.record.captures), engine.back_s
    )


def sending_of(trial: Trial, orders: DebuggerOrders, say: Callable[[str], None]) -> Sending:
    """Run a trial again, and return what sent the packet at which the orders stop."""
    with workplace("sending") as folder:
        output = folder / "said"
        end = rewind(trial, orders, folder / "out", say, output)
        if end.differences:
            raise TestbedError(
                f"{trial.path}: it has other packets now: {end.differences[0]}",
                "run it again with this version of the testbed: testbed run",
            )
        return read_gdb(safe_files.tail(output, safe_files.LONG_TAIL_BYTES).splitlines())


def read_gdb(lines: Iterable[str]) -> Sending:
    """Return TCP's functions above the transmission, and the sending socket's lines."""
    functions: list[str] = []
    sockets: dict[str, list[str]] = {}
    end, sending = "", False
    for line in lines:
        if frame := STACK_LINE.match(line):
            name = frame[1].partition(".")[0]
            sending = sending or name == TRANSMIT
            if sending:
                functions.append(name)
        elif line.startswith(("sender: ", "receiver: ")):
            end = line.partition(":")[0]
            sockets[end] = [line.partition(": ")[2]]
        elif line.startswith("  ") and end:
            sockets[end].append(line.strip())
    last = max((at for at, name in enumerate(functions) if "tcp" in name), default=-1)
    unique = dict.fromkeys(functions[: last + 1])
    return Sending(tuple(unique), tuple(sockets.get("sender", ())))


def going_back(orders: DebuggerOrders, second: float) -> DebuggerOrders:
    """Return the orders for another session at an earlier instant."""
    return dataclasses.replace(orders, at_s=second, packet=None, functions=())
