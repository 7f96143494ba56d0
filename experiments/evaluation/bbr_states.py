"""The states of BBR, as a socket's samples show them: its pacing rate, window and data in flight.

In each state the pacing rate is the estimated bandwidth times a gain, less one percent. Where the
estimate is steady, the ratio of two states' rates is therefore that of their gains.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.trials.samples import Samples
from testbed.scenario.network import FRAME_BYTES
from testbed.store.reading import Trial

MSS_BYTES = 1448  # of data in a full segment with time stamps
PACING_PART = 0.99  # of the bandwidth times the gain (bbr_pacing_margin_percent)
STARTUP_GAIN = 2.885  # 2 / ln 2
SAME_GAIN = 0.03  # relative: rates that differ by less are of one gain
PROBE_RTT_PACKETS = 4
FIRST_ROUNDS_S = 0.5  # in which a window may be small without PROBE_RTT
IN_FLIGHT = ((1, "unacked"), (1, "retrans"), (-1, "lost"))

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Phase:
    """A time with one pacing rate."""

    begin_s: float
    end_s: float
    mbit: float


class BbrSamples:
    """A flow's samples from its connection on, with what follows from them."""

    def __init__(self, trial: Trial) -> None:
        record = trial.record.flows[0]
        samples = Samples(trial).flow(record)
        rows = pd.DataFrame() if samples is None else samples
        self.rows = rows[rows["pacing_mbps"].notna()] if len(rows) else rows
        queue = next(each for each in trial.record.queues if each.sampled)
        self.link_mbit = self.payload_mbit(queue.rate_mbit)
        self.scenario = trial.scenario

    @staticmethod
    def payload_mbit(rate_mbit: float) -> float:
        """Return what full segments carry of data at a link's rate."""
        return rate_mbit * MSS_BYTES / FRAME_BYTES

    @property
    def changed_link_mbit(self) -> float:
        """The data that the link carries after its last change."""
        rates = [each.rate_mbit for each in self.scenario.network.bottleneck.schedule]
        return self.payload_mbit(rates[-1] or 0)

    def column(self, name: str) -> Floats:
        """Return a column of the samples."""
        return self.rows[name].to_numpy(dtype=np.float64)

    @cached_property
    def time_s(self) -> Floats:
        """The times of the samples."""
        return self.column("time_s")

    def between(self, begin_s: float, end_s: float) -> pd.DataFrame:
        """Select the samples of an interval."""
        return self.rows[(self.time_s >= begin_s) & (self.time_s < end_s)]

    def at(self, name: str, time_s: float) -> float:
        """Return a column's last value before a time."""
        return float(self.between(0, time_s)[name].iloc[-1])

    @cached_property
    def drain(self) -> Phase | None:
        """The state after STARTUP: pacing falls below half of its most, until it rises again."""
        pacing = self.column("pacing_mbps")
        low = np.flatnonzero(pacing < 0.5 * np.maximum.accumulate(pacing))
        low = low[pacing[low] > 0]
        if not len(low):
            return None
        first = int(low[0])
        over = np.flatnonzero(pacing[first:] > 1.5 * pacing[first])
        last = first + int(over[0]) if len(over) else len(pacing) - 1
        return Phase(float(self.time_s[first]), float(self.time_s[last]), float(pacing[first]))

    @property
    def startup_mbit(self) -> float:
        """The bandwidth that STARTUP ends with."""
        end = self.drain.begin_s if self.drain else float("inf")
        return float(self.between(0, end)["pacing_mbps"].max()) / STARTUP_GAIN / PACING_PART

    def cruise_mbit(self, begin_s: float, end_s: float) -> float:
        """Return the bandwidth estimate of an interval, by its most frequent pacing rate."""
        rates = self.between(begin_s, end_s)["pacing_mbps"].round(2)
        return float(rates.mode().iloc[0]) / PACING_PART if len(rates) else float("nan")

    def phases(self, begin_s: float, end_s: float) -> list[Phase]:
        """Return the times with one pacing rate in an interval, but for the first and the last."""
        rows = self.between(begin_s, end_s)
        rates = rows["pacing_mbps"].to_numpy(dtype=np.float64)
        times = rows["time_s"].to_numpy(dtype=np.float64)
        cuts = np.flatnonzero(np.abs(np.diff(rates)) > SAME_GAIN * rates[:-1]) + 1
        edges = [0, *map(int, cuts), len(rates) - 1]
        pairs = itertools.pairwise(edges[1:-1])
        return [Phase(float(times[a]), float(times[b]), float(rates[a])) for a, b in pairs]

    def of_gain(self, gain: float, begin_s: float, end_s: float) -> list[tuple[Phase, float]]:
        """Return an interval's phases of that gain, each with the gain of the next one."""
        whole = self.phases(begin_s, end_s)
        base = PACING_PART * self.cruise_mbit(begin_s, end_s)
        gains = [phase.mbit / base for phase in whole]
        return [
            (phase, following)
            for phase, phase_gain, following in zip(whole, gains, gains[1:], strict=False)
            if abs(phase_gain / gain - 1) < SAME_GAIN
        ]

    def probe_rtts(self) -> list[Phase]:
        """Return the times in which the window is down to four packets."""
        held = (self.column("cwnd") <= PROBE_RTT_PACKETS).astype(int)
        edges = np.flatnonzero(np.diff(np.concatenate(([0], held, [0]))))
        times, pacing = np.append(self.time_s, self.time_s[-1]), self.column("pacing_mbps")
        return [
            Phase(float(times[a]), float(times[b]), float(pacing[a]))
            for a, b in edges.reshape(-1, 2)
        ]

    @property
    def first_probe_rtt(self) -> Phase | None:
        """The first PROBE_RTT: a window of four packets after the connection's beginning."""
        return next((each for each in self.probe_rtts() if each.begin_s > FIRST_ROUNDS_S), None)

    def rounds(self, begin_s: float, end_s: float) -> float:
        """Return how many round trips pass, by the socket's smoothed one."""
        rows = self.between(begin_s, end_s)
        steps = np.diff(rows["time_s"].to_numpy(dtype=np.float64))
        return float((steps / (rows["srtt_ms"].to_numpy(dtype=np.float64)[1:] / 1e3)).sum())

    def in_flight(self, time_s: float) -> float:
        """Return the packets in flight just before a time, without those known to be lost."""
        return sum(sign * self.at(name, time_s) for sign, name in IN_FLIGHT)

    def bdp_packets(self) -> float:
        """Return what the link holds in a round trip without a queue, in full segments."""
        return self.link_mbit * 1e6 * self.rtt_s / 8 / MSS_BYTES

    @property
    def rtt_s(self) -> float:
        """The shortest round trip that the socket saw."""
        return float(self.rows["min_rtt_ms"].min()) / 1e3

    def goodput_mbit(self, begin_s: float, end_s: float) -> float:
        """Return the rate of what was acknowledged in an interval."""
        rows = self.between(begin_s, end_s)
        bits = 8 * float(rows["bytes_acked"].iloc[-1] - rows["bytes_acked"].iloc[0])
        return bits / 1e6 / float(rows["time_s"].iloc[-1] - rows["time_s"].iloc[0])
