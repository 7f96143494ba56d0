"""Performance envelopes and conformance, as QUICbench computes them.

Each window of ten round trips gives a point of a flow: its throughput behind the bottleneck, and
the mean delay that its packets met there. The hull around the 95 % of the points that are nearest
to their mean is the flow's *envelope*. The *conformance* of one flow to another is the share of
both flows' points (of those 95 %) that lie in the envelope of the other one: 1 if the envelopes are
the same, 0 if they are apart. QUICbench takes its points from a moving window; here the windows lie
side by side, so that no packet counts twice.
(Mishra, Lim, Leong: Understanding Speciation in QUIC Congestion Control, 2022; the definition is
that of their program, visualize/plot_perf_env.py.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.trials.packets import TrialPackets, captured_queues, whole_interval
from analysis.trials.queue_transit import flows_at_queue, queue_transit
from testbed.store.reading import Trial

WINDOW_RTTS = 10
NEAREST = 0.95  # of the points: the others are outliers
USED = 0.95  # of the trial: not its end
TOUCHES = 1e-9  # a point that is this much outside is on the hull
Points = npt.NDArray[np.float64]  # rows of delay in ms and throughput in Mbit/s


@dataclass(frozen=True, eq=False)
class Envelope:
    """The points of a flow's windows, those of them that count, and the hull around these."""

    points: Points
    nearest: Points
    hull: Points  # its corners, one after the other; all of `nearest` if they are no area

    @property
    def middle(self) -> Points:
        """The mean delay and throughput of all windows."""
        mean: Points = self.points.mean(axis=0)
        return mean


def window_points(trial: Trial, flow: str, rtt_ms: float) -> Points:
    """Return a point for each window of a flow: mean queueing delay, and throughput behind it."""
    packets = TrialPackets(trial)
    every = (e for queue in captured_queues(trial) for e in flows_at_queue(trial, packets, queue))
    transit = queue_transit(e for e in every if e.flow.name == flow and e.is_data)
    whole = whole_interval(trial, next(e for e in trial.record.flows if e.name == flow))
    width_ns = round(WINDOW_RTTS * rtt_ms * 1e6)
    count = int(USED * whole.seconds * 1e9) // width_ns
    places = (transit.left_ns - whole.start_ns) // width_ns
    inside = (places >= 0) & (places < count)
    places = places[inside]
    sizes = np.bincount(places, weights=transit.length[inside], minlength=count)
    waits_ms = (transit.left_ns - transit.arrived_ns)[inside] / 1e6
    seen = np.bincount(places, minlength=count)
    total_ms = np.bincount(places, weights=waits_ms, minlength=count)
    known = seen > 0
    delay_ms = total_ms[known] / seen[known]
    return np.column_stack((delay_ms, sizes[known] * 8e3 / width_ns))


def envelope(points: Points) -> Envelope:
    """Return a flow's envelope."""
    distance = np.square(points - points.mean(axis=0)).sum(axis=1)
    nearest = points[np.argsort(distance, kind="stable")[: int(NEAREST * len(points))]]
    return Envelope(points, nearest, _hull(nearest))


def _hull(points: Points) -> Points:
    """Return the corners of the convex hull, counter-clockwise (Andrew's monotone chain)."""
    order = points[np.lexsort((points[:, 1], points[:, 0]))]
    chains = (_chain(order), _chain(order[::-1]))
    return np.array([corner for chain in chains for corner in chain[:-1]] or order[:1])


def _chain(points: Points) -> list[Points]:
    chain = list[Points]()
    for point in points:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain


def _turn(one: Points, other: Points, third: Points) -> float:
    """Return the area of the parallelogram at `one`: positive if the way turns to the left."""
    (a, b), (c, d) = other - one, third - one
    return float(a * d - b * c)


def _inside(points: Points, hull: Points) -> int:
    """Count the points in a hull, or on it."""
    edges = np.roll(hull, -1, axis=0) - hull
    away = points[:, None, :] - hull[None, :, :]
    turns = edges[:, 0] * away[..., 1] - edges[:, 1] * away[..., 0]
    return int((turns >= -TOUCHES).all(axis=1).sum())


def conformance(one: Envelope, other: Envelope) -> float:
    """Return the share of both flows' points that are in the envelope of the other."""
    both = _inside(one.nearest, other.hull) + _inside(other.nearest, one.hull)
    return both / (len(one.nearest) + len(other.nearest))
