"""How the claims of Rajore, Gupta, Sikka and Jain are judged.

Trials of one seed have the same video, the same network and the same random numbers of the radio:
variants and transports are compared seed by seed. A laptop's setting that changes nothing gives the
same number for each variant, and their difference is then exactly zero.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from analysis.claims.comparisons import (
    RATIO,
    ClaimMeasure,
    ComparisonOutcome,
    Sample,
    all_are,
    contrasts,
    in_most,
    relative,
    spread,
    within,
)
from analysis.claims.judgement import (
    ClaimPart,
    Finding,
    NumberRow,
    by_definition,
)
from analysis.claims.samples import Group, samples
from experiments.rajore_gupta_sikka_jain.printed import (
    RGSJ_DUPLICATES,
    RGSJ_PEAKS,
    RGSJ_QUIC_BYTES,
    RGSJ_QUIC_SOONER_S,
    RGSJ_STARTUP_S,
    RGSJ_TCP_BYTES,
    RGSJ_WORST_ERRORS,
    STRONG,
    WEAK,
)

THREE = ("veno", "cubic", "vegas")  # the paper's
HTTPS, QUIC = "https", "quic"
CUBIC = "cubic"  # TCP's default, and what QUIC's server has here, too
LAPTOP, SERVER = "receiver", "sender"
KBYTES_PER_MBIT = 1e6 / 8 / 1e3  # KB/s per Mbit/s
PAPERS_DIFFERENCE = "half of the smallest difference that the paper prints"

ALMOST = ClaimMeasure("s", 1, absolute=5, why="the paper's *almost equal* are 2 and 4 s apart")
DURATION = ClaimMeasure("s", 1, absolute=1, why="a viewer does not see a second of these waits")
COUNT = ClaimMeasure("", 1, absolute=0.5, why="half of one")
PACKETS = ClaimMeasure("packets", 1, relative=0.05, absolute=0.5, why="half a packet, or 5 %")
VISIBLE = ClaimMeasure(
    "packets", 1, relative=0.2, absolute=0.5, why="less cannot be read from the paper's graphs"
)
PEAK = ClaimMeasure("packets/s", 1, relative=0.05, absolute=0.5, why="half a packet, or 5 %")
LENGTH = ClaimMeasure("B", 1, relative=0.005, why=PAPERS_DIFFERENCE)
BYTES = ClaimMeasure("kB", 1, factor=1e-3, relative=0.05, why="about one packet")
VIDEO_RATE = ClaimMeasure(
    *("KB/s", 1),
    factor=KBYTES_PER_MBIT,
    relative=0.05,
    why="about what the paper's own five runs are apart",
)

Samples = dict[str, Sample]
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Quantity:
    """A number of each playback, and what the paper prints of it by variant."""

    name: str
    metric: str
    measure: ClaimMeasure
    printed: Mapping[str, float] = field(default_factory=dict)  # in the measure's own unit

    def of(self, group: Group) -> Samples:
        """Return the numbers by variant and seed, of the rows of one transport and setting."""
        return samples(group.rows, self.metric, "axis_variant")

    def over_tcp(self, group: Group) -> Samples:
        """Return the numbers of the paper's three variants, set on the server."""
        return self.of(group.where(transport=HTTPS, setting=SERVER).asked("variant", THREE))

    def over_quic(self, group: Group) -> Sample:
        """Return the numbers over QUIC, whose server has Cubic, by seed."""
        asked = group.where(setting=SERVER, variant=CUBIC).asked("transport", (QUIC,))
        return self.of(asked).get(CUBIC, {})

    def rows(self, by_network: Samples, place: str = "") -> list[NumberRow]:
        """Return a row for each variant, with the paper's number beside it."""
        return [
            NumberRow(
                f"{self.name}{place}, {each}",
                spread(self.measure, by_network[each]),
                self.measure.write(self.printed[each]) if each in self.printed else "",
            )
            for each in sorted(by_network, key=lambda each: (each not in THREE, each))
        ]

    def is_so(self, by_network: Samples, pairs: Pairs, wanted: ComparisonOutcome) -> ClaimPart:
        """Test that each first is as wanted beside its second."""
        asked = [(a, by_network.get(a, {}), b, by_network.get(b, {})) for a, b in pairs]
        is_printed = self.printed and wanted is not ComparisonOutcome.EQUAL
        theirs = [(self.printed[a], self.printed[b]) for a, b in pairs] if is_printed else ()
        return all_are(wanted, contrasts(self.measure, asked, theirs))


