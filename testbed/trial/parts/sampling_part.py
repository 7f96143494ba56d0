"""The trial's sampling: which sockets and queues, how often, and what the sockets negotiated."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from testbed.plan.flows import ANY_PORT
from testbed.store import Record
from testbed.trial.parts.part import Part, RunningTrial
from testbed.trial.parts.sampling.queue_probe import QueueProbe
from testbed.trial.parts.sampling.sampler import Sampler, options, variants
from testbed.trial.parts.sampling.socket_probe import SocketId, SocketProbe
from testbed.trial.parts.scheduler import Timeline


class Sampling(Part):
    """Samples of the senders' sockets, and of the queues that flows cross."""

    _sampler: Sampler
    _timeline: Timeline

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._opened = contextlib.ExitStack()

    def wait_until_ready(self) -> None:
        """Open the probes and rehearse, before the kernel's random generator is rekeyed."""
        self._sampler = Sampler(self._socket_probes(), self._queue_probes())
        self._opened.callback(self._sampler.close)
        self._sampler.rehearse()

    def _socket_probes(self) -> list[SocketProbe]:
        return [
            SocketProbe(
                each.flow.name,
                self._trial.places[each.flow.src].pid,
                SocketId(each.src_address, port, each.dst_address, each.dst_port),
            )
            for each in self._trial.plan.flows
            if each.flow.protocol == "tcp" and each.dst_port != ANY_PORT
            for port in each.src_ports
        ]

    def _queue_probes(self) -> list[QueueProbe]:
        return [
            QueueProbe(
                queue.node,
                queue.interface,
                queue.shaper.queue.discipline,
                self._trial.places[queue.node].pid,
            )
            for queue in self._trial.plan.queues
            if queue.sampled
        ]

    def schedule(self, timeline: Timeline) -> None:
        """Sample at every interval."""
        if interval_ms := self._trial.scenario.sample_interval_ms:
            end_s = self._trial.plan.end_s
            timeline.every(interval_ms / 1e3, end_s, self._sampler.sample, self._sample_at)
        self._timeline = timeline

    def _sample_at(self, due_ns: Sequence[int]) -> int:
        return self._sampler.sample_at(due_ns, self._timeline.of_wall_clock_s)

    def schedule_end(self, timeline: Timeline, end_s: float) -> None:
        """Sample once more when the queues are empty."""
        timeline.at(end_s, self._sampler.sample)

    def flow_ends(self, time_s: float, *_processes: str) -> None:
        """Sample a flow's last state, even in trials without an interval."""
        self._sampler.sample(time_s)

    def write(self, folder: Path) -> None:
        """Write sockets.csv and queues.csv."""
        self._sampler.write(folder)
        self._trial.cookies.update(each.cookie for each in self._sampler.seen() if each.cookie)

    def describe(self, record: Record) -> Record:
        """Add each flow's congestion control and negotiated options, as seen on its sockets."""
        sockets = self._sampler.seen()
        ran, agreed = variants(sockets), options(sockets)
        return replace(
            record,
            flows=tuple(
                replace(
                    flow,
                    variant_seen=ran.get(flow.name, flow.variant_seen),
                    options_seen=tuple(sorted(agreed.get(flow.name, flow.options_seen))),
                )
                for flow in record.flows
            ),
        )

    def close(self) -> None:
        """Close the probes."""
        self._opened.close()
