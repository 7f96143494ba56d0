"""How a video loads and plays on an access link: the tests of RGSJ1, 2, 6 and 7."""

from __future__ import annotations

from functools import reduce

from analysis.claims.engine.answers import Finding, Part, Row, both, by_definition
from analysis.claims.engine.contrasts import Measure, Outcome, Sample, all_are, contrasts, within
from analysis.claims.engine.paper_numbers import (
    RGSJ_LOAD_S,
    RGSJ_QUIC_SOONER_S,
    RGSJ_STARTUP_S,
    RGSJ_WORST_ERRORS,
)
from analysis.claims.engine.selection import Group
from analysis.claims.rajore_gupta_sikka_jain import access
from analysis.claims.rajore_gupta_sikka_jain.access import (
    ALMOST,
    PACKETS,
    QUIC,
    SECONDS,
    STALLED,
    TCP,
    THREE,
    TIMES,
    WORST,
    Samples,
    beside,
    by_variant,
    in_the_hall,
    over_quic,
    over_tcp,
    ranked,
    rows_of,
    versus,
)

AT_MOST_STALLS = 0.5  # a playback: none in most
WHY_LAPTOP = (
    "A laptop that watches sends requests and acknowledgements: its congestion control governs no "
    "more than these, whatever it is set to. RGSJ0 has the two settings side by side."
)


def why(group: Group, words: str = "") -> str:
    """What explains an answer: on the laptop, that it does not send."""
    return f"{WHY_LAPTOP} {words}".strip() if group.setting == access.LAPTOP else words


def loading(group: Group, alike: tuple[str, str]) -> Finding:
    """Veno has the whole video first; two of the three are almost equal."""
    network = str(group.values("network")[0])
    found = by_variant(over_tcp(group), "loaded_s")
    printed = RGSJ_LOAD_S[network]
    paper = {name: f"{value} s" for name, value in printed.items()}
    parts = (
        ranked(SECONDS, found, versus("veno")),
        ranked(ALMOST, found, (alike,), Outcome.EQUAL, "almost equal"),
    )
    rows = rows_of("time to load", SECONDS, found, paper)
    beside = by_variant(group.where(transport=QUIC, setting=access.SERVER), "loaded_s")
    rows += rows_of("time to load over QUIC", SECONDS, beside)
    return Finding(parts, tuple(rows), why(group, WHY_LOADING))


WHY_LOADING = (
    "Where the network has room, a player decides when the video is loaded: it asks for no more "
    "while 150 s of it are ahead, so that the last segment is asked for some 120 s after the "
    "picture began to move, under any congestion control. The paper has one run a variant."
)


def errors(group: Group) -> Finding:
    """Cubic has the most packets with one of Wireshark's errors."""
    own = over_tcp(in_the_hall(group))
    found = by_variant(own, "error_packets")
    part = ranked(PACKETS, found, versus("cubic"), Outcome.ABOVE)
    worst = by_variant(own, "error_packets_peak")
    rows = rows_of("error packets", PACKETS, found) + rows_of("worst second", WORST, worst)
    rows += beside(group, "worst second", WORST, "error_packets_peak")
    return Finding((part,), tuple(rows), why(group, WHY_ERRORS))


WHY_ERRORS = (
    "What the radio loses it sends again by itself: where a segment is missing, the access "
    "point's full queue has dropped it. So a variant that keeps this queue short, as Vegas and BBR "
    "do, has next to no errors; of the others' most are duplicate acknowledgements, of which one "
    "loss makes many."
)


def rebuffering(group: Group) -> Finding:
    """Veno re-buffers least, by how often or by how long; all of them do."""
    own = over_tcp(in_the_hall(group))
    count, length = by_variant(own, "stalls"), by_variant(own, "stall_s")
    pairs = versus("veno")
    readings = (
        ("how often", ranked(TIMES, count, pairs)),
        ("how long", ranked(STALLED, length, pairs)),
    )
    parts = [by_definition("re-buffering", readings)]
    parts += [within(f"stalls, {each}", TIMES, count.get(each, {}), low=1) for each in THREE]
    rows = rows_of("stalls", TIMES, count) + rows_of("time stalled", STALLED, length)
    rows += beside(group, "stalls", TIMES, "stalls")
    return Finding(tuple(parts), tuple(rows), why(group, WHY_REBUFFERING))


