"""Judges of the claims of Rajore, Gupta, Sikka and Jain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from analysis.claims.comparisons import (
    RATIO,
    ClaimMeasure,
    ComparisonOutcome,
    Sample,
    all_are,
    contrasts,
    relative,
    within,
)
from analysis.claims.judgement import (
    ClaimPart,
    ClaimVerdict,
    Finding,
    JudgedPart,
    NumberRow,
    by_definition,
    merge_parts,
    require_all,
)
from analysis.claims.samples import Group, means, samples
from analysis.metrics.digest import NotMeasured
from experiments.rajore_gupta_sikka_jain.printed import (
    RGSJ_KBIT_PER_S,
    RGSJ_LOAD_S,
    RGSJ_PACKET_BYTES,
    RGSJ_QUIC_SOONER_S,
    RGSJ_SHAPED,
    RGSJ_SIGNAL,
    RGSJ_SPIKES,
    RGSJ_STARTUP_S,
    RGSJ_WORST_ERRORS,
)
from experiments.rajore_gupta_sikka_jain.selection import (
    ALMOST,
    BYTES,
    COUNT,
    DURATION,
    HTTPS,
    KBYTES_PER_MBIT,
    LAPTOP,
    LENGTH,
    PACKETS,
    PEAK,
    QUIC,
    SERVER,
    STALLED,
    TENTH,
    THREE,
    VIDEO_RATE,
    Samples,
    by_variant,
    middle,
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
WEAK_SIGNAL, STRONG_SIGNAL = "wifi-weak", "wifi-strong"


def _spikes(group: Group) -> tuple[Samples, Samples, tuple[NumberRow, ...]]:
    """Return the number and size of the spikes, with the rows that show them."""
    own = over_tcp(group)
    counts, largest = by_variant(own, "spikes"), by_variant(own, "largest_spike_pps")
    printed = RGSJ_SPIKES[str(group.values("network")[0])]
    rows = rows_of_three("spikes", COUNT, counts, {n: f"{each[0]}" for n, each in printed.items()})
    rows += rows_of(
        "largest spike", PEAK, largest, {n: f"{each[1]} packets/s" for n, each in printed.items()}
    )
    return counts, largest, tuple(rows)


def spikes_wifi(group: Group) -> Finding:
    """Test that Veno has the fewest, and beside it the largest; its numbers say otherwise."""
    counts, largest, rows = _spikes(group)
    fewest = ranked(COUNT, counts, versus("veno"), where="spikes")
    highest = ranked(PEAK, largest, versus("veno"), ComparisonOutcome.ABOVE, "largest")
    return Finding((fewest,), rows, {"Veno's are the largest": highest})


def spikes_ethernet(group: Group) -> Finding:
    """Test that Vegas has the fewest; beside it, that Veno has the largest."""
    counts, largest, rows = _spikes(group)
    theirs = RGSJ_SPIKES["ethernet"]
    numbers, peaks = ({name: each[at] for name, each in theirs.items()} for at in (0, 1))
    fewest = ranked(COUNT, counts, versus("vegas"), where="spikes", printed=numbers)
    order = rising("cubic", "vegas", "veno")
    highest = ranked(PEAK, largest, order, where="largest", printed=peaks)
    return Finding((fewest,), rows, {"Cubic's are smaller, Veno's larger": highest})


def lengths(group: Group) -> Finding:
    """Test that Veno's average packet is shorter than Cubic's, and Cubic's than Vegas's."""
    found = by_variant(over_tcp(group), "mean_packet_bytes")
    part = ranked(LENGTH, found, rising("veno", "cubic", "vegas"))
    rows = rows_of_three("packet over TCP", LENGTH, found, _bytes("https"))
    return Finding((part,), tuple(rows))


def _bytes(transport: str) -> dict[str, str]:
    return {name: LENGTH.write(value) for name, value in RGSJ_PACKET_BYTES[transport].items()}


def transports(group: Group) -> Finding:
    """Test that packets over TCP are far larger than those over QUIC."""
    slow, fast = (
        by_variant(own, "mean_packet_bytes") for own in (over_tcp(group), over_quic(group))
    )
    parts: list[ClaimPart] = []
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
    """Test that Veno's average throughput is below Vegas's, and Vegas's below Cubic's."""
    found = by_variant(over_tcp(group), "throughput_mbps")
    paper = {name: VIDEO_RATE.write(value / 1e3) for name, value in RGSJ_KBIT_PER_S.items()}
    printed = {name: value / 1e3 for name, value in RGSJ_KBIT_PER_S.items()}
    part = ranked(VIDEO_RATE, found, rising("veno", "vegas", "cubic"), printed=printed)
    rows = rows_of_three("throughput", VIDEO_RATE, found, paper)
    return Finding((part,), tuple(rows))


def shaped_rates(group: Group) -> Finding:
    """Test that all variants have the same throughput."""
    found = by_variant(over_tcp(group), "throughput_mbps")
    pairs = (("veno", "cubic"), ("veno", "vegas"), ("cubic", "vegas"))
    near = ClaimMeasure("KB/s", 1, factor=KBYTES_PER_MBIT, relative=0.05)
    part = ranked(near, found, pairs, ComparisonOutcome.EQUAL)
    rows = rows_of_three("throughput", VIDEO_RATE, found, _medians("KB/s"))
    return Finding((part,), tuple(rows))


def _printed_medians(what: str) -> dict[str, float]:
    return {name: sorted(runs)[len(runs) // 2] for name, runs in RGSJ_SHAPED[what].items()}


def _medians(what: str) -> dict[str, str]:
    """Return the medians of the paper's five runs, with their ranges."""
    return {
        name: f"{sorted(runs)[len(runs) // 2]} ({min(runs)} to {max(runs)})"
        for name, runs in RGSJ_SHAPED[what].items()
    }


