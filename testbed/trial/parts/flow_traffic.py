"""The flows: a server and a client each, started and stopped according to the plan."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from testbed.errors import TestbedError
from testbed.runner.programme import Answers
from testbed.scenario.model import FlowKind
from testbed.scenario.variants import variant
from testbed.store.names import FLOWS_FOLDER
from testbed.store.records import FlowRecord, Record
from testbed.traffic.call.call_flow import CallFlow
from testbed.traffic.command_flow import CommandFlow
from testbed.traffic.flow_programs import FlowPrograms
from testbed.traffic.iperf3.iperf3_flow import Iperf3Flow
from testbed.traffic.video.video_flow import VideoFlow
from testbed.traffic.workload.workload_flow import WorkloadFlow
from testbed.trial.parts.part import Part, PlannedTrial, TrialTimeline

FLOW_CLASSES: Mapping[FlowKind, type[FlowPrograms]] = {
    FlowKind.TCP: Iperf3Flow,
    FlowKind.CBR: Iperf3Flow,
    FlowKind.VIDEO: VideoFlow,
    FlowKind.WORKLOAD: WorkloadFlow,
    FlowKind.COMMAND: CommandFlow,
    FlowKind.CALL: CallFlow,
}


class FlowTraffic(Part):
    """The flows of a trial, of every kind."""

    def __init__(self, trial: PlannedTrial) -> None:
        super().__init__(trial)
        (trial.folder / FLOWS_FOLDER).mkdir(exist_ok=True)
        self._flows = [
            FLOW_CLASSES[plan.flow.kind](
                plan, trial.programme, trial.folder, virtual_time=trial.virtual_time
            )
            for plan in trial.plan.flows
        ]
        self._started: dict[str, int] = {}  # flow → the instruction that says when
        self._stopped: dict[str, int] = {}
        self._all_ended = -1  # the one that says when a trial ended early

    def open(self) -> None:
        """Start all servers."""
        for flow in self._flows:
            flow.open()

    def wait_until_ready(self) -> None:
        """Wait until all servers listen."""
        for flow in self._flows:
            flow.wait_until_ready()

    def schedule(self, timeline: TrialTimeline) -> None:
        """Schedule the start and stop of every flow."""
        for flow in self._flows:
            timeline.at(flow.plan.start_s, functools.partial(self._begin, flow))
            timeline.at(flow.plan.stop_s, functools.partial(self._stop, flow))

    def _begin(self, flow: FlowPrograms, at: int) -> None:
        self._started[flow.plan.flow.name] = at
        flow.begin()
        for process in flow.processes:
            self._trial.process_started(*process)

    def _stop(self, flow: FlowPrograms, at: int) -> None:
        self._stopped[flow.plan.flow.name] = at
        self._trial.flow_ends(*(program for _, _, program in flow.processes))
        flow.stop()

    def schedule_end(self, timeline: TrialTimeline, end_s: float) -> None:
        """Sample the flows once more where all of them have ended early."""
        timeline.at(max(flow.plan.stop_s for flow in self._flows), self._end_early)

    def _end_early(self, at: int) -> None:
        self._all_ended = at
        self._trial.flow_ends()

    def collect(self) -> None:
        """Wait for all servers and clients."""
        for flow in self._flows:
            flow.collect()

    @property
    def ends_with(self) -> tuple[str, ...]:
        """The clients, if every flow may finish early: a fixed number of bytes, or a video."""
        early = all(flow.may_end for flow in self._flows)
        return tuple(flow.client for flow in self._flows) if early else ()

    def check(self, answers: Answers) -> None:
        """Check the reports of all flows."""
        for flow in self._flows:
            flow.check(answers)
            stopped_s = answers.time_s(self._stopped[flow.plan.flow.name])
            ended = flow.ended_before(answers)
            if ended and stopped_s is not None and not flow.may_end:
                raise TestbedError(f"{flow.plan.flow.name}: {flow.program} ended before its time")

    def write(self, folder: Path, answers: Answers) -> None:
        """Write what the flows' programs have left."""
        for flow in self._flows:
            flow.write(answers)

    def describe(self, record: Record, answers: Answers) -> Record:
        """Add the flows, with warnings about programs that had to be ended."""
        return replace(
            record,
            flows=tuple(self._flow_record(flow, answers) for flow in self._flows),
            warnings=(*record.warnings, *self._warnings(answers)),
        )

    def _warnings(self, answers: Answers) -> list[str]:
        return [
            f"{flow.plan.flow.name}: its client had not ended by "
            f"{self._time_s(answers, flow):g} s, and was ended"
            for flow in self._flows
            if (programs := flow.plan.flow.command) is not None
            and not programs.stack  # whose sender sends until it is ended
            and not flow.ended_before(answers)
        ]

    def _time_s(self, answers: Answers, flow: FlowPrograms) -> float:
        """Return when a flow was stopped, or when all had ended early."""
        numbers = (self._stopped[flow.plan.flow.name], self._all_ended)
        times = (answers.time_s(number) for number in numbers)
        return next((time_s for time_s in times if time_s is not None), flow.plan.stop_s)

    def _flow_record(self, flow: FlowPrograms, answers: Answers) -> FlowRecord:
        plan = flow.plan
        name = plan.flow.name
        control, options = flow.seen()
        started_s = answers.time_s(self._started[name])
        done_s = flow.done_s(answers)
        assert started_s is not None
        return FlowRecord(
            name=name,
            protocol=plan.flow.protocol,
            src_address=plan.src_address,
            dst_address=plan.dst_address,
            src_ports=plan.src_ports,
            dst_port=plan.dst_port,
            started_s=started_s,
            stopped_s=self._time_s(answers, flow) if done_s is None else done_s,
            planned_start_s=plan.start_s,
            planned_stop_s=plan.stop_s,
            control=variant(plan.flow.variant).control if plan.flow.variant else "",
            variant_seen=control,
            options=tuple(sorted(plan.options)),
            options_seen=options,
        )

    def clean_up(self, folder: Path) -> None:
        """Remove what only the flows' programs needed."""
        for flow in self._flows:
            flow.clean_up()
