"""The flows: a server and a client each, started and stopped according to the plan."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from testbed.errors import TestbedError
from testbed.scenario.model import FlowKind
from testbed.scenario.variants import variant
from testbed.store import FlowRecord, Record
from testbed.traffic.command_flow import CommandFlow
from testbed.traffic.iperf3.iperf3_flow import Iperf3Flow
from testbed.traffic.running_flow import RunningFlow
from testbed.traffic.video.video_flow import VideoFlow
from testbed.traffic.workload.workload_flow import WorkloadFlow
from testbed.trial.parts.part import Part, RunningTrial
from testbed.trial.parts.scheduler import ActionQueue

FLOW_CLASSES: Mapping[FlowKind, type[RunningFlow]] = {
    FlowKind.TCP: Iperf3Flow,
    FlowKind.CBR: Iperf3Flow,
    FlowKind.VIDEO: VideoFlow,
    FlowKind.WORKLOAD: WorkloadFlow,
    FlowKind.COMMAND: CommandFlow,
}


class FlowTraffic(Part):
    """All flows of a trial, of every kind."""

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._flows: list[RunningFlow] = []
        self._started: dict[str, float] = {}
        self._stopped: dict[str, float] = {}
        self._warnings: list[str] = []

    def open(self) -> None:
        """Start all servers."""
        for plan in self._trial.plan.flows:
            server, client = (self._trial.places[c.node] for c in (plan.server, plan.client))
            kind = FLOW_CLASSES[plan.flow.kind]
            self._flows.append(kind(plan, server, client, self._trial.folder))

    def wait_until_ready(self) -> None:
        """Return once all servers listen."""
        for flow in self._flows:
            flow.wait_until_ready()

    def schedule(self, timeline: ActionQueue) -> None:
        """Schedule the start and stop of every flow."""
        for flow in self._flows:
            timeline.at(flow.plan.start_s, functools.partial(self._begin, flow))
            timeline.at(flow.plan.stop_s, functools.partial(self._stop, flow))
        self._timeline = timeline

    def _begin(self, flow: RunningFlow, time_s: float) -> None:
        self._started[flow.plan.flow.name] = time_s
        flow.begin()
        for process in flow.processes:
            self._trial.process_started(*process)

    def _stop(self, flow: RunningFlow, time_s: float) -> None:
        name = flow.plan.flow.name
        if name in self._stopped:
            return
        if flow.plan.flow.command is not None and not flow.ended:
            self._warnings.append(
                f"{name}: its client had not ended by {time_s:g} s, and was ended"
            )
        self._trial.flow_ends(time_s, *(process for process, _, _ in flow.processes))
        if flow.ended and not flow.may_end:
            flow.collect()
            raise TestbedError(f"{name}: iperf3 ended before its time")
        done_ns = flow.done_ns()
        self._stopped[name] = self._timeline.time_s(done_ns) if done_ns else time_s
        flow.stop()

    def collect(self) -> None:
        """Wait for all servers and clients, and check their reports."""
        for flow in self._flows:
            flow.collect()

    def describe(self, record: Record) -> Record:
        """Add the flows, with warnings about programs that had to be ended."""
        return replace(
            record,
            flows=tuple(map(self._flow_record, self._flows)),
            warnings=(*record.warnings, *self._warnings),
        )

    def _flow_record(self, flow: RunningFlow) -> FlowRecord:
        plan = flow.plan
        name = plan.flow.name
        control, options = flow.seen()
        return FlowRecord(
            name=name,
            protocol=plan.flow.protocol,
            src_address=plan.src_address,
            dst_address=plan.dst_address,
            src_ports=plan.src_ports,
            dst_port=plan.dst_port,
            started_s=self._started[name],
            stopped_s=self._stopped[name],
            planned_start_s=plan.start_s,
            planned_stop_s=plan.stop_s,
            control=variant(plan.flow.variant).control if plan.flow.variant else "",
            variant_seen=control,
            options=tuple(sorted(plan.options)),
            options_seen=options,
        )

    def close(self) -> None:
        """Kill all servers and clients."""
        for flow in self._flows:
            flow.kill()

    @property
    def may_end(self) -> bool:
        """True if every flow may finish early: a fixed number of bytes, or a video."""
        return all(flow.may_end for flow in self._flows)

    @property
    def done(self) -> bool:
        """True once all clients have exited."""
        return all(flow.ended for flow in self._flows)

    def finish(self, time_s: float) -> None:
        """Stop all flows now."""
        for flow in self._flows:
            self._stop(flow, time_s)
