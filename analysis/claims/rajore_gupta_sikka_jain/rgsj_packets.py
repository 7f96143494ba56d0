"""A video's packets on an access link: the tests of RGSJ3, 4, 5 and 8."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.claims.engine.answers import Finding, Part, Row
from analysis.claims.engine.contrasts import Outcome, all_are, contrasts, relative, within
from analysis.claims.engine.quantities import RATIO, Measure
from analysis.claims.engine.selection import Group
from analysis.claims.rajore_gupta_sikka_jain.rgsj_numbers import (
    RGSJ_KBIT_PER_S,
    RGSJ_PACKET_BYTES,
    RGSJ_SHAPED,
    RGSJ_SIGNAL,
    RGSJ_SPIKES,
)
from analysis.claims.rajore_gupta_sikka_jain.rgsj_selection import (
    BYTES,
    LENGTH,
    PACKETS,
    PAPERS,
    RATE,
    TENTH,
    THREE,
    TIMES,
    WORST,
    Samples,
    by_variant,
    over_quic,
    over_tcp,
    ranked,
    rising,
    rows_of,
    rows_of_three,
    versus,
)

FAR_LARGER = 2.0  # ratio of packet lengths over TCP to those over QUIC; the paper's is 3.5
OUT_OF_ORDER = 1.0  # packets per run: the largest of the paper's own means
WEAK, STRONG = "wifi-weak", "wifi-strong"


def _spikes(group: Group) -> tuple[Samples, Samples, tuple[Row, ...]]:
    """The number and size of the spikes, with the table rows that show them."""
    own = over_tcp(group)
    counts, largest = by_variant(own, "spikes"), by_variant(own, "largest_spike_pps")
    printed = RGSJ_SPIKES[str(group.values("network")[0])]
    rows = rows_of_three("spikes", TIMES, counts, {n: f"{each[0]}" for n, each in printed.items()})
    rows += rows_of(
        "largest spike", WORST, largest, {n: f"{each[1]} packets/s" for n, each in printed.items()}
    )
    return counts, largest, tuple(rows)


def spikes_wifi(group: Group) -> Finding:
    """Veno has the fewest, and the largest: the paper says so, but its numbers do not."""
    counts, largest, rows = _spikes(group)
    parts = (
        ranked(TIMES, counts, versus("veno"), where="spikes"),
        ranked(WORST, largest, versus("veno"), Outcome.ABOVE, "largest"),
    )
    return Finding(parts, rows)


def spikes_ethernet(group: Group) -> Finding:
    """Vegas has the fewest, Veno the largest."""
    counts, largest, rows = _spikes(group)
    parts = (
        ranked(TIMES, counts, versus("vegas"), where="spikes"),
        ranked(WORST, largest, rising("cubic", "vegas", "veno"), where="largest"),
    )
    return Finding(parts, rows)


def lengths(group: Group) -> Finding:
    """The average packet: Veno's below Cubic's below Vegas's."""
    found = by_variant(over_tcp(group), "mean_packet_bytes")
    part = ranked(LENGTH, found, rising("veno", "cubic", "vegas"))
    rows = rows_of_three("packet over TCP", LENGTH, found, _bytes("https"))
    return Finding((part,), tuple(rows))


def _bytes(transport: str) -> dict[str, str]:
    return {name: LENGTH.write(value) for name, value in RGSJ_PACKET_BYTES[transport].items()}


def transports(group: Group) -> Finding:
    """Packets over TCP are far larger than over QUIC."""
    slow, fast = (
        by_variant(own, "mean_packet_bytes") for own in (over_tcp(group), over_quic(group))
    )
    parts: list[Part] = []
    for control, sample in sorted(fast.items()):
        parts += [
            within(
                f"{each} over QUIC ({control})",
                RATIO,
                relative(slow.get(each, {}), sample),
                low=FAR_LARGER,
            )
            for each in THREE
        ]
    rows = rows_of("packet over TCP", LENGTH, slow, _bytes("https"))
    theirs = ", ".join(f"{name} {value}" for name, value in _bytes("quic").items())
    rows += rows_of("packet over QUIC", LENGTH, fast, dict.fromkeys(fast, theirs))
    return Finding(tuple(parts), tuple(rows))


