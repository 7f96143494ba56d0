"""The table of check functions, in the order in which verdict.json lists their results.

An optional feature (radio, losses, workloads, video) brings its checks in a file of its own, and
adds a line here. Each yields nothing if the scenario does not use the feature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from analysis.trials.queue_transit import Passage
from analysis.verdict import (
    changing_links,
    configuration,
    iperf3,
    kernel_tcp,
    links,
    queues,
    recording,
    traffic,
    transfer_checks,
)
from analysis.verdict.checks import Check
from analysis.verdict.evidence import Evidence
from testbed.store import QueueRecord

# Checks of each queue of a bottleneck that packets cross.
QUEUE_CHECKS: tuple[Callable[[Evidence, QueueRecord, Passage], Iterator[Check]], ...] = (
    queues.shaping,
    changing_links.followed,
    changing_links.down,
    queues.buffer,
    queues.conservation,
    queues.marks,
)


def observed_queues(evidence: Evidence) -> Iterator[Check]:
    """The checks of every bottleneck queue."""
    for queue in evidence.bottlenecks:
        found = evidence.passages[queue.interface]
        if len(found.left_ns):
            for check in QUEUE_CHECKS:
                yield from check(evidence, queue, found)


CHECKS: tuple[Callable[[Evidence], Iterator[Check]], ...] = (
    recording.captures,
    configuration.kernel,
    configuration.sockets,
    configuration.settings,
    configuration.offloads,
    recording.machine,
    recording.times,
    recording.sampling,
    changing_links.changes,
    links.idle,
    links.radio,
    links.loss,
    links.overtaking,
    links.losses_by_chance,
    observed_queues,
    queues.senders,
    kernel_tcp.sockets,
    kernel_tcp.hosts,
    kernel_tcp.receivers,
    iperf3.tcp,
    iperf3.udp,
    queues.marks_received,
    traffic.videos,
    transfer_checks.transfers,
    traffic.programs,
    traffic.pauses,
)
