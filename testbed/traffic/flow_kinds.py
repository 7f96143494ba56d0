"""The kinds of flows, and the class that runs each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from testbed.machine.process import Place
from testbed.plan.flows import FlowPlan
from testbed.scenario.model import FlowKind
from testbed.traffic.iperf3 import Iperf3
from testbed.traffic.video.flow import VideoFlow


class RunningFlow(Protocol):
    """The two programs of a flow; the server starts when the object is made."""

    plan: FlowPlan

    def wait_until_ready(self) -> None:
        """Return once the flow can begin."""

    def begin(self) -> None:
        """Send the first packet now."""

    @property
    def processes(self) -> Iterable[tuple[str, str, int]]:
        """The processes that run or ran: name, node, process id."""

    @property
    def may_end(self) -> bool:
        """Whether the flow may be over before its planned end."""

    @property
    def ended(self) -> bool:
        """Whether the client has ended."""

    def done_ns(self) -> int | None:
        """When the flow was done, by the monotonic clock; None if it ends when it is stopped."""

    def stop(self) -> None:
        """End the flow, if it has not ended."""

    def collect(self) -> None:
        """Wait for both programs and check what they report."""

    def kill(self) -> None:
        """End both programs at once."""


# the plan, the places of the server and of the client, the trial's folder
FLOW_KINDS: Mapping[FlowKind, Callable[[FlowPlan, Place, Place, Path], RunningFlow]] = {
    FlowKind.TCP: Iperf3,
    FlowKind.CBR: Iperf3,
    FlowKind.VIDEO: VideoFlow,
}
