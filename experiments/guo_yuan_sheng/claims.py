"""The claims of Guo, Yuan and Sheng, what they print, and how each claim is judged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.claims import time_windows
from analysis.claims.comparisons import (
    DELAY,
    RATE,
    RATIO,
    SHARE,
    ClaimMeasure,
    ComparisonOutcome,
    Sample,
    all_are,
    contrasts,
    in_most,
    mean,
    relative,
    spread,
    within,
)
from analysis.claims.judgement import (
    ClaimPart,
    Finding,
    NumberRow,
    by_definition,
    require_all,
)
from analysis.claims.ledger import Claim, Paper, Reading, Sentence
from analysis.claims.samples import Group, samples
from analysis.metrics.digest import NotMeasured
from analysis.trials.documents import Iperf3Report, read_trial_document
from analysis.trials.samples import read_samples
from testbed.scenario.network import FRAME_BYTES
from testbed.store.names import IDLE_RTTS, report_file
from testbed.store.reading import open_trial

# GYS, section 3.2: in words, and as bounds read off its figures
GYS_BBR_ABOVE_MBPS = 1.020
GYS_RENO_BELOW_MBPS = 0.970
GYS_IDLE_MS = {"receiver": "about 0.9", "router": "0.48 to 0.52"}
GYS_BBR_SHARE = 0.60
GYS_CUBIC_SHARE = 0.10


RENO = "linux-reno"  # the kernel's own, as in the paper
PC_VARIANTS = (RENO, "cubic", "vegas", "bbr")
RATE_MBPS = 1.0
EVEN_WITHIN = 0.05
ROUTER_FRAME_BYTES = FRAME_BYTES
PAYLOAD = 1448  # with timestamps


def network(group: Group, **axes: object) -> Group:
    """Select the paper's rate, the least delay, and these values on the other axes."""
    chosen = group
    for name, value in (("rate_mbit", RATE_MBPS), *axes.items()):
        if chosen.values(name) or name in axes:
            chosen = chosen.asked(name, [value])
    least = chosen.values("delay_ms")
    return chosen.where(delay_ms=least[0]) if least else chosen


def single(group: Group, *, queue: str = "bfifo", path: str = "receiver") -> Group:
    """Select one sender's flow, in the four variants."""
    return network(group, queue=queue, path=path).asked("variant", PC_VARIANTS).where(flow="tcp")


def by_variant(group: Group, metric: str) -> dict[str, Sample]:
    """Return the samples of a metric by variant."""
    return samples(group.rows, metric, "variant")


def against(
    by_variant_name: dict[str, Sample], hero: str, rivals: tuple[str, ...]
) -> list[tuple[str, Sample, str, Sample]]:
    """Pair one variant's samples with those of every other."""
    return [
        (hero, by_variant_name.get(hero, {}), each, by_variant_name.get(each, {}))
        for each in rivals
    ]


def others(hero: str) -> tuple[str, ...]:
    """Return the other three of the paper's four variants."""
    return tuple(each for each in PC_VARIANTS if each != hero)


def throughput(group: Group) -> Finding:
    """Test that all are near the link's rate; beside it, BBR highest and Reno lowest."""
    alone = single(group)
    rates, goodputs = by_variant(alone, "throughput_mbps"), by_variant(alone, "goodput_mbps")
    bounds = RATE_MBPS * (1 - EVEN_WITHIN), RATE_MBPS * (1 + EVEN_WITHIN)
    parts = [
        within(f"throughput of {each}", RATE, rates.get(each, {}), *bounds) for each in PC_VARIANTS
    ]
    reported = _reported(alone)
    readings = {"what arrived": _ranking("arrived", goodputs)}
    if reported:
        readings["what iperf3's client reports"] = _ranking("reported", reported)
    beside = {"BBR highest, Reno lowest": by_definition("throughput", readings.items())}
    printed = {
        "bbr": f"above {GYS_BBR_ABOVE_MBPS:.3f} Mbit/s",
        RENO: f"below {GYS_RENO_BELOW_MBPS:.3f} Mbit/s",
    }
    rows = [
        NumberRow(
            f"goodput at the receiver, {each}",
            spread(RATE, goodputs.get(each, {})),
            printed.get(each, ""),
        )
        for each in PC_VARIANTS
    ]
    rows += [
        NumberRow(f"throughput at the receiver (frames), {each}", spread(RATE, rates.get(each, {})))
        for each in PC_VARIANTS
    ]
    rows += [
        NumberRow(
            f"what iperf3's sender reports, {each}", spread(RATE, value), printed.get(each, "")
        )
        for each, value in reported.items()
    ]
    return Finding(tuple(parts), (*rows, *_beyond_the_link(goodputs, reported)), beside)


