"""A trial as the checks see it: its record, packets, samples and reports, each read once."""

from __future__ import annotations

import math
from functools import cached_property

from analysis.trials.injected import InjectedLosses
from analysis.trials.packets import TrialPackets, captured_queues, epoch_ns
from analysis.trials.queue_transit import QueueTransit, flows_at_queue, queue_transit
from analysis.trials.samples import Disciplines, Samples
from testbed.scenario.model import Scenario
from testbed.scenario.realism import with_realism
from testbed.scenario.variations import drawn
from testbed.store.names import RETIRE_S, TAIL_S
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, QueueRecord


class Evidence:
    """A trial that ran, in virtual time or not."""

    def __init__(
        self, trial: Trial, packets: TrialPackets, samples: Samples, virtual_time: bool
    ) -> None:
        self.trial = trial
        self.packets = packets
        self.samples = samples
        self.virtual_time = virtual_time
        self.flows: tuple[FlowRecord, ...] = trial.record.flows
        self.tcp = tuple(flow for flow in self.flows if flow.protocol == "tcp")
        self.bottlenecks: tuple[QueueRecord, ...] = captured_queues(trial)

    @cached_property
    def scenario(self) -> Scenario:
        """The trial's scenario with what its seed draws, and what realism adds."""
        return drawn(with_realism(self.trial.scenario))

    @cached_property
    def disciplines(self) -> Disciplines:
        """The final statistics of the queue disciplines."""
        return Disciplines(self.trial)

    @cached_property
    def injected(self) -> InjectedLosses:
        """The losses asked for."""
        return InjectedLosses(self.trial)

    @cached_property
    def sure_ns(self) -> float:
        """Until when every capture has every packet.

        A sender that gives up late may retransmit long after its flow. By then the captures end,
        one after the other, and tcpdump is handed packets up to a second late. Samples are taken
        to the end, which is later where queues are long.
        """
        stopped_s = max((flow.stopped_s for flow in self.flows), default=0.0)
        end_s = max(self.samples.last_s(), stopped_s + TAIL_S)
        return epoch_ns(self.trial) + 1e9 * (end_s - RETIRE_S)

    @cached_property
    def judged_ns(self) -> int:
        """Until when a queue is judged by each packet's passage: the last flow's stop."""
        stopped_s = max((flow.stopped_s for flow in self.flows), default=0.0)
        return epoch_ns(self.trial) + round(stopped_s * 1e9)

    @cached_property
    def counted_ns(self) -> float:
        """Until when a packet that entered a queue and never left it counts as lost.

        In virtual time that is the end: all captures end at the instant of the last sample, and a
        queue may drop until then. Those that it holds at the end are among them. In real time it
        is `sure_ns`.
        """
        return math.inf if self.virtual_time else self.sure_ns

    @cached_property
    def transits(self) -> dict[str, QueueTransit]:
        """The packets of each bottleneck queue, by its interface."""
        return {
            queue.interface: queue_transit(
                flows_at_queue(self.trial, self.packets, queue), self.counted_ns
            )
            for queue in self.bottlenecks
        }
