"""The stretch of a trial, or of somebody's capture, whose packets are looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.captures.inspection import flow_record
from analysis.captures.tcp import WIRESHARK_MARKS, Excerpt, Packets, read_arrays
from analysis.trials.packets import TrialPackets, capture_files, epoch_ns
from analysis.watch.journeys import (
    UNSEEN,
    Integers,
    Journeys,
    capture_journeys,
    trial_journeys,
)
from testbed.errors import TestbedError, UsageError, nearest, number_of
from testbed.store.names import SOCKET_SAMPLES
from testbed.store.reading import Trial

MAX_WATCHED_PACKETS = 200_000
AROUND_NS = 2_000_000_000  # read before and after a stretch, for packets that are under way
SENT_AGAIN = sum(1 << WIRESHARK_MARKS.index(mark) for mark in WIRESHARK_MARKS[:4])


@dataclass(frozen=True)
class Watched:
    """What is looked at: the packets that were on their way in a stretch of time."""

    title: str
    subject: str  # the trial's or the capture's name
    journeys: Journeys
    zero_ns: int  # second 0 on the captures' clock
    start_ns: int
    stop_ns: int
    flow: str  # that is shown first; empty: the one with the most packets
    trial: Trial | None = None
    notes: tuple[str, ...] = ()  # what was left out, and which pictures are not possible
    asked: int = -1  # the packet at which the page opens, a row of the journeys
    calls: tuple[str, ...] = ()  # the kernel's functions that sent it, the outer one first

    def sent(self, interface: str, frame: int) -> int:
        """Return the row of a packet by the sending interface and its number there; -1: none."""
        journeys = self.journeys
        paths = [
            number
            for number, path in enumerate(journeys.paths)
            if path.begins_at_its_host and path.places[0].interface == interface
        ]
        mine = np.isin(journeys.columns["path"], paths) & (journeys.times_ns[:, 0] != UNSEEN)
        rows = np.flatnonzero(mine & (journeys.columns["frame"] == frame))
        return int(rows[0]) if len(rows) else -1


@dataclass(frozen=True)
class Span:
    """Seconds that a user asked for; None: from the beginning, to the end."""

    start_s: float | None = None
    stop_s: float | None = None


def watched_trial(trial: Trial, flow: str = "", span: Span = Span()) -> Watched:
    """Read what is asked for of a trial, or as many packets as fit, losses first."""
    chosen = flow_record(trial, flow).name if flow else ""
    files = capture_files(trial)
    if not files:
        raise TestbedError(
            f"{trial.path}: no captures: there are no packets to look at",
            "run it again with `captures` in its scenario, and without `--captures drop`",
        )
    sizes = {trial.path / each.file: each.packets for each in trial.record.captures if each.file}
    for path in sizes:
        trial.file(str(path.relative_to(trial.path)))
    senders = [trial.capture(f"sender:{each.name}") for each in trial.record.flows]
    first = list(dict.fromkeys(path for path in senders if path)) or [
        max(sizes, key=lambda p: sizes[p])
    ]
    zero = epoch_ns(trial)
    whole = sum(sizes[path] for path in first) <= MAX_WATCHED_PACKETS
    stretch, notes = (None, ()) if whole else _stretch(first, zero, span)
    excerpt = stretch and Excerpt(start_ns=stretch[0] - AROUND_NS, stop_ns=stretch[1] + AROUND_NS)
    journeys = trial_journeys(trial, TrialPackets(trial, checked=True, excerpt=excerpt))
    start_ns, stop_ns = stretch or _limits(journeys.first_ns, zero, span)
    return Watched(
        title=trial.scenario.label or trial.scenario.experiment,
        subject=trial.path.resolve().name,
        journeys=journeys.within(start_ns, stop_ns),
        zero_ns=zero,
        start_ns=start_ns,
        stop_ns=stop_ns,
        flow=chosen,
        trial=trial,
        notes=(*notes, *_missing(trial, journeys)),
    )


def watched_capture(path: Path, flow: str = "", span: Span = Span()) -> Watched:
    """Read somebody's capture: where its packets were elsewhere is not known."""
    overview = read_arrays(path, excerpt=Excerpt(("time_ns", "marks")))
    times = overview.columns["time_ns"]
    if not len(times):
        raise TestbedError(
            f"{path}: no packet of TCP or UDP in it", "`testbed reduce` says what is"
        )
    zero = int(times.min())
    stretch, notes = _stretch([path], zero, span)
    excerpt = Excerpt(start_ns=stretch[0], stop_ns=stretch[1])
    packets = Packets(read_arrays(path, excerpt=excerpt))
    journeys = capture_journeys(packets)
    names = dict.fromkeys(each.flow.name for each in journeys.paths)
    if flow and flow not in names:
        raise UsageError(f"{path}: no flow {flow!r}", nearest(flow, names))
    left = len(packets.part) - len(journeys)
    more = (f"{number_of(left, 'packet')} of smaller conversations left out.",) if left else ()
    here = (
        "Captured at one place: there is no network to draw, when packets were at the other end is "
        "not known, and reasons hold if the sender of the data was at this end."
    )
    return Watched(
        title=path.name,
        subject=path.name,
        journeys=journeys.within(*stretch),
        zero_ns=zero,
        start_ns=stretch[0],
        stop_ns=stretch[1],
        flow=flow,
        notes=(*notes, here, *more, *packets.warnings),
    )


