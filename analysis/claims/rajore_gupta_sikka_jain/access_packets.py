"""What a video's packets look like on an access link: the tests of RGSJ3, 4, 5 and 8."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.claims.engine.answers import Finding, Part
from analysis.claims.engine.contrasts import (
    RATIO,
    Measure,
    Outcome,
    all_are,
    contrasts,
    relative,
    within,
)
from analysis.claims.engine.paper_numbers import (
    RGSJ_KBIT_PER_S,
    RGSJ_PACKET_BYTES,
    RGSJ_SHAPED,
    RGSJ_SIGNAL,
    RGSJ_SPIKES,
)
from analysis.claims.engine.selection import Group
from analysis.claims.rajore_gupta_sikka_jain.access import (
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
    versus,
)
from analysis.claims.rajore_gupta_sikka_jain.access_load import why

FAR_LARGER = 2.0  # packets over TCP, of those over QUIC; the paper's are 3.5 times as long
OUT_OF_ORDER = 1.0  # packets a run: the largest of the paper's own means
WEAK, STRONG = "wifi-weak", "wifi-strong"


def _spikes(group: Group) -> tuple[Samples, Samples, Finding]:
    """How many and how large; the rows that all of it has."""
    own = over_tcp(group)
    counts, largest = by_variant(own, "spikes"), by_variant(own, "largest_spike_pps")
    printed = RGSJ_SPIKES[str(group.values("network")[0])]
    rows = rows_of("spikes", TIMES, counts, {n: f"{each[0]}" for n, each in printed.items()})
    rows += rows_of(
        "largest spike", WORST, largest, {n: f"{each[1]} packets/s" for n, each in printed.items()}
    )
    return counts, largest, Finding((), tuple(rows), why(group, WHY_SPIKES))


WHY_SPIKES = (
    "Spikes are what a player asks for at a time: here a segment of 4 s, all of which comes within "
    "a second where the way is fast. The paper's player asked for more, and less often."
)


def spikes_wifi(group: Group) -> Finding:
    """Veno has the fewest, and the largest: so the paper, whose numbers do not bear it out."""
    counts, largest, told = _spikes(group)
    parts = (
        ranked(TIMES, counts, versus("veno"), where="spikes"),
        ranked(WORST, largest, versus("veno"), Outcome.ABOVE, "largest"),
    )
    return Finding(parts, told.rows, told.why)


def spikes_ethernet(group: Group) -> Finding:
    """Vegas has the fewest, Veno the largest."""
    counts, largest, told = _spikes(group)
    parts = (
        ranked(TIMES, counts, versus("vegas"), where="spikes"),
        ranked(WORST, largest, rising("cubic", "vegas", "veno"), where="largest"),
    )
    return Finding(parts, told.rows, told.why)


def lengths(group: Group) -> Finding:
    """The average packet: Veno's below Cubic's below Vegas's."""
    found = by_variant(over_tcp(group), "mean_packet_bytes")
    part = ranked(LENGTH, found, rising("veno", "cubic", "vegas"))
    rows = rows_of("packet over TCP", LENGTH, found, _bytes("https"))
    return Finding((part,), tuple(rows), why(group, WHY_LENGTHS))


def _bytes(transport: str) -> dict[str, str]:
    return {name: LENGTH.write(value) for name, value in RGSJ_PACKET_BYTES[transport].items()}


WHY_LENGTHS = (
    "The paper's packets of up to 65,374 bytes were never on a wire: they are what the capturing "
    "machine's receive offload had put together, and say how busy it was. (Its interface on WiFi "
    "was an Ethernet one, enp0s3, as virtual machines have it.) Here offloads are off, and "
    "segments are captured as they were on the wire."
)


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
    return Finding(tuple(parts), tuple(rows), WHY_LENGTHS)


def rates(group: Group) -> Finding:
    """Average throughput: Veno's below Vegas's below Cubic's."""
    found = by_variant(over_tcp(group), "throughput_mbps")
    paper = {name: RATE.write(value / 1e3) for name, value in RGSJ_KBIT_PER_S.items()}
    part = ranked(RATE, found, rising("veno", "vegas", "cubic"))
    rows = rows_of("throughput", RATE, found, paper)
    return Finding((part,), tuple(rows), why(group, WHY_RATES))


