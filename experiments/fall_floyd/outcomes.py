"""The outcome of losses: as a variant's definition predicts it, and as observed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.figures.sheet import Cell, Head, Sheet
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.text_tables import TextTable
from analysis.trials.labels import variant_key
from analysis.trials.packets import FlowPackets, FlowTables, TrialPackets, epoch_ns
from analysis.trials.samples import read_samples
from analysis.trials.series import Floats
from testbed.errors import TestbedError
from testbed.scenario.model import Flow
from testbed.store.names import SOCKET_SAMPLES
from testbed.store.reading import Trial
from testbed.store.records import Status

ROUND_TRIP_TOLERANCE = 0.25  # the queue that a retransmission meets


@dataclass(frozen=True)
class Outcome:
    """A flow's recovery; segments of new data are numbered from 1."""

    lost: tuple[int, ...]
    sent_again: tuple[int, ...]  # in the order of sending
    timeouts: int
    halvings: int  # times that ssthresh was lowered
    slow_start: bool  # after the first loss, outside of fast recovery
    recovery_s: float  # from the first retransmission to the ACK of all that was sent before it
    round_trips: float  # recovery_s in round trips of a segment on the idle path
    rto_ms: float  # before the loss
    acked: int  # segments, when the flow's measured time was over

    @property
    def needless(self) -> int:
        """Segments sent again that had not been lost."""
        return sum(number not in self.lost for number in self.sent_again)

    @property
    def recovered(self) -> bool:
        """True if all data sent before the first retransmission was acknowledged."""
        return math.isfinite(self.round_trips)


@dataclass(frozen=True)
class Expected:
    """The outcome that a variant's definition predicts."""

    timeouts: int
    halvings: int
    slow_start: bool
    exactly_the_lost: bool  # sent again, each once, in their order; else at least those
    round_trips: tuple[float, float]  # at least and at most

    def differences(self, observed: Outcome) -> Iterator[str]:
        """Describe the differences between the observed and the expected outcome."""
        if observed.timeouts != self.timeouts:
            yield f"{observed.timeouts} timeouts, not {self.timeouts}"
        if observed.halvings != self.halvings:
            yield f"{observed.halvings} halvings, not {self.halvings}"
        if observed.slow_start != self.slow_start:
            yield "slow start" if observed.slow_start else "no slow start"
        if self.exactly_the_lost and observed.sent_again != observed.lost:
            yield f"sends again {observed.sent_again}, not {observed.lost}"
        if not set(observed.lost) <= set(observed.sent_again):
            yield f"sends again {observed.sent_again}, not all of {observed.lost}"
        low, high = self.round_trips
        if not low - ROUND_TRIP_TOLERANCE <= observed.round_trips <= high + ROUND_TRIP_TOLERANCE:
            yield f"{observed.round_trips:.1f} round trips, not {low:g} to {high:g}"


LOSS_COUNTS_TESTED = (1, 2, 3, 4)
TIMEOUT = (3.0, 12.0)  # round trips: one of 0.2 s at least twice, and a timer of some 0.5 s

# per variant with one loss, with two, …
EXPECTED: Mapping[str, tuple[Expected, ...]] = {
    # the hole, then all behind it that no ACK has covered, in slow start
    "tahoe": tuple(Expected(0, 1, True, False, (1, lost)) for lost in LOSS_COUNTS_TESTED),
    # a recovery a loss, until too few duplicate ACKs come
    "reno": (
        Expected(0, 1, False, True, (1, 1)),
        Expected(0, 2, False, True, (2, 3)),
        Expected(1, 3, True, True, TIMEOUT),
        Expected(1, 3, True, False, TIMEOUT),
    ),
    # a loss a round trip, one recovery
    "newreno": tuple(Expected(0, 1, False, True, (lost, lost)) for lost in LOSS_COUNTS_TESTED),
    # as newreno while the timer, set at the first partial ACK, does not fire: two round trips
    # and a half
    "newreno-impatient": (
        *(Expected(0, 1, False, True, (lost, lost)) for lost in (1, 2, 3)),
        Expected(1, 2, True, False, (3, 5)),
    ),
    # all losses in one go, each known by three segments above it that arrived
    "sack": tuple(Expected(0, 1, False, True, (1, min(lost, 2))) for lost in LOSS_COUNTS_TESTED),
}


