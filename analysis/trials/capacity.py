"""What a queue's link could carry: one rate, rates that change, or a trace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from analysis.trials.documents import Capacities, LinkCapacity, read_trial_document
from analysis.trials.packets import epoch_ns
from testbed.scenario.network import FRAME_BYTES, FRAME_OVERHEAD_BYTES
from testbed.scenario.queues import bucket_bytes
from testbed.scenario.trace import (
    OPPORTUNITY_BYTES,
    TUN_BYTES,
    Trace,
    parse_trace,
)
from testbed.store.names import CAPACITY_FILE
from testbed.store.reading import Trial
from testbed.store.records import QueueRecord

# what a trace's opportunities count of a frame is shorter by
FRAME_LESS_BYTES = FRAME_OVERHEAD_BYTES - TUN_BYTES
FRAME_MBIT = FRAME_BYTES * 8e-6

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Capacity:
    """In Mbit/s of frames from each time on, or the opportunities of a trace."""

    since_s: tuple[float, ...] = (0.0,)
    rate_mbit: tuple[float, ...] = (0.0,)
    trace: Trace | None = None

    @property
    def changes(self) -> bool:
        """Whether it is not one rate throughout."""
        return self.trace is not None or len(self.since_s) > 1

    def rates_at(self, time_s: Floats) -> Floats:
        """Return the rate at each of these times; of a trace it is 0 between opportunities."""
        place = np.searchsorted(self.since_s, time_s, side="right") - 1
        return np.asarray(self.rate_mbit)[np.maximum(place, 0)]

    @cached_property
    def _opportunities_ms(self) -> Integers:
        assert self.trace is not None
        ms, counts = np.array(self.trace.times, dtype=np.int64).T
        return np.repeat(ms, counts)

    def opportunities_ns(self, until_s: float) -> Integers:
        """Return the times of a trace's opportunities from second 0 until then, in ns."""
        assert self.trace is not None
        rounds = int(until_s * 1e3 // self.trace.period_ms) + 1
        starts = np.arange(rounds, dtype=np.int64) * self.trace.period_ms
        every = (starts[:, None] + self._opportunities_ms).ravel() * 1_000_000
        return every[every <= until_s * 1e9]

    def sent_bytes(self, time_s: Floats) -> Floats:
        """Return what it could have carried since second 0, in bytes as the link counts them."""
        if self.trace is not None:
            return np.round(self.megabits(time_s) / FRAME_MBIT) * OPPORTUNITY_BYTES
        return self.megabits(time_s) * 125_000.0

    def longest_wait_ns(self, size_bytes: float) -> float:
        """Return the longest time that this many bytes take."""
        if self.trace is not None:
            return self.trace.longest_ms(int(-(-size_bytes // OPPORTUNITY_BYTES)) + 1) * 1e6
        return size_bytes * 8e3 / min(self.rate_mbit)

    def megabits(self, time_s: Floats) -> Floats:
        """Return what it could have carried since second 0, at each of these times."""
        if self.trace is not None:
            every = self.opportunities_ns(float(time_s.max(initial=0.0)))
            count = np.searchsorted(every, np.round(time_s * 1e9), side="right")
            return np.asarray(count * FRAME_MBIT, dtype=np.float64)
        edges = np.append(self.since_s, max(self.since_s[-1], float(time_s.max(initial=0))) + 1)
        total = np.concatenate(([0.0], np.cumsum(np.diff(edges) * self.rate_mbit)))
        carried: Floats = np.interp(time_s, edges, total)
        return carried

    def mean_mbit(self, start_s: float, stop_s: float) -> float:
        """Return the mean rate between two times."""
        if not self.changes:
            return self.rate_mbit[0]
        begin, end = self.megabits(np.array([start_s, stop_s]))
        return float(end - begin) / (stop_s - start_s)

    def steps(self, start_s: float, stop_s: float, step_s: float) -> tuple[Floats, Floats]:
        """Return the rates to draw between two times, and the times from which each holds.

        The times include the end; of a trace the rates are means of steps.
        """
        if self.trace is not None:
            edges = np.append(np.arange(start_s, stop_s - step_s / 2, step_s), stop_s)
            value = np.diff(self.megabits(edges)) / np.diff(edges)
            return edges, np.append(value, value[-1:])
        inside = [each for each in self.since_s if start_s < each < stop_s]
        times = np.array([start_s, *inside, stop_s])
        return times, self.rates_at(times)


def sending_ns(trial: Trial, queue: QueueRecord, left_ns: Integers, length: Integers) -> Integers:
    """Return how long the link behind a queue took to send each packet that left it.

    Of htb and of a trace that is not known, and 0: they let packets leave as they begin to. Of a
    link that aggregates it is the time of all packets that left with one, all of which are needed.
    """
    if not queue.is_exact:
        return np.zeros(len(left_ns), dtype=np.int64)
    if queue.most_at_once > 1:
        _, place = np.unique(left_ns, return_inverse=True)
        length = np.bincount(place, weights=length)[place]
    return own_sending_ns(trial, queue, left_ns, length)


def own_sending_ns(
    trial: Trial, queue: QueueRecord, left_ns: Integers, length: Integers
) -> Integers:
    """Return the same of each packet without those that left with it, for which it waits."""
    if not queue.is_exact:
        return np.zeros(len(left_ns), dtype=np.int64)
    capacity, begun_ns = capacity_of(trial, queue), left_ns
    for _ in range(2 if capacity.changes else 1):  # at the rate when it began
        rates = capacity.rates_at((begun_ns - epoch_ns(trial)) / 1e9)
        taken_ns = (length * 8e3 / rates).astype(np.int64)
        begun_ns = left_ns - taken_ns
    return taken_ns


def largest_bucket_bytes(queue: QueueRecord, capacity: Capacity) -> int:
    """Return the largest bucket that htb had at any of a link's rates; 0 for an exact link."""
    if queue.is_exact or capacity.trace is not None or not capacity.changes:
        return queue.burst_bytes
    return max(queue.burst_bytes, *map(bucket_bytes, capacity.rate_mbit))


def capacity_of(trial: Trial, queue: QueueRecord) -> Capacity:
    """Read what the link behind a queue could carry, as the trial recorded it."""
    capacities = read_trial_document(trial, CAPACITY_FILE, Capacities) or {}
    capacity = capacities.get(queue.interface, LinkCapacity())
    if not capacity:
        return Capacity(rate_mbit=(queue.rate_mbit,))
    if "trace" in capacity:
        return Capacity(trace=parse_trace(capacity["trace"]))
    since_s, rate_mbit = zip(*capacity["rates"], strict=True)
    return Capacity(tuple(since_s), tuple(rate_mbit))