def shaped_retransmissions(group: Group) -> Finding:
    """Test that Vegas retransmits fewer bytes than Veno, and Veno than Cubic."""
    found = by_variant(over_tcp(group), "retransmitted_bytes")
    printed = _printed_medians("retransmitted bytes")
    part = ranked(BYTES, found, rising("vegas", "veno", "cubic"), printed=printed)
    rows = rows_of_three("retransmitted", BYTES, found, _medians("retransmitted bytes"))
    return Finding((part,), tuple(rows))


def shaped_duplicates(group: Group) -> Finding:
    """Test that Vegas has fewer duplicate ACKs than Veno, and Veno than Cubic."""
    found = by_variant(over_tcp(group), "duplicate_acks")
    printed = _printed_medians("duplicate ACKs")
    part = ranked(PACKETS, found, rising("vegas", "veno", "cubic"), printed=printed)
    rows = rows_of_three("duplicate ACKs", PACKETS, found, _medians("duplicate ACKs"))
    return Finding((part,), tuple(rows))


def shaped_order(group: Group) -> Finding:
    """Test that next to nothing is out of order where the paper captured: before the queue."""
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
    """Test that throughput is the same with a weak signal as with a strong one."""
    return _signal(
        group, "throughput_mbps", TENTH, 0, dict.fromkeys(THREE, ComparisonOutcome.EQUAL)
    )


def signal_peaks(group: Group) -> Finding:
    """Test that a weak signal has fewer peaks."""
    return _signal(group, "spikes", COUNT, 1, dict.fromkeys(THREE, ComparisonOutcome.BELOW))


def signal_duplicates(group: Group) -> Finding:
    """Test that with a weak signal Veno has fewer duplicate ACKs, Cubic more, Vegas as many."""
    wanted = {
        "veno": ComparisonOutcome.BELOW,
        "cubic": ComparisonOutcome.ABOVE,
        "vegas": ComparisonOutcome.EQUAL,
    }
    return _signal(group, "duplicate_acks", PACKETS, 2, wanted)


