"""Laws of congestion control: what each predicts, its trials, and what is measured of them.

A prediction follows from the text of its source, and from what the law takes as given (a round
trip, a window before a loss). Measurements are of the kernel's samples of sockets and queues, and
of captures, not of the columns of `testbed run`. `benchmarks.theory` runs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from analysis.trials.packets import TrialPackets
from analysis.trials.samples import read_samples
from testbed.scenario.losses import Loss, LossEvents
from testbed.scenario.model import BASE_KERNEL, Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell, router_bottleneck
from testbed.scenario.network import FRAME_BYTES, Change, Direction, Queue
from testbed.scenario.transfers import SEGMENT_BYTES
from testbed.store.names import QUEUE_SAMPLES, SOCKET_SAMPLES
from testbed.store.reading import Trial

MATHIS_SEEDS = 10  # of one, C varies by 4 to 7 %: losses are few
DEEP_QUEUE = Queue("bfifo", limit_bdp=4.0)  # that is hardly ever full

Run = Callable[[Scenario], Trial]


@dataclass(frozen=True)
class LawRow:
    """A number that a law predicts, and the measured one."""

    what: str
    predicted: float
    measured: float
    unit: str = ""


@dataclass(frozen=True)
class TheoryLaw:
    """A law with its test, and how near a measurement has to be; the text is that of `rows`."""

    name: str
    rows: Callable[[Run], Iterator[LawRow]]
    tolerance: float  # of the prediction
    because: str
    since: str = BASE_KERNEL  # the first kernel that has it

    def agrees(self, predicted: float, measured: float) -> bool:
        """Return whether a measurement is within the tolerance; NaN is not."""
        return abs(measured - predicted) <= self.tolerance * predicted

    @property
    def sentence(self) -> str:
        """What the law says and where, and what its tolerance is for."""
        text = " ".join((self.rows.__doc__ or "").split())
        return f"- {self.name}: {text} Tolerance: {self.tolerance:.0%}, {self.because}."


# ---------------------------------------------------------------- scenarios and measurements


def bottleneck(
    rate_mbit: float, rtt_ms: float, queue: Queue, flows: Sequence[Flow], **more: Any
) -> Scenario:
    """Return flows, each from its own sender, through a router's queue, which no ACK meets."""
    link = LinkSettings(
        rate_mbit, queue=queue, schedule=more.pop("schedule", ()), reverse=Direction()
    )
    senders = len({flow.src for flow in flows})
    network = router_bottleneck(link, senders, LinkSettings(delay_ms=rtt_ms / 2))
    return Scenario("theory", network, tuple(flows), **more)


def tcp(variant: str, number: int = 1, **more: Any) -> Flow:
    """Return a TCP flow of the sender of that number."""
    ends = (f"sender{number}", "receiver")
    return Flow(f"flow{number}", FlowKind.TCP, *ends, variant=variant, **more)


def cbr(rate_mbit: float, number: int = 1) -> Flow:
    """Return a flow of full packets at even gaps."""
    flow = Flow(f"flow{number}", FlowKind.CBR, f"sender{number}", "receiver")
    return replace(flow, rate_mbit=rate_mbit, packet_bytes=1500, jitter=0.0)


def sockets(trial: Trial, flow: str = "flow1", from_s: float = 0.0) -> pd.DataFrame:
    """Return the samples of a flow's sender from a time on."""
    table = read_samples(trial, SOCKET_SAMPLES)
    assert table is not None
    return table[(table["flow"] == flow) & (table["time_s"] >= from_s)].dropna(subset=["cwnd"])


def backlog(trial: Trial, from_s: float = 0.0) -> pd.DataFrame:
    """Return the samples of the bottleneck's queue from a time on."""
    table = read_samples(trial, QUEUE_SAMPLES)
    assert table is not None
    of_router = table[(table["node"] == "router") & (table["interface"] == "router-eth0")]
    return of_router[of_router["time_s"] >= from_s]


def delivered(trial: Trial, flow: str = "flow1", from_s: float = 0.0) -> float:
    """Return a flow's goodput by its sender's count of acknowledged bytes, in Mbit/s."""
    samples = sockets(trial, flow, from_s)
    return 8e-6 * float(np.ptp(samples["bytes_acked"])) / float(np.ptp(samples["time_s"]))


