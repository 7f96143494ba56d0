"""The words around a flow's figures: what ran, what came of it, and how far to trust it."""

from __future__ import annotations

import textwrap

import numpy as np

from analysis.figures.timeline.timeline_data import Timeline, flow_bottleneck
from analysis.figures.timeline.timeline_events import RESENT, Kind
from analysis.results.reduction import verdict_of
from analysis.trials.labels import BETWEEN, in_lines, path_rtt_ms, rate_label, setting_label
from analysis.trials.series import Floats
from analysis.verdict.checks import Grade
from testbed.errors import number_of
from testbed.scenario.network import PLAIN_QUEUE, Queue
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord

SETTING_LETTERS = 165  # of a footer's line
DOUBT_LETTERS = 120  # of the line about the verdict


def title(trial: Trial, flow: FlowRecord) -> str:
    """Write the trial's setting: variant, queue, rate, round-trip time, seed."""
    scenario = trial.scenario
    link, bottleneck = flow_bottleneck(trial, flow)
    queue = bottleneck.queue or PLAIN_QUEUE
    queue_text = queue.discipline + (" with ECN" if queue.ecn else "")
    variant = scenario.flow(flow.name).variant or flow.variant_seen
    sender = f"{variant} (flow {flow.name})" if variant else f"flow {flow.name}"
    parts = (
        f"{sender} through {queue_text}{_limit(queue)}",
        rate_label(link),
        f"path RTT {path_rtt_ms(scenario, flow.name):g} ms",
        f"seed {scenario.seed}",
    )
    return BETWEEN.join(parts)


def _limit(queue: Queue) -> str:
    if queue.limit_bytes is not None:
        return f" of {queue.limit_bytes / 1e3:.4g} kB"
    if queue.limit_packets is not None:
        return f" of {queue.limit_packets} packets"
    return f" of {queue.limit_bdp:g} BDP"


def outcome(history: Timeline) -> str:
    """Write what came of the flow, in the figure's own numbers."""
    parts = []
    if history.throughput is not None and len(rates := _known(history.throughput.value)):
        parts.append(f"{np.mean(rates):.3g} Mbit/s")
    if history.rtts is not None and len(history.rtts):
        low, median, high = np.percentile(history.rtts["rtt_ms"], [0, 50, 95])
        parts.append(f"RTT {low:.3g} ms at least, median {median:.3g}, 95th percentile {high:.3g}")
    events = {kind: len(history.events[kind]) for kind in history.events}
    for kind, verb in ((Kind.DROP, "dropped"), (Kind.MARK, "marked")):
        if events.get(kind):
            parts.append(f"{events[kind]} {verb}")
    if events.get(Kind.TIMEOUT):
        parts.append(counted(events[Kind.TIMEOUT], Kind.TIMEOUT))
    again = sum(events.get(kind, 0) for kind in RESENT)
    if again:
        parts.append(f"{again} sent again")
    start_s = round(history.span.start_s, 6)  # clocks differ in the last digits
    between = f"{start_s:.4g} s to {history.span.stop_s:.4g} s: "
    return between + (", ".join(parts) or "nothing arrived")


def _known(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def footer(trial: Trial, flow: FlowRecord, history: Timeline) -> str:
    """Write the footer: setting, engine, and what may be missing between samples."""
    interval = trial.scenario.sample_interval_ms
    sampled = f"sampled every {interval:g} ms: what is shorter may be missed"
    if history.traced:
        kept = "Window, srtt and state are every change that the kernel traced"
        return f"{foot(trial, flow)}\n{kept}; the queue is {sampled}."
    return f"{foot(trial, flow)}\nWindow, srtt, state, timeouts and queue are {sampled}."


def foot(trial: Trial, flow: FlowRecord) -> str:
    """Wrap the trial's setting to the width of the figure."""
    link, bottleneck = flow_bottleneck(trial, flow)
    setting = setting_label(trial, link, bottleneck.queue or PLAIN_QUEUE, flow.name)
    return in_lines(setting.split(BETWEEN), SETTING_LETTERS)


def trust_note(trial: Trial) -> str:
    """Write the verdict on a trial that is not valid, and the reason."""
    verdict = verdict_of(trial)
    if verdict is None or verdict.verdict is Grade.VALID:
        return ""
    return textwrap.shorten(f"{verdict.verdict}: {verdict.why}", DOUBT_LETTERS, placeholder=" …")


def counted(number: int, what: str) -> str:
    """`1 segment`, `2 segments`; what is no noun stays as it is."""
    return f"{number} {what}" if what == Kind.OUT_OF_ORDER else number_of(number, what)


def stem(flow: FlowRecord, start_s: float | None, stop_s: float | None) -> str:
    """Return the stem of the files' names: the flow, and the span if one was given."""
    if start_s is None and stop_s is None:
        return flow.name
    ends = (
        "start" if start_s is None else f"{start_s:g}s",
        "end" if stop_s is None else f"{stop_s:g}s",
    )
    return "-".join((flow.name, *ends))
