"""One sender through a router of 1 Mbit/s: the tests of GYS's throughput and delay.

The bounds, chosen beforehand. *About the bottleneck rate* is within 5 % of it, frames counted.
*Alike* is within 5 % of each other. The network is the one with the paper's rate and the least
delay that was run.
"""

from __future__ import annotations

import json
import math

from analysis.claims.engine.answers import Finding, Part, Row
from analysis.claims.engine.contrasts import (
    DELAY,
    RATE,
    RATIO,
    Outcome,
    Sample,
    all_are,
    contrasts,
    mean,
    relative,
    spread,
    within,
)
from analysis.claims.engine.paper_numbers import (
    GYS_BBR_ABOVE_MBPS,
    GYS_IDLE_MS,
    GYS_RENO_BELOW_MBPS,
)
from analysis.claims.engine.selection import Group, samples
from analysis.metrics.per_second import NotMeasured
from analysis.trials.samples import read_samples
from testbed.store import FLOWS, open_trial

RENO = "linux-reno"  # the kernel's own, as the paper had it
FOUR = (RENO, "cubic", "vegas", "bbr")
RATE_MBPS = 1.0
NEAR = 0.05
FRAME = 1514
PAYLOAD = 1448  # with timestamps


def network(group: Group, **axes: object) -> Group:
    """The paper's rate, the least delay, and these values on the other axes."""
    own = group
    for name, value in (("rate_mbit", RATE_MBPS), *axes.items()):
        if own.values(name) or name in axes:
            own = own.asked(name, [value])
    least = own.values("delay_ms")
    return own.where(delay_ms=least[0]) if least else own


def single(group: Group, *, queue: str = "bfifo", path: str = "receiver") -> Group:
    """One sender's flow, in the four variants."""
    return network(group, queue=queue, path=path).asked("variant", FOUR).where(flow="tcp")


def by_variant(group: Group, metric: str) -> dict[str, Sample]:
    """Samples of each variant's metric."""
    return samples(group.rows, metric, "variant")


def against(
    found: dict[str, Sample], hero: str, rivals: tuple[str, ...]
) -> list[tuple[str, Sample, str, Sample]]:
    """One variant beside others."""
    return [(hero, found.get(hero, {}), each, found.get(each, {})) for each in rivals]


def others(hero: str) -> tuple[str, ...]:
    """The rest of the four."""
    return tuple(each for each in FOUR if each != hero)


def throughput(group: Group) -> Finding:
    """All near the link's rate; BBR highest and above 1.02 Mbit/s, Reno lowest and below 0.97."""
    own = single(group)
    rates, goodputs = by_variant(own, "throughput_mbps"), by_variant(own, "goodput_mbps")
    bounds = RATE_MBPS * (1 - NEAR), RATE_MBPS * (1 + NEAR)
    parts = [within(f"throughput of {each}", RATE, rates.get(each, {}), *bounds) for each in FOUR]
    parts += [
        all_are(Outcome.ABOVE, contrasts(RATE, against(goodputs, "bbr", others("bbr")))),
        within("goodput of bbr", RATE, goodputs.get("bbr", {}), low=GYS_BBR_ABOVE_MBPS),
        all_are(Outcome.BELOW, contrasts(RATE, against(goodputs, RENO, others(RENO)))),
        within(f"goodput of {RENO}", RATE, goodputs.get(RENO, {}), high=GYS_RENO_BELOW_MBPS),
    ]
    printed = {
        "bbr": f"above {GYS_BBR_ABOVE_MBPS:.3f} Mbit/s",
        RENO: f"below {GYS_RENO_BELOW_MBPS:.3f} Mbit/s",
    }
    rows = [
        Row(
            f"goodput at the receiver, {each}",
            spread(RATE, goodputs.get(each, {})),
            printed.get(each, ""),
        )
        for each in FOUR
    ]
    rows += [
        Row(f"throughput at the receiver (frames), {each}", spread(RATE, rates.get(each, {})))
        for each in FOUR
    ]
    reported = _reported(own)
    rows += [
        Row(f"what iperf3's sender reports, {each}", spread(RATE, value), printed.get(each, ""))
        for each, value in reported.items()
    ]
    return Finding(tuple(parts), tuple(rows), _above_link(rates, goodputs, reported))


def _above_link(
    rates: dict[str, Sample], goodputs: dict[str, Sample], reported: dict[str, Sample]
) -> str:
    """What a number above the link's rate is."""
    most = RATE_MBPS * PAYLOAD / FRAME
    text = (
        f"A link of 1 Mbit/s delivers {most:.3f} Mbit/s of payload (1448 bytes of each frame of "
        f"1514), and what its shaper's burst adds in so short a time: here at most "
        f"{_highest(rates)} of frames and {_highest(goodputs)} of payload arrived. A goodput of "
        "1.020 is impossible in steady state."
    )
    over = []
    for each, value in reported.items():
        excess = mean(value) - mean(goodputs.get(each, {}))
        if math.isfinite(excess):
            over.append(f"{each} {RATE.write(excess, '+')}, to {RATE.write(mean(value))}")
    if over:
        text += (
            " A sender's iperf counts what it handed to its kernel, with all that still lies "
            "in the socket and in the router's buffer at its end; here that adds, on no more than "
            f"the link carried: {'; '.join(over)}. So can a report come to exceed its link."
        )
    return text