def packets(trial: Trial, role: str = "sender", flow: str = "flow1") -> tuple[pd.DataFrame, ...]:
    """Return a flow's segments of data, and its acknowledgements, with times in seconds."""
    record = next(each for each in trial.record.flows if each.name == flow)
    rows = TrialPackets(trial).flow(role, record)
    assert rows is not None
    tables = (rows.data[rows.data["payload"] > 0], rows.acks)
    zero = trial.record.epoch_s
    return tuple(each.assign(time_s=(each["time_ns"] - zero * 1e9) / 1e9) for each in tables)


# ---------------------------------------------------------------- laws


def slow_start(run: Run) -> Iterator[LawRow]:
    """RFC 6928: the first window has ten segments. RFC 5681, 3.1: each round trip doubles it.

    Eleven, as an acknowledgement of iperf3's 37 bytes has opened it by one before.
    """
    queue = Queue("bfifo", limit_bdp=2.0)
    data, _ = packets(run(bottleneck(1000, 100, queue, [tcp("linux-reno")], duration_s=1.0)))
    full = data[data["payload"] > SEGMENT_BYTES / 2]
    rounds = np.floor((full["time_s"] - full["time_s"].iloc[0]) / 0.1)
    sent = (full["payload"].groupby(rounds).sum() / SEGMENT_BYTES).tolist()
    yield LawRow("first window", 11, sent[0], "segments")
    yield LawRow("growth in a round trip, five in a row", 2, (sent[5] / sent[0]) ** 0.2, "times")


def delayed_acks(run: Run) -> Iterator[LawRow]:
    """RFC 5681, 4.2: an ACK for every second full segment; Linux waits 40 ms (TCP_DELACK_MIN).

    A window of five segments leaves one over in each round trip. Later ones wait longer, as each
    expiry doubles the time (`tcp_delack_timer_handler`).
    """
    rows = []
    for segments in (20, 5):
        flow = tcp("linux-reno", window_bytes=segments * SEGMENT_BYTES)
        trial = run(bottleneck(10, 200, DEEP_QUEUE, [flow], duration_s=10.0))
        rows.append([each[each["time_s"] < 9] for each in packets(trial, "receiver")])
    (data, acks), (lone_data, lone_acks) = rows
    data, acks = (each[each["time_s"] > 5] for each in (data, acks))
    yield LawRow("segments for an acknowledgement", 2, len(data) / len(acks))
    places = np.searchsorted(lone_data["time_s"], lone_acks["time_s"], side="right") - 1
    waits = 1e3 * (lone_acks["time_s"].to_numpy() - lone_data["time_s"].to_numpy()[places])
    yield LawRow("wait of the first lone segment", 40, float(waits[waits > 10][0]), "ms")


def timers(run: Run) -> Iterator[LawRow]:
    """RFC 6298, 2: RTO = SRTT + max(G, 4 RTTVAR), where Linux has 200 ms for G; 5.5: it doubles."""
    flow = tcp("newreno", window_bytes=10 * SEGMENT_BYTES)
    down = (Change(5.0, up=False),)
    trial = run(bottleneck(10, 100, DEEP_QUEUE, [flow], duration_s=15.0, schedule=down))
    data, acks = packets(trial)
    again = data["time_s"][(data["time_s"] > 5.1) & data["retransmission"]].to_numpy()
    last = float(acks["time_s"][acks["time_s"] < again[0]].max())
    samples = sockets(trial)
    timeout_ms = float(samples["srtt_ms"][samples["time_s"] < 5].iloc[-1]) + 200
    yield LawRow("timeout after the last ACK", timeout_ms, 1e3 * (again[0] - last), "ms")
    gaps = np.diff(again)
    yield LawRow("back-off, three in a row", 2, float(gaps[3] / gaps[0]) ** (1 / 3), "times")


def mathis(run: Run) -> Iterator[LawRow]:
    """Mathis and others (1997): W = C / √p, where C is 1.22 for even losses, 1.31 for random."""
    for p in (0.001, 0.003, 0.01):
        loss = Loss(LossEvents(p, one_at_a_time=False))
        scenario = bottleneck(100, 50, DEEP_QUEUE, [tcp("linux-reno", loss=loss)], duration_s=60.0)
        trials = (run(replace(scenario, seed=seed)) for seed in range(1, MATHIS_SEEDS + 1))
        windows = [math.prod(_segments_a_second(trial)) for trial in trials]
        yield LawRow(f"C with {p:.1%} lost", 1.265, fmean(windows) * math.sqrt(p))


