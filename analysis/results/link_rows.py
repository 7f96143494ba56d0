"""One row per observed direction of a link, where a trial has several: how full, how long the
queue, what it dropped and marked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from analysis.captures.tcp import CE
from analysis.metrics.axes import write_axes
from analysis.metrics.metric import Metric
from analysis.trials.capacity import capacity_of
from analysis.trials.kept_table import kept_or_computed
from analysis.trials.measures import NAN, Interval, low_mean_high
from analysis.trials.packets import TrialPackets, epoch_ns
from analysis.trials.passage import Crossing, crossings, passage
from analysis.trials.placement import capture_files
from analysis.trials.samples import Samples
from analysis.verdict import verdict as fidelity
from testbed.machine.atomic import replace
from testbed.scenario.builders import graph_of, interface_numbers
from testbed.store import LINKS_CSV, LINKS_FILE, QueueRecord, Status, Trial

REVISION = "1"  # raise it when a change here gives other numbers

COLUMNS = (
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
    Metric("queue_mean_ms", "ms", "mean time of the packets in the queue, over the whole capture"),
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


def cached_links(trial: Trial, packets: TrialPackets | None = None) -> pd.DataFrame:
    """A row for each of the trial's observed queues."""
    path = trial.path / LINKS_FILE
    return kept_or_computed(path, REVISION, lambda: _compute(trial, packets or TrialPackets(trial)))


def _compute(trial: Trial, packets: TrialPackets) -> pd.DataFrame:
    rows = [_row(trial, packets, queue) for queue in _observed(trial)]
    return pd.DataFrame(rows, columns=[column.name for column in COLUMNS])


def _row(trial: Trial, packets: TrialPackets, queue: QueueRecord) -> dict[str, object]:
    every = list(crossings(trial, packets, queue))
    found = passage(every)
    data = [each for each in every if each.is_data]
    shown = _interval(trial, data)
    inside = (found.left_ns >= shown.start_ns) & (found.left_ns <= shown.stop_ns)
    rate = shown.rate_mbps(float(found.length[inside].sum()))
    known = found.complete
    waited = passage(each for each in every if each.entered is not None)
    _, mean, high = low_mean_high((waited.left_ns - waited.arrived_ns) / 1e6)
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
        "entered_packets": found.entered if known else NAN,
        "dropped_packets": len(found.lost_ns) if known else counted,
        "marked_packets": sum(map(_marked, every)),
    }


def _capacity_mbit(trial: Trial, queue: QueueRecord, shown: Interval) -> float:
    zero = epoch_ns(trial)
    between = ((each - zero) / 1e9 for each in (shown.start_ns, shown.stop_ns))
    return capacity_of(trial, queue).mean_mbit(*between)


def _interval(trial: Trial, data: Iterable[Crossing]) -> Interval:
    """From the first start to the last stop of the flows that cross the queue."""
    zero = epoch_ns(trial)
    flows = [each.flow for each in data] or list(trial.record.flows)
    start_s = max(trial.scenario.measure_from_s, min(flow.started_s for flow in flows))
    stop_s = max(flow.stopped_s for flow in flows)
    return Interval(zero + round(start_s * 1e9), zero + round(stop_s * 1e9))


def _marked(crossing: Crossing) -> int:
    before = 0 if crossing.entered is None else int((crossing.entered["ecn"] == CE).sum())
    return int((crossing.left["ecn"] == CE).sum()) - before


def link_name(trial: Trial, queue: QueueRecord) -> str:
    """`router1 → router2`."""
    graph = graph_of(trial.scenario.topology)
    for (index, end), number in interface_numbers(graph).items():
        ends = graph.links[index].ends
        if f"{ends[end]}-eth{number}" == queue.interface:
            return f"{queue.node} → {ends[1 - end]}"
    return queue.interface


def write_links(run: Path, trials: Iterable[Trial]) -> pd.DataFrame:
    """The rows of all trials with several observed queues, kept with their run as a table."""
    parts = [_of_trial(trial) for trial in trials if trial.record.status is Status.OK]
    found = [part for part in parts if part is not None]
    if not found:
        return pd.DataFrame()
    frame = pd.concat(found, ignore_index=True)
    replace(run / LINKS_CSV, lambda path: frame.to_csv(path, index=False, float_format="%.9g"))
    return frame


def _of_trial(trial: Trial) -> pd.DataFrame | None:
    if not has_several(trial):
        return None
    scenario, verdict = trial.scenario, fidelity.cached_verdict(trial, TrialPackets(trial))
    keys: dict[str, str | int] = {
        "trial": trial.path.name,
        "verdict": str(verdict.verdict) if verdict else "",
        "label": scenario.label,
        "axes": write_axes(scenario.axes),
        "seed": scenario.seed,
    }
    frame = cached_links(trial)
    for place, (name, value) in enumerate(keys.items()):
        frame.insert(place, name, value)
    return frame