@dataclass(frozen=True)
class Points:
    """Segments over seconds of the trial."""

    time_s: Floats
    number: Floats


@dataclass(frozen=True)
class SegmentSequence:
    """A flow as its sender's capture shows it; segments of new data are numbered from 1."""

    new: Points
    again: Points
    acks: Points  # the last segment that each acknowledges
    timeouts_s: Floats  # when the retransmit timer fired, to a sample


def sequence(trial: Trial, flow: Flow) -> SegmentSequence:
    """Read a flow's segments and ACKs over time."""
    packets = _packets(trial, flow)
    zero = epoch_ns(trial)
    numbers, is_new = _numbers(packets.data)
    time_s = (packets.data["time_ns"].to_numpy() - zero) / 1e9
    ends = _ends(packets.data)
    # ACKs of the SYN, before any data, are number 0
    acked = np.searchsorted(ends, packets.acks["ack"].to_numpy(), side="right")
    acks_s = (packets.acks["time_ns"].to_numpy() - zero) / 1e9
    sockets = _sockets(trial, flow)
    fired = np.diff(sockets["backoff"].to_numpy(), prepend=0) > 0
    return SegmentSequence(
        new=Points(time_s[is_new], numbers[is_new]),
        again=Points(time_s[~is_new], numbers[~is_new]),
        acks=Points(acks_s, acked.astype(np.float64)),
        timeouts_s=sockets["time_s"].to_numpy()[fired],
    )


def outcome(trial: Trial, flow: Flow, segments: SegmentSequence) -> Outcome:
    """Describe the flow's recovery from its losses."""
    sockets = _sockets(trial, flow)
    if not len(segments.again.time_s):
        raise TestbedError(
            f"{trial.path.name}: {flow.name} sent nothing again", "did it lose anything?"
        )
    began = float(segments.again.time_s[0])
    before = segments.new.time_s < began
    covered = segments.acks.number >= segments.new.number[before].max()
    late = segments.acks.time_s[covered & (segments.acks.time_s > began)]
    recovery_s = float(late[0]) - began if len(late) else float("nan")
    ssthresh = sockets["ssthresh"].fillna(2.0**31).to_numpy()
    after = sockets[sockets["time_s"] > began]
    growing = after["ca_state"].isin(["open", "loss"]) & (after["cwnd"] < after["ssthresh"])
    earlier = sockets[sockets["time_s"] < began]
    return Outcome(
        lost=flow.drops,
        sent_again=tuple(int(number) for number in segments.again.number),
        timeouts=len(segments.timeouts_s),
        halvings=int((np.diff(ssthresh) < 0).sum()),
        slow_start=bool(growing.any()),
        recovery_s=recovery_s,
        round_trips=recovery_s / _shortest_round_trip_s(segments, began),
        rto_ms=float(earlier["rto_ms"].iloc[-1]),
        acked=int(segments.acks.number[segments.acks.time_s <= trial.scenario.stop_s(flow)].max()),
    )


def _packets(trial: Trial, flow: Flow) -> FlowTables:
    record = next(record for record in trial.record.flows if record.name == flow.name)
    packets = TrialPackets(trial).flow("sender", record)
    if packets is None:
        raise TestbedError(f"{trial.path.name}: no capture at {flow.src}", "capture the senders")
    return FlowPackets(packets.data[packets.data["payload"] > 0], packets.acks)


def _shortest_round_trip_s(segments: SegmentSequence, until_s: float) -> float:
    """Return the shortest round trip of a full segment: a SYN takes less time to send.

    The first segment has iperf3's cookie alone.
    """
    full = (segments.new.time_s < until_s) & (segments.new.number > 1)
    acks = np.searchsorted(segments.acks.number, segments.new.number[full])
    known = acks < len(segments.acks.time_s)
    return float((segments.acks.time_s[acks[known]] - segments.new.time_s[full][known]).min())


def _sockets(trial: Trial, flow: Flow) -> pd.DataFrame:
    table = read_samples(trial, SOCKET_SAMPLES)
    if table is None:
        raise TestbedError(f"{trial.path.name}: no samples of sockets", "sample_interval_ms: 5")
    return table[(table["flow"] == flow.name) & (table["state"] == "established")]