def pftk(run: Run) -> Iterator[LawRow]:
    """Padhye and others (1998), the approximate equation: Reno with timeouts (b = 1)."""
    for p in (0.02, 0.05, 0.1):
        loss = Loss(LossEvents(p, one_at_a_time=False), spare_retransmissions=False)
        flow = tcp("reno", loss=loss)
        trial = run(bottleneck(100, 50, DEEP_QUEUE, [flow], duration_s=120.0))
        rate, rtt_s = _segments_a_second(trial)
        timeouts_s = (rtt_s + 0.2) * min(1, 3 * math.sqrt(3 * p / 8)) * p * (1 + 32 * p * p)
        predicted = 1 / (rtt_s * math.sqrt(2 * p / 3) + timeouts_s)
        yield LawRow(f"goodput with {p:.0%} lost", predicted, rate, "segments/s")


def _segments_a_second(trial: Trial) -> tuple[float, float]:
    """Return what a flow delivers after 5 s, and its mean round trip."""
    rtt_s = float(sockets(trial, from_s=5)["srtt_ms"].mean()) / 1e3
    return delivered(trial, from_s=5) * 1e6 / 8 / SEGMENT_BYTES, rtt_s


def sawtooth(run: Run) -> Iterator[LawRow]:
    """RFC 5681: a window grows by a segment in a round trip, and a loss halves it.

    With a buffer of b BDP it goes from (1+b)/2 to 1+b of the BDP. A window below 1 takes a round
    trip of the empty path, one above it as much longer as it is larger: data over time.
    """
    for b in (0.1, 0.25, 0.5, 1.0):
        queue = Queue("bfifo", limit_bdp=b)
        trial = run(bottleneck(10, 100, queue, [tcp("linux-reno")], duration_s=100.0))
        low, high = (1 + b) / 2, 1 + b
        time = max(0.0, 1 - low) + (high**2 - max(1.0, low) ** 2) / 2
        predicted = (high**2 - low**2) / 2 / time
        used = delivered(trial, from_s=30) * FRAME_BYTES / SEGMENT_BYTES / 10
        yield LawRow(f"use of the link with {b:g} BDP", 100 * predicted, 100 * used, "%")


def cubic(run: Run) -> Iterator[LawRow]:
    """RFC 9438: beta 0.7 (4.6), C 0.4 (5.1), and fast convergence to (1 + beta)/2 (4.7)."""
    queue = Queue("bfifo", limit_bdp=0.5)
    samples = sockets(run(bottleneck(100, 100, queue, [tcp("cubic")], duration_s=90.0)), from_s=10)
    threshold, window, time_s = (
        samples[name].to_numpy() for name in ("ssthresh", "cwnd", "time_s")
    )
    cuts = np.flatnonzero(np.diff(threshold)) + 1
    before = window[cuts - 1]
    yield LawRow("beta", 0.7, float(np.median(threshold[cuts] / before)))
    scales, tops = [], []
    for begin, end, maximum in zip(cuts, cuts[1:], before, strict=False):
        in_epoch = (time_s > time_s[begin] + 1) & (time_s < time_s[end] - 0.2)
        fitted = np.polynomial.Polynomial.fit(time_s[in_epoch], window[in_epoch], 3).convert()
        _, _, square, cube = map(float, fitted.coef)
        scales.append(cube)
        tops.append((maximum, float(fitted(-square / (3 * cube)))))
    yield LawRow("C", 0.4, float(np.median(scales)), "segments/s³")
    lower = [top / now for (then, _), (now, top) in pairwise(tops) if now < then]
    yield LawRow("plateau, of a window below the one before", 0.85, float(np.median(lower)))


def hystart(run: Run) -> Iterator[LawRow]:
    """Ha and Rhee (2011), as tcp_cubic.c: eight round trips that are all an eighth longer.

    The eighth is at least 4 and at most 16 ms, and counts from a window of 16 segments on.
    """
    flow = tcp("cubic")
    trial = run(bottleneck(100, 50, DEEP_QUEUE, [flow], duration_s=2.0, sample_interval_ms=1.0))
    samples = sockets(trial)
    first = samples[samples["ssthresh"] < 1e6].iloc[0]
    ended_s, window = _delay_exit(*packets(trial))
    yield LawRow("end of slow start", 1e3 * ended_s, 1e3 * float(first["time_s"]), "ms")
    yield LawRow("window there", window, float(first["ssthresh"]), "segments")


