"""The steps of the draft's test cases: what was measured, and whether it is as the draft says.

Steps that need a variable which BBRv1 does not have, or which no socket shows, say so; so do the
cases that need a sender that pauses.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.text_tables import TextTable
from experiments.evaluation.bbr_draft import CHANGE_AT_S, SPIKE_S
from experiments.evaluation.bbr_states import (
    MSS_BYTES,
    PACING_PART,
    STARTUP_GAIN,
    BbrSamples,
    Phase,
)
from experiments.evaluation.suite_steps import StepReading, StepVerdict, judged, suite_summary
from testbed.store.reading import Trial
from testbed.store.records import Status

CLOSE_PART = 0.02  # the draft's: an estimate is close to the bandwidth
LOSS_THRESHOLD = 0.02  # the draft's: of a round trip's packets, more are too many
STARTUP_S, PROBING_FROM_S = 1.0, 2.0  # when STARTUP and its queue are gone on the plain path
MIN_PROBE_RTT_S = 0.2
NO_PAUSE = "no sender here is limited by its application and sampled"
NOT_IN_V1 = "BBRv1 has no such state or variable"


StepCheck = Callable[[BbrSamples], StepReading]
PhaseCheck = Callable[[BbrSamples, Phase], StepReading]


@dataclass(frozen=True)
class DraftStep:
    """A step of a case: its number in the draft, what it asks, and its check or why it has none."""

    number: str
    words: str
    check: StepCheck | str


@dataclass(frozen=True)
class DraftCase:
    """A test case of the draft, the path that it is tested on, and its steps."""

    number: int
    name: str
    path: str
    steps: tuple[DraftStep, ...]


def near(value: float, wanted: float, unit: str, within: float = CLOSE_PART) -> StepReading:
    """Compare a number with the draft's."""
    met = abs(value / wanted - 1) <= within
    return StepReading(f"{value:.3g} {unit}, draft: {wanted:.3g}", met)


def close_to_link(estimate_mbit: float, seen: BbrSamples) -> StepReading:
    """Compare a bandwidth estimate with the link's rate."""
    part = 100 * (estimate_mbit / seen.link_mbit - 1)
    return StepReading(f"{part:+.1f} % of the link's rate", abs(part) <= 100 * CLOSE_PART)


def of_drain(check: PhaseCheck) -> StepCheck:
    """Make a check of DRAIN one of the samples, which is not met if there is no DRAIN."""

    @functools.wraps(check)
    def checked(seen: BbrSamples) -> StepReading:
        return check(seen, seen.drain) if seen.drain else StepReading("no DRAIN", False)

    return checked


def of_probe_rtt(check: PhaseCheck) -> StepCheck:
    """Make a check of the first PROBE_RTT one of the samples, not met if there is no PROBE_RTT."""

    @functools.wraps(check)
    def checked(seen: BbrSamples) -> StepReading:
        first = seen.first_probe_rtt
        return check(seen, first) if first else StepReading("none", False)

    return checked


def startup_gain(seen: BbrSamples) -> StepReading:
    """Read the gain of STARTUP."""
    gain = seen.startup_mbit * STARTUP_GAIN / seen.link_mbit
    return StepReading(f"pacing at {gain:.2f} times the link's rate", gain > 2)


@of_drain
def plateau_rounds(seen: BbrSamples, drain: Phase) -> StepReading:
    """Count the round trips between the last growth by a quarter and DRAIN."""
    before = seen.between(0, drain.begin_s)
    pacing = before["pacing_mbps"]
    begin = float(before["time_s"][pacing >= pacing.max() / 1.25].iloc[0])
    rounds = seen.rounds(begin, drain.begin_s)
    return StepReading(f"{rounds:.1f} round trips", 3 <= rounds <= 6)


@of_drain
def drains(_seen: BbrSamples, drain: Phase) -> StepReading:
    """Say when STARTUP ended."""
    return StepReading(f"DRAIN at {drain.begin_s:.2f} s", True)


