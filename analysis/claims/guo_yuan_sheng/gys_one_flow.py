"""One sender through a router of 1 Mbit/s: the tests of GYS's throughput and delay.

The bounds, chosen beforehand. *About the bottleneck rate* is within 5 % of it, frames counted.
*Alike* is within 5 % of each other. The network is the one with the paper's rate and the least
delay that was run.
"""

from __future__ import annotations

import json
import math

from analysis.claims.engine.answers import Finding, Part, Row, by_definition
from analysis.claims.engine.contrasts import (
    Outcome,
    Sample,
    all_are,
    contrasts,
    mean,
    relative,
    spread,
    within,
)
from analysis.claims.engine.quantities import DELAY, RATE, RATIO
from analysis.claims.engine.selection import Group, samples
from analysis.claims.guo_yuan_sheng.gys_numbers import (
    GYS_BBR_ABOVE_MBPS,
    GYS_IDLE_MS,
    GYS_RENO_BELOW_MBPS,
)
from analysis.metrics.digest import NotMeasured
from analysis.trials.samples import read_samples
from testbed.store import IDLE, open_trial, report_file

RENO = "linux-reno"  # the kernel's own, as in the paper
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
    reported = _reported(own)
    halves = [_ranking("arrived", goodputs)]
    halves += [_ranking("reported by iperf3's client", reported)] if reported else []
    parts += [
        by_definition("throughput", ((name, part) for name, part in readings))
        for readings in zip(*halves, strict=True)
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
    rows += [
        Row(f"what iperf3's sender reports, {each}", spread(RATE, value), printed.get(each, ""))
        for each, value in reported.items()
    ]
    return Finding(tuple(parts), (*rows, *_beyond_the_link(goodputs, reported)))


def _ranking(name: str, found: dict[str, Sample]) -> list[tuple[str, Part]]:
    """BBR highest, and above 1.02 Mbit/s; Reno lowest, and below 0.97: of what arrived, or of what
    the client says it sent, which the paper does not tell apart."""
    parts = (
        all_are(Outcome.ABOVE, contrasts(RATE, against(found, "bbr", others("bbr")))),
        within(f"{name}, bbr", RATE, found.get("bbr", {}), low=GYS_BBR_ABOVE_MBPS),
        all_are(Outcome.BELOW, contrasts(RATE, against(found, RENO, others(RENO)))),
        within(f"{name}, {RENO}", RATE, found.get(RENO, {}), high=GYS_RENO_BELOW_MBPS),
    )
    return [(f"what {name}", part) for part in parts]


def _beyond_the_link(goodputs: dict[str, Sample], reported: dict[str, Sample]) -> list[Row]:
    """The payload that the link can carry, and what a sender's iperf3 counts beyond what arrived:
    what it handed to its kernel and was still in the socket or the router's buffer at the end."""
    most = RATE_MBPS * PAYLOAD / FRAME
    what = f"payload that the link can carry ({PAYLOAD} of {FRAME} bytes)"
    return [Row(what, RATE.write(most))] + [
        Row(f"iperf3's report minus what arrived, {each}", RATE.write(excess, "+"))
        for each, value in reported.items()
        if math.isfinite(excess := mean(value) - mean(goodputs.get(each, {})))
    ]


def _reported(group: Group) -> dict[str, Sample]:
    """The rate that iperf3's client prints at its end, by variant and seed."""
    found: dict[str, dict[int, float]] = {}
    if group.folder is None:
        return {}
    for trial, variant, seed in group.rows[["trial", "variant", "seed"]].itertuples(index=False):
        path = group.folder / str(trial) / report_file("tcp", "client")
        try:
            end = json.loads(path.read_text())["end"]["sum_sent"]
            found.setdefault(str(variant), {})[int(seed)] = float(end["bits_per_second"]) / 1e6
        except (OSError, ValueError, KeyError):
            continue  # another tool's, or none: it is only shown beside the answer
    return {each: found[each] for each in FOUR if each in found}


def to_the_router(group: Group) -> Finding:
    """Reno, Vegas and BBR alike, Cubic below each of them."""
    own = single(group, path="router")
    found, trips = (by_variant(own, each) for each in ("goodput_mbps", "rtt_mean_ms"))
    parts: list[Part] = []
    rivals = others("cubic")
    for a, b in ((RENO, "vegas"), (RENO, "bbr"), ("vegas", "bbr")):
        ratio = relative(found.get(a, {}), found.get(b, {}))
        parts.append(within(f"ratio of {a} to {b}", RATIO, ratio, 1 - NEAR, 1 + NEAR))
    parts.append(all_are(Outcome.BELOW, contrasts(RATE, against(found, "cubic", rivals))))
    rows = tuple(
        Row(f"goodput to the router, {each}", spread(RATE, found.get(each, {}))) for each in FOUR
    )
    rows += tuple(
        Row(f"RTT under load to the router, {each}", spread(DELAY, trips.get(each, {})))
        for each in FOUR
    )
    return Finding(tuple(parts), rows)


def idle_delay(group: Group) -> Finding:
    """Echo requests on an idle path: Vegas is highest and BBR lowest to the receiver; Vegas is
    highest to the router. The values depend on the machine; only the order is tested."""
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
            raise NotMeasured(f"no idle delay was sampled ({IDLE.file})", "run it again")
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
    return Finding(tuple(parts), tuple(rows))


def _idle(group: Group) -> dict[str, Sample]:
    """Mean round-trip time of echo requests before anything else ran."""
    if group.folder is None:
        return {}
    found: dict[str, dict[int, float]] = {}
    for trial, variant, seed in group.rows[["trial", "variant", "seed"]].itertuples(index=False):
        samples_of = read_samples(open_trial(group.folder / str(trial)), IDLE)
        if samples_of is None:
            continue
        own = samples_of.loc[samples_of["flow"] == "tcp", "rtt_ms"]
        if own.notna().any():
            found.setdefault(str(variant), {})[int(seed)] = float(own.mean())
    return dict(found)
