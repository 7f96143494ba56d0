"""A trial as the scores of an evaluation see it: its flows, their rates in bins, its link."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from analysis.metrics.digest import THROUGHPUT_SERIES
from analysis.results.reduction import reduction_of
from analysis.trials.capacity import Capacity, capacity_of
from analysis.trials.samples import Samples
from testbed.scenario.model import FlowKind
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, QueueRecord

MORE, LESS = 1, -1  # which way a score is better
MAX_HARM_PERCENT = 100.0  # a victim loses no more than everything; gains count up to as much


@dataclass(frozen=True, eq=False)  # equal by identity, so that functions of it can be cached
class TrialView:
    """The TCP flows of a trial with their metrics, and the trial's digest."""

    trial: Trial
    flows: pd.DataFrame
    digest: pd.DataFrame

    @property
    def slowest(self) -> QueueRecord:
        """The slowest observed queue."""
        sampled = [queue for queue in self.trial.record.queues if queue.sampled]
        return min(sampled, key=lambda queue: queue.rate_mbit)

    @property
    def rate_mbit(self) -> float:
        """Rate of the slowest observed queue, as the seed drew it."""
        return self.slowest.rate_mbit

    @cached_property
    def capacity(self) -> Capacity:
        """Capacity of the slowest observed link over time."""
        return capacity_of(self.trial, self.slowest)

    @property
    def carried_mbit(self) -> float:
        """Mean capacity of the slowest observed link over the measured part of the trial."""
        return self.capacity.mean_mbit(self.trial.scenario.measure_from_s, self.end_s)

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """A row for each transfer of the trial's workloads."""
        return reduction_of(self.trial).transfers

    @cached_property
    def calls(self) -> pd.DataFrame:
        """A row for each call of the trial, with the columns of metrics.csv."""
        every = reduction_of(self.trial).flows
        return every[every["kind"] == FlowKind.CALL]

    @property
    def end_s(self) -> float:
        """The time at which the last flow stopped: the end of the measured part."""
        return max(each.stopped_s for each in self.trial.record.flows)

    @property
    def measured_s(self) -> float:
        """Length of the measured part of the trial."""
        return self.end_s - self.trial.scenario.measure_from_s

    def flow(self, name: str) -> pd.Series:
        """Return the metrics of a flow."""
        return self.flows[self.flows["flow"] == name].iloc[0]

    def without(self, start: str) -> pd.DataFrame:
        """Return the metrics of the flows whose names do not begin with `start`."""
        return self.flows[~self.flows["flow"].str.startswith(start)]

    def mean(self, metric: str, *, without: str = "-") -> float:
        """Return the mean of a metric over the flows that have it."""
        return float(self.without(without)[metric].mean())

    def record(self, name: str) -> FlowRecord:
        """Return the record of a flow."""
        return next(each for each in self.trial.record.flows if each.name == name)

    def rates(self) -> pd.DataFrame:
        """Return the flows' rates in Mbit/s: a row per whole second, a column per flow.

        A rate is NaN in seconds in which its flow did not run throughout.
        """
        rates = self.digest[self.digest["what"] == THROUGHPUT_SERIES]
        seconds = np.floor(rates["x"]).astype(int)
        named = rates.assign(second=seconds, flow=rates["flow"].astype("str"))
        return named.pivot_table("value", "second", "flow", dropna=False)

    def backlog_packets(self) -> pd.Series:
        """Return the mean backlog of the slowest observed queue in each whole second."""
        samples = Samples(self.trial).queue(self.slowest.interface)
        if samples is None:
            return pd.Series(dtype=float)
        return samples.groupby(np.floor(samples["time_s"]).astype(int))["backlog_packets"].mean()

    def changes(self) -> list[float]:
        """Return the times in seconds at which flows start or stop."""
        records = self.trial.record.flows
        return sorted({t for each in records for t in (each.started_s, each.stopped_s)})


@dataclass(frozen=True)
class Score:
    """A number of a trial: its column, its words with the unit, and which way is better."""

    name: str
    words: str
    better: int
    of: Callable[[TrialView], float]
    step: float = 0.0  # smaller differences do not count, even if all seeds show them
    harm: int = 0  # MORE or LESS of a victim's number is better; the score is its harm
    most: float = math.inf  # that is possible: 100 of a share in percent

    @property
    def possible(self) -> tuple[float, float]:
        """The least and the largest number that it can be."""
        return (-MAX_HARM_PERCENT, MAX_HARM_PERCENT) if self.harm else (0.0, self.most)
