"""RFC 9331's requirements of a scalable control: what was measured of each, and whether it is met.

Where the text has a number, that is the bound; where it has none, the bound is ours, and the words
of the requirement or of the reading say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from analysis.captures.tcp import CE, SYN
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.text_tables import TextTable
from analysis.trials.accurate_ecn import AE, CWR, ECE, reported_marks
from analysis.trials.packets import FlowTables, TrialPackets
from analysis.trials.samples import Samples
from experiments.evaluation.l4s import FAR_MS, L4S_REORDERED_PERCENT, NEAR_MS, TINY_WINDOW_RTT_MS
from experiments.evaluation.suite_steps import StepReading, StepVerdict, judged, suite_summary
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, Status

ECT1 = 1  # of the column ecn
ALL_PART = 0.999
SAME_COUNT = 0.01
MAX_LONGER = 1.5  # ours: the time between marks, at eight times the rate
MAX_ROUGHLY = 2.0  # ours, for "roughly the same flow rate"
MAX_ORDERS = 10.0  # 4.3.1 quotes RFC 8085: within an order of magnitude
MAX_AFTER_LOSS = 0.7  # of the window: Cubic's (RFC 9438); Reno's is 0.5
MEAN_QUEUE_MS, HIGH_QUEUE_MS = 1.0, 2.0  # section 1: below 1 ms on average, 1 to 2 ms at 99 %
MAX_ALLOWED_BURST_MS = 0.25  # 4.3, item 7
SAME_BURST_S = 20e-6
SPURIOUS_PART = 0.1  # ours: of what was reordered
FIRST_FLOW, FLOW_BESIDE = "scalable1", "classic"


def with_payload(packets: pd.DataFrame) -> pd.DataFrame:
    """Select the packets that carry data."""
    return packets[packets["payload"] > 0]


class L4sTrial:
    """A trial of the suite: its flows' metrics, packets and samples."""

    def __init__(self, trial: Trial, flows: pd.DataFrame) -> None:
        self.trial = trial
        self._flows = flows.set_index("flow")
        self._packets = TrialPackets(trial)

    def metric(self, name: str, flow: str = FIRST_FLOW) -> float:
        """Return a number of metrics.csv."""
        return float(self._flows[name][flow])

    def scalable(self, name: str) -> pd.Series:
        """Return a number of metrics.csv of every flow of the control."""
        return self._flows.loc[self._flows.index != FLOW_BESIDE, name].astype(float)

    @property
    def rate_ratio(self) -> float:
        """The control's goodput over that of the flow beside."""
        return self.metric("goodput_mbps") / self.metric("goodput_mbps", FLOW_BESIDE)

    @property
    def rounds_between_marks(self) -> float:
        """Return the number of round trips between two marked packets."""
        marks = self.metric("mark_rate") * self.metric("received_packets")
        rounds = 1e3 * self.metric("duration_s") / self.metric("srtt_mean_ms")
        return rounds / marks if marks else np.inf

    def _record(self, flow: str) -> FlowRecord:
        return next(each for each in self.trial.record.flows if each.name == flow)

    def _tables(self, side: str, flow: str = FIRST_FLOW) -> FlowTables:
        tables = self._packets.flow(side, self._record(flow))
        assert tables is not None  # the suite captures at all points
        return tables

    def ect1_part(self, flow: str = FIRST_FLOW) -> float:
        """Return the part of a flow's data, as its host sent them, that carries ECT(1)."""
        return float((with_payload(self._tables("sender", flow).data)["ecn"] == ECT1).mean())

    @property
    def syn_flags(self) -> int:
        """The bits of accurate ECN in the first SYN."""
        flags = self._tables("sender").data["flags"]
        return int(flags[(flags & SYN) > 0].iloc[0]) & (AE | CWR | ECE)

    @cached_property
    def reported_and_marked(self) -> tuple[int, int]:
        """Return the marks that the receiver's ACKs count, and those that had arrived."""
        tables = self._tables("receiver")
        marked = with_payload(tables.data)["ecn"] == CE
        return reported_marks(tables.acks["flags"].to_numpy()), int(marked.sum())

    @property
    def after_loss(self) -> float | None:
        """The slow-start threshold of the first recovery, in the window before it."""
        rows = Samples(self.trial).flow(self._record(FIRST_FLOW))
        assert rows is not None
        rows = rows[rows["time_s"] > self.trial.scenario.measure_from_s]
        recovering = np.flatnonzero((rows["ca_state"] == "recovery").to_numpy())
        if not len(recovering) or not recovering[0]:
            return None
        first = int(recovering[0])
        return float(rows["ssthresh"].iloc[first]) / float(rows["cwnd"].iloc[first - 1])

    def burst_ms(self, link_mbit: float) -> float:
        """Return the 99th percentile of the queue that a burst of the sender's makes."""
        data = with_payload(self._tables("sender").data)
        times = data["time_ns"].to_numpy() / 1e9
        steady = times > times[0] + self.trial.scenario.measure_from_s
        starts = np.flatnonzero(np.diff(times[steady]) > SAME_BURST_S)
        packets = np.diff(np.concatenate(([-1], starts, [steady.sum() - 1])))
        frame_ms = float(data["length"].max()) * 8e-3 / link_mbit
        return float(np.quantile(packets - 1, 0.99)) * frame_ms