def _signal(
    group: Group,
    metric: str,
    measure: ClaimMeasure,
    place: int,
    wanted: Mapping[str, ComparisonOutcome],
) -> Finding:
    """Compare weak with strong for each variant; `place` is the column in the paper's table."""
    own = over_tcp(group)
    weak, strong = (
        by_variant(own.asked("network", [each]), metric) for each in (WEAK_SIGNAL, STRONG_SIGNAL)
    )
    pairs = [
        (f"{each}, weak", weak.get(each, {}), f"{each}, strong", strong.get(each, {}))
        for each in THREE
    ]
    theirs = [
        (RGSJ_SIGNAL[WEAK_SIGNAL][each][place], RGSJ_SIGNAL[STRONG_SIGNAL][each][place])
        if wanted[each] is not ComparisonOutcome.EQUAL
        else None
        for each in THREE
    ]
    found = contrasts(measure, pairs, theirs)
    parts = [all_are(wanted[each], [own]) for each, own in zip(THREE, found, strict=True)]
    unit = f" {measure.unit}" if place == 0 else ""
    rows = []
    for network, sample in ((WEAK_SIGNAL, weak), (STRONG_SIGNAL, strong)):
        printed = {name: f"{each[place]}{unit}" for name, each in RGSJ_SIGNAL[network].items()}
        rows += rows_of_three(
            f"{metric.replace('_mbps', '').replace('_', ' ')}, {network}", measure, sample, printed
        )
    return Finding(tuple(parts), tuple(rows))


AT_MAX_STALLS = 0.5  # per playback: none in most


def loading(group: Group, alike: tuple[str, str]) -> Finding:
    """Test that Veno loads the whole video first; beside it, two of the three almost equal."""
    network = str(group.values("network")[0])
    found = by_variant(over_tcp(group), "loaded_s")
    printed = RGSJ_LOAD_S[network]
    paper = {name: f"{value} s" for name, value in printed.items()}
    first = ranked(DURATION, found, versus("veno"), printed=printed)
    equal = ranked(ALMOST, found, (alike,), ComparisonOutcome.EQUAL)
    rows = rows_of_three("time to load", DURATION, found, paper)
    beside = by_variant(group.where(transport=QUIC, setting=SERVER), "loaded_s")
    rows += rows_of("time to load over QUIC", DURATION, beside)
    return Finding((first,), tuple(rows), {f"{alike[0]} and {alike[1]} almost equal": equal})


def errors(group: Group) -> Finding:
    """Test that Cubic has the most packets with one of Wireshark's errors."""
    own = over_tcp(group)
    found = by_variant(own, "error_packets")
    part = ranked(PACKETS, found, versus("cubic"), ComparisonOutcome.ABOVE)
    worst = by_variant(own, "error_packets_peak")
    rows = rows_of_three("error packets", PACKETS, found) + rows_of("worst second", PEAK, worst)
    return Finding((part,), tuple(rows))


def rebuffering(group: Group) -> Finding:
    """Test that Veno re-buffers least, by how often or by how long; beside it, that all do."""
    own = over_tcp(group)
    count, length = by_variant(own, "stalls"), by_variant(own, "stall_s")
    pairs = versus("veno")
    readings = (
        ("how often", ranked(COUNT, count, pairs)),
        ("how long", ranked(STALLED, length, pairs)),
    )
    least = by_definition("re-buffering", readings)
    every = [within(f"stalls, {each}", COUNT, count.get(each, {}), low=1) for each in THREE]
    rows = rows_of_three("stalls", COUNT, count) + rows_of("time stalled", STALLED, length)
    return Finding((least,), tuple(rows), {"all of them re-buffer": require_all(every)})