@of_drain
def drain_gain(seen: BbrSamples, drain: Phase) -> StepReading:
    """Read the gain of DRAIN."""
    return near(drain.mbit / PACING_PART / seen.link_mbit, 0.5, "times the bandwidth")


@of_drain
def drained(seen: BbrSamples, drain: Phase) -> StepReading:
    """Compare the data in flight at DRAIN's end with the BDP."""
    left, bdp = seen.in_flight(drain.end_s), seen.bdp_packets()
    return StepReading(f"{left:.0f} packets in flight, BDP {bdp:.0f}", left <= 1.1 * bdp + 3)


@of_drain
def rounds_in_drain(seen: BbrSamples, drain: Phase) -> StepReading:
    """Count DRAIN's round trips."""
    rounds = seen.rounds(drain.begin_s, drain.end_s)
    left, bdp = seen.in_flight(drain.end_s), seen.bdp_packets()
    statement = f"{rounds:.1f} round trips, then {left:.0f} packets in flight, BDP {bdp:.0f}"
    return StepReading(statement, 2.5 <= rounds <= 3.5)


def phases_of(gain: float, following: float) -> StepCheck:
    """Return a check that phases of a gain come, and are followed by those of another."""

    def check(seen: BbrSamples) -> StepReading:
        probes = seen.of_gain(gain, PROBING_FROM_S, seen.scenario.duration_s)
        after = [abs(each / following - 1) < 0.05 for _, each in probes]
        lengths = [(phase.end_s - phase.begin_s) / seen.rtt_s for phase, _ in probes]
        mean = sum(lengths) / len(lengths) if lengths else math.nan
        statement = (
            f"{len(probes)} of {mean:.1f} round trips, {sum(after)} followed by {following:g}"
        )
        return StepReading(statement, bool(probes) and sum(after) >= 0.9 * len(probes))

    return check


def losses_while_probing(seen: BbrSamples) -> StepReading:
    """Count the phases of gain 1.25 that packets are sent again in, or a round trip later."""
    probes = seen.of_gain(1.25, PROBING_FROM_S, seen.scenario.duration_s)
    counts = [
        seen.at("total_retrans", p.end_s + seen.rtt_s) - seen.at("total_retrans", p.begin_s)
        for p, _ in probes
    ]
    lost = sum(count > 0 for count in counts)
    return StepReading(f"{lost} of {len(probes)} phases with losses", lost > 0)


def no_losses_while_probing(seen: BbrSamples) -> StepReading:
    """Say that nothing is sent again in phases of gain 1.25."""
    losses = losses_while_probing(seen)
    return StepReading(losses.said, not losses.met)


@of_probe_rtt
def probe_rtt_interval(_seen: BbrSamples, phase: Phase) -> StepReading:
    """Say how long after the connection's beginning PROBE_RTT comes."""
    return near(phase.begin_s, 5.0, "s", 0.1)


@of_probe_rtt
def probe_rtt_window(seen: BbrSamples, phase: Phase) -> StepReading:
    """Compare PROBE_RTT's window with half of the BDP."""
    return near(seen.at("cwnd", phase.end_s), 0.5 * seen.bdp_packets(), "packets", 0.1)


@of_probe_rtt
def probe_rtt_length(_seen: BbrSamples, phase: Phase) -> StepReading:
    """Compare PROBE_RTT's length with the least of 200 ms."""
    length_s = phase.end_s - phase.begin_s
    return StepReading(f"{1e3 * length_s:.0f} ms", length_s >= MIN_PROBE_RTT_S)


@of_probe_rtt
def resumes(seen: BbrSamples, phase: Phase) -> StepReading:
    """Compare the estimate after PROBE_RTT with the link."""
    return close_to_link(seen.cruise_mbit(phase.end_s + 0.1, seen.scenario.duration_s), seen)