def versus(hero: str) -> Pairs:
    """Pair one variant with each of the other two."""
    return tuple((hero, other) for other in THREE if other != hero)


def rising(*names: str) -> Pairs:
    """Pair each name with the next."""
    return tuple(itertools.pairwise(names))


EACH_PAIR = tuple(itertools.combinations(THREE, 2))


@dataclass(frozen=True)
class Order:
    """What the paper says of the three variants: the first of each pair is below its second."""

    quantity: Quantity
    pairs: Pairs
    wanted: ComparisonOutcome = ComparisonOutcome.BELOW

    def part(self, group: Group) -> ClaimPart:
        """Return the test."""
        return self.quantity.is_so(self.quantity.over_tcp(group), self.pairs, self.wanted)


def order(group: Group, head: Order, beside: Mapping[str, Order] | None = None) -> Finding:
    """Test an order of the three variants, and what else the paper says of them."""
    named = beside or {}
    shown = dict.fromkeys(each.quantity.name for each in (head, *named.values()))
    quantities = {each.quantity.name: each.quantity for each in (*named.values(), head)}
    rows = [
        row
        for name in shown
        for row in _with_alike(quantities[name], quantities[name].over_tcp(group))
    ]
    return Finding(
        (head.part(group),), tuple(rows), {name: each.part(group) for name, each in named.items()}
    )


def _with_alike(quantity: Quantity, by_network: Samples) -> list[NumberRow]:
    """Return the numbers, and in how many networks all three variants had one."""
    three = [by_network.get(name, {}) for name in THREE]
    seeds = set.intersection(*(set(each) for each in three))
    same = sum(len({each[seed] for each in three}) == 1 for seed in seeds)
    row = NumberRow(f"networks with one {quantity.name} for all", f"{same} of {len(seeds)}")
    return [*quantity.rows(by_network), row]


def bounded(
    group: Group,
    quantity: Quantity,
    low: float,
    high: float,
    others: Sequence[Quantity] = (),
) -> Finding:
    """Test that a number of each variant lies within bounds; show other numbers beside it."""
    by_network = quantity.over_tcp(group)
    parts = [
        within(f"{quantity.name}, {each}", quantity.measure, by_network.get(each, {}), low, high)
        for each in THREE
    ]
    rows = [row for each in (quantity, *others) for row in each.rows(each.over_tcp(group))]
    return Finding(tuple(parts), tuple(rows))


# ---- whose congestion control

ALL_MEASURES = ("loaded_s", "sent_packets", "retransmitted_bytes", "duplicate_acks", "stall_s")


def governing(group: Group) -> Finding:
    """Test that the three differ where they are set on the laptop; beside it, on the server."""
    laptop, server = (_differ(group, each) for each in (LAPTOP, SERVER))
    statement = "the three variants differ in something"
    lines = {"set on the server, they differ": in_most(statement, server)}
    same = sum(each is False for each in laptop.values())
    rows = [
        NumberRow("networks with the same for all, set on the laptop", f"{same} of {len(laptop)}"),
        *(row for setting in (LAPTOP, SERVER) for row in _load_spreads(group, setting)),
    ]
    return Finding((in_most(statement, laptop),), tuple(rows), lines)


def _differ(group: Group, setting: str) -> dict[int, bool | None]:
    """Return whether anything that is measured differs between the three, by seed."""
    rows = group.where(setting=setting).asked("variant", THREE).rows
    places = rows.groupby(["seed", "axis_network"])
    several = (places[list(ALL_MEASURES)].nunique() > 1).any(axis=1)
    known = several[places["axis_variant"].nunique() == len(THREE)]
    return {int(float(str(seed))): bool(each.any()) for seed, each in known.groupby(level="seed")}


