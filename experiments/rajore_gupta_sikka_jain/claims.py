"""RGSJ's claims and the test of each in words.

They were written before there was data, with one exception: RGSJ0 first tested the largest spread
by network and seed. A radio's random losses differ between single trials of a seed, so it now tests
the means over the networks. The hall of RGSJ6 and 7 was netem's when they were written; since the
kernel's own 802.11 is there, they are answered on both radios, netem's first. That some are
not testable here was seen after reviews of what the tests gave. Until then, what depends on a word
or a setting that the paper leaves out was open whatever the test said; the tests of RGSJ7.1 and 7.2
now name the player that they are about.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from analysis.claims.ledger import Claim, Paper, Reading
from experiments.rajore_gupta_sikka_jain import judges
from experiments.rajore_gupta_sikka_jain.selection import HALL, HTTPS, LAPTOP, SERVER, SLOW_UP

VARIANT_SETTINGS = {
    LAPTOP: "The variant was set on the laptop, as in the paper; the server had Linux's default, "
    "Cubic, and what the paper's servers had is not known.",
    SERVER: "The variant was set on the server.",
}
_any = partial(Claim, experiment="video-access")


def _at(network: str) -> Mapping[str, object]:
    return {"network": network, "rule": "240p"}


_video = partial(_any, settings=VARIANT_SETTINGS)
_good = partial(_video, where=_at("wifi-good"))
_ethernet = partial(_video, where=_at("ethernet"))
_shaped = partial(_video, where=_at("shaped"))
RADIOS = (
    Reading(
        "netem, 0.01 Mbit/s up",
        "The hall is netem's, with the rates of the paper's speed test: 1.89 and 0.01 Mbit/s.",
        {"network": SLOW_UP},
    ),
    Reading(
        "802.11",
        "The hall is the kernel's own 802.11, of 1.88 Mbit/s either way.",
        {"network": HALL},
    ),
)
OFFLOADED = (
    "Frames of 3 kB in a capture on a link whose frames end at 1514 bytes are several segments, "
    "merged by the receiver's driver (GRO). Offloads are off here, so that captures show what was "
    "on the link: no average can be above 1514 bytes."
)
# Beside 10 kbit/s up, the rate of the player's ACKs decides how fast QUIC is: with a third as many
# it was far ahead. The paper names Firefox 75, and says that YouTube uses QUIC with versions above
# 88: which browser had QUIC is not known.
OUR_PLAYER = "With a player that acknowledges as Chromium does: "
PAGES_SIZE = (
    "How long a page takes follows from its size: ours is 1 MB, which is a choice, and neither the "
    "size of the paper's page nor what its speed test rounded to 0.01 Mbit/s is known."
)
QUICS_ERRORS = (
    "Wireshark has such flags for TCP only: what the paper counted while a video came over QUIC "
    "can only be other connections' errors, and here is one connection. The test counts lost "
    "packets instead."
)
_congested = partial(_video, where={"rule": "240p"}, readings=RADIOS)
_signal = partial(_video, where={"rule": "240p"})

CLAIMS: tuple[Claim, ...] = (
    _any(
        id="RGSJ0",
        words="(Not stated, but assumed throughout: whose congestion control governs the "
        "download?) It is the one that the laptop is set to.",
        tested="Time to load over TCP, set on the laptop: by seed, the means over the networks of "
        "Veno, Cubic and Vegas are not all within 1 s of each other. Beside it, the difference "
        "between the largest and the smallest of the three, by network and seed, is on average at "
        "least as large as when it is set on the server.",
        judge=judges.governing,
        where={"rule": "240p", "transport": HTTPS},
    ),
    _good(
        id="RGSJ1",
        words="Good WiFi: the video loads first with Veno (109 s); with Vegas (124 s) and Cubic "
        "(122 s) almost at the same time.",
        tested="Time until the whole video is loaded: Veno's is below that of each other variant "
        "by more than half of what the paper prints. Beside it: Vegas's and Cubic's are within 5 s "
        "of each other.",
        judge=partial(judges.loading, alike=("vegas", "cubic")),
    ),
    _ethernet(
        id="RGSJ2",
        words="Ethernet: the video loads first with Veno (112 s), almost at the same time with "
        "Cubic (116 s); with Vegas in 131 s.",
        tested="Time until the whole video is loaded: Veno's is below that of each other variant "
        "by more than half of what the paper prints. Beside it: Veno's and Cubic's are within 5 s "
        "of each other.",
        judge=partial(judges.loading, alike=("veno", "cubic")),
    ),
    _good(
        id="RGSJ3.1",
        words="Good WiFi: Veno has the fewest throughput spikes, but the largest. (The paper's "
        "numbers say otherwise: 6, Cubic 5, Vegas 8; 186 packets/s, Cubic 261, Vegas 133.)",
        tested="Seconds with at least 50 packets more than both neighbouring seconds, at the "
        "station: Veno has fewer than each other variant. Beside it: the largest of its spikes is "
        "larger.",
        judge=judges.spikes_wifi,
    ),
    _ethernet(
        id="RGSJ3.2",
        words="Ethernet: Vegas has the fewest spikes (3; Cubic 5, Veno 8), larger than Cubic's "
        "and smaller than Veno's (179, 147, 288 packets/s).",
        tested="The same: Vegas has fewer than each other variant, by more than half of what the "
        "paper prints. Beside it: Cubic's largest is below Vegas's, and that is below Veno's.",
        judge=judges.spikes_ethernet,
    ),
    _good(
        id="RGSJ4.1",
        words="Average packet over TCP: Veno's (3229 bytes) is shorter than Cubic's (3269), which "
        "is shorter than Vegas's (3445).",
        tested="Mean length of the frames captured at the station, in both directions, good WiFi: "
        "in this order, by more than 1 %.",
        judge=judges.lengths,
        not_testable=OFFLOADED,
    ),
    _good(
        id="RGSJ4.2",
        words="Packets over any TCP variant are far larger than those over QUIC.",
        tested="The ratio of the same mean over TCP to that over QUIC: at least 2 (the paper's: "
        "3.5) for each variant and each congestion control of QUIC's server.",
        judge=judges.transports,
        not_testable=OFFLOADED,
    ),
    _good(
        id="RGSJ4.3",
        words="Average throughput: Veno's (319 kbit/s) is below Vegas's (333), which is below "
        "Cubic's (342).",
        tested="Frames to the station while the video is played, good WiFi: in this order, by more "
        "than half of what the paper prints.",
        judge=judges.rates,
    ),
    _shaped(
        id="RGSJ5.1",
        words="Shaped Ethernet: throughput is the same (medians 41, 41 and 40 KB/s with Cubic, "
        "Veno and Vegas).",
        tested="Frames to the station while the video is played: within 5 % of each other. The "
        "amount is the video's bitrate, which was chosen to match the paper's and is not tested.",
        judge=judges.shaped_rates,
    ),
    _shaped(
        id="RGSJ5.2",
        words="Shaped Ethernet: most bytes are retransmitted with Cubic (median 49,587), then "
        "Veno (38,535), then Vegas (16,852).",
        tested="Retransmitted bytes in the server's capture: Vegas's are below Veno's and those "
        "below Cubic's, by more than half of what the paper prints.",
        judge=judges.shaped_retransmissions,
    ),
    _shaped(
        id="RGSJ5.3",
        words="Shaped Ethernet: most duplicate ACKs with Cubic (median 249), then Veno (134), "
        "then Vegas (121).",
        tested="Duplicate ACKs in the server's capture: Vegas's are below Veno's and those below "
        "Cubic's, by more than half of what the paper prints.",
        judge=judges.shaped_duplicates,
    ),
    _shaped(
        id="RGSJ5.4",
        words="Shaped Ethernet: no packet out of order (medians 0).",
        tested="Packets out of order where the paper captured, before the queue (here at the "
        "server): on average at most 1, the largest of the paper's own means, with each.",
        judge=judges.shaped_order,
    ),
    _congested(
        id="RGSJ6.1",
        words="Congested WiFi: Cubic has the most errors.",
        tested="Packets at the station with one of Wireshark's TCP error flags: Cubic's are above "
        "those of each other variant by more than 5 %.",
        judge=judges.errors,
    ),
    _congested(
        id="RGSJ6.2",
        words="Congested WiFi: Veno re-buffers least; all of them re-buffer.",
        tested="How often, or for how long, playback stalls after it has started: Veno's is below "
        "that of each other variant (by half a stall, or 0.5 s). Beside it: at least one stall "
        "on average with each variant.",
        judge=judges.rebuffering,
    ),
    _congested(
        id="RGSJ6.3",
        words="Congested WiFi: over TCP 1 to 2 minutes pass before the video starts.",
        tested="Time until playback starts: between 60 and 120 s with each variant.",
        judge=judges.starting,
        not_testable=PAGES_SIZE,
    ),
    _congested(
        id="RGSJ7.1",
        words="Congested WiFi: the page loads 40 to 50 s sooner over QUIC than over TCP.",
        tested=f"{OUR_PLAYER}time until the page is loaded, over TCP with each variant minus over "
        "QUIC: at least 20 s, half of the least that the paper prints; for each congestion control "
        "that QUIC's server may have.",
        judge=judges.sooner,
    ),
    _congested(
        id="RGSJ7.2",
        words="Congested WiFi: over QUIC the video does not re-buffer, while over TCP it does.",
        tested=f"{OUR_PLAYER}stalls over QUIC: at most 0.5 on average. Beside it, time stalled: "
        "less than over TCP with each variant, by more than 0.5 s; for each congestion control "
        "that QUIC's server may have.",
        judge=judges.smooth,
    ),
    _congested(
        id="RGSJ7.3",
        words="Congested WiFi: at most 12.5 error packets per second over QUIC, 100 over TCP.",
        tested="Segments lost between server and station in the worst second, because QUIC's "
        "captures are encrypted: over QUIC at most 12.5, and fewer than over TCP with each "
        "variant, by more than 5 %; whichever congestion control QUIC's server has.",
        judge=judges.worst,
        not_testable=QUICS_ERRORS,
    ),
    _signal(
        id="RGSJ8.1",
        words="Throughput with a weak signal (medians 32, 33 and 33 KB/s with Veno, Cubic and "
        "Vegas) is about the same as with a strong one (32, 33 and 35).",
        tested="Frames to the station while the video is played: within 10 % of each other with "
        "each variant.",
        judge=judges.signal_rates,
    ),
    _signal(
        id="RGSJ8.2",
        words="A weak signal has fewer peaks (medians 11, 12 and 13 with Veno, Cubic and Vegas) "
        "than a strong one (12, 13 and 15).",
        tested="Spikes as above: fewer with a weak signal, by more than half of what the paper "
        "prints, with each variant.",
        judge=judges.signal_peaks,
    ),
    _signal(
        id="RGSJ8.3",
        words="Duplicate ACKs: with a weak signal fewer for Veno (medians 88, strong 108), more "
        "for Cubic (112, 72), about as many for Vegas (94, 90).",
        tested="Duplicate ACKs in the server's capture, weak against strong: fewer for Veno and "
        "more for Cubic, by more than half of what the paper prints; Vegas's within 5 %.",
        judge=judges.signal_duplicates,
    ),
)

PAPER = Paper(
    "RGSJ", "Rajore, Gupta, Sikka, Jain", "experiments/rajore_gupta_sikka_jain/README.md", CLAIMS
)


def papers() -> tuple[Paper, ...]:
    """Return the paper with its claims."""
    return (PAPER,)
