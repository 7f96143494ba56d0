"""The metrics of links: a row for each observed direction, where a trial has several."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from analysis.captures.flow_tables import Metric
from analysis.captures.tcp import CE
from analysis.metrics.metric import low_mean_high
from analysis.trials.capacity import capacity_of, own_sending_ns
from analysis.trials.packets import NAN, Interval, TrialPackets, capture_files, epoch_ns
from analysis.trials.queue_transit import FlowAtQueue, flows_at_queue, queue_transit
from analysis.trials.samples import Samples
from testbed.store.reading import Trial
from testbed.store.records import QueueRecord

LINK_COLUMNS = (
    Metric("link", "", "the nodes on both sides, in the direction of the packets"),
    Metric("rate_mbit", "Mbit/s", "what the link was shaped to"),
    Metric(
        "flows",
        "",
        "the number of flows whose data, not their acknowledgements, left the queue",
        count=True,
    ),
    Metric(
        "throughput_mbps",
        "Mbit/s",
        "of all frames that left the queue, from the start of the first flow that crosses it to "
        "the stop of the last",
    ),
    Metric("utilisation", "", "the throughput as a share of what the link could carry meanwhile"),
    Metric(
        "queue_mean_ms",
        "ms",
        "mean time of the packets in the queue, less that for which the link sends each, over the "
        "whole capture",
    ),
    Metric("queue_p95_ms", "ms", "95th percentile of these times"),
    Metric("entered_packets", "packets", "packets that arrived at the queue", count=True),
    Metric(
        "dropped_packets",
        "packets",
        "packets that arrived and did not leave; where not all arrivals were captured, what the "
        "queue counted",
        count=True,
    ),
    Metric("marked_packets", "packets", "packets that carried CE first behind it", count=True),
)


def has_several(trial: Trial) -> bool:
    """Whether more than one queue was observed: of one, the flows' rows say it."""
    return len(_observed(trial)) > 1


def _observed(trial: Trial) -> list[QueueRecord]:
    captured = capture_files(trial)
    return [each for each in trial.record.queues if each.sampled and each.interface in captured]


def link_table(trial: Trial, packets: TrialPackets | None) -> pd.DataFrame:
    """Return a row for each observed queue; none where there are no packets, or only one queue."""
    rows = (
        [_row(trial, packets, queue) for queue in _observed(trial)]
        if packets and has_several(trial)
        else []
    )
    return pd.DataFrame(rows, columns=[column.name for column in LINK_COLUMNS])


def _row(trial: Trial, packets: TrialPackets, queue: QueueRecord) -> dict[str, object]:
    every = list(flows_at_queue(trial, packets, queue))
    transit = queue_transit(every)
    data = [each for each in every if each.is_data]
    shown = _interval(trial, data)
    inside = (transit.left_ns >= shown.start_ns) & (transit.left_ns <= shown.stop_ns)
    rate = shown.rate_mbps(float(transit.length[inside].sum()))
    known = transit.complete
    waited = queue_transit(each for each in every if each.entered is not None)
    all_taken_ns = own_sending_ns(trial, queue, transit.left_ns, transit.length)
    taken_ns = all_taken_ns[np.searchsorted(transit.left_ns, waited.left_ns)]
    waits_ns = waited.left_ns - taken_ns - waited.arrived_ns
    _, mean, high = low_mean_high(waits_ns[~waited.is_guess] / 1e6)
    end = Samples(trial).queue_end(queue.interface)
    counted = NAN if end is None else int(end["drops"])
    return {
        "link": link_name(trial, queue),
        "rate_mbit": queue.rate_mbit,
        "flows": len(data),
        "throughput_mbps": rate,
        "utilisation": rate / _capacity_mbit(trial, queue, shown),
        "queue_mean_ms": mean,
        "queue_p95_ms": high,
        "entered_packets": transit.entered if known else NAN,
        "dropped_packets": len(transit.lost_ns) if known else counted,
        "marked_packets": sum(map(_marked, every)),
    }


def _capacity_mbit(trial: Trial, queue: QueueRecord, shown: Interval) -> float:
    zero = epoch_ns(trial)
    between = ((each - zero) / 1e9 for each in (shown.start_ns, shown.stop_ns))
    return capacity_of(trial, queue).mean_mbit(*between)


def _interval(trial: Trial, data: Iterable[FlowAtQueue]) -> Interval:
    """Return the time from the first start to the last stop of the flows that cross the queue."""
    zero = epoch_ns(trial)
    flows = [each.flow for each in data] or list(trial.record.flows)
    start_s = max(trial.scenario.measure_from_s, min(flow.started_s for flow in flows))
    stop_s = max(flow.stopped_s for flow in flows)
    return Interval(zero + round(start_s * 1e9), zero + round(stop_s * 1e9))


def _marked(at_queue: FlowAtQueue) -> int:
    before = 0 if at_queue.entered is None else int((at_queue.entered["ecn"] == CE).sum())
    return int((at_queue.left["ecn"] == CE).sum()) - before


def link_name(trial: Trial, queue: QueueRecord) -> str:
    """`router1 → router2`."""
    graph = trial.scenario.network
    for (index, end), number in graph.interface_numbers.items():
        ends = graph.links[index].ends
        if f"{ends[end]}-eth{number}" == queue.interface:
            return f"{queue.node} → {ends[1 - end]}"
    return queue.interface