def _delay_exit(data: pd.DataFrame, acks: pd.DataFrame) -> tuple[float, float]:
    """Return when HyStart's delay criterion holds, and the window of slow start then."""
    ends = (data["relative_seq"] + data["payload"]).to_numpy()
    sent_s = data["time_s"].to_numpy()
    window, least, round_end, samples, shortest, last = 10.0, math.inf, 0.0, 0, math.inf, 0.0
    for time_s, ack in zip(acks["time_s"], acks["relative_ack"], strict=True):
        place = int(np.searchsorted(ends, ack))
        if ack <= last or place >= len(ends) or ends[place] != ack:
            continue
        window += math.ceil((ack - last) / SEGMENT_BYTES)
        rtt, last = time_s - sent_s[place], ack
        least = min(least, rtt)
        if ack > round_end:
            round_end, samples, shortest = ends[np.searchsorted(sent_s, time_s) - 1], 0, math.inf
        if window < 16:
            continue
        shortest, samples = min(shortest, rtt), samples + 1
        if samples >= 8 and shortest > least + min(max(least / 8, 0.004), 0.016):
            return time_s, window
    return math.nan, math.nan


def codel(run: Run) -> Iterator[LawRow]:
    """RFC 8289, 5.6: 100 ms after the delay is above 5 ms, then after 100 ms / √n.

    Linux's 1/√n is one step of Newton's from the last one (`codel_Newton_step`).
    """
    queue = Queue("codel", limit_packets=1000)
    trial = run(bottleneck(10, 0, queue, [cbr(10.5)], duration_s=3.0, sample_interval_ms=1.0))
    samples = backlog(trial)
    drops = samples["time_s"].to_numpy()[np.flatnonzero(np.diff(samples["drops"])) + 1]
    began_s = float(packets(trial)[0]["time_s"].iloc[0])
    # of what arrives a twentieth is too much, and the packet of 100 ms leaves 5 ms later
    yield LawRow("first drop", 105 + 100, 1e3 * (drops[0] - began_s), "ms")
    gaps, inverse, newton = 1e3 * np.diff(drops)[:10], 1.0, [100.0]
    for n in range(2, 11):
        inverse *= (3 - n * inverse**2) / 2
        newton.append(100 * inverse)
    exact = [100 / math.sqrt(n) for n in range(1, 11)]
    for source, predicted in (("RFC 8289", exact), ("Linux", newton)):
        yield LawRow(f"second gap, by {source}", predicted[1], float(gaps[1]), "ms")
        yield LawRow(f"ten gaps, by {source}", sum(predicted), float(gaps.sum()), "ms")


def red(run: Run) -> Iterator[LawRow]:
    """Floyd and Jacobson (1993), 7: a drop after 1 to 1/p_b packets, evenly drawn.

    p_b grows from 0 to max_p between both thresholds. What does not fit the link must be dropped,
    and so the mean queue is where that is the chance: 2 p_b / (1 + p_b).
    """
    options = {"min_bytes": 30_000, "max_bytes": 90_000, "probability": 0.1, "avpkt_bytes": 1514}
    queue = Queue("red", limit_bytes=400_000, options=options)
    trial = run(bottleneck(10, 0, queue, [cbr(10.3)], duration_s=60.0))
    too_much = 1 - 10 / 10.3
    predicted = 30 + 60 * too_much / (2 - too_much) / 0.1
    yield LawRow("mean queue", predicted, _mean_queue(trial, 20) / 1e3, "kB")


def _mean_queue(trial: Trial, from_s: float = 10.0) -> float:
    return float(backlog(trial, from_s)["backlog_bytes"].mean())


def pie(run: Run) -> Iterator[LawRow]:
    """RFC 8033, 4.2: the mean delay is led to a target, 15 ms."""
    yield _to_target(run, Queue("pie", limit_packets=1000))


