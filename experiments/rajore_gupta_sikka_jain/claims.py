"""RGSJ's claims and the test of each in words.

They were written before there was data, with exceptions. After reviews of what the tests gave,
RGSJ0 is about all that is measured, not about load times alone; the other claims are about the
server's variant alone, since the laptop's has no effect; what is
not testable here was seen then, too.
The margin of RGSJ6.1 was 5 % until the networks were drawn, and is now what a graph shows; until
then, means were tested for RGSJ6.2 and RGSJ7.2, of which some playbacks stall and others do not.
"""

from __future__ import annotations

from functools import partial

from analysis.claims.comparisons import ComparisonOutcome
from analysis.claims.ledger import Claim, Paper, Reading, Sentence
from experiments.rajore_gupta_sikka_jain import judges, printed
from experiments.rajore_gupta_sikka_jain.judges import (
    BYTES,
    COUNT,
    DURATION,
    EACH_PAIR,
    HTTPS,
    PACKETS,
    PEAK,
    SERVER,
    VIDEO_RATE,
    Order,
    Quantity,
    rising,
    versus,
)

SETTINGS = {
    SERVER: "The variant was set on the server: on the laptop, where the paper set it, it has "
    "no effect (RGSJ0).",
}
WIFI, WIRED = printed.STRONG, "ethernet"
RADIOS = (
    Reading(
        "netem, 0.01 Mbit/s up",
        "The hall is netem's, with the rates of the paper's speed test: 1.89 and 0.01 Mbit/s.",
        {"network": "netem-congested"},
    ),
    Reading(
        "802.11",
        "The hall is the kernel's own 802.11, of 1.88 Mbit/s either way.",
        {"network": "wifi-congested"},
    ),
)
OFFLOADED = (
    "Frames of 3 kB in a capture on a link whose frames end at 1514 bytes are several segments, "
    "merged by the receiver's driver (GRO). Offloads are off here, so that captures show what was "
    "on the link: no average can be above 1514 bytes."
)
PAGES_SIZE = (
    "How long a page takes follows from its size: ours is 1 MB, which is a choice, and neither the "
    "size of the paper's page nor what its speed test rounded to 0.01 Mbit/s is known."
)
QUICS_ERRORS = (
    "Wireshark has such flags for TCP only: what the paper counted while a video came over QUIC "
    "can only be other connections' errors, and here is one connection. The test counts lost "
    "packets instead."
)
# Beside 10 kbit/s up, the rate of the player's ACKs decides how fast QUIC is: with a third as many
# it was far ahead. The paper names Firefox 75, and says that YouTube uses QUIC with versions above
# 88: which browser had QUIC is not known.
OUR_PLAYER = (
    "With a player that acknowledges as Chromium does, and Cubic at the server over QUIC, too: "
)

_any = partial(Claim, experiment="video-access", where={"rule": "240p"}, networks=9)
_set = partial(_any, settings=SETTINGS)
_hall = partial(_any, readings=RADIOS)


def _at(network: str) -> dict[str, object]:
    return {"network": network, "rule": "240p"}


def _loaded(network: str) -> Quantity:
    return Quantity("time to load", "loaded_s", DURATION, printed.RGSJ_LOAD_S[network])


def _spikes(network: str) -> Quantity:
    return Quantity("spikes", "spikes", COUNT, printed.RGSJ_SPIKES[network])


def _rate(theirs: dict[str, float]) -> Quantity:
    return Quantity("throughput", "throughput_mbps", VIDEO_RATE, theirs)


def _almost_equal(*pair: str) -> Order:
    quantity = Quantity("time to load", "loaded_s", judges.ALMOST)
    return Order(quantity, rising(*pair), ComparisonOutcome.EQUAL)


