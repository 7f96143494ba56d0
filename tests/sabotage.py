"""Trials that are broken on purpose: `python -m tests.sabotage NAME SCENARIO OUT`.

Runs in place of `testbed.trial`, inside the guest or on the host, with one of its parts
bent. What is bent while flows run is bent back before they end, where it can be: the
verdict has to find it by what it did, not by what it left.
"""

from __future__ import annotations

import dataclasses
import functools
import signal
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from testbed.machine.process import Place, Process, run
from testbed.machine.sysctl_guard import ALLOWED, AVAILABLE
from testbed.plan.delay_links import SessionDelays
from testbed.plan.plan import Plan
from testbed.plan.traffic_control import TRACE_START, TRACE_TIMES, ChangePlan, QueuePlan
from testbed.traffic.iperf3.iperf3_flow import Iperf3Flow
from testbed.traffic.workload.workload_flow import WorkloadFlow
from testbed.trial import build, session
from testbed.trial.parts import all_parts, capture, idle_rtt, session_delays
from testbed.trial.parts.capture import Captures
from testbed.trial.parts.flow_traffic import FlowTraffic
from testbed.trial.parts.part import Part
from testbed.trial.parts.sampling import Sampling
from testbed.trial.parts.scheduler import ActionQueue
from tests.scenarios import dumbbell

FROM_S, UNTIL_S = 1.0, 4.0  # of a flow that runs from 0 to 5 s


def meanwhile(begin: Sequence[str], end: Sequence[str] = (), node: str = "router") -> None:
    """Run a command in a node in the midst of the trial, and one that undoes it."""

    class Meanwhile(Part):
        def schedule(self, timeline: ActionQueue) -> None:
            timeline.at(FROM_S, functools.partial(self._act, begin))
            if end:
                timeline.at(UNTIL_S, functools.partial(self._act, end))

        def _act(self, argv: Sequence[str], _time_s: float) -> None:
            run(tuple(argv), place=self._trial.places[node])

    all_parts.PARTS = (*all_parts.PARTS, Meanwhile)


def wrong_variant() -> None:
    """The client's own option goes before the sysctl."""
    launch = Iperf3Flow._launch

    def bent(
        self: Iperf3Flow, role: str, argv: tuple[str, ...], env: dict[str, str] | None = None
    ) -> None:
        more = ("--congestion", "reno") if role == "client" else ()
        launch(self, role, (*argv, *more), env)

    Iperf3Flow._launch = bent  # type: ignore[method-assign]


def offloads() -> None:
    """Segments of 64 KB leave the sender for a while."""
    interface = ("ethtool", "-K", "sender1-eth0")
    meanwhile((*interface, "tso", "on", "gso", "on"), (*interface, "tso", "off", "gso", "off"),
              "sender1")  # fmt: skip


def hidden_loss() -> None:
    """One packet in a hundred, on a wire."""
    netem = ("tc", "qdisc", "change", "dev", "w0b", "root", "handle", "2:", "netem")
    delay = ("delay", "15000us", "limit", "10000000")
    meanwhile((*netem, *delay, "loss", "1%"), (*netem, *delay, "loss", "0%"), "wires")


def hidden_loss_behind_the_dropper() -> None:
    """The same on the access link of the dumbbell's first receiver."""
    links = [link.name for link in dumbbell().network.links]
    wire = f"w{links.index('receiver1-right')}a"
    netem = ("tc", "qdisc", "change", "dev", wire, "root", "handle", "2:", "netem")
    delay = ("delay", "10000us", "limit", "10000000")
    meanwhile((*netem, *delay, "loss", "1%"), (*netem, *delay, "loss", "0%"), "wires")


def slow_rate() -> None:
    """3 % less than was asked."""
    meanwhile(_class("9700000bit"), _class("10000000bit"))


def _class(rate: str) -> tuple[str, ...]:
    change = ("tc", "class", "change", "dev", "router-eth0", "parent", "1:", "classid", "1:3")
    burst = ("burst", "1514", "cburst", "1514", "quantum", "1514")
    return (*change, "htb", "rate", rate, "ceil", rate, *burst)


def small_buffer() -> None:
    """Half of the packets that may wait."""
    change = ("tc", "qdisc", "change", "dev", "router-eth0", "parent", "1:3", "handle", "30:")
    meanwhile((*change, "pfifo", "limit", "10"), (*change, "pfifo", "limit", "20"))


def changed_sysctl() -> None:
    """A hand on the machine, which leaves it changed."""
    meanwhile(("sysctl", "-w", "net.ipv4.tcp_slow_start_after_idle=0"), node="sender1")
    meanwhile(("sysctl", "-w", "net.ipv4.tcp_sack=0"), node="sender1")


def slow_path() -> None:
    """2 ms more than was asked, while the idle path is looked at."""
    ask = idle_rtt.idle_round_trips
    netem = ("tc", "qdisc", "change", "dev", "w0b", "root", "handle", "2:", "netem")

    def bent(plan: Plan, places: Mapping[str, Place]) -> list[idle_rtt.Idle]:
        for delay in ("17000us", "15000us"):
            argv = (*netem, "delay", delay, "limit", "10000000")
            run(argv, place=places["wires"])
            if delay == "17000us":
                found = ask(plan, places)
        return found

    idle_rtt.idle_round_trips = bent