def returns_to_startup(seen: BbrSamples) -> StepReading:
    """Say whether the pacing rate goes on growing after a PROBE_RTT that came before DRAIN."""
    probe_rtt, drain = seen.first_probe_rtt, seen.drain
    if probe_rtt is None or (drain is not None and drain.begin_s < probe_rtt.begin_s):
        return StepReading("no PROBE_RTT before DRAIN", False)
    before = float(seen.between(0, probe_rtt.begin_s)["pacing_mbps"].max())
    grown = float(seen.column("pacing_mbps").max()) / before
    statement = f"PROBE_RTT at {probe_rtt.begin_s:.1f} s, then pacing grows {grown:.1f} times"
    return StepReading(statement, grown > 1.25)


def window_in_bdp(begin_s: float, end_s: float) -> StepCheck:
    """Return a check that the window is above two BDP."""

    def check(seen: BbrSamples) -> StepReading:
        window = float(seen.between(begin_s, end_s)["cwnd"].max()) / seen.bdp_packets()
        return StepReading(f"{window:.2f} BDP", window > 2)

    return check


def used(begin_s: float) -> StepCheck:
    """Return a check of the link's use from a time on."""

    def check(seen: BbrSamples) -> StepReading:
        goodput = seen.goodput_mbit(begin_s, seen.scenario.duration_s)
        part = 100 * goodput / seen.link_mbit
        return StepReading(f"{part:.1f} % of the link's rate", part >= 95)

    return check


def few_losses(begin_s: float) -> StepCheck:
    """Return a check of how much is sent again from a time on."""

    def check(seen: BbrSamples) -> StepReading:
        end_s = seen.scenario.duration_s
        again = seen.at("total_retrans", end_s) - seen.at("total_retrans", begin_s)
        bits = 1e6 * seen.goodput_mbit(begin_s, end_s) * (end_s - begin_s)
        part = again / (again + bits / 8 / MSS_BYTES)
        return StepReading(f"{100 * part:.1f} % sent again", part <= LOSS_THRESHOLD)

    return check


def of_last_half(check: Callable[[float], StepCheck]) -> StepCheck:
    """Return the check that begins in the middle of the trial."""
    return lambda seen: check(seen.scenario.duration_s / 2)(seen)


def least_window(seen: BbrSamples) -> StepReading:
    """Read the smallest window."""
    least = float(seen.between(STARTUP_S, seen.scenario.duration_s)["cwnd"].min())
    return StepReading(f"{least:.0f} packets, BDP {seen.bdp_packets():.1f}", least >= 4)


def discovers(seen: BbrSamples) -> StepReading:
    """Count the round trips until the estimate is that of the faster link."""
    faster = seen.changed_link_mbit
    rows = seen.between(CHANGE_AT_S, seen.scenario.duration_s)
    there = rows[rows["delivery_mbps"] >= (1 - CLOSE_PART) * faster]
    bound = 2 * math.log2(seen.bdp_packets() * faster / seen.link_mbit)
    if there.empty:
        return StepReading("not within the trial", False)
    at = float(there["time_s"].iloc[0])
    rounds = seen.rounds(CHANGE_AT_S, at)
    statement = f"{rounds:.0f} round trips, {at - CHANGE_AT_S:.2f} s; 2 log2(BDP) is {bound:.0f}"
    return StepReading(statement, rounds <= bound)


def adapts_down(seen: BbrSamples) -> StepReading:
    """Say how long the estimate stays above the slower link's rate."""
    slower = seen.payload_mbit(
        min(c.rate_mbit or 0 for c in seen.scenario.network.bottleneck.schedule)
    )
    rows = seen.between(CHANGE_AT_S, seen.scenario.duration_s)
    above = rows[rows["pacing_mbps"] > 1.25 * (1 + CLOSE_PART) * slower]
    last = float(above["time_s"].iloc[-1]) if len(above) else CHANGE_AT_S
    rounds = seen.rounds(CHANGE_AT_S, last)
    is_there = last < float(rows["time_s"].iloc[-1]) - 0.5
    return StepReading(f"after {last - CHANGE_AT_S:.1f} s, {rounds:.0f} round trips", is_there)