def _load_spreads(group: Group, setting: str) -> list[NumberRow]:
    """Return by how much load times differ between the three, by network."""
    rows = group.where(setting=setting).asked("variant", THREE).rows
    loads: pd.Series[float] = rows.groupby(["axis_network", "seed"])["loaded_s"].agg(
        lambda times: times.max() - times.min()
    )
    where = {LAPTOP: "laptop", SERVER: "server"}[setting]
    return [
        NumberRow(
            f"spread of load times, {network}, set on the {where}",
            spread(DURATION, dict(enumerate(of_network))),
        )
        for network, of_network in loads.groupby(level="axis_network")
    ]


# ---- packet lengths

PACKET_LENGTH = Quantity("packet over TCP", "mean_packet_bytes", LENGTH, RGSJ_TCP_BYTES)
FAR_LARGER = 2.0  # ratio of packet lengths over TCP to those over QUIC; the paper's is 3.5


def transports(group: Group) -> Finding:
    """Test that packets over TCP are far larger than those over QUIC."""
    slow, fast = PACKET_LENGTH.over_tcp(group), PACKET_LENGTH.over_quic(group)
    parts = [
        within(f"{each} over QUIC", RATIO, relative(slow.get(each, {}), fast), low=FAR_LARGER)
        for each in THREE
    ]
    theirs = LENGTH.write(RGSJ_QUIC_BYTES)
    quic = NumberRow("packet over QUIC", spread(LENGTH, fast), theirs)
    return Finding(tuple(parts), (*PACKET_LENGTH.rows(slow), quic))


# ---- the crowded hall

FLAGGED = Quantity("error packets", "error_packets", VISIBLE)
STALLS = Quantity("stalls", "stalls", COUNT)
STALLED = Quantity("time stalled", "stall_s", DURATION)
STARTUP = Quantity("time until playback starts", "startup_s", DURATION)
PAGE_TIME = Quantity("page", "page_s", DURATION)
LOST_PEAK = Quantity("worst second's losses", "lost_packets_peak", PEAK)
ERROR_PEAK = Quantity("worst second's errors", "error_packets_peak", PEAK)
NO_STALL = 0.5  # per playback: none in most


def rebuffering(group: Group) -> Finding:
    """Test that Veno re-buffers least, by how often or by how long; beside it, that all do."""
    count, length = STALLS.over_tcp(group), STALLED.over_tcp(group)
    readings = {
        "how often": in_most("Veno stalls less often than each other", _least(STALLS, count)),
        "how long": in_most("Veno stalls for less than each other", _least(STALLED, length)),
    }
    all_stall = {
        seed: all(count[each].get(seed, 0) > NO_STALL for each in THREE) for seed in count["veno"]
    }
    rows = (*STALLS.rows(count), *STALLED.rows(length))
    lines = {"all of them re-buffer": in_most("each variant stalls", all_stall)}
    return Finding((by_definition("re-buffering", readings.items()),), rows, lines)


def _least(quantity: Quantity, by_network: Samples) -> dict[int, bool | None]:
    """Return whether Veno's number is below each other's by more than the margin, by seed."""
    others = [by_network.get(other, {}) for _, other in versus("veno")]
    return {
        seed: all(_is_less(quantity, value, other.get(seed, math.nan)) for other in others)
        for seed, value in by_network.get("veno", {}).items()
    }


def _is_less(quantity: Quantity, value: float, other: float) -> bool:
    return other - value > quantity.measure.margin(value, other)


def starting(group: Group) -> Finding:
    """Test that one to two minutes pass before the picture moves."""
    return bounded(group, STARTUP, *RGSJ_STARTUP_S, others=(PAGE_TIME,))


def sooner(group: Group) -> Finding:
    """Test that the page is loaded sooner over QUIC, by at least half of the paper's 40 s."""
    slow, fast = PAGE_TIME.over_tcp(group), PAGE_TIME.over_quic(group)
    tcp = slow.get(CUBIC, {})
    gain = {seed: tcp[seed] - fast[seed] for seed in sorted(tcp.keys() & fast.keys())}
    low, high = RGSJ_QUIC_SOONER_S
    row = NumberRow("sooner over QUIC", spread(DURATION, gain), f"{low:g} to {high:g} s")
    part = within("sooner over QUIC", DURATION, gain, low / 2)
    return Finding((part,), (*_by_transport(PAGE_TIME, slow, fast), row))


