"""What ns-2 gave on the same experiments, read from a folder of CSV files if there is one.

Only means of runs with jittered CBR are looked up: with an even one flows lock into phases.
Nothing is tested against them; they stand beside our numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

METRICS = {
    "throughput_mbps": "throughput_mbps",
    "goodput_mbps": "goodput_mbps",
    "drop_rate": "drop_rate",
    "owd_mean_ms": "oneway_ms",
    "rtt_mean_ms": "rtt_ms",
    "recovery_latency_mean_ms": "recovery_latency_ms",
}
# Over a flow's life, where a trial has phases; not throughput: theirs ends with CBR, a mean over
# more time without CBR is another number.
WHOLE = {
    "drop_rate": "drop_rate_all",
    "rtt_mean_ms": "rtt_all_ms",
    "recovery_latency_mean_ms": "recovery_latency_all_ms",
}
VARIANTS = {
    "tahoe": "Tahoe",
    "reno": "Reno",
    "newreno": "Newreno",
    "vegas": "Vegas",
    "sack": "Sack1",
}
FINE_TICK_S = 0.01  # of ns-2's timers: with 0.1 s four losses are no timeout
QUEUES = {"droptail": "DropTail", "red": "RED"}
SETTINGS = {"small": "w20rand", "large": "w1000rand", "": "w1000rand"}


@dataclass(frozen=True)
class Reference:
    """A folder with `exp1_means.csv`, `exp2_means.csv`, `exp3_means.csv` and `parvez_ns2.csv`, or
    none."""

    folder: Path | None = None

    def load(
        self, variant: str, metric: str, loads: Collection[float], window: str, order: str = ""
    ) -> float:
        """Mean over the loads, of one TCP flow beside CBR."""
        rows = self._rows("exp1_means.csv", window, "tcp1")
        if rows.empty:
            return math.nan
        rows = rows[(rows["variant"] == VARIANTS.get(variant)) & rows["cbr_mbps"].isin(loads)]
        if order:
            rows = rows[rows["order"] == order.replace("-", "_")]
        return _mean(rows, METRICS[metric])

    def sweep(self, variant: str, metric: str, window: str, order: str) -> list[float]:
        """The metric at each load."""
        rows = self._rows("exp1_means.csv", window, "tcp1")
        if rows.empty:
            return []
        chosen = (rows["variant"] == VARIANTS.get(variant)) & (
            rows["order"] == order.replace("-", "_")
        )
        return [float(each) for each in rows.loc[chosen, f"{METRICS[metric]}_mean"]]

    def share(self, pair: str, loads: Collection[float], window: str) -> float:
        """The first flow's part of what both TCP flows got, mean over the loads."""
        name = "/".join(VARIANTS.get(each, each) for each in pair.split("/"))
        rates = []
        for flow in ("tcp1", "tcp2"):
            rows = self._rows("exp2_means.csv", window, flow)
            if rows.empty:
                return math.nan
            own = rows[(rows["pair"] == name) & rows["cbr_mbps"].isin(loads)]
            rates.append(own.groupby("cbr_mbps")["throughput_mbps_mean"].mean())
        return float((rates[0] / (rates[0] + rates[1])).mean())

    def queue(self, variant: str, queue: str, metric: str) -> float:
        """Of one TCP flow that CBR joins for a while, over the flow's life."""
        rows = self._rows("exp3_means.csv", "large", "tcp1")
        if rows.empty or metric not in WHOLE:
            return math.nan
        chosen = (rows["variant"] == VARIANTS.get(variant)) & (rows["queue"] == QUEUES.get(queue))
        return _mean(rows[chosen], WHOLE[metric])

    def newreno(self, *, impatient: bool, p: float) -> pd.DataFrame:
        """Under loss events, by m: `goodput_pps` and the rate of events that was (`p`), with a
        timer of at least 0.2 s."""
        if self.folder is None or not (self.folder / "parvez_ns2.csv").is_file():
            return pd.DataFrame(columns=["goodput_pps", "p"], dtype=float)
        table = _read(self.folder / "parvez_ns2.csv")
        chosen = (table["mode"] == "B") & (table["tick"] == FINE_TICK_S) & (table["p"] == p)
        own = table[chosen & (table["imp"] == impatient)]
        means = own.groupby("m")[["goodput_pps", "p_meas"]].mean()
        return means.rename(columns={"p_meas": "p"})

    def _rows(self, name: str, window: str, flow: str) -> pd.DataFrame:
        if self.folder is None or not (self.folder / name).is_file():
            return pd.DataFrame()
        table = _read(self.folder / name)
        return table[(table["setting"] == SETTINGS[window]) & (table["flow"] == flow)]


def _mean(rows: pd.DataFrame, name: str) -> float:
    """NaN where the table has no such column."""
    column = f"{name}_mean"
    return float(rows[column].mean()) if column in rows else math.nan


@functools.lru_cache(8)
def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)