def starting(group: Group) -> Finding:
    """Test that one to two minutes pass before the picture moves."""
    own = over_tcp(group)
    found, page = by_variant(own, "startup_s"), by_variant(own, "page_s")
    parts = [
        within(
            f"time until playback starts, {each}", DURATION, found.get(each, {}), *RGSJ_STARTUP_S
        )
        for each in THREE
    ]
    rows = rows_of("time until the picture moves", DURATION, found)
    rows += rows_of("time until the page is there", DURATION, page)
    return Finding(tuple(parts), tuple(rows))


def by_control(judge: dict[str, ClaimPart]) -> ClaimPart:
    """Make a reading for each congestion control that QUIC's server may have had."""
    return by_definition("congestion control of QUIC's server", judge.items())


def sooner(group: Group) -> Finding:
    """Test that the page is loaded sooner over QUIC, by at least half of what the paper has."""
    slow, fast = (by_variant(own, "page_s") for own in _both(group))
    rows = rows_of("page over TCP", DURATION, slow) + rows_of("page over QUIC", DURATION, fast)
    low, high = RGSJ_QUIC_SOONER_S
    readings = {}
    for control, own in sorted(fast.items()):
        gains = {name: _difference(slow.get(name, {}), own) for name in THREE}
        readings[control] = require_all(
            within(f"sooner than {name}", DURATION, gain, low / 2) for name, gain in gains.items()
        )
        rows += [
            NumberRow(
                f"median by which QUIC ({control}) is sooner than {name}",
                middle(DURATION, gain),
                f"{low:g} to {high:g} s",
            )
            for name, gain in gains.items()
        ]
    return Finding((by_control(readings),), tuple(rows))


def _difference(first: Sample, second: Sample) -> Sample:
    return {seed: first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())}


def smooth(group: Group) -> Finding:
    """Test that playback never stalls over QUIC; beside it, for longer over TCP."""
    own, other = _both(group)
    count, length = by_variant(other, "stalls"), by_variant(other, "stall_s")
    tcp = by_variant(own, "stall_s")
    none = {
        control: within("stalls over QUIC", COUNT, sample, high=AT_MAX_STALLS)
        for control, sample in sorted(count.items())
    }
    less = {
        control: _below_all(STALLED, f"QUIC ({control})", sample, tcp)
        for control, sample in sorted(length.items())
    }
    rows = rows_of("stalls over TCP", COUNT, by_variant(own, "stalls"))
    rows += rows_of("time stalled over TCP", STALLED, tcp)
    rows += rows_of("stalls over QUIC", COUNT, count, dict.fromkeys(count, "0"))
    rows += rows_of("time stalled over QUIC", STALLED, length)
    lines = {"for a shorter time than over TCP": by_control(less)}
    return Finding((by_control(none),), tuple(rows), lines)


def _below_all(measure: ClaimMeasure, name: str, hero: Sample, rivals: Samples) -> ClaimPart:
    pairs = [(name, hero, f"TCP {each}", rivals.get(each, {})) for each in THREE]
    return all_are(ComparisonOutcome.BELOW, contrasts(measure, pairs))


def worst(group: Group) -> Finding:
    """Test that over QUIC the worst second has fewer bad packets, and no more than the paper's."""
    slow, fast = (by_variant(own, "lost_packets_peak") for own in _both(group))
    most = RGSJ_WORST_ERRORS[QUIC]
    bounded = {
        control: within("worst second over QUIC", PEAK, sample, high=most)
        for control, sample in sorted(fast.items())
    }
    less = {
        control: _below_all(PEAK, f"QUIC ({control})", sample, slow)
        for control, sample in sorted(fast.items())
    }
    printed = {name: f"{value:g} packets/s" for name, value in RGSJ_WORST_ERRORS.items()}
    flagged = by_variant(over_tcp(group), "error_packets_peak")
    rows = rows_of(
        "worst second's errors over TCP", PEAK, flagged, dict.fromkeys(THREE, printed[HTTPS])
    )
    rows += rows_of("worst second's losses over TCP", PEAK, slow)
    rows += rows_of(
        "worst second's losses over QUIC", PEAK, fast, dict.fromkeys(fast, printed[QUIC])
    )
    return Finding((by_control(bounded), by_control(less)), tuple(rows))