def _ranking(name: str, rates: dict[str, Sample]) -> ClaimPart:
    """Test that BBR is highest and above 1.02 Mbit/s, Reno lowest and below 0.97.

    Of what arrived, or of what the client says it sent: the paper does not tell them apart.
    """
    parts = (
        all_are(ComparisonOutcome.ABOVE, contrasts(RATE, against(rates, "bbr", others("bbr")))),
        within(f"{name}, bbr", RATE, rates.get("bbr", {}), low=GYS_BBR_ABOVE_MBPS),
        all_are(ComparisonOutcome.BELOW, contrasts(RATE, against(rates, RENO, others(RENO)))),
        within(f"{name}, {RENO}", RATE, rates.get(RENO, {}), high=GYS_RENO_BELOW_MBPS),
    )
    return require_all(parts)


def _beyond_the_link(goodputs: dict[str, Sample], reported: dict[str, Sample]) -> list[NumberRow]:
    """Return the payload that the link can carry, and what iperf3 counts beyond what arrived.

    The difference was still in the socket or the router's buffer at the end.
    """
    most = RATE_MBPS * PAYLOAD / ROUTER_FRAME_BYTES
    what = f"payload that the link can carry ({PAYLOAD} of {ROUTER_FRAME_BYTES} bytes)"
    return [NumberRow(what, RATE.write(most))] + [
        NumberRow(f"iperf3's report minus what arrived, {each}", RATE.write(excess, "+"))
        for each, value in reported.items()
        if math.isfinite(excess := mean(value) - mean(goodputs.get(each, {})))
    ]


def _reported(group: Group) -> dict[str, Sample]:
    """Return the rate that iperf3's client prints at its end, by variant and seed."""
    times: dict[str, dict[int, float]] = {}
    if group.folder is None:
        return {}
    for trial, variant, seed in group.rows[["trial", "variant", "seed"]].itertuples(index=False):
        ran = open_trial(group.folder / str(trial))
        report = read_trial_document(ran, report_file("tcp", "client"), Iperf3Report)
        rate = (report or {}).get("end", {}).get("sum_sent", {}).get("bits_per_second")
        if rate is not None:
            times.setdefault(str(variant), {})[int(seed)] = rate / 1e6
    return {each: times[each] for each in PC_VARIANTS if each in times}


