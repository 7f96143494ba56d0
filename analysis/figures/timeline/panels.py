"""The panels of a timeline, from the window down to the throughput."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.plotting import style
from analysis.figures.plotting.thinning import seen
from analysis.figures.timeline.timeline_data import Timeline
from analysis.trials.capacity import capacity_of
from analysis.trials.labels import path_rtt_ms
from testbed.store import Trial

DASHES = (0, (4, 2))
MANY = 3000  # dots; beyond, an SVG holds them as pixels
LIMIT_SHOWN = 1.6  # times the highest backlog: a limit further up is only told
FLOOR_SHOWN = 0.7  # of the highest RTT: a path's that is longer is where the axis begins
Words = list[tuple[float, str, str]]  # beside a panel: at which value, what, in which colour


def draw_window(axes: Axes, _trial: Trial, found: Timeline) -> Words:
    """The congestion window and the threshold of slow start."""
    assert found.window is not None
    words = []
    for name, look in (
        ("ssthresh", {"color": style.BLACK, "linewidth": 0.8, "linestyle": DASHES}),
        ("cwnd", {"color": style.BLUE, "linewidth": 1.0}),
    ):
        known = found.window[["time_s", name]]
        _line(axes, known, name, drawstyle="steps-post", **look)
        if len(values := known[name].dropna()):
            words.append((float(values.iloc[-1]), name, str(look["color"])))
    top = found.window["cwnd"].max()
    axes.set_ylim(0, 1.08 * max(top, 1))  # ssthresh may be far above what is ever reached
    axes.set_ylabel("window\n(segments)")
    return words


def draw_rtts(axes: Axes, trial: Trial, found: Timeline) -> Words:
    """Round-trip times per ACK, the kernel's smoothed mean, and the path's without a queue."""
    assert found.rtts is not None
    time_s, value = found.rtts["time_s"].to_numpy(), found.rtts["rtt_ms"].to_numpy()
    axes.plot(
        time_s,
        value,
        ".",
        color="#8C8C8C",
        markersize=1.6,
        markeredgewidth=0,
        rasterized=len(value) > MANY,
        label="RTT of each ACK",
    )
    words = [(float(value[-1]), "each ACK", style.GREY)] if len(value) else []
    if found.window is not None and found.window["srtt_ms"].any():
        positive = found.window[found.window["srtt_ms"] > 0]
        _line(axes, positive, "srtt_ms", color=style.BLUE, linewidth=0.9, drawstyle="steps-post")
        words.append((float(positive["srtt_ms"].iloc[-1]), "srtt", style.BLUE))
    path_ms = path_rtt_ms(trial.scenario)
    if path_ms:
        axes.axhline(path_ms, color=style.BLACK, linewidth=0.7, linestyle=DASHES)
        words.append((path_ms, f"path {path_ms:g}", style.BLACK))
    top = _rtt_top(found, path_ms)
    beyond = value > top
    if beyond.any():
        (marks,) = axes.plot(
            time_s[beyond],
            np.full(beyond.sum(), top),
            "^",
            color=style.GREY,
            markersize=2.4,
            markeredgewidth=0,
            label="beyond",
            clip_on=False,
        )
        marks.set_in_layout(False)
        words.append((top, f"▲ to {value.max():.0f}", style.GREY))
    axes.set_ylim(0 if path_ms < FLOOR_SHOWN * top else 0.9 * path_ms, top)
    axes.set_ylabel("RTT\n(ms)")
    return words


def _rtt_top(found: Timeline, path_ms: float) -> float:
    """What almost all round trips stay below: one that waited for a hole to be filled may
    have taken ten times as long."""
    assert found.rtts is not None
    usual = [path_ms, 1e-3]
    if len(found.rtts):
        usual.append(float(np.percentile(found.rtts["rtt_ms"], 98)))
    if found.window is not None:
        usual.append(float(found.window["srtt_ms"].max()))
    return 1.15 * float(np.nanmax(usual))


def draw_queue(axes: Axes, trial: Trial, found: Timeline) -> Words:
    """The backlog, its limit, and RED's thresholds."""
    assert found.queue is not None
    queue = trial.scenario.topology.bottleneck.queue
    in_packets = _counts_packets(trial, found)
    column, scale = ("packets", 1.0) if in_packets else ("bytes", 1e3)
    backlog = found.queue.assign(backlog=found.queue[column] / scale)
    keep = seen(backlog["time_s"].to_numpy(), backlog["backlog"].to_numpy())
    time_s, value = (backlog[name].to_numpy()[keep] for name in ("time_s", "backlog"))
    axes.fill_between(time_s, value, step="post", color=style.BLUE, alpha=0.25, linewidth=0)
    axes.plot(time_s, value, drawstyle="steps-post", color=style.BLUE, linewidth=0.6, label="queue")
    lines = [
        (queue.options[name] / scale, f"RED {name.removesuffix('_bytes')}")
        for name in ("min_bytes", "max_bytes")
        if name in queue.options and not in_packets
    ]
    limit = _limit(trial, found, in_packets)
    top = max([*value, *(height for height, _ in lines), 1e-9])
    if limit is not None and limit <= LIMIT_SHOWN * top:
        lines.append((limit, f"limit {limit:.4g}"))
        top = max(top, limit)
    words = []
    for height, text in lines:
        axes.axhline(height, color=style.BLACK, linewidth=0.7, linestyle=DASHES)
        words.append((height, text, style.BLACK))
    if limit is not None and limit > top:
        words.append((1.12 * top, f"limit {limit:.4g} ↑", style.GREY))
    axes.set_ylim(0, 1.12 * top)
    axes.set_ylabel("queue\n(packets)" if in_packets else "queue\n(kB)")
    return words