WHY_REBUFFERING = (
    "The picture stands still where less comes than is shown. On a radio that both share, at "
    "1.89 Mbit/s, there is room for the video's 330 kbit/s; with the paper's 0.01 Mbit/s up there "
    "is not. The paper has three runs of Cubic and Veno and one of Vegas, in a lecture hall whose "
    "other users it could not hold still."
)


def starting(group: Group) -> Finding:
    """One to two minutes pass before the picture moves."""
    own = over_tcp(in_the_hall(group))
    found, page = by_variant(own, "startup_s"), by_variant(own, "page_s")
    parts = [
        within(f"until the picture moves, {each}", SECONDS, found.get(each, {}), *RGSJ_STARTUP_S)
        for each in THREE
    ]
    rows = rows_of("time until the picture moves", SECONDS, found)
    rows += rows_of("time until the page is there", SECONDS, page)
    rows += beside(group, "time until the picture moves", SECONDS, "startup_s")
    return Finding(tuple(parts), tuple(rows), WHY_STARTING)


WHY_STARTING = (
    "How long a page takes is a matter of its size and of the way: 1 MB here, over a radio whose "
    "1.89 Mbit/s both directions share. The paper's speed test showed 0.01 Mbit/s up, which such "
    "a medium cannot have; with that, as netem has it, acknowledgements are what a page waits for. "
    "YouTube's page was larger, and what that test rounded to 0.01 is not known."
)


def by_control(judge: dict[str, Part]) -> Part:
    """One reading for each congestion control that QUIC's server may have had."""
    return by_definition("congestion control of QUIC's server", judge.items())


def sooner(group: Group) -> Finding:
    """The page is there 40 to 50 s sooner over QUIC."""
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
                access.middle(SECONDS, gain),
                f"{low:g} to {high:g} s",
            )
            for name, gain in gains.items()
        ]
    rows += beside(group, "page", SECONDS, "page_s")
    return Finding((by_control(readings),), tuple(rows), WHY_SOONER)


WHY_SOONER = (
    "Over QUIC a page saves a round trip of the handshake and waits for no other object's losses: "
    "tenths of a second here. Where 10 kbit/s of acknowledgements are the limit it matters how "
    "often a receiver answers; that is the program's choice, not the protocol's, and ours, which "
    "answers as Chromium does, makes QUIC the slower one there."
)


def _difference(first: Sample, second: Sample) -> Sample:
    return {seed: first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())}


def smooth(group: Group) -> Finding:
    """Over QUIC the picture does not stand still, and over TCP it does, for longer."""
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
    rows += beside(group, "stalls", TIMES, "stalls")
    return Finding((by_control(none), by_control(less)), tuple(rows), WHY_SMOOTH)


WHY_SMOOTH = (
    "What decides is whether the way is faster than the video's 330 kbit/s, losses and "
    "acknowledgements counted. On the radio that both directions share it is, over TCP and over "
    "QUIC; with 10 kbit/s up it is over neither, and for QUIC, which needs more "
    "acknowledgements, less so."
)


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
    flagged = by_variant(over_tcp(in_the_hall(group)), "error_packets_peak")
    rows = rows_of(
        "worst second's errors over TCP", WORST, flagged, dict.fromkeys(THREE, printed[TCP])
    )
    rows += rows_of("worst second's losses over TCP", WORST, slow)
    rows += rows_of(
        "worst second's losses over QUIC", WORST, fast, dict.fromkeys(fast, printed[QUIC])
    )
    rows += beside(group, "worst second's losses", WORST, "lost_packets_peak")
    return Finding((by_control(bounded), by_control(less)), tuple(rows), WHY_WORST)


def _both(group: Group) -> tuple[Group, Group]:
    hall = in_the_hall(group)
    return over_tcp(hall), over_quic(hall)


WHY_WORST = (
    "Wireshark's error flags are TCP's: what they showed of a video over QUIC was of TCP "
    "connections beside it. Lost segments are counted here over both; of TCP's errors duplicate "
    "acknowledgements are most, of which one loss makes many."
)