def late_start() -> None:
    """The client takes its time."""
    begin = Iperf3Flow.begin

    def bent(self: Iperf3Flow) -> None:
        time.sleep(0.05)
        begin(self)

    Iperf3Flow.begin = bent  # type: ignore[method-assign]


def lagging_samples() -> None:
    """Now and then the sampler is elsewhere."""
    schedule = Sampling.schedule

    def bent(self: Sampling, timeline: ActionQueue) -> None:
        for index in range(round(self._trial.plan.end_s / 0.2)):
            timeline.at(0.07 + 0.2 * index, lambda _time_s: time.sleep(0.08))
        schedule(self, timeline)

    Sampling.schedule = bent  # type: ignore[method-assign]


def dropping_capture() -> None:
    """tcpdump sleeps, and its buffer is small."""
    capture.BUFFER_KIB = 64

    def bent(self: Captures, timeline: ActionQueue) -> None:
        tcpdump = self._captures[-1]._process
        for time_s, number in ((FROM_S, signal.SIGSTOP), (UNTIL_S, signal.SIGCONT)):
            timeline.at(time_s, functools.partial(_send, tcpdump, number))

    Captures.schedule = bent  # type: ignore[assignment, method-assign]


def _send(process: Process, number: int, _time_s: float) -> None:
    process.send_signal(number)


def dead_server() -> None:
    """The program that serves a workload is killed."""
    schedule = FlowTraffic.schedule

    def bent(self: FlowTraffic, timeline: ActionQueue) -> None:
        schedule(self, timeline)
        for flow in self._flows:
            if isinstance(flow, WorkloadFlow):
                server = flow._running["server"]
                timeline.at(FROM_S, functools.partial(_send, server, signal.SIGKILL))

    FlowTraffic.schedule = bent  # type: ignore[method-assign]


def no_delays() -> None:
    """No session has its own round trip: all have the path's."""
    attach = session_delays.attach_delays

    def bent(delays: SessionDelays, pid: int | None) -> None:
        extra_ns = (0,) * len(delays.extra_ns)
        attach(dataclasses.replace(delays, extra_ns=extra_ns), pid)

    session_delays.attach_delays = bent


def lost_transfer() -> None:
    """A workload's client is not told of its sixth transfer."""
    launch = WorkloadFlow._launch

    def bent(
        self: WorkloadFlow, role: str, argv: tuple[str, ...], env: dict[str, str] | None = None
    ) -> None:
        if role == "client":
            lines = Path(argv[-1]).read_text().splitlines()
            told = Path(argv[-1]).with_suffix(".told")
            told.write_text("\n".join(lines[:5] + lines[6:]) + "\n")
            argv = (*argv[:-1], str(told))
        launch(self, role, argv, env)

    WorkloadFlow._launch = bent  # type: ignore[method-assign]


def late_schedule() -> None:
    """Every change of a link is made 50 ms after its time."""
    from testbed.trial.parts.link_changes import LinkChanges  # as in all_parts.py

    change = LinkChanges._change

    def bent(self: LinkChanges, planned: ChangePlan, message: bytes, time_s: float) -> None:
        time.sleep(0.05)
        change(self, planned, message, time_s)

    LinkChanges._change = bent  # type: ignore[assignment, method-assign]


def _told_trace(kind: int, bend: Callable[[bytes], bytes]) -> None:
    from testbed.trial.parts.link_changes import LinkChanges

    tell = LinkChanges._tell_trace

    def bent(self: LinkChanges, queue: QueuePlan, told: int, data: bytes) -> None:
        tell(self, queue, told, bend(data) if told == kind else data)

    LinkChanges._tell_trace = bent  # type: ignore[assignment, method-assign]


def shifted_trace() -> None:
    """Each opportunity of a trace comes a millisecond late."""
    _told_trace(TRACE_START, lambda data: struct.pack("=Q", int.from_bytes(data, "little") + 10**6))


def shorter_trace() -> None:
    """The kernel is not told the last opportunities."""
    _told_trace(TRACE_TIMES, lambda data: data[:-8])


def misconfigured(words: str) -> None:
    """A command of the set-up, changed: `OLD WORDS -> NEW WORDS` in what tc is told."""
    old, _, new = words.partition(" -> ")
    apply = build.apply

    def bent(plan: Plan, places: Mapping[str, Place]) -> None:
        setup = []
        for command in plan.setup:
            line = f"{' '.join(command.argv)} ".replace(f" {old} ", f" {new} ")
            setup.append(dataclasses.replace(command, argv=tuple(line.split())))
        assert tuple(setup) != plan.setup, f"no command has {old!r}"
        apply(dataclasses.replace(plan, setup=tuple(setup)), places)

    session.apply = bent  # type: ignore[attr-defined]


SABOTAGES: dict[str, Callable[[], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        wrong_variant,
        offloads,
        hidden_loss,
        hidden_loss_behind_the_dropper,
        slow_rate,
        small_buffer,
        changed_sysctl,
        slow_path,
        late_start,
        lagging_samples,
        dropping_capture,
        dead_server,
        no_delays,
        lost_transfer,
        late_schedule,
        shifted_trace,
        shorter_trace,
    )
}

if __name__ == "__main__":
    ALLOWED.write_text(AVAILABLE.read_text())
    if sys.argv[1] in SABOTAGES:
        SABOTAGES[sys.argv[1]]()
    else:
        misconfigured(sys.argv[1])
    sys.exit(session.main(sys.argv[2:]))
