"""RGSJ's claims, and in words what is tested of each.

Written before there was data, but for two things. RGSJ0 first tested the largest spread by network
and seed: the dice of a radio fell otherwise for single trials of a seed, so that it became the
means over the networks. And the hall of RGSJ6 and 7 was netem's when they were written; they are
judged on the kernel's own 802.11 since there is one, and netem's numbers stand beside.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from analysis.claims.engine.answers import Claim, Paper
from analysis.claims.rajore_gupta_sikka_jain import rgsj_packets, rgsj_playback, rgsj_setting
from analysis.claims.rajore_gupta_sikka_jain.rgsj_selection import (
    HALL,
    LAPTOP,
    SERVER,
    SLOW_UP,
    TCP,
)

_any = partial(Claim, experiment="video-access")


def _at(network: str) -> Mapping[str, object]:
    return {"network": network, "rule": "240p"}


_video = partial(_any, settings=(LAPTOP, SERVER))
_good = partial(_video, where=_at("wifi-good"))
_ethernet = partial(_video, where=_at("ethernet"))
_shaped = partial(_video, where=_at("shaped"))
_congested = partial(_video, where={"network": [HALL, SLOW_UP], "rule": "240p"})
_signal = partial(_video, where={"rule": "240p"})

CLAIMS: tuple[Claim, ...] = (
    _any(
        id="RGSJ0",
        words="(Not said, but what all of it rests on: whose congestion control governs the "
        "download?) It is the one that the laptop is set to.",
        tested="Time to load over TCP, set on the laptop: by seed the means over the networks of "
        "Veno, Cubic and Vegas are not all within 1 s of each other; and the largest of the three "
        "less the smallest, by network and seed, is on average at least what it is set on the "
        "server.",
        judge=rgsj_setting.governing,
        where={"rule": "240p", "transport": TCP},
    ),
    _good(
        id="RGSJ1",
        words="Good WiFi: the video loads first with Veno (109 s); with Vegas (124 s) and Cubic "
        "(122 s) almost at the same time.",
        tested="Time until the whole video is there: Veno's below each other's by more than 1 s; "
        "Vegas's and Cubic's within 5 s of each other.",
        judge=partial(rgsj_playback.loading, alike=("vegas", "cubic")),
    ),
    _ethernet(
        id="RGSJ2",
        words="Ethernet: the video loads first with Veno (112 s), almost at the same time with "
        "Cubic (116 s); with Vegas in 131 s.",
        tested="Time until the whole video is there: Veno's below each other's by more than 1 s; "
        "Veno's and Cubic's within 5 s of each other.",
        judge=partial(rgsj_playback.loading, alike=("veno", "cubic")),
    ),
    _good(
        id="RGSJ3.1",
        words="Good WiFi: Veno has the fewest throughput spikes, but the largest. (The paper's "
        "numbers say otherwise: 6, Cubic 5, Vegas 8; 186 packets/s, Cubic 261, Vegas 133.)",
        tested="Seconds of at least 50 packets more than both neighbours, at the station: Veno's "
        "fewer than each other's, and the largest of them larger.",
        judge=rgsj_packets.spikes_wifi,
    ),
    _ethernet(
        id="RGSJ3.2",
        words="Ethernet: Vegas has the fewest spikes (3; Cubic 5, Veno 8), larger than Cubic's "
        "and smaller than Veno's (179, 147, 288 packets/s).",
        tested="The same: Vegas's fewer than each other's; the largest of Cubic's below that of "
        "Vegas's, and that below Veno's.",
        judge=rgsj_packets.spikes_ethernet,
    ),
    _good(
        id="RGSJ4.1",
        words="Average packet over TCP: Veno's (3229 bytes) is shorter than Cubic's (3269), that "
        "shorter than Vegas's (3445).",
        tested="Mean length of the frames captured at the station, both ways, good WiFi: in this "
        "order, by more than 1 %.",
        judge=rgsj_packets.lengths,
    ),
    _good(
        id="RGSJ4.2",
        words="Packets over any TCP variant are very large beside those over QUIC.",
        tested="The same over TCP, over the mean of QUIC's: at least 2 (the paper's: 3.5) for "
        "each variant and each congestion control of QUIC's server.",
        judge=rgsj_packets.transports,
    ),
    _good(
        id="RGSJ4.3",
        words="Average throughput: Veno's (319 kbit/s) is below Vegas's (333), that below "
        "Cubic's (342).",
        tested="Frames to the station while the video is watched, good WiFi: in this order, by "
        "more than 2 %.",
        judge=rgsj_packets.rates,
    ),
    _shaped(
        id="RGSJ5.1",
        words="Shaped Ethernet: throughput is the same (medians 41, 41 and 40 KB/s with Cubic, "
        "Veno and Vegas).",
        tested="Frames to the station while the video is watched: within 5 % of each other. The "
        "amount is the video's bitrate, which was chosen by the paper's, and not tested.",
        judge=rgsj_packets.shaped_rates,
    ),
    _shaped(
        id="RGSJ5.2",
        words="Shaped Ethernet: most bytes are retransmitted with Cubic (median 49,587), then "
        "Veno (38,535), then Vegas (16,852).",
        tested="Bytes of retransmissions at the server's capture: Vegas's below Veno's below "
        "Cubic's, by more than 5 %.",
        judge=rgsj_packets.shaped_retransmissions,
    ),
    _shaped(
        id="RGSJ5.3",
        words="Shaped Ethernet: most duplicate ACKs with Cubic (median 249), then Veno (134), "
        "then Vegas (121).",
        tested="Duplicate ACKs at the server's capture: Vegas's below Veno's below Cubic's, by "
        "more than 5 %.",
        judge=rgsj_packets.shaped_duplicates,
    ),
    _shaped(
        id="RGSJ5.4",
        words="Shaped Ethernet: no packet out of order (medians 0).",
        tested="Packets out of order at the station: on average at most 1, the largest of the "
        "paper's own means, with each.",
        judge=rgsj_packets.shaped_order,
    ),
    _congested(
        id="RGSJ6.1",
        words="Congested WiFi: Cubic has the most errors.",
        tested="Packets at the station with one of Wireshark's TCP error flags: Cubic's above "
        "each other's by more than 5 %.",
        judge=rgsj_playback.errors,
    ),
    _congested(
        id="RGSJ6.2",
        words="Congested WiFi: Veno re-buffers least; all of them re-buffer.",
        tested="How often, or for how long, the picture stands still after it began to move: "
        "Veno's below each other's (by half a time, or 0.5 s); at least one stall on average with "
        "each.",
        judge=rgsj_playback.rebuffering,
    ),
    _congested(
        id="RGSJ6.3",
        words="Congested WiFi: over TCP 1 to 2 minutes pass before the video starts.",
        tested="Time until the picture moves: between 60 and 120 s with each.",
        judge=rgsj_playback.starting,
    ),
    _congested(
        id="RGSJ7.1",
        words="Congested WiFi: the page loads 40 to 50 s sooner over QUIC than over TCP.",
        tested="Time until the page is there, over TCP with each variant less over QUIC: between "
        "40 and 50 s, whichever congestion control QUIC's server has.",
        judge=rgsj_playback.sooner,
    ),
    _congested(
        id="RGSJ7.2",
        words="Congested WiFi: over QUIC the video does not re-buffer, which it does over TCP.",
        tested="Stalls over QUIC: at most 0.5 on average; time stalled: less than over TCP with "
        "each variant, by more than 0.5 s; whichever congestion control QUIC's server has.",
        judge=rgsj_playback.smooth,
    ),
    _congested(
        id="RGSJ7.3",
        words="Congested WiFi: at most 12.5 error packets a second over QUIC, 100 over TCP.",
        tested="Segments lost between server and station in the worst second, as QUIC's captures "
        "are encrypted: over QUIC at most 12.5, and fewer than over TCP with each variant, by more "
        "than 5 %; whichever congestion control QUIC's server has.",
        judge=rgsj_playback.worst,
    ),
    _signal(
        id="RGSJ8.1",
        words="Throughput with a weak signal (medians 32, 33 and 33 KB/s with Veno, Cubic and "
        "Vegas) is that with a strong one (32, 33 and 35).",
        tested="Frames to the station while the video is watched: within 10 % of each other with "
        "each variant.",
        judge=rgsj_packets.signal_rates,
    ),
    _signal(
        id="RGSJ8.2",
        words="A weak signal has fewer peaks (medians 11, 12 and 13 with Veno, Cubic and Vegas) "
        "than a strong one (12, 13 and 15).",
        tested="Spikes as above: fewer with a weak signal, by more than half a one, with each "
        "variant.",
        judge=rgsj_packets.signal_peaks,
    ),
    _signal(
        id="RGSJ8.3",
        words="Duplicate ACKs: with a weak signal fewer for Veno (medians 88, strong 108), more "
        "for Cubic (112, 72), about as many for Vegas (94, 90).",
        tested="Duplicate ACKs at the server's capture, weak against strong: fewer for Veno and "
        "more for Cubic, by more than 5 %; Vegas's within 5 %.",
        judge=rgsj_packets.signal_duplicates,
    ),
)

PAPER = Paper(
    "RGSJ", "Rajore, Gupta, Sikka, Jain", "docs/papers/rajore-gupta-sikka-jain.md", CLAIMS
)