def rates(group: Group) -> Finding:
    """Average throughput: Veno's below Vegas's below Cubic's."""
    found = by_variant(over_tcp(group), "throughput_mbps")
    paper = {name: RATE.write(value / 1e3) for name, value in RGSJ_KBIT_PER_S.items()}
    part = ranked(RATE, found, rising("veno", "vegas", "cubic"))
    rows = rows_of_three("throughput", RATE, found, paper)
    return Finding((part,), tuple(rows))


def shaped_rates(group: Group) -> Finding:
    """Throughput is the same for all."""
    found = by_variant(over_tcp(group), "throughput_mbps")
    pairs = (("veno", "cubic"), ("veno", "vegas"), ("cubic", "vegas"))
    near = Measure("KB/s", 1, factor=PAPERS, relative=0.05)
    part = ranked(near, found, pairs, Outcome.EQUAL)
    rows = rows_of_three("throughput", RATE, found, _medians("KB/s"))
    return Finding((part,), tuple(rows))


def _medians(what: str) -> dict[str, str]:
    """The medians of the paper's five runs, with their ranges."""
    return {
        name: f"{sorted(runs)[len(runs) // 2]} ({min(runs)} to {max(runs)})"
        for name, runs in RGSJ_SHAPED[what].items()
    }


def shaped_retransmissions(group: Group) -> Finding:
    """Retransmitted bytes: Vegas's below Veno's below Cubic's."""
    found = by_variant(over_tcp(group), "retransmitted_bytes")
    part = ranked(BYTES, found, rising("vegas", "veno", "cubic"))
    rows = rows_of_three("retransmitted", BYTES, found, _medians("retransmitted bytes"))
    return Finding((part,), tuple(rows))


def shaped_duplicates(group: Group) -> Finding:
    """Duplicate ACKs: Vegas's below Veno's below Cubic's."""
    found = by_variant(over_tcp(group), "duplicate_acks")
    part = ranked(PACKETS, found, rising("vegas", "veno", "cubic"))
    rows = rows_of_three("duplicate ACKs", PACKETS, found, _medians("duplicate ACKs"))
    return Finding((part,), tuple(rows))


def shaped_order(group: Group) -> Finding:
    """Next to nothing is out of order where the paper captured: before the queue."""
    own = over_tcp(group)
    found = by_variant(own, "out_of_order_sent")
    parts = [
        within(f"out of order, {each}", PACKETS, found.get(each, {}), high=OUT_OF_ORDER)
        for each in THREE
    ]
    rows = rows_of("out of order", PACKETS, found, _medians("out of order"))
    rows += rows_of("out of order behind the queue", PACKETS, by_variant(own, "out_of_order"))
    return Finding(tuple(parts), tuple(rows))


def signal_rates(group: Group) -> Finding:
    """Throughput is the same with a weak signal as with a strong one."""
    return _signal(group, "throughput_mbps", TENTH, 0, dict.fromkeys(THREE, Outcome.EQUAL))


def signal_peaks(group: Group) -> Finding:
    """A weak signal has fewer peaks."""
    return _signal(group, "spikes", TIMES, 1, dict.fromkeys(THREE, Outcome.BELOW))


def signal_duplicates(group: Group) -> Finding:
    """Duplicate ACKs: fewer with a weak signal for Veno, more for Cubic, as many for Vegas."""
    wanted = {"veno": Outcome.BELOW, "cubic": Outcome.ABOVE, "vegas": Outcome.EQUAL}
    return _signal(group, "duplicate_acks", PACKETS, 2, wanted)


def _signal(
    group: Group,
    metric: str,
    measure: Measure,
    place: int,
    wanted: Mapping[str, Outcome],
) -> Finding:
    """Weak beside strong, variant by variant; `place` is the column in the paper's table."""
    own = over_tcp(group)
    weak, strong = (by_variant(own.asked("network", [each]), metric) for each in (WEAK, STRONG))
    pairs = [
        (f"{each}, weak", weak.get(each, {}), f"{each}, strong", strong.get(each, {}))
        for each in THREE
    ]
    found = contrasts(measure, pairs, paired=True)
    parts = [all_are(wanted[each], [own]) for each, own in zip(THREE, found, strict=True)]
    unit = f" {measure.unit}" if place == 0 else ""
    rows = []
    for network, sample in ((WEAK, weak), (STRONG, strong)):
        printed = {name: f"{each[place]}{unit}" for name, each in RGSJ_SIGNAL[network].items()}
        rows += rows_of_three(
            f"{metric.replace('_mbps', '').replace('_', ' ')}, {network}", measure, sample, printed
        )
    return Finding(tuple(parts), tuple(rows))
