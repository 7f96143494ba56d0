"""A video on an access link: the trials that RGSJ's claims are about, and their measures.

Trials of one seed have the same video and the same random numbers for the radio's losses: variants
and transports are compared seed by seed (paired). A laptop's setting that changes nothing gives the
same number for each variant, and their difference is then exactly zero.

The bounds were chosen beforehand: half of what the paper prints, where it prints a difference of
this sign. Else times that differ by no more than 1 s are alike, or by 5 s
where the paper says *almost equal*: its own times differ by 2 and 4 s. Average lengths of packets
are alike within 1 %, other counts within 5 % and half a packet.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from analysis.claims.comparisons import ClaimMeasure, ComparisonOutcome, Sample, all_are, contrasts
from analysis.claims.judgement import ClaimPart, NumberRow
from analysis.claims.samples import Group, samples
from analysis.statistics.intervals import known

THREE = ("veno", "cubic", "vegas")  # the paper's
HTTPS, QUIC = "https", "quic"
SERVER_CONTROLS = ("reno", "cubic")  # of QUIC's server
NETWORK_NAMES = {
    "ethernet": "Ethernet",
    "shaped": "Ethernet, shaped",
    "wifi-good": "WiFi, good",
    "wifi-congested": "WiFi, congested",
    "wifi-weak": "WiFi, weak",
    "wifi-strong": "WiFi, strong",
    "netem-congested": "netem, congested",
    "netem-weak": "netem, weak",
}
LAPTOP, SERVER = "receiver", "sender"
HALL = "wifi-congested"
SLOW_UP = "netem-congested"  # the same, with the paper's 0.01 Mbit/s up
KBYTES_PER_MBIT = 1e6 / 8 / 1e3  # KB/s per Mbit/s

DURATION = ClaimMeasure("s", 1, absolute=1.0)
ALMOST = ClaimMeasure("s", 1, absolute=5.0)
STALLED = ClaimMeasure("s", 1, absolute=0.5)
COUNT = ClaimMeasure("", 1, absolute=0.5)
PACKETS = ClaimMeasure("packets", 1, relative=0.05, absolute=0.5)
PEAK = ClaimMeasure("packets/s", 1, relative=0.05, absolute=0.5)
LENGTH = ClaimMeasure("B", 1, relative=0.01)
BYTES = ClaimMeasure("B", 0, relative=0.05)
VIDEO_RATE = ClaimMeasure("KB/s", 1, factor=KBYTES_PER_MBIT, relative=0.02)
TENTH = ClaimMeasure("KB/s", 1, factor=KBYTES_PER_MBIT, relative=0.10)

Samples = dict[str, Sample]


def over_tcp(group: Group) -> Group:
    """Select the three variants over TCP, set at the group's end of the connection."""
    return group.where(transport=HTTPS, setting=group.setting).asked("variant", THREE)


def over_quic(group: Group) -> Group:
    """Select QUIC, where only the server has a congestion control: either setting of TCP has it."""
    return group.where(transport=QUIC, setting=SERVER).asked("variant", SERVER_CONTROLS)


def by_variant(group: Group, metric: str) -> Samples:
    """Return a number per seed for each variant of the axis: the flow's variant is the server's."""
    return samples(group.rows, metric, "axis_variant")


def ranked(
    measure: ClaimMeasure,
    found: Samples,
    pairs: tuple[tuple[str, str], ...],
    wanted: ComparisonOutcome = ComparisonOutcome.BELOW,
    where: str = "",
    printed: Mapping[str, float] | None = None,
) -> ClaimPart:
    """Test that the first of each pair is below the second, or has the given relation to it.

    Where the paper's numbers are given, half of their difference is too small to matter.
    """
    asked = [(a, found.get(a, {}), b, found.get(b, {})) for a, b in pairs]
    theirs = [(printed[a], printed[b]) for a, b in pairs] if printed else ()
    return all_are(wanted, contrasts(measure, asked, theirs), where)


def versus(hero: str) -> tuple[tuple[str, str], ...]:
    """Pair one variant with each of the other two."""
    return tuple((hero, other) for other in THREE if other != hero)


def rising(*names: str) -> tuple[tuple[str, str], ...]:
    """Pair each name with the next."""
    return tuple(itertools.pairwise(names))


def middle(measure: ClaimMeasure, sample: Sample) -> str:
    """Write the median and the range: with five seeds, its 94 % interval."""
    values = known(sample.values())
    if not len(values):
        return "not known"
    least, median, most = (
        f"{each * measure.factor:.{measure.decimals}f}"
        for each in (values.min(), np.median(values), values.max())
    )
    unit = f" {measure.unit}" if measure.unit else ""
    return f"{median}{unit}" if least == most else f"{median}{unit} ({least} to {most})"


def rows_of(
    what: str, measure: ClaimMeasure, found: Samples, paper: dict[str, str] | None = None
) -> list[NumberRow]:
    """Return a row per variant: its median, with the paper's number beside it."""
    theirs = paper or {}
    return [
        NumberRow(f"median {what}, {name}", middle(measure, found[name]), theirs.get(name, ""))
        for name in sorted(found, key=lambda name: (name not in THREE, name))
    ]


def rows_of_three(
    what: str, measure: ClaimMeasure, found: Samples, paper: dict[str, str] | None = None
) -> list[NumberRow]:
    """Return the medians over TCP, and in how many seeds all three variants had one number."""
    three = [found.get(name, {}) for name in THREE]
    seeds = set.intersection(*(set(each) for each in three))
    same = sum(len({each[seed] for each in three}) == 1 for seed in seeds)
    row = NumberRow(f"seeds with the same number for all three, {what}", f"{same} of {len(seeds)}")
    return [*rows_of(what, measure, found, paper), row]