def pi2(run: Run) -> Iterator[LawRow]:
    """RFC 9332, appendix A: the target of Classic traffic is 15 ms, and k = 2 shares the link."""
    queue = Queue("dualpi2", limit_packets=10_000)
    yield _to_target(run, queue)
    link = LinkSettings(40.0, queue=queue, reverse=Direction())
    variants = ("cubic", "dctcp-l4s")  # whose receivers have other settings
    flows = [replace(tcp(each, n), dst=f"receiver{n}") for n, each in enumerate(variants, 1)]
    network = dumbbell(link, 2, LinkSettings(delay_ms=5.0))
    trial = run(Scenario("theory", network, tuple(flows), 40.0))
    shares = [delivered(trial, flow.name, 10) for flow in flows]
    yield LawRow("rate of DCTCP over that of Cubic", 1, shares[1] / shares[0])


def _to_target(run: Run, queue: Queue) -> LawRow:
    flows = [tcp("linux-reno", number) for number in range(1, 9)]
    trial = run(bottleneck(20, 40, queue, flows, duration_s=60.0))
    return LawRow("mean delay of eight flows of Reno", 15, _mean_queue(trial) * 8 / 20e3, "ms")


def vegas(run: Run) -> Iterator[LawRow]:
    """Brakmo and Peterson (1995): from alpha = 2 to beta = 4 of its packets wait."""
    trial = run(bottleneck(10, 40, DEEP_QUEUE, [tcp("vegas")], duration_s=40.0))
    waiting = _mean_queue(trial) / FRAME_BYTES + 1
    yield LawRow("in the queue and on the link", 3, waiting, "packets")


def bbr(run: Run) -> Iterator[LawRow]:
    """tcp_bbr.c: gains of 1.25, 0.75 and six times 1; every 10 s, 200 ms with four packets.

    These 200 ms, and again 10 s, count from when there are no more than four, a round trip later.
    """
    flow = tcp("bbr")
    trial = run(bottleneck(10, 40, DEEP_QUEUE, [flow], duration_s=42.0, sample_interval_ms=1.0))
    samples = sockets(trial, from_s=5)
    pacing = samples["pacing_mbps"][samples["cwnd"] > 4]
    level = float(pacing.median())
    for label, gain, of_phase in (
        ("probing", 1.25, pacing[pacing > 1.1 * level]),
        ("draining", 0.75, pacing[pacing < 0.9 * level]),
    ):
        yield LawRow(f"pacing gain, {label}", gain, float(of_phase.median()) / level)
    up, _ = _spells(samples, samples["pacing_mbps"] > 1.1 * level)
    cycle = float(np.median(np.diff(up))) / (0.04 + FRAME_BYTES * 8e-7)
    yield LawRow("from gain 1.25 to gain 1.25", 8, cycle, "round trips")
    begins, ends = _spells(samples, samples["cwnd"] <= 4)
    yield LawRow("from ProbeRTT to ProbeRTT", 10.2, float(np.median(np.diff(begins))), "s")
    yield LawRow("ProbeRTT", 241, 1e3 * float(np.median(ends - begins)), "ms")


