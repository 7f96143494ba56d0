"""One trial: `python -m testbed.trial SCENARIO OUT`, on whatever kernel this is.

Builds the network, runs the flows, and leaves in OUT what happened. Where it runs is
the engines' business; this module does not know.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from testbed.errors import TestbedError
from testbed.machine.process import CommandLog, run
from testbed.machine.timer import wake_exactly
from testbed.plan.delay_links import WIRES, lossy_ends
from testbed.plan.flows import FlowPlan
from testbed.plan.host_settings import traffic_hosts
from testbed.plan.plan import RETIRE_S, Plan, QueuePlan, burst_bytes, make_plan
from testbed.scenario.model import Scenario
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.variants import variant
from testbed.store import (
    NETWORK_UP,
    RECORD,
    SAMPLES,
    FlowRecord,
    QueueRecord,
    Record,
    Status,
)
from testbed.traffic.background.sessions import INTERVAL_S as COUNTS_S
from testbed.traffic.background.sessions import Sessions
from testbed.traffic.iperf3 import Iperf3
from testbed.traffic.video.flow import VideoFlow
from testbed.trial.build import Lab, network
from testbed.trial.capture import Capture
from testbed.trial.cpu_load import INTERVAL_S, Load
from testbed.trial.exact_losses import Dropper
from testbed.trial.idle_rtt import idle_round_trips, write_idle
from testbed.trial.kernel_trace import Recorder, record
from testbed.trial.random_losses import LossDropper
from testbed.trial.sampling import QueueProbe, Sampler, SocketId, SocketProbe
from testbed.trial.scheduler import Timeline
from testbed.trial.session_delays import attach_delays
from testbed.trial.snapshot import configuration, counters, tcp_settings

LEAD_S = 0.1
EPOCH_GRID_S = 0.1  # second 0 is a round tenth of the wall clock
LOOK_S = 1.0  # how often it is asked whether nothing is left to wait for


def run_trial(scenario: Scenario, folder: Path, epoch_grid_s: float) -> Record:
    """Run a scenario and describe how it went; files go to the folder as they come."""
    plan = make_plan(scenario)
    wake_exactly()
    with contextlib.ExitStack() as stack:
        log = CommandLog(folder / "commands.log")
        stack.callback(log.close)
        lab = stack.enter_context(network(plan, log, folder))
        (folder / NETWORK_UP).touch()
        session = Session(scenario, plan, lab, folder, epoch_grid_s)
        stack.callback(session.kill)
        return session.run()


class Session:
    """The flows, captures and samples of one trial in a network that is up."""

    def __init__(
        self, scenario: Scenario, plan: Plan, lab: Lab, folder: Path, epoch_grid_s: float
    ) -> None:
        self._scenario = scenario
        self._plan = plan
        self._lab = lab
        self._folder = folder
        self._epoch_grid_s = epoch_grid_s
        self._captures: list[Capture] = []
        self._flows: list[Iperf3 | VideoFlow] = []
        self._droppers: list[Dropper | LossDropper] = []
        self._background: Sessions | None = None
        self._load = Load()
        self._events: Recorder | None = None
        self._started: dict[str, float] = {}
        self._stopped: dict[str, float] = {}
        self._counted: dict[str, dict[str, int]] = {}

    def run(self) -> Record:
        """All of it, in order."""
        before = configuration(self._plan, self._lab.places)
        idle = idle_round_trips(self._plan, self._lab.places)
        self._open()
        sampler = self._sampler()
        sampler.rehearse()
        self._events = record(self._plan)
        begin_randomness_anew()
        timeline = Timeline(LEAD_S, self._epoch_grid_s)
        self._schedule(timeline, sampler)
        timeline.run()
        self._load.look()
        if self._events:
            self._events.stop()
        for flow in self._flows:
            flow.collect()
        if self._background:
            self._background.collect()
        captures = tuple(capture.stop() for capture in self._captures)
        sampler.write(self._folder / SAMPLES)
        self._load.write(self._folder / SAMPLES)
        if self._background:
            rate_mbit = self._scenario.topology.bottleneck.rate_mbit
            self._background.write(self._folder / SAMPLES, rate_mbit)
        lost_events = self._write_events(timeline, sampler)
        sampler.close()
        write_idle(idle, self._folder / SAMPLES / "idle.csv")
        self._write_final_state(before)
        if self._lab.air:
            self._lab.air.write(self._folder / SAMPLES)
        lost = self._check_drops()
        return Record(
            status=Status.OK,
            seed=self._scenario.seed,
            epoch_s=timeline.epoch_s,
            kernel=" ".join((os.uname().sysname, os.uname().release, os.uname().version)),
            sysctls={node: tcp_settings(self._lab.place(node).pid) for node in self._endpoints()},
            flows=tuple(self._flow_record(each, sampler) for each in self._plan.flows),
            background=self._background.record() if self._background else None,
            queues=tuple(_queue_record(each) for each in self._plan.queues),
            captures=captures,
            warnings=(
                *self._plan.warnings,
                *lost,
                *lost_events,
                *(
                    f"{c.interface}: tcpdump lost {c.dropped} packets"
                    for c in captures
                    if c.dropped
                ),
            ),
        )

    def _open(self) -> None:
        for each in self._plan.flows:
            server, client = (self._lab.place(c.node) for c in (each.server, each.client))
            kind = Iperf3 if each.video is None else VideoFlow
            self._flows.append(kind(each, server, client, self._folder))
        if background := self._plan.background:
            attach_delays(background, self._lab.place(WIRES).pid)
            server, client = (
                self._lab.place(n) for n in (background.flow.src, background.flow.dst)
            )
            self._background = Sessions(background, server, client, self._folder)
        for drops in self._plan.drops:
            self._droppers.append(Dropper(drops, self._lab.place(drops.node).pid))
        for losses in self._plan.losses:
            self._droppers.append(LossDropper(losses, self._lab.place(losses.node).pid))
        for wanted in self._plan.captures:
            place = self._lab.place(wanted.node)
            self._captures.append(
                Capture(wanted, place, self._folder, self._scenario.snaplen_bytes)
            )
        for flow in self._flows:
            flow.wait_until_ready()
        if self._background:
            self._background.wait_until_ready()
        for capture in self._captures:
            capture.wait_until_ready()
        self._watch()

    def _watch(self) -> None:
        """Count what the trial's processes take from now on."""
        self._load.watch("trial", "", os.getpid())
        for capture in self._captures:
            name = f"tcpdump {capture.plan.interface}"
            self._load.watch(name, capture.plan.node, capture.pid)

    def _write_events(self, timeline: Timeline, sampler: Sampler) -> tuple[str, ...]:
        if not self._events:
            return ()
        cookies = frozenset(probe.cookie for probe in sampler.sockets if probe.cookie)
        return tuple(self._events.write(self._folder / SAMPLES, timeline.time_s, cookies))

    def _sampler(self) -> Sampler:
        sockets = [
            SocketProbe(
                each.flow.name,
                self._lab.place(each.flow.src).pid,
                SocketId(each.src_address, port, each.dst_address, each.dst_port),
            )
            for each in self._plan.flows
            if each.flow.protocol == "tcp"
            for port in each.src_ports
        ]
        queues = [
            QueueProbe(
                queue.node,
                queue.interface,
                queue.shaper.queue.discipline,
                self._lab.place(queue.node).pid,
            )
            for queue in self._plan.queues
            if queue.sampled
        ]
        return Sampler(sockets, queues)

    def _schedule(self, timeline: Timeline, sampler: Sampler) -> None:
        def begin(flow: Iperf3 | VideoFlow, time_s: float) -> None:
            self._started[flow.plan.flow.name] = time_s
            flow.begin()
            for name, (node, pid) in flow.processes.items():
                self._load.watch(name, node, pid)

        def stop(flow: Iperf3 | VideoFlow, time_s: float) -> None:
            if flow.plan.flow.name in self._stopped:
                return
            self._load.look(*flow.processes)
            if flow.ended and not flow.may_end:
                flow.collect()
                raise TestbedError(f"{flow.plan.flow.name}: iperf3 ended before its time")
            sampler.sample(time_s)  # the flow's last state, sampling or not
            done_ns = flow.done_ns()
            self._stopped[flow.plan.flow.name] = timeline.time_s(done_ns) if done_ns else time_s
            flow.stop()

        for flow in self._flows:
            timeline.at(flow.plan.start_s, functools.partial(begin, flow))
            timeline.at(flow.plan.stop_s, functools.partial(stop, flow))
        if self._background:
            self._schedule_background(timeline, self._background)
        if self._scenario.sample_interval_ms:
            interval_s = self._scenario.sample_interval_ms / 1e3
            timeline.every(interval_s, self._plan.end_s, sampler.sample)
        if self._load.enabled:
            timeline.every(INTERVAL_S, self._plan.end_s, self._load.sample)
        self._schedule_end(timeline, sampler, self._plan.end_s)
        if not self._background and all(flow.may_end for flow in self._flows):
            last_s = max(flow.plan.stop_s for flow in self._flows)

            def look(time_s: float) -> None:
                if len(self._stopped) == len(self._flows):
                    return
                if not all(flow.ended for flow in self._flows):
                    return
                for flow in self._flows:
                    stop(flow, time_s)
                end_s = time_s + self._plan.end_s - last_s
                self._schedule_end(timeline, sampler, end_s)
                timeline.end(end_s)

            timeline.every(LOOK_S, last_s, look)

    def _schedule_end(self, timeline: Timeline, sampler: Sampler, end_s: float) -> None:
        """All is drained."""
        timeline.at(end_s - RETIRE_S, self._count)
        timeline.at(end_s, sampler.sample)

    def _count(self, _time_s: float) -> None:
        """What the hosts' kernels have counted while captures still have time to be written: of a
        packet that a late timer sends after that, tcpdump says nothing."""
        self._counted = {node: counters(self._lab.place(node).pid) for node in self._endpoints()}

    def _schedule_background(self, timeline: Timeline, sessions: Sessions) -> None:
        """From second 0 to the end of the flows; its last packets are counted when all is still."""

        def begin(time_s: float) -> None:
            sessions.begin(time_s)
            for process in sessions.processes:
                self._load.watch(*process)

        timeline.at(0, begin)
        timeline.every(COUNTS_S, sessions.plan.stop_s, sessions.count)
        timeline.at(sessions.plan.stop_s, sessions.stop)
        timeline.at(self._plan.end_s, sessions.count)

    def _check_drops(self) -> Iterator[str]:
        """What the droppers did, written down; what did not go as asked is worth a warning."""
        counts = {dropper.plan.flow: dropper.counts() for dropper in self._droppers}
        if counts:
            text = json.dumps(counts, indent=1) + "\n"
            (self._folder / SAMPLES / "drops.json").write_text(text)
        return filter(None, (dropper.complaint() for dropper in self._droppers))

    def _flow_record(self, each: FlowPlan, sampler: Sampler) -> FlowRecord:
        name = each.flow.name
        return FlowRecord(
            name=name,
            protocol=each.flow.protocol,
            src_address=each.src_address,
            dst_address=each.dst_address,
            src_ports=each.src_ports,
            dst_port=each.dst_port,
            started_s=self._started[name],
            stopped_s=self._stopped[name],
            planned_start_s=each.start_s,
            planned_stop_s=each.stop_s,
            control=variant(each.flow.variant).control if each.flow.variant else "",
            variant_seen=sampler.variants_seen().get(name, ""),
            options=tuple(sorted(each.options)),
            options_seen=tuple(sorted(sampler.options_seen().get(name, ()))),
        )

    def _endpoints(self) -> list[str]:
        return sorted(set(traffic_hosts(self._scenario)))

    def _write_final_state(self, before: dict[str, str]) -> None:
        """What the kernel counted, and its configuration before the flows and after them."""
        nodes = {queue.node for queue in self._plan.queues}
        nodes |= {end.node for end in self._plan.radio.ends} if self._plan.radio else set()
        if any(lossy_ends(self._plan.network)):
            nodes.add(WIRES)
        queues = {
            node: json.loads(
                run(("tc", "-json", "-s", "qdisc", "show"), place=self._lab.place(node)).stdout
            )
            for node in sorted(nodes)
        }
        settings = {"begin": before, "end": configuration(self._plan, self._lab.places)}
        named = {"qdiscs": queues, "counters": self._counted, "configuration": settings}
        for name, content in named.items():
            text = json.dumps(content, indent=1) + "\n"
            (self._folder / SAMPLES / f"{name}.json").write_text(text)

    def kill(self) -> None:
        """Leave no process, however the trial ended."""
        for flow in self._flows:
            flow.kill()
        if self._background:
            self._background.kill()
        for capture in self._captures:
            capture.kill()
        for dropper in self._droppers:
            dropper.close()
        if self._events:
            self._events.close()