def _counts_packets(trial: Trial, found: Timeline) -> bool:
    if found.queue_record is not None:
        return found.queue_record.unit == "packets"
    return trial.scenario.topology.bottleneck.queue.limit_packets is not None


def _limit(trial: Trial, found: Timeline, in_packets: bool) -> float | None:
    """The queue's limit, in packets or kB."""
    if found.queue_record is not None:
        return found.queue_record.limit / (1 if in_packets else 1e3)
    queue = trial.scenario.topology.bottleneck.queue
    if in_packets:
        return queue.limit_packets
    return queue.limit_bytes / 1e3 if queue.limit_bytes is not None else None


def draw_throughput(axes: Axes, trial: Trial, found: Timeline) -> Words:
    """The throughput, and the link's capacity."""
    assert found.throughput is not None
    edges = found.throughput.time_s - found.step_s / 2
    axes.plot(
        np.append(edges, edges[-1:] + found.step_s),
        np.append(found.throughput.value, found.throughput.value[-1:]),
        drawstyle="steps-post",
        color=style.BLUE,
        linewidth=1.0,
        label="throughput",
    )
    top, words = _draw_capacity(axes, trial, found)
    axes.set_ylim(0, 1.15 * max([top, *found.throughput.value]))
    axes.set_ylabel("throughput\n(Mbit/s)")
    axes.annotate(
        f"means of {found.step_s:g} s",
        (1, 0),
        xycoords="axes fraction",
        xytext=(4, 2),
        textcoords="offset points",
        fontsize=5.5,
        color=style.GREY,
    ).set_in_layout(False)
    return words


def _draw_capacity(axes: Axes, trial: Trial, found: Timeline) -> tuple[float, Words]:
    """The link's rate as a line, or what it could carry meanwhile as an area; and its highest."""
    record = found.queue_record
    capacity = None if record is None else capacity_of(trial, record)
    if capacity is None or not capacity.changes:
        rate = trial.scenario.topology.bottleneck.rate_mbit
        axes.axhline(rate, color=style.BLACK, linewidth=0.7, linestyle=DASHES, zorder=1.5)
        return rate, [(rate, f"link {rate:g}", style.BLACK)]
    span = found.span
    times, value = capacity.steps(max(0.0, span.start_s), span.stop_s, found.step_s)
    axes.fill_between(
        times, value, step="post", color=style.GREY, alpha=0.25, linewidth=0, label="link"
    )
    return float(value.max()), [(float(value[-1]), "link", style.GREY)]


def _line(axes: Axes, rows: pd.DataFrame, name: str, **look: Any) -> None:
    """A curve of samples, thinned to what can be seen."""
    time_s, value = rows["time_s"].to_numpy(), rows[name].to_numpy(dtype=np.float64)
    keep = seen(time_s, value)
    axes.plot(time_s[keep], value[keep], label=name, **look)
