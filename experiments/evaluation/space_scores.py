"""What is measured in each setting of the space: use, delay and losses, harm, and starvation."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.evaluation.trial_view import LESS, MORE, Score, TrialView
from analysis.trials.packets import NAN
from analysis.trials.samples import by_flow, read_columns
from experiments.evaluation.scores import DROPS_SCORE, HARMED, JAIN, UTILISATION
from testbed.scenario.network import FRAME_BYTES
from testbed.store.names import SOCKET_SAMPLES

VICTIMS = "victim"  # how their names begin
MIN_WINDOW_S = 0.1
WINDOW_ROUND_TRIPS, WINDOW_FRAMES = 10.0, 10.0  # of the path, and of a fair share
MIN_WINDOWS = 4  # of the measured part
STARVED_PART = 0.1  # of the fair share

ROUNDING_S = 1e-6
NO_SAMPLES = pa.table({"time_s": np.zeros(0), "bytes_acked": np.zeros(0)})

Floats = npt.NDArray[np.float64]


def window_s(seen: TrialView, flows: int, measured_s: float) -> float:
    """Return the length of the windows in which a flow's share is measured.

    Ten round trips, and ten frames at the fair share, but no more than a quarter of what is
    measured: a shorter window would call the gap between two bursts starvation.
    """
    rtt_s = seen.trial.scenario.network.longest_rtt_ms / 1e3
    frames_s = WINDOW_FRAMES * 8 * FRAME_BYTES * flows / (seen.rate_mbit * 1e6)
    wanted = max(MIN_WINDOW_S, WINDOW_ROUND_TRIPS * rtt_s, frames_s)
    return min(wanted, measured_s / MIN_WINDOWS)


@functools.lru_cache(maxsize=1)  # three scores of a trial begin with it
def victims_shares(seen: TrialView) -> Floats:
    """Return the victims' rates in parts of the fair one: a row per flow, a column per window.

    The fair rate is the link's over the number of all flows; rates are of the bytes that were
    acknowledged.
    """
    sampled = read_columns(seen.trial, SOCKET_SAMPLES, ("time_s", "flow", "bytes_acked"))
    samples = {} if sampled is None else by_flow(sampled)
    records = [each for each in seen.trial.record.flows if each.name.startswith(VICTIMS)]
    flows = len(seen.flows)
    begin = seen.trial.scenario.measure_from_s
    end = min(each.stopped_s for each in records)
    width = window_s(seen, flows, end - begin)
    edges = begin + width * np.arange(int((end - begin) / width + 1e-9) + 1)
    fair = seen.carried_mbit * 1e6 / 8 / flows * width  # bytes in a window
    rows = []
    for record in records:
        flow_samples = samples.get(record.name, NO_SAMPLES)
        times, acked = (flow_samples[name].to_numpy() for name in ("time_s", "bytes_acked"))
        ran = times <= record.stopped_s + ROUNDING_S
        if not ran.any():
            rows.append(np.zeros(len(edges) - 1))
            continue
        rows.append(np.diff(np.interp(edges, times[ran], acked[ran])) / fair)
    return np.asarray(rows, dtype=np.float64)


def least_share(seen: TrialView) -> float:
    """Return the smallest share of a victim in a window, in percent of the fair one."""
    shares = victims_shares(seen)
    return 100 * float(shares.min()) if shares.size else NAN


def starved(seen: TrialView) -> float:
    """Return the percentage of the victims' windows that have less than a tenth of fair."""
    shares = victims_shares(seen)
    return 100 * float((shares < STARVED_PART).mean()) if shares.size else NAN


def longest_starvation(seen: TrialView) -> float:
    """Return the longest time below a tenth of the fair share, in percent of what is measured."""
    below = victims_shares(seen) < STARVED_PART
    return 100 * max(map(_longest_run, below)) / below.shape[1] if below.size else NAN


def _longest_run(flags: npt.NDArray[np.bool_]) -> int:
    """Return the length of the longest run of true values."""
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest


def _of_victims(metric: str, better: int, label: str) -> Score:
    """Return a score of the harm that is done to the victims' mean."""

    def mean(seen: TrialView) -> float:
        victims = seen.flows[seen.flows["flow"].str.startswith(VICTIMS)]
        return float(victims[metric].mean())

    return Score(metric, label, LESS, mean, harm=better)


def fullness(seen: TrialView) -> float:
    """Return the flows' mean wait in the queue, in percent of the longest that the queue allows."""
    unit_bits = 8 * FRAME_BYTES if seen.slowest.unit == "packets" else 8
    longest_ms = seen.slowest.limit * unit_bits / (seen.rate_mbit * 1e3)
    return 100 * seen.mean("queue_mean_ms") / longest_ms


def lost(seen: TrialView) -> float:
    """Return the percentage of all flows' packets that the queue dropped, by what got through."""
    arrived = seen.flows["throughput_mbps"]
    sent = (arrived / (1 - seen.flows["drop_rate"])).where(seen.flows["drop_rate"] < 1)
    return 100 * (1 - float(arrived[sent.notna()].sum() / sent.sum())) if sent.sum() else NAN


OWN_SCORES = (
    UTILISATION,
    Score("fullness", "queue, of its limit (%)", LESS, fullness),
    Score("losses", DROPS_SCORE.words, LESS, lost),
    JAIN,
)
STARVATION_SCORES = (
    Score("starved", "victims' time below a tenth of fair (%)", LESS, starved),
    Score("longest_starvation", "longest such time (% of the trial)", LESS, longest_starvation),
    Score("least_share", "victims' least share in a window (% of fair)", MORE, least_share),
)
SPACE_HARM_SCORES = tuple(_of_victims(*each) for each in HARMED)
SPACE_SCORES = (*OWN_SCORES, *STARVATION_SCORES, *SPACE_HARM_SCORES)