def to_the_router(group: Group) -> Finding:
    """Test that Cubic is below the others; beside it, that those are alike."""
    to_router = single(group, path="router")
    rates, trips = (by_variant(to_router, each) for each in ("goodput_mbps", "rtt_mean_ms"))
    alike: list[ClaimPart] = []
    rivals = others("cubic")
    for a, b in ((RENO, "vegas"), (RENO, "bbr"), ("vegas", "bbr")):
        ratio = relative(rates.get(a, {}), rates.get(b, {}))
        alike.append(within(f"ratio of {a} to {b}", RATIO, ratio, 1 - EVEN_WITHIN, 1 + EVEN_WITHIN))
    lower = all_are(ComparisonOutcome.BELOW, contrasts(RATE, against(rates, "cubic", rivals)))
    rows = tuple(
        NumberRow(f"goodput to the router, {each}", spread(RATE, rates.get(each, {})))
        for each in PC_VARIANTS
    )
    rows += tuple(
        NumberRow(f"RTT under load to the router, {each}", spread(DELAY, trips.get(each, {})))
        for each in PC_VARIANTS
    )
    cubic, rest = rates.get("cubic", {}), [rates.get(each, {}) for each in rivals]
    least = sum(
        all(to_router < each.get(seed, math.nan) for each in rest)
        for seed, to_router in cubic.items()
    )
    count = NumberRow("networks in which Cubic is the lowest", f"{least} of {len(cubic)}")
    return Finding((lower,), (*rows, count), {"Reno, Vegas and BBR are alike": require_all(alike)})


def idle_delay(group: Group) -> Finding:
    """Test the order of echo requests' round-trip times on an idle path.

    Vegas is highest and BBR lowest to the receiver; Vegas is highest to the router. The values
    depend on the machine; only the order is tested.
    """
    parts: list[ClaimPart] = []
    rows: list[NumberRow] = []
    for path, heroes in (
        ("receiver", (("vegas", ComparisonOutcome.ABOVE), ("bbr", ComparisonOutcome.BELOW))),
        ("router", (("vegas", ComparisonOutcome.ABOVE),)),
    ):
        try:
            chosen = single(group, path=path)
        except NotMeasured:
            if path == "receiver":
                raise
            continue
        idle = _idle(chosen)
        if set(idle) != set(PC_VARIANTS):
            raise NotMeasured(f"no idle delay was sampled ({IDLE_RTTS.file})", "run it again")
        for hero, wanted in heroes:
            delays = contrasts(DELAY, against(idle, hero, others(hero)))
            parts.append(all_are(wanted, delays, f"idle, to the {path}"))
        loaded, trips = by_variant(chosen, "owd_mean_ms"), by_variant(chosen, "rtt_mean_ms")
        for each in PC_VARIANTS:
            rows.append(
                NumberRow(
                    f"idle RTT to the {path}, {each}",
                    spread(DELAY, idle[each]),
                    f"{GYS_IDLE_MS[path]} ms",
                )
            )
        for each in PC_VARIANTS:
            rows.append(
                NumberRow(
                    f"RTT under load to the {path}, {each}", spread(DELAY, trips.get(each, {}))
                )
            )
            if each in loaded:
                rows.append(
                    NumberRow(
                        f"one-way delay under load to the {path}, {each}",
                        spread(DELAY, loaded[each]),
                    )
                )
    return Finding(tuple(parts), tuple(rows))


def _idle(group: Group) -> dict[str, Sample]:
    """Return the mean round-trip time of echo requests before anything else ran."""
    if group.folder is None:
        return {}
    times_by_variant: dict[str, dict[int, float]] = {}
    for trial, variant, seed in group.rows[["trial", "variant", "seed"]].itertuples(index=False):
        samples_of = read_samples(open_trial(group.folder / str(trial)), IDLE_RTTS)
        if samples_of is None:
            continue
        trips = samples_of.loc[samples_of["flow"] == "tcp", "rtt_ms"]
        if trips.notna().any():
            times_by_variant.setdefault(str(variant), {})[int(seed)] = float(trips.mean())
    return dict(times_by_variant)


CLEARLY = 0.2


def ecn_throughput(group: Group) -> Finding:
    """Test that CoDel gives BBR throughput; beside it, that it takes some from each other one.

    By what iperf3's client reports, as the paper's numbers are, or of what arrived if it has none.
    """
    reported = {queue: _reported(single(group, queue=queue)) for queue in _both_queues(group)}
    is_whole = all(set(reports) == set(PC_VARIANTS) for reports in reported.values())
    rates = reported if is_whole else _goodputs(group)
    lower = {
        f"{each} goes down": _changed(rates, each, ComparisonOutcome.BELOW)
        for each in others("bbr")
    }
    rows = _before_and_after(_goodputs(group), "goodput", RATE)
    if is_whole:
        rows = (*_before_and_after(reported, "iperf3's client's report", RATE), *rows)
    return Finding((_changed(rates, "bbr", ComparisonOutcome.ABOVE),), rows, lower)


