"""The page on which a trial's packets move: what its script draws, packed, and the page itself."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.figures.timeline.timeline_data import socket_samples
from analysis.report import network_drawing, page
from analysis.report.page_plot import script_json
from analysis.results.page_series import packed
from analysis.trials.packets import capture_files, capture_ns
from analysis.trials.samples import Samples
from analysis.watch.excerpt import Watched
from analysis.watch.journeys import UNSEEN, FlowPath, Integers, Journeys
from analysis.watch.reasons import SocketHistory, changes, reasons
from testbed.machine.atomic import replace
from testbed.machine.safe_files import make_folder
from testbed.scenario.network import PLAIN_QUEUE, Direction, Queue
from testbed.scenario.queues import DISCIPLINES
from testbed.store.names import WATCH_PAGE
from testbed.store.reading import Trial
from testbed.store.records import QueueRecord

MAX_WATCHED_SAMPLES = 60_000  # of all flows together
MAX_SENTENCES = 20_000
# of a sample, beside its time and the congestion state
SAMPLED = ("cwnd", "ssthresh", "srtt_ms", "rto_ms", "min_rtt_ms", "unacked", "lost", "backoff")
SAMPLED_UNIT = 1e-3
AS_THEY_ARE = (
    "path",
    "connection",
    "payload",
    "flags",
    "marks",
    "duplicate_ack_number",
    "ce",
    "fate",
)
BY_PATH, BY_CONNECTION = ("frame",), ("window", "seq", "ack")  # differences from the one before
THRESHOLDS = {  # options of queue disciplines that are places in a queue
    "min_bytes": "RED's min",
    "max_bytes": "RED's max",
    "target_ms": "target",
    "ce_threshold_ms": "CE threshold",
}


def write_watch_page(watched: Watched, out: Path, command: str) -> Path:
    """Write the page as one file; `command` is what makes it."""
    trial = watched.trial
    drawing = network_drawing.drawing([trial.scenario]) if trial else ""
    data, columns = page_data(watched)
    text = page.fill(
        WATCH_PAGE,  # the template has that name, too
        ("watch.js",),
        watched=watched,
        command=command,
        network=drawing,
        data=_deflated(script_json(data).encode()),
        columns=_deflated(columns),
    )
    make_folder(out.parent)
    replace(out, lambda path: path.write_text(text, encoding="utf-8"))
    return out


def write_both(pages: Sequence[tuple[str, Path]], change: str, instant_s: float, out: Path) -> Path:
    """Write a page that holds two others, with their names, which then have one clock."""
    fragment = f"#t={instant_s:.9f}"
    placed = [(name, os.path.relpath(path, out.parent) + fragment) for name, path in pages]
    text = page.fill(
        "watch_both.html",
        ("watch_both.js",),
        "frame-src 'self' file:",
        pages=placed,
        change=change,
    )
    replace(out, lambda path: path.write_text(text, encoding="utf-8"))
    return out


def _deflated(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode()


def page_data(watched: Watched) -> tuple[dict[str, Any], bytes]:
    """Return what the script is given: a document, and the packets' columns as bytes."""
    journeys, trial = watched.journeys, watched.trial
    kernel = _kernel_states(trial) if trial else {}
    flows = list(dict.fromkeys(path.flow for path in journeys.paths))
    counts = np.bincount(journeys.columns["path"], minlength=len(journeys.paths))
    of_flow = {flow.name: 0 for flow in flows}
    for path, count in zip(journeys.paths, counts.tolist(), strict=True):
        of_flow[path.flow.name] += count
    explained = dict(itertools.islice(reasons(journeys, kernel), MAX_SENTENCES))
    if watched.calls:
        sentences = (
            explained.get(watched.asked),
            f"The kernel's calls: {' → '.join(watched.calls)}.",
        )
        explained[watched.asked] = " ".join(filter(None, sentences))
    document = {
        "start": watched.start_ns - watched.zero_ns,
        "stop": watched.stop_ns - watched.zero_ns,
        "packets": len(journeys),
        "captures": journeys.times_ns.shape[1],
        "chosen": watched.flow or max(of_flow, key=lambda name: of_flow[name], default=""),
        "flows": [
            {"name": flow.name, "protocol": flow.protocol, "control": flow.variant_seen}
            for flow in flows
        ],
        "connections": journeys.connections,
        "paths": [_path(path, flows.index(path.flow), trial) for path in journeys.paths],
        "nodes": network_drawing.positions(trial.scenario) if trial else {},
        "queues": [*_queues(trial)] if trial else [],
        "kernel": {name: _samples(state, watched, len(kernel)) for name, state in kernel.items()},
        "changes": [*_changes(watched, kernel)],
        "asked": watched.asked,
        "reasons": {"row": [*explained], "sentence": [*explained.values()]},
        "sacks": [packed(column, 1) for column in _sacks(journeys)],
    }
    return document, pack(journeys, watched.zero_ns)