L4sTrials = Mapping[str, L4sTrial]
L4sCheck = Callable[[L4sTrials], StepReading]


@dataclass(frozen=True)
class L4sRequirement:
    """A requirement of RFC 9331, the paths it is tested on, and its check or why it has none."""

    section: str
    words: str
    paths: tuple[str, ...]
    check: L4sCheck | str


def sends_ect1(seen: L4sTrials) -> StepReading:
    """Read the part of the data that carries ECT(1)."""
    part = seen["fast"].ect1_part()
    return StepReading(f"{100 * part:.2f} % of the data", part >= ALL_PART)


def asks_for_accurate_ecn(seen: L4sTrials) -> StepReading:
    """Read the SYN's three bits."""
    flags = seen["fast"].syn_flags
    bits = [name for bit, name in ((AE, "AE"), (CWR, "CWR"), (ECE, "ECE")) if flags & bit]
    return StepReading(f"the SYN has {', '.join(bits) or 'none'}", len(bits) == 3)


def reports_marks(seen: L4sTrials) -> StepReading:
    """Compare the marks that acknowledgements count with those that arrived."""
    reported, marked = seen["fast"].reported_and_marked
    statement = f"{reported} counted of {marked} marks"
    return StepReading(statement, marked > 0 and abs(reported / marked - 1) <= SAME_COUNT)


def marks_keep_their_distance(seen: L4sTrials) -> StepReading:
    """Compare the time between marks at two rates."""
    slow, fast = seen["slow"].rounds_between_marks, seen["fast"].rounds_between_marks
    statement = f"{slow:.2f} round trips at 10 Mbit/s, {fast:.2f} at 80"
    return StepReading(statement, fast <= MAX_LONGER * slow)


def classic_sends_no_ect1(seen: L4sTrials) -> StepReading:
    """Read the part of a Classic control's data that carries ECT(1)."""
    part = seen["beside-marks"].ect1_part(FLOW_BESIDE)
    return StepReading(f"Cubic's host sends it in {100 * part:.2f} % of the data", part == 0)


def halves_after_a_loss(seen: L4sTrials) -> StepReading:
    """Read the window after a loss, in that before."""
    part = seen["loss"].after_loss
    if part is None:
        return StepReading("no recovery", False)
    return StepReading(
        f"{part:.2f} of the window before, at most {MAX_AFTER_LOSS:g}", part <= MAX_AFTER_LOSS
    )


def beside(path: str, most: float) -> L4sCheck:
    """Return a check of how unlike the goodputs of the control and of the flow beside are."""

    def check(seen: L4sTrials) -> StepReading:
        ratio = seen[path].rate_ratio
        return StepReading(f"{ratio:.2f} : 1, at most {most:g}", 1 / most <= ratio <= most)

    return check


def queues_briefly(path: str, name: str, most_ms: float) -> L4sCheck:
    """Return a check of the time that the control's packets wait."""

    def check(seen: L4sTrials) -> StepReading:
        value = seen[path].metric(name)
        return StepReading(f"{value:.2f} ms, at most {most_ms:g}", value <= most_ms)

    return check


def rates_by_round_trip(seen: L4sTrials) -> StepReading:
    """Compare the rates of two flows whose round trips differ fourfold."""
    rates = seen["two-rtts"].scalable("goodput_mbps")
    ratio = float(rates.iloc[0] / rates.iloc[1])
    most = (FAR_MS / NEAR_MS) ** 0.5
    statement = f"{ratio:.2f} : 1 for {NEAR_MS:g} and {FAR_MS:g} ms, at most {most:g}"
    return StepReading(statement, ratio <= most)


def stays_responsive(seen: L4sTrials) -> StepReading:
    """Read the queue of flows whose fair windows are below a packet."""
    queue_ms = float(seen["tiny-window"].scalable("queue_mean_ms").mean())
    return StepReading(
        f"{queue_ms:.1f} ms of queue, mean, at most {TINY_WINDOW_RTT_MS:g}",
        queue_ms <= TINY_WINDOW_RTT_MS,
    )


def tolerates_reordering(seen: L4sTrials) -> StepReading:
    """Read what is sent again on a path that reorders and loses nothing."""
    trial = seen["reordered"]
    percent = 100 * trial.metric("retransmitted") / trial.metric("sent_packets")
    most = SPURIOUS_PART * L4S_REORDERED_PERCENT
    statement = (
        f"{percent:.2f} % sent again, {L4S_REORDERED_PERCENT:g} % reordered, at most {most:g}"
    )
    return StepReading(statement, percent <= most)