def ecn_delay(group: Group) -> Finding:
    """Test that CoDel takes less than 20 % of the others' delay under load; beside it, Cubic's."""
    delays = {
        queue: by_variant(single(group, queue=queue), "owd_mean_ms")
        for queue in _both_queues(group)
    }
    plain, marked = delays.values()

    def left(variant: str, **bounds: float) -> ClaimPart:
        ratio = relative(marked.get(variant, {}), plain.get(variant, {}))
        return within(f"delay with CoDel over delay without, {variant}", RATIO, ratio, **bounds)

    hardly = tuple(left(e, low=1 - CLEARLY, high=1 + CLEARLY) for e in others("cubic"))
    rows = _before_and_after(delays, "one-way delay", DELAY)
    return Finding(hardly, rows, {"clearly for Cubic": left("cubic", high=1 - CLEARLY)})


def _both_queues(group: Group) -> tuple[str, str]:
    """Name bfifo and the other queue of this reading: CoDel with ECN, or without."""
    return "bfifo", next((str(q) for q in group.values("queue") if q != "bfifo"), "codel")


def _goodputs(group: Group) -> dict[str, dict[str, Sample]]:
    return {
        queue: by_variant(single(group, queue=queue), "goodput_mbps")
        for queue in _both_queues(group)
    }


def _changed(
    rates: Mapping[str, Mapping[str, Sample]], variant: str, wanted: ComparisonOutcome
) -> ClaimPart:
    plain, marked = (of_queue.get(variant, {}) for of_queue in rates.values())
    return all_are(wanted, contrasts(RATE, [(f"{variant} with CoDel", marked, "without", plain)]))


def _before_and_after(
    by_queue: Mapping[str, Mapping[str, Sample]], name: str, measure: ClaimMeasure
) -> tuple[NumberRow, ...]:
    return tuple(
        NumberRow(
            f"{name}, {each}, {'bfifo' if queue == 'bfifo' else 'CoDel'}",
            spread(measure, of_queue.get(each, {})),
        )
        for queue, of_queue in by_queue.items()
        for each in PC_VARIANTS
    )


STABLE = 0.2
REPORT_S = 10


def four_senders(group: Group) -> Group:
    """Select four flows at once, named by their variants."""
    chosen = network(group).where(flow=PC_VARIANTS)
    missing = set(PC_VARIANTS) - set(chosen.rows["flow"])
    if missing:
        raise NotMeasured(f"no flows of {', '.join(sorted(missing))}")
    return chosen


def shares(group: Group) -> Finding:
    """Test that in most seeds BBR is above 60 %; beside it, Cubic least and below 10 %."""
    taken_shares = samples(four_senders(group).rows, "share", "flow")
    bbr, cubic = taken_shares.get("bbr", {}), taken_shares.get("cubic", {})
    least = {
        seed: all(cubic[seed] < taken_shares[each].get(seed, math.nan) for each in others("cubic"))
        for seed in cubic
    }
    most = in_most(
        f"share of bbr at least {SHARE.write(GYS_BBR_SHARE)}",
        {seed: share >= GYS_BBR_SHARE for seed, share in bbr.items()},
        _median(bbr),
    )
    beside = {
        "Cubic has less than 10 %": in_most(
            f"share of cubic at most {SHARE.write(GYS_CUBIC_SHARE)}",
            {seed: share <= GYS_CUBIC_SHARE for seed, share in cubic.items()},
            _median(cubic),
        ),
        "Cubic has least": in_most("share of cubic below each other's", least),
    }
    printed = {"bbr": "more than 60 %", "cubic": "less than 10 %"}
    rows = tuple(
        NumberRow(
            f"share of {each}", spread(SHARE, taken_shares.get(each, {})), printed.get(each, "")
        )
        for each in PC_VARIANTS
    )
    return Finding((most,), (*rows, *_by_seed(taken_shares, printed)), beside)