def smooth(group: Group) -> Finding:
    """Test that playback never stalls over QUIC; beside it, for a shorter time than over TCP."""
    count, length = STALLS.over_quic(group), STALLED.over_quic(group)
    stalled = STALLED.over_tcp(group)
    tcp = stalled.get(CUBIC, {})
    none = in_most("no stall over QUIC", {seed: n < NO_STALL for seed, n in count.items()})
    less = {seed: _is_less(STALLED, length[seed], tcp[seed]) for seed in length.keys() & tcp.keys()}
    rows = (
        *_by_transport(STALLS, STALLS.over_tcp(group), count),
        *_by_transport(STALLED, stalled, length),
    )
    lines = {"stalled for less than over TCP": in_most("for less than TCP's Cubic", less)}
    return Finding((none,), rows, lines)


def worst(group: Group) -> Finding:
    """Test that over QUIC the worst second has no more bad packets than the paper's."""
    slow, fast = LOST_PEAK.over_tcp(group), LOST_PEAK.over_quic(group)
    part = within("worst second over QUIC", PEAK, fast, high=RGSJ_WORST_ERRORS[QUIC])
    flagged = [
        NumberRow(row.what, row.ours, PEAK.write(RGSJ_WORST_ERRORS[HTTPS]))
        for row in ERROR_PEAK.rows(ERROR_PEAK.over_tcp(group))
    ]
    return Finding((part,), (*flagged, *_by_transport(LOST_PEAK, slow, fast)))


def _by_transport(quantity: Quantity, tcp: Samples, quic: Sample) -> list[NumberRow]:
    row = NumberRow(f"{quantity.name} over QUIC", spread(quantity.measure, quic))
    return [*quantity.rows(tcp, " over TCP"), row]


# ---- weak and strong signal


def signal_rates(group: Group) -> Finding:
    """Test that throughput is the same with a weak signal as with a strong one."""
    quantity = Quantity("throughput", "throughput_mbps", VIDEO_RATE)
    weak, strong, rows = _signals(group, quantity)
    parts = (
        _weak_beside_strong(quantity, weak, strong, each, ComparisonOutcome.EQUAL) for each in THREE
    )
    return Finding(tuple(parts), rows)


def signal_peaks(group: Group) -> Finding:
    """Test that a weak signal has fewer peaks."""
    quantity = Quantity("peaks", "spikes", COUNT)
    weak, strong, rows = _signals(group, quantity)
    parts = (
        _weak_beside_strong(quantity, weak, strong, each, ComparisonOutcome.BELOW, RGSJ_PEAKS)
        for each in THREE
    )
    return Finding(tuple(parts), rows)


def signal_duplicates(group: Group) -> Finding:
    """Test that Cubic has more duplicate ACKs with a weak signal; beside it, the other two."""
    quantity = Quantity("duplicate ACKs", "duplicate_acks", PACKETS)
    weak, strong, rows = _signals(group, quantity)

    def part(variant: str, wanted: ComparisonOutcome) -> ClaimPart:
        return _weak_beside_strong(quantity, weak, strong, variant, wanted, RGSJ_DUPLICATES)

    lines = {
        "fewer for Veno": part("veno", ComparisonOutcome.BELOW),
        "about as many for Vegas": part("vegas", ComparisonOutcome.EQUAL),
    }
    return Finding((part("cubic", ComparisonOutcome.ABOVE),), rows, lines)


def _signals(group: Group, quantity: Quantity) -> tuple[Samples, Samples, tuple[NumberRow, ...]]:
    """Return the numbers with a weak signal and with a strong one, and their rows."""
    weak, strong = (quantity.over_tcp(group.asked("network", [each])) for each in (WEAK, STRONG))
    rows = (*quantity.rows(weak, ", weak"), *quantity.rows(strong, ", strong"))
    return weak, strong, rows


def _weak_beside_strong(
    quantity: Quantity,
    weak: Samples,
    strong: Samples,
    variant: str,
    wanted: ComparisonOutcome,
    printed: Mapping[str, Mapping[str, float]] | None = None,
) -> ClaimPart:
    pair = (f"{variant}, weak", weak.get(variant, {}), "strong", strong.get(variant, {}))
    is_printed = printed and wanted is not ComparisonOutcome.EQUAL
    theirs = (printed[WEAK][variant], printed[STRONG][variant]) if printed and is_printed else None
    return all_are(wanted, contrasts(quantity.measure, [pair], [theirs]))