def _both(group: Group) -> tuple[Group, Group]:
    return over_tcp(group), over_quic(group)


OTHER_MEASURES = {  # what else would differ if a setting had any effect
    "goodput_mbps": "goodput",
    "sent_packets": "packets sent",
    "wireshark_retransmissions": "retransmissions as Wireshark has them",
    "duplicate_acks": "duplicate ACKs",
    "stall_s": "time stalled",
}
OPPOSITE = {
    ClaimVerdict.SUPPORTED: ClaimVerdict.CONTRADICTED,
    ClaimVerdict.CONTRADICTED: ClaimVerdict.SUPPORTED,
    ClaimVerdict.PARTLY: ClaimVerdict.SUPPORTED,  # one pair that differs is enough
    ClaimVerdict.OPEN: ClaimVerdict.OPEN,
}
Spreads = pd.DataFrame  # largest minus smallest of the three: a row per seed, a column per network


def spreads(group: Group, setting: str, metric: str) -> Spreads:
    """Return the spreads over the three variants, where all three are known."""
    own = group.where(transport=HTTPS, setting=setting).asked("variant", THREE)
    table = means(own.rows, metric, ["seed", "axis_network"], "axis_variant")
    return (table.max(axis=1) - table.min(axis=1)).unstack("axis_network")


def governing(group: Group) -> Finding:
    """Test whether load times differ if set on the laptop; beside it, more than on the server."""
    laptop, server = (spreads(group, each, "loaded_s") for each in (LAPTOP, SERVER))
    shared = laptop.dropna(axis=1).columns.intersection(server.dropna(axis=1).columns)
    if shared.empty:
        raise NotMeasured("no network has load times of both settings")
    own, other = (_means(each[shared]) for each in (laptop, server))
    names = "spread of load times, set on the laptop,", "that set on the server"
    beside = contrasts(DURATION, [(*names[:1], own, names[1], other)])
    lines = {
        "by at least as much as set on the server": all_are(
            ComparisonOutcome.ABOVE, beside, or_equal=True
        )
    }
    differ = _differ(group, [str(name) for name in shared])
    rows = [
        NumberRow(
            f"spread of load times, {network}, set on the {where}",
            middle(DURATION, _sample(table[network])),
        )
        for network in shared
        for where, table in (("laptop", laptop), ("server", server))
    ]
    return Finding((differ,), (*rows, *_beside(group)), lines)


def _differ(group: Group, networks: list[str]) -> ClaimPart:
    """Test that the three load times are not all equal."""
    rows = group.where(setting=LAPTOP, variant=THREE, network=networks).rows
    found = samples(rows, "loaded_s", "axis_variant", ["axis_network"])
    pairs = (("veno", "cubic"), ("veno", "vegas"), ("cubic", "vegas"))
    equal = ranked(DURATION, found, pairs, ComparisonOutcome.EQUAL, "set on the laptop")
    return merge_parts((equal,), _opposite)


def _opposite(results: tuple[JudgedPart, ...]) -> JudgedPart:
    (found,) = results
    return replace(found, verdict=OPPOSITE[found.verdict])


def _means(table: Spreads) -> Sample:
    return {int(float(str(seed))): float(value) for seed, value in table.mean(axis=1).items()}


def _sample(column: pd.Series[float]) -> Sample:
    return {int(float(str(seed))): float(value) for seed, value in column.items()}


def _beside(group: Group) -> list[NumberRow]:
    """Return the largest spread of each other measure."""
    rows = []
    for metric, words in OTHER_MEASURES.items():
        found = [float(spreads(group, each, metric).max().max()) for each in (LAPTOP, SERVER)]
        said = f"{found[0]:.4g} set on the laptop, {found[1]:.4g} on the server"
        rows.append(NumberRow(f"largest spread of {words}, any network and seed", said))
    return rows