def _median(sample: Sample) -> str:
    values = list(sample.values())
    return f"median {SHARE.write(float(np.median(values)))}" if values else ""


def _by_seed(taken_shares: dict[str, Sample], printed: dict[str, str]) -> tuple[NumberRow, ...]:
    """Return the shares by seed, for a mean may be of two kinds of outcome."""
    bbr, cubic = taken_shares.get("bbr", {}), taken_shares.get("cubic", {})
    met = [s for s in bbr if bbr[s] >= GYS_BBR_SHARE and cubic.get(s, 1.0) <= GYS_CUBIC_SHARE]
    rows = tuple(
        NumberRow(
            f"share of {each}, by seed",
            ", ".join(
                SHARE.write(value) for _, value in sorted(taken_shares.get(each, {}).items())
            ),
            printed.get(each, ""),
        )
        for each in PC_VARIANTS
    )
    medians = tuple(
        NumberRow(f"share of {each}, median over the seeds", _median(taken_shares.get(each, {})))
        for each in PC_VARIANTS
    )
    both = NumberRow("seeds in which both are as in the paper", f"{len(met)} of {len(bbr)}")
    return (*rows, *medians, both)


def shares_over_time(group: Group) -> Finding:
    """Test the throughput in intervals of 10 s, as iperf reports it.

    In most networks BBR's level and variation are above every other's; beside it, each flow's first
    interval is above the mean of the rest, and the others are stable. A flow that gets nothing has
    no variation.
    """
    by_second = time_windows.seconds(four_senders(group))
    firsts, levels, variations = {}, {}, {}
    for each in PC_VARIANTS:
        firsts[each] = time_windows.each_seed(by_second, partial(_first, flow=each))
        levels[each] = time_windows.each_seed(by_second, partial(_level, flow=each))
        variations[each] = time_windows.each_seed(by_second, partial(_variation, flow=each))
    fall = {seed: all(firsts[v][seed] > levels[v][seed] for v in PC_VARIANTS) for seed in by_second}
    beside = {"all fall at the beginning": in_most("each flow's first 10 s above the rest", fall)}
    beside |= {
        f"{each} is then stable": in_most(
            f"variation of {each} at most {RATIO.write(STABLE)}",
            {seed: _known(value, value <= STABLE) for seed, value in variations[each].items()},
        )
        for each in others("bbr")
    }
    parts = []
    for what, numbers in (("level after 10 s", levels), ("variation", variations)):
        highest = {
            seed: _is_above(numbers["bbr"][seed], [numbers[v][seed] for v in others("bbr")])
            for seed in by_second
        }
        parts.append(in_most(f"BBR's {what} above each other's", highest))
    rows = [
        row
        for each in PC_VARIANTS
        for row in (
            NumberRow(f"first 10 s, {each}", spread(RATE, firsts[each])),
            NumberRow(f"mean of the later reports, {each}", spread(RATE, levels[each])),
            NumberRow(f"their coefficient of variation, {each}", spread(RATIO, variations[each])),
        )
    ]
    return Finding(tuple(parts), tuple(rows), beside)


def _known(number: float, holds: bool) -> bool | None:
    """Return whether something holds, or None if the number that it is about is not defined."""
    return holds if math.isfinite(number) else None


def _is_above(number: float, rivals: Sequence[float]) -> bool | None:
    """Return whether a number is above all rivals, or None if what is not defined decides.

    What is not defined is that of a flow that gets nothing, and above none; whatever a rival's
    might be, a number is not above all that one defined rival is as high as.
    """
    if not math.isfinite(number) or any(number <= each for each in rivals):
        return False
    return _known(sum(rivals), holds=True)