def _spells(samples: pd.DataFrame, holds: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return when a condition begins and ends to hold, of the spells that do both."""
    times, steps = samples["time_s"].to_numpy()[1:], np.diff(holds.to_numpy().astype(int))
    begins, ends = times[steps > 0], times[steps < 0]
    ends = ends[ends > begins[0]]
    return begins[: len(ends)], ends


def fair_queueing(run: Run) -> Iterator[LawRow]:
    """RFC 8290, 4.2: deficit round robin shares bytes evenly among flows that wait."""
    flows = [tcp("cubic"), tcp("bbr", 2), tcp("linux-reno", 3, mss=500), cbr(20, 4)]
    queue = Queue("fq_codel", limit_packets=1000, options={"target_ms": 1000.0})
    trial = run(bottleneck(20, 40, queue, flows, duration_s=40.0))
    for flow, label in zip(flows, ("Cubic", "BBR", "Reno, segments of 500 B"), strict=False):
        payload = flow.mss or SEGMENT_BYTES
        frames = delivered(trial, flow.name, 10) * (1 + (FRAME_BYTES - SEGMENT_BYTES) / payload)
        yield LawRow(f"share of {label}, one of four", 25, 100 * frames / 20, "%")


def dctcp(run: Run) -> Iterator[LawRow]:
    """Alizadeh and others (2010), 3.3: a swing of √(W/2) below a peak of W, the path and step."""
    cases: Sequence[tuple[str, float, float, dict[str, Any]]] = (
        ("10 Mbit/s", 10, 40, {}),
        ("100 Mbit/s", 100, 20, {}),
        ("start, delays drawn", 100, 20, {"start_jitter_ms": 100.0, "drawn_service_times": 1.0}),
        ("rate, delays within 2 %", 100, 20, {"network_jitter": 0.02}),
        ("`realistic`", 100, 20, {"realistic": True}),
    )
    for label, rate_mbit, rtt_ms, settings in cases:
        step_ms = round(rtt_ms / 7, 3)
        options = {"ce_threshold_ms": step_ms, "target_ms": 1000.0}
        queue = Queue("codel", limit_packets=1000, ecn=True, options=options)
        flows = [tcp("dctcp")]
        trial = run(bottleneck(rate_mbit, rtt_ms, queue, flows, duration_s=20.0, **settings))
        window = sockets(trial, from_s=10)["cwnd"]
        peak = rate_mbit * 1e3 * (rtt_ms + step_ms) / 8 / FRAME_BYTES
        swing = math.sqrt(peak / 2)
        mean = float(window.mean())
        yield LawRow(f"mean window, {label}", peak - swing / 2, mean, "segments")
        yield LawRow(f"swing of it, {label}", swing, float(np.ptp(window)), "segments")


def probe_rtt(run: Run) -> Iterator[LawRow]:
    """Ware and others (2019), equation 7: pq/c + l + 4/c while BBR has but four packets in flight.

    Loss-based flows beside it have a part p of the link c and of the full queue q; l is the empty
    path's. Mended, theirs fill the path first: p(fq/c + l) + 4/c, f being how full the queue was.
    """
    path_s, packet_s = 0.04, FRAME_BYTES * 8e-7
    for bdp in (2, 4, 8):
        flows = [tcp("bbr"), tcp("cubic", 2)]
        trial = run(beside(bdp, flows, duration_s=250.0, sample_interval_ms=10.0))
        queue, samples = backlog(trial), sockets(trial, from_s=100)
        queue_s = pd.Series(queue["backlog_bytes"].to_numpy() * 8e-7, queue["time_s"])
        round_trips = []
        for begin, end in zip(*_spells(samples, samples["cwnd"] <= 4), strict=True):
            bbrs, cubics = (_acked(trial, flow.name, begin - 2, begin) for flow in flows)
            p = cubics / (bbrs + cubics)
            ware_s = p * bdp * path_s + path_s + 4 * packet_s
            before_s = float(queue_s[begin - 0.05 : begin].mean())
            mended_s = max(path_s, p * (before_s + path_s) + 4 * packet_s)
            least_s = float(queue_s[begin:end].min())
            round_trips.append((ware_s, mended_s, least_s + path_s + packet_s))
        ware, mended, measured = 1e3 * np.mean(round_trips, axis=0)
        for label, predicted in (("by Ware", ware), ("mended", mended)):
            what = f"round trip in ProbeRTT at {bdp} BDP, {label}"
            yield LawRow(what, predicted, measured, "ms")


def beside(bdp: float, flows: Sequence[Flow], **more: Any) -> Scenario:
    """Return flows on Ware's path, 10 Mbit/s and 40 ms, without captures."""
    queue = Queue("bfifo", limit_bdp=float(bdp))
    return bottleneck(10, 40, queue, flows, captures=(), start_jitter_ms=100.0, **more)


def _acked(trial: Trial, flow: str, from_s: float, to_s: float) -> float:
    samples = sockets(trial, flow)
    ends = np.interp((from_s, to_s), samples["time_s"], samples["bytes_acked"])
    return float(ends[1] - ends[0])


def ware_share(bdp: float) -> float:
    """Return a BBR flow's share by Ware and others (2019), equations 9 to 11."""
    return _capped(bdp, 0.5 - 1 / (2 * bdp) - 4 / (bdp * PATH_PACKETS))


def mended_share(bdp: float) -> float:
    """Return the share if the flows beside BBR fill the path first when it stops.

    Then 2 (1-p) (p (q + cl) + 4) = (1-p) (q + cl); with 1 BDP any p does, and 1/2 is a bound.
    """
    return _capped(bdp, 0.5 - 4 / ((bdp + 1) * PATH_PACKETS)) if bdp > 1 else math.nan


def _capped(bdp: float, p: float) -> float:
    probe_s = bdp * 0.04 + 0.2 + 0.04  # of each 10 s
    return (1 - max(0.0, p)) * (1 - probe_s / 10)


def bbr_beside_cubic(run: Run) -> Iterator[LawRow]:
    """Ware and others (2019), equations 9 to 11: BBR's share beside loss-based flows.

    What BBR has in flight is twice its rate times the round trip in ProbeRTT; it sends nothing
    while it probes.
    """
    one, other = tcp("bbr"), tcp("cubic", 2)
    conditions: dict[str, tuple[Sequence[Flow], dict[str, Any]]] = {
        ONE_CUBIC: ([one, other], {}),
        "`realistic`": ([one, other], {"realistic": True}),
        "BBR comes 30 s later": ([replace(one, start_s=30.0), other], {}),
        "Cubic comes 30 s later": ([one, replace(other, start_s=30.0)], {}),
        "Reno in place of Cubic": ([one, tcp("linux-reno", 2)], {}),
    }
    for condition, (flows, settings) in conditions.items():
        for bdp in BUFFERS_BDP if condition == ONE_CUBIC else SOME_BUFFERS_BDP:
            scenario = beside(bdp, flows, duration_s=480.0, sample_interval_ms=100.0, **settings)
            trial = run(scenario)
            windows = {condition: (280.0, 479.0)}
            if condition == ONE_CUBIC:
                windows = {f"{condition}, from 20 to 120 s": (20.0, 120.0), **windows}
            for label, window in windows.items():
                acked = [_acked(trial, flow.name, *window) for flow in flows]
                yield LawRow(label, ware_share(bdp), acked[0] / sum(acked), f"{bdp} BDP")


ONE_CUBIC = "one flow of Cubic"
BUFFERS_BDP, SOME_BUFFERS_BDP = (1, 2, 4, 8, 16, 32), (2, 8, 32)
PATH_PACKETS = 10e6 * 0.04 / 8 / 1500  # of Ware's path, in her packets

LAWS = (
    TheoryLaw("Slow start", slow_start, 0.01, "as bursts of whole segments are counted"),
    TheoryLaw("Delayed acknowledgements", delayed_acks, 0.12, "a tick of 4 ms is a tenth of 40 ms"),
    TheoryLaw("Timers", timers, 0.12, "timers beyond 255 ms expire in steps of 32 ms (`timer.c`)"),
    TheoryLaw(
        "Mathis", mathis, 0.05, "1.22 and 1.31 are 3.6 % from their mean, that of ten seeds is 2 %"
    ),
    TheoryLaw(
        *("PFTK", pftk, 0.2),
        "the equation has all losses of a round trip together, and ours are independent",
    ),
    TheoryLaw("Reno's sawtooth", sawtooth, 0.02, "the law knows no recovery, of a round trip"),
    TheoryLaw("CUBIC", cubic, 0.05, "time is counted in ticks, and the window in whole segments"),
    TheoryLaw("HyStart", hystart, 0.01, "sockets are sampled every millisecond"),
    TheoryLaw("CoDel", codel, 0.02, "a packet takes 1.2 ms, and drops are between packets"),
    TheoryLaw("RED", red, 0.05, "the average follows arrivals, not time"),
    TheoryLaw("PIE", pie, 0.1, "it controls a delay that varies by as much"),
    TheoryLaw("PI²", pi2, 0.2, "it controls a delay that varies by as much", since="7.3"),
    TheoryLaw("FQ", fair_queueing, 0.03, "rounds are of whole packets, and flows start in turn"),
    TheoryLaw("Vegas", vegas, 1 / 3, "from alpha to beta"),
    TheoryLaw("BBR's probes", bbr, 0.1, "phases end with an acknowledgement and at ticks of 4 ms"),
    TheoryLaw("BBR beside Cubic", probe_rtt, 0.05, "p is of the two seconds before"),
    TheoryLaw("DCTCP alone", dctcp, 0.4, "a swing of four segments may be one or two more"),
)
SHARES = TheoryLaw("BBR's share", bbr_beside_cubic, 0.05, "her testbed's median error")