LARGEST_SPIKE = Quantity("largest spike", "largest_spike_pps", PEAK, printed.RGSJ_LARGEST_SPIKE)
RETRANSMITTED = Quantity("retransmitted", "retransmitted_bytes", BYTES, printed.RGSJ_SHAPED_BYTES)
SHAPED_DUPLICATES = Quantity(
    "duplicate ACKs", "duplicate_acks", PACKETS, printed.RGSJ_SHAPED_DUPLICATES
)
OUT_OF_ORDER = Quantity(
    "out of order", "out_of_order_sent", PACKETS, printed.RGSJ_SHAPED_OUT_OF_ORDER
)
BEHIND_THE_QUEUE = Quantity("out of order behind the queue", "out_of_order", PACKETS)
MAX_OUT_OF_ORDER = 1.0  # packets a run: the largest of the paper's own means

CLAIMS: tuple[Claim, ...] = (
    _any(
        id="RGSJ0",
        words="(Assumed throughout.) The congestion control that the laptop is set to governs the "
        "download.",
        tested="Over TCP, set on the laptop, in most networks: Veno, Cubic and Vegas differ in at "
        "least one of load time, packets sent, bytes retransmitted, duplicate ACKs and time "
        "stalled, on one of the six lines and radios. Beside it: set on the server, they do.",
        judge=judges.governing,
        where={"rule": "240p", "transport": HTTPS},
        sentences=(
            Sentence(
                "modern",
                "contradicted",
                "It is the server's. Set on the laptop, the three give the same load times, "
                "packets, losses and stalls in {networks with the same for all, set on the "
                "laptop} networks, on each of six lines and radios.",
            ),
        ),
    ),
    _set(
        id="RGSJ1",
        words="Good WiFi: the video loads first with Veno (109 s; Cubic 122, Vegas 124).",
        tested="Time until the whole video is loaded: Veno's is below that of each other variant "
        "by more than half of what the paper prints. Beside it: Vegas's and Cubic's are within 5 s "
        "of each other.",
        judge=partial(
            judges.order,
            head=Order(_loaded(WIFI), versus("veno")),
            beside={"Vegas and Cubic almost equal": _almost_equal("vegas", "cubic")},
        ),
        where=_at(WIFI),
        sentences=(
            Sentence(
                "modern, sender",
                "refuted",
                "The player decides: {time to load, veno} with Veno, {time to load, cubic} with "
                "Cubic, {time to load, vegas} with Vegas.",
            ),
        ),
    ),
    _set(
        id="RGSJ2",
        words="Ethernet: it loads first with Veno (112 s; Cubic 116, Vegas 131).",
        tested="The same. Beside it: Veno's and Cubic's are within 5 s of each other.",
        judge=partial(
            judges.order,
            head=Order(_loaded(WIRED), versus("veno")),
            beside={"Veno and Cubic almost equal": _almost_equal("veno", "cubic")},
        ),
        where=_at(WIRED),
        sentences=(
            Sentence(
                "modern, sender",
                "refuted",
                "{time to load, veno} with each: the player requests the last segment some 120 "
                "s after it starts.",
            ),
        ),
    ),
    _set(
        id="RGSJ3.1",
        words="Good WiFi: Veno has the fewest spikes of throughput (6; Vegas 8).",
        tested="Seconds with at least 50 packets more than both neighbouring seconds, at the "
        "station: Veno has fewer than Vegas, by more than half of what the paper prints. That it "
        "has fewer than Cubic, and larger ones, the paper's own numbers deny (5; 261 packets/s "
        "against 186).",
        judge=partial(judges.order, head=Order(_spikes(WIFI), (("veno", "vegas"),))),
        where=_at(WIFI),
        sentences=(
            Sentence(
                "modern, sender",
                "refuted",
                "A spike is a segment that the player fetches: {spikes, veno} with Veno, "
                "{spikes, vegas} with Vegas.",
            ),
        ),
    ),
    _set(
        id="RGSJ3.2",
        words="Ethernet: Vegas has the fewest (3; Cubic 5, Veno 8).",
        tested="The same: Vegas has fewer than each other variant. Beside it: Cubic's largest is "
        "below Vegas's, and that is below Veno's.",
        judge=partial(
            judges.order,
            head=Order(_spikes(WIRED), versus("vegas")),
            beside={
                "the largest: Cubic, Vegas, Veno": Order(
                    LARGEST_SPIKE, rising("cubic", "vegas", "veno")
                )
            },
        ),
        where=_at(WIRED),
        sentences=(
            Sentence(
                "modern, sender",
                "refuted",
                "{spikes, vegas} with each.",
            ),
        ),
    ),
    _set(
        id="RGSJ4.1",
        words="Average packet over TCP: Veno's (3229 bytes) is shorter than Cubic's (3269), and "
        "that than Vegas's (3445).",
        tested="Mean length of the frames captured at the station, in both directions, good WiFi: "
        "in this order, by more than half of what the paper prints.",
        judge=partial(
            judges.order, head=Order(judges.PACKET_LENGTH, rising("veno", "cubic", "vegas"))
        ),
        where=_at(WIFI),
        not_testable=OFFLOADED,
        sentences=(
            Sentence(
                "modern, sender",
                "not testable here",
                "Frames of 3 kB are several, merged by the capturing laptop; on the wire, "
                "{packet over TCP, veno} with Veno, {packet over TCP, vegas} with Vegas.",
            ),
        ),
    ),
    _set(
        id="RGSJ4.2",
        words="Packets over any TCP variant are far larger than over QUIC (0.9 kB).",
        tested="The ratio of the same mean over TCP to that over QUIC, in the crowded hall, where "
        "both were run: at least 2 (the paper's: 3.5) for each variant.",
        judge=judges.transports,
        where=_at("wifi-congested"),
        not_testable=OFFLOADED,
        sentences=(
            Sentence(
                "modern, sender",
                "not testable here",
                "On the wire, QUIC's have {packet over QUIC}, TCP's {packet over TCP, cubic}.",
            ),
        ),
    ),
    _set(
        id="RGSJ4.3",
        words="Throughput: Veno's (319 kbit/s) is below Vegas's (333), and that below Cubic's "
        "(342).",
        tested="Frames to the station while the video is played, good WiFi: in this order, by more "
        "than half of what the paper prints.",
        judge=partial(
            judges.order,
            head=Order(_rate(printed.RGSJ_MBIT_PER_S), rising("veno", "vegas", "cubic")),
        ),
        where=_at(WIFI),
        sentences=(
            Sentence(
                "modern, sender",
                "refuted",
                "It is the video's bitrate: {throughput, veno} with each.",
            ),
        ),
    ),
    _set(
        id="RGSJ5.1",
        words="Shaped Ethernet: throughput is the same (41, 41 and 40 KB/s).",
        tested="Frames to the station while the video is played: within 5 % of each other. The "
        "amount is the video's bitrate, which was chosen to match the paper's and is not tested.",
        judge=partial(
            judges.order,
            head=Order(_rate(printed.RGSJ_SHAPED_RATE), EACH_PAIR, ComparisonOutcome.EQUAL),
        ),
        where=_at("shaped"),
        sentences=(
            Sentence(
                "modern, sender",
                "supported",
                "{throughput, veno} with each: the video's bitrate.",
            ),
        ),
    ),
    _set(
        id="RGSJ5.2",
        words="Shaped: most bytes are retransmitted with Cubic (49,587), then Veno (38,535), then "
        "Vegas (16,852).",
        tested="Retransmitted bytes in the server's capture: Vegas's are below Veno's and those "
        "below Cubic's, by more than half of what the paper prints.",
        judge=partial(judges.order, head=Order(RETRANSMITTED, rising("vegas", "veno", "cubic"))),
        where=_at("shaped"),
        sentences=(
            Sentence(
                "modern, sender",
                "supported",
                "As the paper says: {retransmitted, cubic} with Cubic, {retransmitted, veno} "
                "with Veno, {retransmitted, vegas} with Vegas.",
            ),
        ),
    ),
    _set(
        id="RGSJ5.3",
        words="Shaped: most duplicate ACKs with Cubic (249), then Veno (134), then Vegas (121).",
        tested="Duplicate ACKs in the server's capture: Vegas's are below Veno's and those below "
        "Cubic's, by more than half of what the paper prints.",
        judge=partial(
            judges.order, head=Order(SHAPED_DUPLICATES, rising("vegas", "veno", "cubic"))
        ),
        where=_at("shaped"),
        sentences=(
            Sentence(
                "modern, sender",
                "supported",
                "As the paper says: {duplicate ACKs, cubic} with Cubic, {duplicate ACKs, veno} "
                "with Veno, {duplicate ACKs, vegas} with Vegas.",
            ),
        ),
    ),
    _set(
        id="RGSJ5.4",
        words="Shaped: no packet out of order.",
        tested="Packets out of order where the paper captured, before the queue (here at the "
        "server): at most 1, the largest of the paper's own means, with each.",
        judge=partial(
            judges.bounded,
            quantity=OUT_OF_ORDER,
            low=0,
            high=MAX_OUT_OF_ORDER,
            others=(BEHIND_THE_QUEUE,),
        ),
        where=_at("shaped"),
        sentences=(
            Sentence(
                "modern, sender",
                "in part",
                "None with Vegas; {out of order, cubic} with Cubic: retransmissions that "
                "Wireshark takes for it.",
            ),
        ),
    ),
    _hall(
        id="RGSJ6.1",
        words="Crowded hall: Cubic has the most errors.",
        tested="Packets at the station with one of Wireshark's TCP error flags: Cubic's are above "
        "those of each other variant by more than 20 %.",
        judge=partial(
            judges.order,
            head=Order(judges.FLAGGED, versus("cubic"), ComparisonOutcome.ABOVE),
        ),
        settings=SETTINGS,
        networks=57,  # named by the first six to nine, which left it open
        sentences=(
            Sentence(
                "modern, sender, netem, 0.01 Mbit/s up",
                "supported",
                "With 0.01 Mbit/s up, {error packets, cubic} with Cubic, {error packets, veno} "
                "with Veno, {error packets, vegas} with Vegas.",
            ),
            Sentence(
                "modern, sender, 802.11",
                "open",
                "By 802.11, {error packets, cubic} with Cubic, {error packets, veno} with Veno, "
                "{error packets, vegas} with Vegas.",
            ),
        ),
    ),
    _hall(
        id="RGSJ6.2",
        words="Crowded hall: Veno re-buffers least; all re-buffer.",
        tested="How often, or for how long, playback stalls after it has started: in most "
        "networks, Veno's is below that of each other variant (by half a stall, or 1 s). Beside "
        "it: in most networks, each variant stalls.",
        judge=judges.rebuffering,
        settings=SETTINGS,
        networks=44,  # named by the first six to nine, which left it open
        sentences=(
            Sentence(
                "modern, sender, netem, 0.01 Mbit/s up",
                "supported",
                "With 0.01 Mbit/s up, all stall, and Veno least in most networks: for {time "
                "stalled, veno}, Vegas {time stalled, vegas}, Cubic {time stalled, cubic}.",
            ),
            Sentence(
                "modern, sender, 802.11",
                "contradicted",
                "By 802.11 none stalls.",
            ),
        ),
    ),
    _hall(
        id="RGSJ6.3",
        words="Crowded hall: over TCP, 1 to 2 minutes pass before the video starts.",
        tested="Time until playback starts: between 60 and 120 s with each variant.",
        judge=judges.starting,
        settings=SETTINGS,
        not_testable=PAGES_SIZE,
        sentences=(
            Sentence(
                "modern, sender, netem, 0.01 Mbit/s up",
                "not testable here",
                "{time until playback starts, cubic}, with our page of 1 MB; how large the "
                "paper's was is not known.",
            ),
            Sentence(
                "modern, sender, 802.11",
                "not testable here",
                "By 802.11, {time until playback starts, cubic}.",
            ),
        ),
    ),
    _hall(
        id="RGSJ7.1",
        words="Crowded hall: the page loads 40 to 50 s sooner over QUIC.",
        tested=f"{OUR_PLAYER}time until the page is loaded, over TCP with Cubic minus over QUIC: "
        "at least 20 s, half of the least that the paper prints.",
        judge=judges.sooner,
        sentences=(
            Sentence(
                "modern, netem, 0.01 Mbit/s up",
                "contradicted",
                "No sooner: {page over QUIC} over QUIC, {page over TCP, cubic} over TCP.",
            ),
            Sentence(
                "modern, 802.11",
                "contradicted",
                "By 802.11, {page over QUIC} and {page over TCP, cubic}.",
            ),
        ),
    ),
    _hall(
        id="RGSJ7.2",
        words="Crowded hall: over QUIC the video does not re-buffer, while over TCP it does.",
        tested=f"{OUR_PLAYER}no stall over QUIC in most networks. Beside it: stalled for less than "
        "over TCP with Cubic in most networks, by more than 1 s.",
        judge=judges.smooth,
        sentences=(
            Sentence(
                "modern, netem, 0.01 Mbit/s up",
                "contradicted",
                "With 0.01 Mbit/s up it stalls, but for {time stalled over QUIC}; over TCP for "
                "{time stalled over TCP, cubic}.",
            ),
            Sentence(
                "modern, 802.11",
                "supported",
                "By 802.11 neither stalls.",
            ),
        ),
    ),
    _hall(
        id="RGSJ7.3",
        words="Crowded hall: at most 12.5 error packets a second over QUIC, 100 over TCP.",
        tested="Packets lost between server and station in the worst second, because QUIC's "
        "captures are encrypted: over QUIC at most 12.5; for each congestion control that QUIC's "
        "server may have.",
        judge=judges.worst,
        not_testable=QUICS_ERRORS,
        sentences=(
            Sentence(
                "modern, netem, 0.01 Mbit/s up",
                "not testable here",
                "Wireshark has such errors for TCP only.",
            ),
            Sentence(
                "modern, 802.11",
                "not testable here",
                "By 802.11, QUIC's worst second loses {worst second's losses over QUIC}.",
            ),
        ),
    ),
    _set(
        id="RGSJ8.1",
        words="Weak signal: throughput is about that of a strong one (32, 33, 33 against 32, 33, "
        "35 KB/s).",
        tested="Frames to the station while the video is played: within 5 % of each other with "
        "each variant.",
        judge=judges.signal_rates,
        sentences=(
            Sentence(
                "modern, sender",
                "supported",
                "{throughput, weak, veno} against {throughput, strong, veno} with Veno: the "
                "video's bitrate.",
            ),
        ),
    ),
    _set(
        id="RGSJ8.2",
        words="Weak signal: fewer peaks (11, 12, 13 against 12, 13, 15).",
        tested="Spikes as above: fewer with a weak signal, by more than half of what the paper "
        "prints, with each variant.",
        judge=judges.signal_peaks,
        sentences=(
            Sentence(
                "modern, sender",
                "supported",
                "{peaks, weak, veno} against {peaks, strong, veno} with Veno.",
            ),
        ),
    ),
    _set(
        id="RGSJ8.3",
        words="Weak signal: more duplicate ACKs with Cubic (112 against 72), fewer with Veno (88, "
        "108), about as many with Vegas (94, 90).",
        tested="Duplicate ACKs in the server's capture, weak against strong: more for Cubic, by "
        "more than half of what the paper prints. Beside it: so fewer for Veno; Vegas's within "
        "5 %.",
        judge=judges.signal_duplicates,
        sentences=(
            Sentence(
                "modern, sender",
                "supported",
                "{duplicate ACKs, weak, cubic} against {duplicate ACKs, strong, cubic} with "
                "Cubic; but with Veno, {duplicate ACKs, weak, veno} against {duplicate ACKs, "
                "strong, veno}.",
            ),
        ),
    ),
)

PAPER = Paper(
    "RGSJ", "Rajore, Gupta, Sikka, Jain", "experiments/rajore_gupta_sikka_jain/README.md", CLAIMS
)


def papers() -> tuple[Paper, ...]:
    """Return the paper with its claims."""
    return (PAPER,)