def bursts_briefly(seen: L4sTrials) -> StepReading:
    """Read the queue that bursts make at the fast rate."""
    burst_ms = seen["fast"].burst_ms(seen["fast"].trial.record.queues[0].rate_mbit)
    return StepReading(
        f"{burst_ms:.2f} ms, 99 %, at most {MAX_ALLOWED_BURST_MS:g}",
        burst_ms <= MAX_ALLOWED_BURST_MS,
    )


L4S_REQUIREMENTS = (
    L4sRequirement("1", "roughly the rate of Cubic that asks for ECN", ("beside-marks",),
        beside("beside-marks", MAX_ROUGHLY)),
    L4sRequirement("1", "roughly the rate of Cubic without ECN", ("beside-drops",),
        beside("beside-drops", MAX_ROUGHLY)),
    L4sRequirement("1", "queue below 1 ms, mean, beside Cubic", ("beside-marks",),
        queues_briefly("beside-marks", "queue_mean_ms", MEAN_QUEUE_MS)),
    L4sRequirement("1", "queue of 1 to 2 ms, here 95 %, beside Cubic", ("beside-marks",),
        queues_briefly("beside-marks", "queue_p95_ms", HIGH_QUEUE_MS)),
    L4sRequirement("4.1", "MUST set ECT(1)", ("fast",), sends_ect1),
    L4sRequirement("4.2", "MUST have accurate feedback: asks for it", ("fast",),
        asks_for_accurate_ecn),
    L4sRequirement("4.2", "MUST report the extent of marking", ("fast",), reports_marks),
    L4sRequirement("4.3", "SHOULD: time between marks does not grow with the rate",
        ("slow", "fast"), marks_keep_their_distance),
    L4sRequirement("4.3, 1", "MUST be replaceable by a Classic control, without ECT(1)",
        ("beside-marks",), classic_sends_no_ect1),
    L4sRequirement("4.3, 2", "MUST react to loss", ("loss",), halves_after_a_loss),
    L4sRequirement("4.3, 2", "… so as to coexist with Reno: tail drop", ("tail-drop",),
        beside("tail-drop", MAX_ORDERS)),
    L4sRequirement("4.3, 3", "SHOULD coexist in a queue with Classic ECN: CoDel", ("codel",),
        beside("codel", MAX_ORDERS)),
    L4sRequirement("4.3, 3", "SHOULD coexist in a queue with Classic ECN: PIE", ("pie",),
        beside("pie", MAX_ORDERS)),
    L4sRequirement("4.3, 3", "MUST monitor for, and detect, such a queue", (),
        "no socket shows what a control has detected; the two lines above show its effect"),
    L4sRequirement("4.3, 4", "MUST have a rate as independent of RTT as possible", ("two-rtts",),
        rates_by_round_trip),
    L4sRequirement("4.3, 5", "SHOULD stay responsive where the fair window is below a packet",
        ("tiny-window",), stays_responsive),
    L4sRequirement("4.3, 6", "SHOULD tolerate reordering, by time", ("reordered",),
        tolerates_reordering),
    L4sRequirement("4.3, 7", "is expected to limit bursts to 0.25 ms", ("fast",), bursts_briefly),
    L4sRequirement("4.4", "smoothing of ECN feedback", (),
        "the section requires nothing in particular"),
)  # fmt: skip
L4S_HEADS = ("control", "RFC 9331", "asked", "measured", "so")


def l4s_rows(results: ExperimentResults) -> Iterator[tuple[str, ...]]:
    """Yield a row for each variant, kernel and requirement."""
    groups: dict[str, dict[str, L4sTrial]] = {}
    for trial in results.trials:
        axes = trial.scenario.axes
        of_trial = results.good[results.good["trial"] == trial.path.name]
        if trial.record.status is Status.OK and len(of_trial):
            name = f"{axes['variant']} on {trial.scenario.kernel}"
            groups.setdefault(name, {}).setdefault(axes["path"], L4sTrial(trial, of_trial))
    for name, trials in groups.items():
        for requirement in L4S_REQUIREMENTS:
            statement, verdict = judged_requirement(requirement, trials)
            yield name, requirement.section, requirement.words, statement, verdict


def judged_requirement(requirement: L4sRequirement, seen: L4sTrials) -> tuple[str, StepVerdict]:
    """Return what was measured of a requirement, and whether it is met."""
    missing = [path for path in requirement.paths if path not in seen]
    without = f"not run, or not valid: {', '.join(missing)}"
    return judged(requirement.check, None if missing else seen, without)


def l4s_summary(results: ExperimentResults) -> TextTable:
    """Tabulate the requirements."""
    return suite_summary(L4S_HEADS, tuple(l4s_rows(results)), "RFC 9331, section 4", "requirements")