def _stretch(
    paths: Sequence[Path], zero: int, span: Span
) -> tuple[tuple[int, int], tuple[str, ...]]:
    """Return the time that is asked for; of too many packets the part with the most sent again."""
    read = [read_arrays(path, excerpt=Excerpt(("time_ns", "marks"))) for path in paths]
    times = np.concatenate([each.columns["time_ns"] for each in read])
    again = np.concatenate([each.columns["marks"] & SENT_AGAIN for each in read]) > 0
    start_ns, stop_ns = _limits(times, zero, span)
    inside = (times >= start_ns) & (times <= stop_ns)
    times, again = times[inside], again[inside]
    if len(times) <= MAX_WATCHED_PACKETS:
        return (start_ns, stop_ns), ()
    order = np.argsort(times, kind="stable")
    times, so_far = times[order], np.concatenate(([0], np.cumsum(again[order])))
    trouble = so_far[MAX_WATCHED_PACKETS:] - so_far[:-MAX_WATCHED_PACKETS]
    at = int(np.argmax(trouble))
    chosen = int(times[at]), int(times[at + MAX_WATCHED_PACKETS - 1])
    first, last = ((each - zero) / 1e9 for each in chosen)
    most = f"with the most that were sent again ({trouble[at]} of {so_far[-1]})"
    note = (
        f"{len(times)} packets are too many for a page: these are the {MAX_WATCHED_PACKETS} from "
        f"{first:.6f} to {last:.6f} s, {most if so_far[-1] else 'the first: none was sent again'}. "
        "--from and --to choose others."
    )
    return chosen, (note,)


def _limits(times: Integers, zero: int, span: Span) -> tuple[int, int]:
    """Return the ends of a span within the packets' times."""
    first, last = int(times.min(initial=zero)), int(times.max(initial=zero))
    if len(times):
        first = int(times.min())
    if not all(math.isfinite(each) for each in (span.start_s or 0, span.stop_s or 0)):
        raise UsageError("--from and --to: nan and inf are no seconds", "name two instants")
    start = first if span.start_s is None else zero + round(span.start_s * 1e9)
    stop = last if span.stop_s is None else zero + round(span.stop_s * 1e9)
    if stop <= start or start > last or stop < first:
        ends = (f"{(each - zero) / 1e9:g} s" for each in (start, stop, first, last))
        asked_from, asked_to, begin, end = ends
        raise UsageError(
            f"from {asked_from} to {asked_to}: no packet lies between",
            f"packets were captured from {begin} to {end}",
        )
    return max(start, first), min(stop, last)


def _missing(trial: Trial, journeys: Journeys) -> Iterator[str]:
    """Yield what captures and samples do not show."""
    watched = {path.flow.name for path in journeys.paths}
    nowhere = [flow.name for flow in trial.record.flows if flow.name not in watched]
    if nowhere:
        yield f"Not captured anywhere, and not drawn: {_few(nowhere)}."
    data = [path for path in journeys.paths if path.is_data]
    unsent = [path.flow.name for path in data if not path.begins_at_its_host]
    if unsent:
        yield f"Not captured at the sender, so that reasons are not known: {_few(unsent)}."
    places = {place.interface for path in journeys.paths for place in path.places}
    unseen = sorted(places - capture_files(trial).keys())
    if unseen:
        yield f"Without a capture, passed in proportion to the links' delays: {_few(unseen)}."
    if SOCKET_SAMPLES.file not in trial.record.files:
        yield "Sockets were not sampled: what TCP knew is not here."
    dropped = sum(each.dropped for each in trial.record.captures)
    if dropped:
        yield f"{dropped} packets were not written to captures, and may look lost."


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f", … ({len(names)})" if len(names) > 8 else "")