def _reports(table: pd.DataFrame, flow: str) -> npt.NDArray[np.float64]:
    """Return the throughputs that iperf would report every 10 s."""
    rates = time_windows.phase(table, flow, 0, math.inf).to_numpy()
    whole = len(rates) // REPORT_S
    if whole < 3:
        raise NotMeasured("the trials are too short for three reports of 10 s")
    reports = rates[: whole * REPORT_S].reshape(whole, REPORT_S).mean(axis=1)
    return np.asarray(reports, dtype=np.float64)


def _first(table: pd.DataFrame, flow: str) -> float:
    return float(_reports(table, flow)[0])


def _level(table: pd.DataFrame, flow: str) -> float:
    return float(_reports(table, flow)[1:].mean())


def _variation(table: pd.DataFrame, flow: str) -> float:
    later = _reports(table, flow)[1:]
    return float(later.std(ddof=1) / later.mean()) if later.mean() else math.nan


_single = partial(Claim, experiment="router-bottleneck")
_four = partial(Claim, experiment="router-fairness")

AS_SET, ASKED = "ECN as set", "ECN asked for"
WITHOUT = "The paper's commands leave tcp_ecn as it is: no sender asks for ECN, and CoDel drops."
ECN_READINGS = (
    Reading(AS_SET, WITHOUT, {"queue": ("bfifo", "codel")}),
    Reading(ASKED, "Senders ask for ECN, and CoDel marks.", {"queue": ("bfifo", "codel-ecn")}),
)
STARTS = {
    0.1: "The four start within a tenth of a second.",
    1.0: "The four start within a second.",
}
# the paper does not say which of its queues the router had, nor what *simultaneously* is
SHARE_READINGS = tuple(
    Reading(
        f"{queue}, {ecn}starts within {within:g} s",
        f"{router} {start}",
        {"queue": queue, "within_s": within},
    )
    for queue, ecn, router in (
        ("bfifo", "", "The router has bfifo."),
        ("codel", f"{AS_SET}, ", f"The router has CoDel. {WITHOUT}"),
        ("codel-ecn", f"{ASKED}, ", "The router has CoDel; senders ask for ECN."),
    )
    for within, start in STARTS.items()
)