def in_state(state: str) -> StepCheck:
    """Return a check that the kernel's recovery state occurs after STARTUP."""

    def check(seen: BbrSamples) -> StepReading:
        rows = seen.between(PROBING_FROM_S, seen.scenario.duration_s)
        count = int((rows["ca_state"] == state).sum())
        return StepReading(f"{count} samples in {state}", count > 0)

    return check


def has_window_again(seen: BbrSamples) -> StepReading:
    """Say how long after the spike the window is what it was before."""
    before = 0.9 * seen.at("cwnd", CHANGE_AT_S)
    rows = seen.between(CHANGE_AT_S, seen.scenario.duration_s)
    low = rows[rows["cwnd"] < before]
    if low.empty:
        return StepReading("never below", True)
    back = float(low["time_s"].iloc[-1]) - CHANGE_AT_S - SPIKE_S
    return StepReading(f"{back:+.2f} s after the spike", back < 1)


def same_estimate(seen: BbrSamples) -> StepReading:
    """Compare the estimate at the end with the link."""
    end = seen.scenario.duration_s
    return close_to_link(seen.cruise_mbit(end - 2, end), seen)


def startup_estimate(seen: BbrSamples) -> StepReading:
    """Compare STARTUP's estimate with the link."""
    return close_to_link(seen.startup_mbit, seen)


def full_bandwidth(seen: BbrSamples) -> StepReading:
    """Say whether STARTUP found all of the bandwidth."""
    estimate = startup_estimate(seen)
    return StepReading(estimate.said, seen.startup_mbit >= (1 - CLOSE_PART) * seen.link_mbit)


def untestable(number: int, name: str, why: str) -> DraftCase:
    """Return a case that has no trial."""
    return DraftCase(number, name, "", (DraftStep("all", "", why),))


