"""Loading and playback of a video on an access link: the tests of RGSJ1, 2, 6 and 7."""

from __future__ import annotations

from functools import reduce

from analysis.claims.engine.answers import Finding, Part, Row, both, by_definition
from analysis.claims.engine.contrasts import Outcome, Sample, all_are, contrasts, within
from analysis.claims.engine.quantities import Measure
from analysis.claims.engine.selection import Group
from analysis.claims.rajore_gupta_sikka_jain.rgsj_numbers import (
    RGSJ_LOAD_S,
    RGSJ_QUIC_SOONER_S,
    RGSJ_STARTUP_S,
    RGSJ_WORST_ERRORS,
)
from analysis.claims.rajore_gupta_sikka_jain.rgsj_selection import (
    ALMOST,
    PACKETS,
    QUIC,
    SECONDS,
    SERVER,
    STALLED,
    TCP,
    THREE,
    TIMES,
    WORST,
    Samples,
    by_variant,
    middle,
    over_quic,
    over_tcp,
    ranked,
    rows_of,
    rows_of_three,
    versus,
)

AT_MOST_STALLS = 0.5  # per playback: none in most


def loading(group: Group, alike: tuple[str, str]) -> Finding:
    """Veno loads the whole video first; two of the three are almost equal."""
    network = str(group.values("network")[0])
    found = by_variant(over_tcp(group), "loaded_s")
    printed = RGSJ_LOAD_S[network]
    paper = {name: f"{value} s" for name, value in printed.items()}
    parts = (
        ranked(SECONDS, found, versus("veno")),
        ranked(ALMOST, found, (alike,), Outcome.EQUAL, "almost equal"),
    )
    rows = rows_of_three("time to load", SECONDS, found, paper)
    beside = by_variant(group.where(transport=QUIC, setting=SERVER), "loaded_s")
    rows += rows_of("time to load over QUIC", SECONDS, beside)
    return Finding(parts, tuple(rows))


def errors(group: Group) -> Finding:
    """Cubic has the most packets with one of Wireshark's errors."""
    own = over_tcp(group)
    found = by_variant(own, "error_packets")
    part = ranked(PACKETS, found, versus("cubic"), Outcome.ABOVE)
    worst = by_variant(own, "error_packets_peak")
    rows = rows_of_three("error packets", PACKETS, found) + rows_of("worst second", WORST, worst)
    return Finding((part,), tuple(rows))


def rebuffering(group: Group) -> Finding:
    """Veno re-buffers least, by how often or by how long; all of them do."""
    own = over_tcp(group)
    count, length = by_variant(own, "stalls"), by_variant(own, "stall_s")
    pairs = versus("veno")
    readings = (
        ("how often", ranked(TIMES, count, pairs)),
        ("how long", ranked(STALLED, length, pairs)),
    )
    parts = [by_definition("re-buffering", readings)]
    parts += [within(f"stalls, {each}", TIMES, count.get(each, {}), low=1) for each in THREE]
    rows = rows_of_three("stalls", TIMES, count) + rows_of("time stalled", STALLED, length)
    return Finding(tuple(parts), tuple(rows))


def starting(group: Group) -> Finding:
    """One to two minutes pass before the picture moves."""
    own = over_tcp(group)
    found, page = by_variant(own, "startup_s"), by_variant(own, "page_s")
    parts = [
        within(f"time until playback starts, {each}", SECONDS, found.get(each, {}), *RGSJ_STARTUP_S)
        for each in THREE
    ]
    rows = rows_of("time until the picture moves", SECONDS, found)
    rows += rows_of("time until the page is there", SECONDS, page)
    return Finding(tuple(parts), tuple(rows))


def by_control(judge: dict[str, Part]) -> Part:
    """One reading for each congestion control that QUIC's server may have had."""
    return by_definition("congestion control of QUIC's server", judge.items())


def sooner(group: Group) -> Finding:
    """The page is loaded 40 to 50 s sooner over QUIC."""
    slow, fast = (by_variant(own, "page_s") for own in _both(group))
    rows = rows_of("page over TCP", SECONDS, slow) + rows_of("page over QUIC", SECONDS, fast)
    low, high = RGSJ_QUIC_SOONER_S
    readings = {}
    for control, own in sorted(fast.items()):
        gains = {name: _difference(slow.get(name, {}), own) for name in THREE}
        readings[control] = reduce(
            both,
            (within(f"sooner than {n}", SECONDS, gain, low, high) for n, gain in gains.items()),
        )
        rows += [
            Row(
                f"median by which QUIC ({control}) is sooner than {name}",
                middle(SECONDS, gain),
                f"{low:g} to {high:g} s",
            )
            for name, gain in gains.items()
        ]
    return Finding((by_control(readings),), tuple(rows))


def _difference(first: Sample, second: Sample) -> Sample:
    return {seed: first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())}


def smooth(group: Group) -> Finding:
    """Over QUIC playback does not stall, and over TCP it does, for longer."""
    own, other = _both(group)
    count, length = by_variant(other, "stalls"), by_variant(other, "stall_s")
    tcp = by_variant(own, "stall_s")
    none = {
        control: within("stalls over QUIC", TIMES, sample, high=AT_MOST_STALLS)
        for control, sample in sorted(count.items())
    }
    less = {
        control: _below_all(STALLED, f"QUIC ({control})", sample, tcp)
        for control, sample in sorted(length.items())
    }
    rows = rows_of("stalls over TCP", TIMES, by_variant(own, "stalls"))
    rows += rows_of("time stalled over TCP", STALLED, tcp)
    rows += rows_of("stalls over QUIC", TIMES, count, dict.fromkeys(count, "0"))
    rows += rows_of("time stalled over QUIC", STALLED, length)
    return Finding((by_control(none), by_control(less)), tuple(rows))


def _below_all(measure: Measure, name: str, hero: Sample, rivals: Samples) -> Part:
    pairs = [(name, hero, f"TCP {each}", rivals.get(each, {})) for each in THREE]
    return all_are(Outcome.BELOW, contrasts(measure, pairs, paired=True))


def worst(group: Group) -> Finding:
    """The worst second has fewer bad packets over QUIC, and no more than the paper's."""
    slow, fast = (by_variant(own, "lost_packets_peak") for own in _both(group))
    most = RGSJ_WORST_ERRORS[QUIC]
    bounded = {
        control: within("worst second over QUIC", WORST, sample, high=most)
        for control, sample in sorted(fast.items())
    }
    less = {
        control: _below_all(WORST, f"QUIC ({control})", sample, slow)
        for control, sample in sorted(fast.items())
    }
    printed = {name: f"{value:g} packets/s" for name, value in RGSJ_WORST_ERRORS.items()}
    flagged = by_variant(over_tcp(group), "error_packets_peak")
    rows = rows_of(
        "worst second's errors over TCP", WORST, flagged, dict.fromkeys(THREE, printed[TCP])
    )
    rows += rows_of("worst second's losses over TCP", WORST, slow)
    rows += rows_of(
        "worst second's losses over QUIC", WORST, fast, dict.fromkeys(fast, printed[QUIC])
    )
    return Finding((by_control(bounded), by_control(less)), tuple(rows))


def _both(group: Group) -> tuple[Group, Group]:
    return over_tcp(group), over_quic(group)