def _kernel_states(trial: Trial) -> dict[str, SocketHistory]:
    """Return each flow's samples, those of its connections together."""
    samples = Samples(trial)
    histories = {}
    for flow in trial.record.flows:
        rows = socket_samples(samples, flow)
        if rows is not None:
            histories[flow.name] = SocketHistory(capture_ns(trial, rows["time_s"]), rows)
    return histories


def _samples(state: SocketHistory, watched: Watched, flows: int) -> dict[str, Any]:
    """Return a flow's samples in the stretch: those at which something changed."""
    held = max(0, int(np.searchsorted(state.time_ns, watched.start_ns)) - 1)
    until = int(np.searchsorted(state.time_ns, watched.stop_ns, side="right"))
    rows = state.rows.iloc[held:until]
    shown = rows.reindex(columns=[*SAMPLED, "ca_state"])
    changed = (shown != shown.shift()).any(axis=1) & ~(shown.isna() & shown.shift().isna()).all(
        axis=1
    )
    rows = rows[changed.to_numpy()]
    rows = rows.iloc[:: 1 + len(rows) // max(1, MAX_WATCHED_SAMPLES // flows)]
    names = [name for name in SAMPLED if name in rows]
    return {
        "time": packed(rows["time_s"].to_numpy(dtype=np.float64), 1e-6),
        "state": rows["ca_state"].tolist(),
        **{name: packed(_known(rows[name]), SAMPLED_UNIT) for name in names},
    }


def _known(column: pd.Series[Any]) -> np.ndarray[Any, Any]:
    """Return numbers, with -1 for those that are not known."""
    return column.to_numpy(dtype=np.float64, na_value=-1.0)


def _changes(watched: Watched, kernel: Mapping[str, SocketHistory]) -> Iterator[dict[str, Any]]:
    for path in watched.journeys.paths:
        state = kernel.get(path.flow.name)
        if path.is_data and state is not None:
            for each in changes(path, state, watched.journeys):
                if watched.start_ns <= watched.zero_ns + each.time_s * 1e9 <= watched.stop_ns:
                    yield {"flow": path.flow.name, **vars(each)}


def _sacks(journeys: Journeys) -> list[Integers]:
    """Return packets and edges of the SACK blocks, the edges from what the packet acknowledges."""
    row, left, right = journeys.sacks.T
    return [row, left - journeys.columns["ack"][row], right - left]


def _path(path: FlowPath, flow: int, trial: Trial | None) -> dict[str, Any]:
    wires = []
    if trial:
        by_name = _directions(trial)
        leaving = (place.interface for place in path.places if place.leaves)
        wires = [by_name[name].delay_ms for name in leaving]
    return {
        "flow": flow,
        "data": path.is_data,
        "places": [[each.node, each.interface, each.leaves] for each in path.places],
        "captured": path.captured,
        "wires": wires,
    }


def _directions(trial: Trial) -> dict[str, Direction]:
    """Return the link's direction that each interface sends into."""
    graph = trial.scenario.network
    return {
        f"{graph.links[index].ends[end]}-eth{number}": graph.links[index].directions[end]
        for (index, end), number in graph.interface_numbers.items()
    }


def _queues(trial: Trial) -> Iterator[dict[str, Any]]:
    """Yield the shaped queues whose packets were captured when they left."""
    files, directions = capture_files(trial), _directions(trial)
    for record in trial.record.queues:
        if record.interface in files:
            direction = directions.get(record.interface, Direction())
            yield {
                "node": record.node,
                "interface": record.interface,
                "label": f"{record.discipline}, {record.rate_mbit:g} Mbit/s",
                "unit": record.unit,
                "drops_old": DISCIPLINES[record.discipline].drops_old,
                "bounds": [*_bounds(record, direction)],
            }


def _bounds(record: QueueRecord, direction: Direction) -> Iterator[tuple[int, int, list[Any]]]:
    """Yield a queue's limit and its thresholds, with the nanosecond from which they hold."""
    queue, limit = direction.queue or PLAIN_QUEUE, record.limit
    yield 0, limit, [*_thresholds(record, queue)]
    for change in direction.schedule:
        if change.changes_discipline:
            queue = dataclasses.replace(queue, options={**queue.options, **(change.options or {})})
            limit = limit if change.limit is None else change.limit
            yield round(change.at_s * 1e9), limit, [*_thresholds(record, queue)]


def _thresholds(record: QueueRecord, queue: Queue) -> Iterator[tuple[str, float]]:
    """Yield the places in a queue, in bytes, at which its discipline begins to act."""
    row = DISCIPLINES.get(record.discipline)
    for name, label in THRESHOLDS.items():
        option = row.options.get(name) if row else None
        value = queue.options.get(name) or (option.default if option else None)
        if option and value:
            in_time = name.endswith("_ms")
            shown = f"{label} {value:g} {'ms' if in_time else 'bytes'}"
            yield shown, value * record.rate_mbit * 125 if in_time else value


def pack(journeys: Journeys, zero_ns: int) -> bytes:
    """Return the packets' columns as numbers of variable length, in the order the script reads."""
    columns, times = journeys.columns, journeys.times_ns
    last_ns = journeys.first_ns
    parts = [np.diff(last_ns, prepend=zero_ns)]
    for at in range(times.shape[1]):
        seen = times[:, at] != UNSEEN
        parts.append(_steps(times[:, at] - last_ns, seen))
        last_ns = np.where(seen, times[:, at], last_ns)
    parts.append(_steps(columns["gone_ns"] - last_ns, columns["gone_ns"] != UNSEEN))
    parts += [columns[name] for name in AS_THEY_ARE]
    parts.append(columns["length"] - columns["payload"])
    parts += [_differences(columns[name], columns["path"]) for name in BY_PATH]
    group = columns["path"] * max(1, len(journeys.connections)) + columns["connection"]
    parts += [_differences(columns[name], group) for name in BY_CONNECTION]
    return b"".join(map(varints, parts))


def _steps(steps: Integers, known: np.ndarray[Any, Any]) -> Integers:
    """Return steps of time with 0 for what is not known."""
    return np.where(known, np.where(steps >= 0, steps + 1, steps), 0)


def _differences(values: Integers, group: Integers) -> Integers:
    """Return each value's difference from the one before it in its group."""
    order = np.argsort(group, kind="stable")
    steps = np.diff(values[order], prepend=0)
    begins = np.diff(group[order], prepend=-1) != 0
    steps[begins] = values[order][begins]
    differences = np.empty_like(values)
    differences[order] = steps
    return differences


def varints(values: Integers) -> bytes:
    """Return whole numbers, small ones in few bytes: zigzag, seven bits a byte, the low first."""
    left = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    size = np.ones(len(left), dtype=np.int64)
    for bits in range(7, 64, 7):
        size += left >= np.uint64(1 << bits)
    place = np.cumsum(size) - size
    encoded = np.zeros(int(size.sum()), dtype=np.uint8)
    for at in range(int(size.max(initial=0))):
        mine = size > at
        more = (size[mine] > at + 1).astype(np.uint8) << 7
        encoded[place[mine] + at] = (left[mine] >> np.uint64(7 * at) & np.uint64(127)).astype(
            np.uint8
        ) | more
    return encoded.tobytes()