DRAFT_CASES = (
    DraftCase(1, "STARTUP ends on a plateau", "plain", (
        DraftStep("1", "begins in STARTUP", startup_gain),
        DraftStep("3", "estimate within 2 %", startup_estimate),
        DraftStep("4", "three rounds without growth", plateau_rounds),
        DraftStep("5", "goes to DRAIN", drains),
    )),
    untestable(2, "STARTUP ends on loss when application-limited", NO_PAUSE),
    DraftCase(3, "DRAIN ends by what is in flight", "plain", (
        DraftStep("2", "gain 0.5", drain_gain),
        DraftStep("4", "ends at a BDP in flight", drained),
    )),
    DraftCase(4, "DRAIN ends by time", "slower-in-drain", (
        DraftStep("5", "ends after three rounds", rounds_in_drain),
    )),
    DraftCase(5, "PROBE_UP ends on a plateau", "plain", (
        DraftStep("1", "comes, and goes to PROBE_DOWN", phases_of(1.25, 0.75)),
        DraftStep("2", "without losses", no_losses_while_probing),
        DraftStep("4", "full_bw_now", NOT_IN_V1),
    )),
    untestable(6, "PROBE_UP ends on loss when application-limited", NO_PAUSE),
    untestable(7, "PROBE_UP does not end when application-limited", NO_PAUSE),
    DraftCase(8, "PROBE_DOWN ends by what is in flight", "plain", (
        DraftStep("2", "gain 0.90", lambda seen: StepReading("0.75 in BBRv1", False)),
        DraftStep("5", "goes to PROBE_CRUISE", phases_of(0.75, 1.0)),
    )),
    untestable(9, "PROBE_DOWN ends by time", f"{NOT_IN_V1}: PROBE_REFILL, bw_probe_wait"),
    DraftCase(10, "PROBE_RTT", "plain", (
        DraftStep("2", "after 5 s", probe_rtt_interval),
        DraftStep("3", "window of half a BDP", probe_rtt_window),
        DraftStep("4", "at least 200 ms", probe_rtt_length),
        DraftStep("5", "goes back to PROBE_BW", resumes),
    )),
    untestable(11, "PROBE_RTT is skipped after idleness", NO_PAUSE),
    DraftCase(12, "STARTUP on a link that aggregates", "batches", (
        DraftStep("3", "window above 2 BDP", window_in_bdp(0, STARTUP_S)),
        DraftStep("4", "finds the full bandwidth", full_bandwidth),
    )),
    DraftCase(13, "cruising on a link that aggregates", "batches", (
        DraftStep("3", "extra_acked", "no socket shows it"),
        DraftStep("4", "window above 2 BDP", window_in_bdp(PROBING_FROM_S, math.inf)),
        DraftStep("4", "full use", used(PROBING_FROM_S)),
    )),
    DraftCase(14, "a BDP below a packet", "sub-packet", (
        DraftStep("3", "window of at least 4", least_window),
        DraftStep("4", "estimate within 2 %", same_estimate),
        DraftStep("4", "no stalls", used(PROBING_FROM_S)),
    )),
    DraftCase(15, "ten times the bandwidth", "faster", (
        DraftStep("3", "inflight_longterm doubles", NOT_IN_V1),
        DraftStep("4", "full bandwidth in O(log BDP)", discovers),
    )),
    DraftCase(16, "a tenth of the bandwidth", "slower", (
        DraftStep("3", "bw_shortterm", NOT_IN_V1),
        DraftStep("4", "max_bw drops to the new rate", adapts_down),
    )),
    DraftCase(17, "policers", "policer", (
        DraftStep("3", "inflight_shortterm, bw_shortterm", NOT_IN_V1),
        DraftStep("4", "conforms to the token rate", of_last_half(used)),
        DraftStep("4", "without excessive loss", of_last_half(few_losses)),
    )),
    DraftCase(18, "spurious fast recovery", "reordered", (
        DraftStep("1", "occurs", in_state("recovery")),
        DraftStep("4", "estimate within 2 %", same_estimate),
    )),
    DraftCase(19, "spurious retransmission timeout", "spike", (
        DraftStep("1", "occurs", in_state("loss")),
        DraftStep("3", "window restored", has_window_again),
        DraftStep("4", "estimate within 2 %", same_estimate),
    )),
    DraftCase(20, "PROBE_RTT during STARTUP", "long", (
        DraftStep("3", "goes back to STARTUP", returns_to_startup),
    )),
    DraftCase(21, "loss during PROBE_UP", "shallow", (
        DraftStep("1", "inflight_longterm", NOT_IN_V1),
        DraftStep("3", "losses while probing", losses_while_probing),
        DraftStep("5", "goes to PROBE_DOWN", phases_of(1.25, 0.75)),
    )),
    untestable(22, "application-limited in PROBE_REFILL", NO_PAUSE),
)  # fmt: skip
DRAFT_HEADS = ("control", "case", "what", "step", "asked", "measured", "so")


def draft_rows(results: ExperimentResults) -> Iterator[tuple[str, ...]]:
    """Yield a row for each variant, kernel and step."""
    groups: dict[str, dict[str, Trial]] = {}
    for trial in results.trials:
        axes = trial.scenario.axes
        name = f"{axes['variant']} on {trial.scenario.kernel}"
        groups.setdefault(name, {}).setdefault(axes["path"], trial)
    for name, trials in groups.items():
        seen = {
            path: BbrSamples(trial)
            for path, trial in trials.items()
            if trial.record.status is Status.OK
        }
        for case in DRAFT_CASES:
            for step in case.steps:
                statement, verdict = judged_step(step, seen.get(case.path))
                yield name, str(case.number), case.name, step.number, step.words, statement, verdict


def judged_step(step: DraftStep, seen: BbrSamples | None) -> tuple[str, StepVerdict]:
    """Return what a step measured, and whether it is as the draft says."""
    sampled = None if seen is None or seen.rows.empty else seen
    return judged(step.check, sampled, "its path did not run")


def draft_summary(results: ExperimentResults) -> TextTable:
    """Tabulate the steps."""
    what = f"{len(DRAFT_CASES)} cases of draft-ietf-ccwg-bbr"
    return suite_summary(DRAFT_HEADS, tuple(draft_rows(results)), what, "steps")
