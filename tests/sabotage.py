"""Trials that are broken on purpose: what is bent in a trial's programme before it runs.

Each sabotage bends the parts that write the programme, by a patch that is undone behind the
trial. What is bent while flows run is bent back before they end, where it can be: the verdict has
to find it by what it did, not by what it left.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.plan.plan import CapturePlan
from testbed.plan.traffic_control import TRACE_START, TRACE_TIMES, ChangePlan, QueuePlan
from testbed.runner.programme import BOOT_NS, NS, Programme
from testbed.runner.recorded_netlink import LINK, netlink_of
from testbed.scenario.model import Scenario
from testbed.store.names import capture_file, planned_file
from testbed.store.reading import Trial
from testbed.traffic.iperf3.iperf3_flow import Iperf3Flow
from testbed.traffic.workload.workload_flow import WorkloadFlow
from testbed.trial import make
from testbed.trial.parts.capture import GuestCaptures
from testbed.trial.parts.flow_traffic import FlowTraffic
from testbed.trial.parts.idle_rtt import IdleRtt
from testbed.trial.parts.link_changes import LinkChanges
from testbed.trial.parts.part import Part, PlannedTrial, TrialTimeline
from testbed.trial.parts.session_delays import SessionRoundTrips
from tests.lab import ended_in_the_guest
from tests.scenarios import dumbbell

FROM_S, UNTIL_S = 1.0, 4.0  # of a flow that runs from 0 to 5 s
Patch = pytest.MonkeyPatch


def run_sabotaged(fault: str, scenario: Scenario, out: Path) -> Trial:
    """Run a trial that is broken by the fault of that name, or by `OLD WORDS -> NEW WORDS`."""
    with pytest.MonkeyPatch.context() as patch:
        if fault in SABOTAGES:
            SABOTAGES[fault](patch)
        else:
            misconfigured(patch, fault)
        return ended_in_the_guest(scenario, out)


def add_part(patch: Patch, part: type[Part]) -> None:
    """Give every trial one more part."""
    patch.setattr(make, "PARTS", (*make.PARTS, part))


def pause(programme: Programme, seconds: float) -> None:
    """Let the runner wait, as a program that sleeps."""
    programme.run("-", ("sleep", f"{seconds}"))


def meanwhile(
    patch: Patch, begin: Sequence[str], end: Sequence[str] = (), node: str = "router"
) -> None:
    """Run a command in a node in the midst of the trial, and one that undoes it."""

    class Meanwhile(Part):
        def schedule(self, timeline: TrialTimeline) -> None:
            timeline.at(FROM_S, lambda _at: self._act(begin))
            if end:
                timeline.at(UNTIL_S, lambda _at: self._act(end))

        def _act(self, argv: Sequence[str]) -> None:
            if LINK not in argv:
                self._programme.run(node, argv)
                return
            (message,) = netlink_of(argv[0], (" ".join(argv[1:]),))  # tc alone does not know it
            places = (("index", offset, name) for offset, name in message.indexes)
            kind, flags = message.kind, message.flags
            self._programme.send(node, kind, flags, message.content, *places)

    add_part(patch, Meanwhile)


def wrong_variant(patch: Patch) -> None:
    """The client's own option goes before the sysctl."""
    launch = Iperf3Flow._launch

    def bent(
        self: Iperf3Flow,
        role: str,
        argv: tuple[str, ...],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        more = ("--congestion", "reno") if role == "client" else ()
        launch(self, role, (*argv, *more), environment)

    patch.setattr(Iperf3Flow, "_launch", bent)


def offloads(patch: Patch) -> None:
    """Segments of 64 KB leave the sender for a while."""
    interface = ("ethtool", "-K", "sender1-eth0")
    on, off = ("tso", "on", "gso", "on"), ("tso", "off", "gso", "off")
    meanwhile(patch, (*interface, *on), (*interface, *off), "sender1")


def _losing(patch: Patch, wire: str, delay: str) -> None:
    netem = ("tc", "qdisc", "change", "dev", wire, "root", "handle", "2:", "netem")
    words = ("delay", delay, "limit", "10000000")
    meanwhile(patch, (*netem, *words, "loss", "1%"), (*netem, *words, "loss", "0%"), "wires")


def hidden_loss(patch: Patch) -> None:
    """One packet in a hundred, on a wire."""
    _losing(patch, "w0b", "15000us")


def hidden_loss_behind_the_dropper(patch: Patch) -> None:
    """The same on the access link of the dumbbell's first receiver."""
    links = [link.name for link in dumbbell().network.links]
    _losing(patch, f"w{links.index('receiver1-right')}a", "10000us")


def slow_rate(patch: Patch) -> None:
    """3 % less than was asked."""
    meanwhile(patch, _rate("9700000bit"), _rate("10000000bit"))


def _rate(rate: str) -> tuple[str, ...]:
    change = ("tc", "qdisc", "change", "dev", "router-eth0", "root", "handle", "1:")
    return (*change, LINK, "rate", rate)


def small_buffer(patch: Patch) -> None:
    """Half of the packets that may wait."""
    change = ("tc", "qdisc", "change", "dev", "router-eth0", "parent", "1:1", "handle", "30:")
    meanwhile(patch, (*change, "pfifo", "limit", "10"), (*change, "pfifo", "limit", "20"))


def changed_sysctl(patch: Patch) -> None:
    """A hand on the machine, which leaves it changed."""
    meanwhile(patch, ("sysctl", "-w", "net.ipv4.tcp_slow_start_after_idle=0"), node="sender1")
    meanwhile(patch, ("sysctl", "-w", "net.ipv4.tcp_sack=0"), node="sender1")


def slow_path(patch: Patch) -> None:
    """2 ms more than was asked, while the idle path is looked at."""
    watch = IdleRtt.watch
    netem = ("tc", "qdisc", "change", "dev", "w0b", "root", "handle", "2:", "netem")

    def bent(self: IdleRtt) -> None:
        self._programme.run("wires", (*netem, "delay", "17000us", "limit", "10000000"))
        watch(self)
        self._programme.run("wires", (*netem, "delay", "15000us", "limit", "10000000"))

    patch.setattr(IdleRtt, "watch", bent)


def late_start(patch: Patch) -> None:
    """The client takes its time."""
    begin = Iperf3Flow.begin

    def bent(self: Iperf3Flow) -> None:
        pause(self._programme, 0.05)
        begin(self)

    patch.setattr(Iperf3Flow, "begin", bent)


def lagging_samples(patch: Patch) -> None:
    """Now and then the sampler is elsewhere."""

    class Elsewhere(Part):
        def schedule(self, timeline: TrialTimeline) -> None:
            for index in range(round(self._trial.plan.end_s / 0.2)):
                timeline.at(0.07 + 0.2 * index, lambda _at: pause(self._programme, 0.08))

    add_part(patch, Elsewhere)


def shortened_capture(patch: Patch) -> None:
    """The last capture ends before the flow does."""
    collect = GuestCaptures.collect
    early: dict[CapturePlan, int] = {}

    def schedule(self: GuestCaptures, timeline: TrialTimeline) -> None:
        plan = self._trial.plan.captures[-1]

        def end(_at: int) -> None:
            early[plan] = self._programme.add("captured", capture_file(plan.interface))

        timeline.at(UNTIL_S, end)

    def bent(self: GuestCaptures) -> None:
        collect(self)
        self._ended |= early

    patch.setattr(GuestCaptures, "schedule", schedule)
    patch.setattr(GuestCaptures, "collect", bent)


def _sender(programme: Programme, program: str, number: int) -> Callable[[int], None]:
    def send(_at: int) -> None:
        programme.run("-", ("kill", f"-{number}", f"{{pid:{program}}}"))

    return send


def dead_server(patch: Patch) -> None:
    """The program that serves a workload is killed."""
    schedule = FlowTraffic.schedule

    def bent(self: FlowTraffic, timeline: TrialTimeline) -> None:
        schedule(self, timeline)
        for flow in self._flows:
            if isinstance(flow, WorkloadFlow):
                server = flow._name("server")
                timeline.at(FROM_S, _sender(self._programme, server, signal.SIGKILL))

    patch.setattr(FlowTraffic, "schedule", bent)


def no_delays(patch: Patch) -> None:
    """No session has its own round trip: all have the path's."""
    join = SessionRoundTrips.join

    def bent(self: SessionRoundTrips) -> None:
        delays = tuple(
            dataclasses.replace(each, extra_ns=(0,) * len(each.extra_ns))
            for each in self._trial.plan.session_delays
        )
        plan = self._trial.plan
        self._trial.plan = dataclasses.replace(plan, session_delays=delays)
        join(self)
        self._trial.plan = plan

    patch.setattr(SessionRoundTrips, "join", bent)


def lost_transfer(patch: Patch) -> None:
    """A workload's client is not told of its sixth transfer."""
    begin = WorkloadFlow.begin

    def bent(self: WorkloadFlow) -> None:
        name = planned_file(self.plan.flow.name)
        lines = (self._folder / name).read_text().splitlines()
        told = (self._folder / name).with_suffix(".told")
        told.write_text("\n".join(lines[:5] + lines[6:]) + "\n")
        with pytest.MonkeyPatch.context() as inner:
            other = f"{Path(name).with_suffix('.told')}"
            inner.setattr("testbed.traffic.workload.workload_flow.planned_file", lambda _: other)
            begin(self)

    patch.setattr(WorkloadFlow, "begin", bent)


def late_schedule(patch: Patch) -> None:
    """Every change of a link is made 50 ms after its time."""
    change = LinkChanges._change

    def bent(self: LinkChanges, planned: ChangePlan, at: int) -> None:
        pause(self._programme, 0.05)
        change(self, planned, at)

    patch.setattr(LinkChanges, "_change", bent)


def shifted_trace(patch: Patch) -> None:
    """Each opportunity of a trace comes a millisecond late."""
    tell = LinkChanges._tell_trace

    def bent(self: LinkChanges, queue: QueuePlan, kind: int, data: bytes, *more: Any) -> None:
        if kind == TRACE_START:  # second 0 of the guest is known, and on the monotonic clock too
            late = make.BEGINNINGS_NS[-1] - BOOT_NS + NS // 1000
            tell(self, queue, kind, late.to_bytes(8, "little"))
        else:
            tell(self, queue, kind, data, *more)

    patch.setattr(LinkChanges, "_tell_trace", bent)


def shorter_trace(patch: Patch) -> None:
    """The kernel is not told the last opportunities."""
    tell = LinkChanges._tell_trace

    def bent(self: LinkChanges, queue: QueuePlan, kind: int, data: bytes, *more: Any) -> None:
        tell(self, queue, kind, data[:-8] if kind == TRACE_TIMES else data, *more)

    patch.setattr(LinkChanges, "_tell_trace", bent)


def misconfigured(patch: Patch, words: str) -> None:
    """Change a command of the set-up: `OLD WORDS -> NEW WORDS` in what tc is told."""
    old, _, new = words.partition(" -> ")
    apply = make.apply

    def bent(programme: Programme, trial: PlannedTrial) -> None:
        setup = []
        for command in trial.plan.setup:
            line = f"{' '.join(command.argv)} ".replace(f" {old} ", f" {new} ")
            setup.append(dataclasses.replace(command, argv=tuple(line.split())))
        assert tuple(setup) != trial.plan.setup, f"no command has {old!r}"
        plan = dataclasses.replace(trial.plan, setup=tuple(setup))
        apply(programme, dataclasses.replace(trial, plan=plan))

    patch.setattr(make, "apply", bent)


SABOTAGES: dict[str, Callable[[Patch], None]] = {
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
        shortened_capture,
        dead_server,
        no_delays,
        lost_transfer,
        late_schedule,
        shifted_trace,
        shorter_trace,
    )
}