CLAIMS: tuple[Claim, ...] = (
    _single(
        id="GYS1.1",
        words="Throughput is about the bottleneck rate for all; BBR highest (above 1020 kbit/s), "
        "Reno lowest (below 970).",
        tested="bfifo, to the receiver: frames at the receiver within 5 % of 1 Mbit/s for each. "
        "Beside it: BBR's goodput above each other's and above 1.020 Mbit/s; Reno's below each "
        "other's and below 0.970: of what arrived, and of what iperf3's client says.",
        judge=throughput,
        sentences=(
            Sentence(
                "modern",
                "supported",
                "All four fill the link of 1 Mbit/s: {goodput at the receiver, linux-reno} of "
                "payload arrive with Reno, {goodput at the receiver, bbr} with BBR. The paper's "
                "1020 against 970 kbit/s is what iperf3's client counts, buffer included "
                "({what iperf3's sender reports, bbr} with BBR).",
            ),
        ),
    ),
    _single(
        id="GYS1.2",
        words="Sender to router: throughput is alike, but Cubic's is lower than that of the other "
        "three.",
        tested="bfifo, to the router: Cubic's goodput is below each other's by more than 2 %. "
        "Beside it: the goodputs of Reno, Vegas and BBR are within 5 % of each other.",
        judge=to_the_router,
        networks=45,  # named by the spread in the first 20, which left it open
        sentences=(
            Sentence(
                "modern",
                "supported",
                "Cubic is lower, {goodput to the router, cubic}, than Reno, "
                "{goodput to the router, linux-reno}, and BBR, {goodput to the router, bbr}, as "
                "the paper says, and than Vegas, {goodput to the router, vegas}, in most networks: "
                "it is the lowest in {networks in which Cubic is the lowest}. The ACKs' way back "
                "limits all four.",
            ),
        ),
    ),
    _single(
        id="GYS1.3",
        words="The delay from sender to receiver is about 0.9 ms (BBR lowest, Vegas highest); from "
        "sender to router 0.48 to 0.52 ms, Vegas highest.",
        tested="Round-trip time of echo requests before anything else runs: to the receiver, "
        "Vegas's is above and BBR's below that of each other variant; to the router, Vegas's is "
        "above. The values depend on the machine and are not tested; the delay under load is shown "
        "beside them.",
        judge=idle_delay,
        not_testable="The delay of an idle path is what we set it to (0.225 ms a link, so that the "
        "receiver has the paper's 0.9 ms), and no congestion control acts on an echo request.",
        sentences=(
            Sentence(
                "modern",
                "not testable here",
                "An echo request on an idle path meets no congestion control: all four have "
                "{idle RTT to the receiver, bbr}, the delay that we set.",
            ),
        ),
    ),
    _single(
        id="GYS2.1",
        words="With CoDel and ECN throughput goes down for all but BBR, whose throughput goes up.",
        tested="To the receiver, CoDel against bfifo, by what iperf3's client reports, as the "
        "paper's numbers are: higher for BBR by more than 2 %. Beside it: lower for each of Reno, "
        "Cubic and Vegas (until a review, what arrived was tested, which the rows still show).",
        judge=ecn_throughput,
        readings=ECN_READINGS,
        sentences=(
            Sentence(
                f"modern, {AS_SET}",
                "contradicted",
                "BBR's report does not rise, it falls: {iperf3's client's report, bbr, bfifo} "
                "without CoDel and {iperf3's client's report, bbr, CoDel} with it; Reno's falls, "
                "too, from {iperf3's client's report, linux-reno, bfifo} to "
                "{iperf3's client's report, linux-reno, CoDel}.",
            ),
            Sentence(
                f"modern, {ASKED}",
                "too small to matter",
                "Where senders ask for ECN, BBR ignores the marks: "
                "{iperf3's client's report, bbr, CoDel}, as without CoDel.",
            ),
        ),
    ),
    _single(
        id="GYS2.2",
        words="ECN lowers the delay clearly for Cubic and hardly for the others.",
        tested="Mean one-way delay under load, CoDel over bfifo: within 0.8 to 1.2 for Reno, Vegas "
        "and BBR. Beside it: at most 0.8 for Cubic.",
        judge=ecn_delay,
        readings=ECN_READINGS,
        sentences=(
            Sentence(
                f"modern, {AS_SET}",
                "contradicted",
                "Cubic's delay falls as the paper says, from {one-way delay, cubic, bfifo} to "
                "{one-way delay, cubic, CoDel}, but so does Reno's, from "
                "{one-way delay, linux-reno, bfifo} to {one-way delay, linux-reno, CoDel}.",
            ),
            Sentence(
                f"modern, {ASKED}",
                "in part",
                "With marks Cubic has {one-way delay, cubic, CoDel} and Reno {one-way delay, "
                "linux-reno, CoDel}; BBR, which ignores them, keeps {one-way delay, bbr, CoDel}.",
            ),
        ),
    ),
    _four(
        id="GYS3.1",
        words="With four senders BBR takes more than 60 %; Cubic least, below 10 %.",
        tested="Goodput over the trial, in most networks: BBR's share at least 60 %. Beside it: "
        "Cubic's at most 10 %; Cubic's below each other one's (the means were tested until it was "
        "seen that the shares are of two kinds, between which no trial lies).",
        judge=shares,
        readings=SHARE_READINGS,
        sentences=(
            Sentence(
                "modern, bfifo, starts within 0.1 s",
                "contradicted",
                "Behind a FIFO BBR has {share of bbr} (the paper: more than 60 %) and Cubic most, "
                "{share of cubic} (the paper: less than 10 %).",
            ),
            Sentence(
                "modern, bfifo, starts within 1 s",
                "contradicted",
                "With starts within 1 s BBR has {share of bbr} and Cubic {share of cubic}.",
            ),
            Sentence(
                f"modern, codel, {AS_SET}, starts within 0.1 s",
                "contradicted",
                "CoDel as the paper's commands set it gives BBR {share of bbr}.",
            ),
            Sentence(
                f"modern, codel, {AS_SET}, starts within 1 s",
                "contradicted",
                "Within 1 s: {share of bbr}.",
            ),
            Sentence(
                "modern, codel-ecn, ECN asked for, starts within 0.1 s",
                "supported",
                "With CoDel and ECN {seeds in which both are as in the paper} networks have both "
                "of the paper's numbers.",
            ),
            Sentence(
                f"modern, codel-ecn, {ASKED}, starts within 1 s",
                "supported",
                "Within 1 s: {seeds in which both are as in the paper}; BBR has more than 60 % "
                "in three of four.",
            ),
        ),
    ),
    _four(
        id="GYS3.2",
        words="All fall at the beginning and are then stable, except BBR, which fluctuates at a "
        "higher level.",
        tested="Throughput in bins of 10 s, in most networks: BBR's level after the first and "
        "its coefficient of variation are above each other's. Beside it: each flow's first bin is "
        "above the mean of its later ones; the others' coefficients are at most 20 %. A flow that "
        "gets nothing has no such coefficient: if it is BBR, its is not above each other's there; "
        "if it is another, the network counts against the answer, unless a third flow's is above "
        "BBR's (until a review, the means of the other networks were tested; until BBR's was seen "
        "to be above all in no network, all such networks counted against the answer).",
        judge=shares_over_time,
        networks=44,  # in which flows starve; 20 decide the other readings
        readings=SHARE_READINGS,
        sentences=(
            Sentence(
                "modern, bfifo, starts within 0.1 s",
                "contradicted",
                "Behind a FIFO Cubic's level is the highest, {mean of the later reports, cubic} "
                "against BBR's {mean of the later reports, bbr}.",
            ),
            Sentence(
                "modern, bfifo, starts within 1 s",
                "in part",
                "Within 1 s they have {mean of the later reports, cubic} and {mean of the later "
                "reports, bbr}, and either may be ahead.",
            ),
            Sentence(
                f"modern, codel, {AS_SET}, starts within 0.1 s",
                "in part",
                "Behind CoDel BBR's is, {mean of the later reports, bbr}, and it is the steadiest: "
                "its coefficient of variation is {their coefficient of variation, bbr}, Cubic's "
                "{their coefficient of variation, cubic}.",
            ),
            Sentence(
                f"modern, codel, {AS_SET}, starts within 1 s",
                "in part",
                "Within 1 s the same: {mean of the later reports, bbr}, coefficients of {their "
                "coefficient of variation, bbr} and {their coefficient of variation, cubic}.",
            ),
            Sentence(
                f"modern, codel-ecn, {ASKED}, starts within 0.1 s",
                "in part",
                "With ECN too: {mean of the later reports, bbr}, and a coefficient of "
                "{their coefficient of variation, bbr}.",
            ),
            Sentence(
                f"modern, codel-ecn, {ASKED}, starts within 1 s",
                "in part",
                "Within 1 s the same, {mean of the later reports, bbr}, unless BBR starves, as "
                "it does in one network of four.",
            ),
        ),
    ),
)

PAPER = Paper("GYS", "Guo, Yuan, Sheng", "experiments/guo_yuan_sheng/README.md", CLAIMS)


def papers() -> tuple[Paper, ...]:
    """Return the paper with its claims."""
    return (PAPER,)
