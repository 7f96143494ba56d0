"""The kinds of flows, and the class that runs each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from testbed.machine.process import Place
from testbed.plan.flows import FlowPlan
from testbed.scenario.model import FlowKind
from testbed.traffic.iperf3 import Iperf3
from testbed.traffic.program.command_flow import CommandFlow
from testbed.traffic.video.flow import VideoFlow
from testbed.traffic.workload.workload_flow import WorkloadFlow


class RunningFlow(Protocol):
    """The two programs of a flow; the server starts when the object is made."""

    plan: FlowPlan

    def wait_until_ready(self) -> None:
        """Return once the flow can begin."""

    def begin(self) -> None:
        """Send the first packet now."""

    @property
    def processes(self) -> Iterable[tuple[str, str, int]]:
        """All processes of the flow, running or ended, as (name, node, process id)."""

    @property
    def may_end(self) -> bool:
        """True if the flow may finish before its planned end."""

    @property
    def ended(self) -> bool:
        """True once the client has exited."""

    def done_ns(self) -> int | None:
        """Completion time on the monotonic clock; None for a flow that runs until stopped."""

    def stop(self) -> None:
        """Stop the flow if it is still running."""

    def collect(self) -> None:
        """Wait for both programs and check their reports."""

    def seen(self) -> tuple[str, tuple[str, ...]]:
        """The congestion control and the TCP options that its programs saw, if they look; who
        samples the sockets knows them too."""

    def kill(self) -> None:
        """End both programs at once."""


# arguments: the plan, the server's and the client's place, the trial's folder
FLOW_KINDS: Mapping[FlowKind, Callable[[FlowPlan, Place, Place, Path], RunningFlow]] = {
    FlowKind.TCP: Iperf3,
    FlowKind.CBR: Iperf3,
    FlowKind.VIDEO: VideoFlow,
    FlowKind.WORKLOAD: WorkloadFlow,
    FlowKind.COMMAND: CommandFlow,
}