def _queue_record(plan: QueuePlan) -> QueueRecord:
    queue, limit = plan.shaper.queue, plan.shaper.limit
    unit = DISCIPLINES[queue.discipline].counts
    return QueueRecord(
        node=plan.node,
        interface=plan.interface,
        rate_mbit=plan.shaper.rate_mbit,
        burst_bytes=burst_bytes(plan.shaper.rate_mbit),
        discipline=queue.discipline,
        limit=limit.bytes if unit == "bytes" else limit.packets,
        unit=unit,
        ecn=queue.ecn,
        sampled=plan.sampled,
    )


RNDRESEEDCRNG = 0x5207  # linux/random.h


def begin_randomness_anew() -> None:
    """Let the kernel's generator take a new key.

    In the guest that one follows from the seed alone: whether captures and samples were
    set up before makes no difference to BBR's dice or RED's. On the host it changes nothing.
    """
    with Path("/dev/urandom").open() as generator, contextlib.suppress(OSError):
        fcntl.ioctl(generator, RNDRESEEDCRNG)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM unwinds like ^C, so that everything is taken down."""

    def raise_interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, raise_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(argv: list[str], epoch_grid_s: float = EPOCH_GRID_S) -> int:
    """Run the trial and write its record; the exit status says whether it is ok."""
    source, folder = Path(argv[0]), Path(argv[1])
    try:
        with _interruptible():
            scenario = Scenario.from_json(source.read_text())
            record = run_trial(scenario, folder, epoch_grid_s)
    except TestbedError as error:
        record = Record(Status.FAILED, error.message, error.hint)
    except OSError as error:
        record = Record(Status.FAILED, str(error), "is the disk full?")
    except KeyboardInterrupt:
        return 130
    (folder / RECORD).write_text(record.to_json())
    return 0 if record.status is Status.OK else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