def _numbers(data: pd.DataFrame) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return each packet's segment as the dropper counts, and whether it is sent first."""
    first = ~data["seq"].duplicated()
    order = {seq: number for number, seq in enumerate(data.loc[first, "seq"], start=1)}
    return data["seq"].map(order).to_numpy(dtype=np.float64), first.to_numpy()


def _ends(data: pd.DataFrame) -> Floats:
    """Return the end of each segment of new data, in order of their numbers."""
    new = data[~data["seq"].duplicated()]
    return (new["seq"] + new["payload"]).to_numpy(dtype=np.float64)


Expectations = Mapping[str, tuple[Expected, ...]]  # variant → with one loss, two, …


def outcomes(trials: Iterable[Trial]) -> list[tuple[Trial, Outcome]]:
    """Pair each trial that ran and was captured with its outcome, in the figure's order."""
    pairs = []
    for trial in trials:
        flow = trial.scenario.flows[0]
        if trial.record.status is Status.OK and flow.drops:
            with contextlib.suppress(TestbedError):  # neither captured nor sampled
                pairs.append((trial, outcome(trial, flow, sequence(trial, flow))))
    return sorted(pairs, key=lambda pair: _place(pair[0]))


def _place(trial: Trial) -> tuple[object, ...]:
    flow = trial.scenario.flows[0]
    engine, profile = trial.record.engine, str(trial.scenario.profile)
    return engine, profile, variant_key(flow.variant or ""), len(flow.drops), trial.record.seed


def expected_and_seen(results: ExperimentResults) -> TextTable:
    """Tabulate the observed outcomes, with the expected ones in brackets."""
    return compared(outcomes(results.trials), EXPECTED)


def sheets(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """Yield the table of outcomes as a sheet of the page."""
    table = expected_and_seen(results)
    rows = tuple(tuple(Cell(text, text) for text in row) for row in table.rows)
    yield f"Recovery from the losses; {table.note}", Sheet(tuple(map(Head, table.header)), rows)


def compared(
    observed_by_trial: Iterable[tuple[Trial, Outcome]], expected: Expectations
) -> TextTable:
    """Write a row per trial."""
    lines = []
    for trial, observed in observed_by_trial:
        variant = trial.scenario.flows[0].variant or ""
        rows = expected.get(variant, ())[len(observed.lost) - 1 : len(observed.lost)]
        cells = _cells(observed, rows[0] if rows else None)
        lines.append((variant, str(len(observed.lost)), *cells))
    return TextTable(HEADER, tuple(lines), _note([line[-1] for line in lines]))


def _note(verdicts: Sequence[str]) -> str:
    """Count the trials as expected, out of those with an expectation."""
    judged = [verdict for verdict in verdicts if verdict != NOTHING_EXPECTED]
    right = judged.count(AS_EXPECTED)
    return f"seen (expected): {right} of {len(judged)} {AS_EXPECTED}" if judged else ""


HEADER = (
    "variant",
    "lost",
    "sent again",
    "timeouts",
    "halvings",
    "slow start",
    "round trips",
    "verdict",
)
AS_EXPECTED = "as expected"
NOTHING_EXPECTED = "–"
MAX_LISTED_SEGMENTS = 7  # segments sent again


def _cells(observed: Outcome, wanted: Expected | None) -> tuple[str, ...]:
    again = [str(number) for number in observed.sent_again[:MAX_LISTED_SEGMENTS]]
    if len(observed.sent_again) > MAX_LISTED_SEGMENTS:
        again += [f"… {len(observed.sent_again)} in all"]
    texts = (
        " ".join(again),
        str(observed.timeouts),
        str(observed.halvings),
        "yes" if observed.slow_start else "no",
        f"{observed.round_trips:.1f}",
    )
    if wanted is None:
        return (*texts, NOTHING_EXPECTED)
    low, high = wanted.round_trips
    brackets = (
        "the lost" if wanted.exactly_the_lost else "at least the lost",
        str(wanted.timeouts),
        str(wanted.halvings),
        "yes" if wanted.slow_start else "no",
        f"{low:g}" if low == high else f"{low:g}–{high:g}",
    )
    verdict = "; ".join(wanted.differences(observed)) or AS_EXPECTED
    return (*(f"{a} ({b})" for a, b in zip(texts, brackets, strict=True)), verdict)