WHY_RATES = (
    "A video of a fixed rate is as many bytes as it is, over the time that it is watched: a "
    "congestion control changes neither, unless the picture stands still."
)


def shaped_rates(group: Group) -> Finding:
    """Throughput is the same for all."""
    found = by_variant(over_tcp(group), "throughput_mbps")
    pairs = (("veno", "cubic"), ("veno", "vegas"), ("cubic", "vegas"))
    near = Measure("KB/s", 1, factor=PAPERS, relative=0.05)
    part = ranked(near, found, pairs, Outcome.EQUAL)
    rows = rows_of("throughput", RATE, found, _medians("KB/s"))
    return Finding((part,), tuple(rows), why(group, WHY_RATES))


def _medians(what: str) -> dict[str, str]:
    """Of the paper's five runs, and from least to most."""
    return {
        name: f"{sorted(runs)[len(runs) // 2]} ({min(runs)} to {max(runs)})"
        for name, runs in RGSJ_SHAPED[what].items()
    }


def shaped_retransmissions(group: Group) -> Finding:
    """Retransmitted bytes: Vegas's below Veno's below Cubic's."""
    found = by_variant(over_tcp(group), "retransmitted_bytes")
    part = ranked(BYTES, found, rising("vegas", "veno", "cubic"))
    rows = rows_of("retransmitted", BYTES, found, _medians("retransmitted bytes"))
    return Finding((part,), tuple(rows), why(group, WHY_SHAPED))


WHY_SHAPED = (
    "wondershaper drops on the laptop, behind the paper's capture; here the queue of as many "
    "packets is before the line, and retransmissions are counted where they are sent."
)


def shaped_duplicates(group: Group) -> Finding:
    """Duplicate ACKs: Vegas's below Veno's below Cubic's."""
    found = by_variant(over_tcp(group), "duplicate_acks")
    part = ranked(PACKETS, found, rising("vegas", "veno", "cubic"))
    rows = rows_of("duplicate ACKs", PACKETS, found, _medians("duplicate ACKs"))
    return Finding((part,), tuple(rows), why(group, WHY_SHAPED))


def shaped_order(group: Group) -> Finding:
    """Next to nothing comes out of order."""
    found = by_variant(over_tcp(group), "out_of_order")
    parts = [
        within(f"out of order, {each}", PACKETS, found.get(each, {}), high=OUT_OF_ORDER)
        for each in THREE
    ]
    rows = rows_of("out of order", PACKETS, found, _medians("out of order"))
    return Finding(tuple(parts), tuple(rows), WHY_ORDER)


WHY_ORDER = (
    "Nothing overtakes anything on this line. What Wireshark calls out of order behind a queue "
    "that drops are retransmissions that come soon after what was sent in their place; the "
    "paper's capture was before the queue, where nothing was missing."
)


def signal_rates(group: Group) -> Finding:
    """Throughput is the same with a weak signal as with a strong one."""
    return _signal(
        group, "throughput_mbps", TENTH, 0, dict.fromkeys(THREE, Outcome.EQUAL), WHY_RATES
    )


def signal_peaks(group: Group) -> Finding:
    """A weak signal has fewer peaks."""
    return _signal(group, "spikes", TIMES, 1, dict.fromkeys(THREE, Outcome.BELOW), WHY_SPIKES)


def signal_duplicates(group: Group) -> Finding:
    """Duplicate ACKs: fewer with a weak signal for Veno, more for Cubic, as many for Vegas."""
    wanted = {"veno": Outcome.BELOW, "cubic": Outcome.ABOVE, "vegas": Outcome.EQUAL}
    return _signal(group, "duplicate_acks", PACKETS, 2, wanted, WHY_SIGNAL)


WHY_SIGNAL = (
    "A duplicate acknowledgement follows a loss, and the strong signal loses a twentieth of what "
    "the weak one does. That the paper's do not tell them apart says that its weak signal lost "
    "hardly more than its strong one: what a radio loses it sends again by itself."
)


def _signal(
    group: Group,
    metric: str,
    measure: Measure,
    place: int,
    wanted: Mapping[str, Outcome],
    words: str,
) -> Finding:
    """Weak beside strong, variant by variant; `place` of it in the paper's table."""
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
        rows += rows_of(
            f"{metric.replace('_mbps', '').replace('_', ' ')}, {network}", measure, sample, printed
        )
    return Finding(tuple(parts), tuple(rows), why(group, words))