def _highest(found: dict[str, Sample]) -> str:
    """The highest mean of the variants'."""
    means = [mean(each) for each in found.values()]
    return RATE.write(max(means)) if means else RATE.write(math.nan)


def _reported(group: Group) -> dict[str, Sample]:
    """The rate that iperf3's client prints at its end, by variant and seed."""
    found: dict[str, dict[int, float]] = {}
    if group.folder is None:
        return {}
    for trial, variant, seed in group.rows[["trial", "variant", "seed"]].itertuples(index=False):
        path = group.folder / str(trial) / FLOWS / "tcp.client.json"
        try:
            end = json.loads(path.read_text())["end"]["sum_sent"]
            found.setdefault(str(variant), {})[int(seed)] = float(end["bits_per_second"]) / 1e6
        except (OSError, ValueError, KeyError):
            continue  # another tool's, or none: it stands beside the answer only
    return {each: found[each] for each in FOUR if each in found}


def to_the_router(group: Group) -> Finding:
    """Reno, Vegas and BBR alike, Cubic below each of them."""
    own = single(group, path="router")
    found, trips = (by_variant(own, each) for each in ("goodput_mbps", "rtt_mean_ms"))
    parts: list[Part] = []
    rivals = others("cubic")
    for a, b in ((RENO, "vegas"), (RENO, "bbr"), ("vegas", "bbr")):
        ratio = relative(found.get(a, {}), found.get(b, {}))
        parts.append(within(f"{a} over {b}", RATIO, ratio, 1 - NEAR, 1 + NEAR))
    parts.append(all_are(Outcome.BELOW, contrasts(RATE, against(found, "cubic", rivals))))
    rows = tuple(
        Row(f"goodput to the router, {each}", spread(RATE, found.get(each, {}))) for each in FOUR
    )
    rows += tuple(
        Row(f"RTT under load to the router, {each}", spread(DELAY, trips.get(each, {})))
        for each in FOUR
    )
    return Finding(tuple(parts), rows, _WHY_TO_THE_ROUTER)


_WHY_TO_THE_ROUTER = (
    "Data to the router cross nothing that is shaped, but its ACKs do: they come back through the "
    "1 Mbit/s that the paper's commands put on the router's interface. An ACK of 66 bytes for "
    "every other segment of 1448 fills that at 44 Mbit/s of data. Vegas takes the ACKs' queue for "
    "its own (the round trips are in the rows) and stays there. Reno, Cubic and BBR open their "
    "windows until segments come in bursts that the receiver acknowledges at once, dozens with an "
    "ACK, and fill their link of 100 Mbit/s, a rate that the paper does not state. What it saw of "
    "Cubic is the speed of its machines, which the guest does not have."
)


def idle_delay(group: Group) -> Finding:
    """Echo requests of an idle path: Vegas highest and BBR lowest to the receiver; Vegas highest
    to the router. The numbers are those of the machine; the order is what is tested."""
    parts: list[Part] = []
    rows: list[Row] = []
    for path, heroes in (
        ("receiver", (("vegas", Outcome.ABOVE), ("bbr", Outcome.BELOW))),
        ("router", (("vegas", Outcome.ABOVE),)),
    ):
        try:
            own = single(group, path=path)
        except NotMeasured:
            if path == "receiver":
                raise
            continue
        idle = _idle(own)
        if set(idle) != set(FOUR):
            raise NotMeasured("no idle delay was sampled (samples/idle.csv)", "run it again")
        for hero, wanted in heroes:
            found = contrasts(DELAY, against(idle, hero, others(hero)))
            parts.append(all_are(wanted, found, f"idle, to the {path}"))
        loaded, trips = by_variant(own, "owd_mean_ms"), by_variant(own, "rtt_mean_ms")
        for each in FOUR:
            rows.append(
                Row(
                    f"idle RTT to the {path}, {each}",
                    spread(DELAY, idle[each]),
                    f"{GYS_IDLE_MS[path]} ms",
                )
            )
        for each in FOUR:
            rows.append(
                Row(f"RTT under load to the {path}, {each}", spread(DELAY, trips.get(each, {})))
            )
            if each in loaded:
                rows.append(
                    Row(
                        f"one-way delay under load to the {path}, {each}",
                        spread(DELAY, loaded[each]),
                    )
                )
    why = (
        "An echo request on an idle path meets no congestion control: differences of 0.02 ms "
        "between runs are those of the machines, and 0.9 ms is how fast theirs were. In the guest "
        "computing takes no time: an idle path takes the delay that the scenario gives it, and "
        "nothing else. What tells the variants apart is the delay under load, in the rows."
    )
    return Finding(tuple(parts), tuple(rows), why)


def _idle(group: Group) -> dict[str, Sample]:
    """Mean round trip of echo requests before anything ran."""
    if group.folder is None:
        return {}
    found: dict[str, dict[int, float]] = {}
    for trial, variant, seed in group.rows[["trial", "variant", "seed"]].itertuples(index=False):
        samples_of = read_samples(open_trial(group.folder / str(trial)), "idle.csv")
        if samples_of is None:
            continue
        own = samples_of.loc[samples_of["flow"] == "tcp", "rtt_ms"]
        if own.notna().any():
            found.setdefault(str(variant), {})[int(seed)] = float(own.mean())
    return dict(found)
