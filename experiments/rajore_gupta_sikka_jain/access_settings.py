"""The networks that Rajore, Gupta, Sikka and Jain watched their video on: a line, and a radio.

    server ───── isp ══════════ ap ─ ─ ─ station
         internet      line        radio (or a cable)

*Shaped* is wondershaper's network: both rates are shaped (by htb there, by links here). Downloads
wait in a queue that wondershaper does not choose, that of the ifb device (32 packets); uploads wait
in sfq (127 packets, here in one queue, as there is one connection). The paper's captures were taken
before that queue, at the laptop's own interface.

The radio (`wifi-…`) is the kernel's own 802.11 with its rate control, and a medium that models air
time, random losses and medium access. It has these parameters:

- Signals: the paper's -80 dBm where it was weak or the hall was crowded. Good is -60 dBm, a choice,
  at which every rate is received: iperf3 gets 41.8 Mbit/s, the paper's speed test got 44.03. So the
  paper's strong signal is this one, too: at -40 dBm every frame has the same fate.
- In the crowded hall, the other stations offer load for half of the time, which is fitted: iperf3
  gets 1.88 Mbit/s with it, the paper's test got 1.89. That hardly anything went up there
  (0.01 Mbit/s) is not reproduced: the medium is the same in both directions.

Emulated with netem (`netem-…`, on the host too), a radio is a line with a rate, jitter and losses:

- Rates are the paper's own speed tests: 44.03 Mbit/s with a good signal; 1.89 Mbit/s down and
  0.01 up in the crowded lecture hall at -79 to -81 dBm. With a weak signal of -80 dBm, a receiver
  is required to receive no more than BPSK 1/2, by IEEE 802.11's table of sensitivities (-82 dBm;
  6.5 Mbit/s on 20 MHz; the next step requires -79 dBm). The test with the good signal got two
  thirds of the radio's 65 Mbit/s (-64 dBm), and the same fraction of 6.5 Mbit/s is used here.
- Delays: round trips over the WiFi hop on a campus had a median of 3 ms and a 90th percentile of
  20 ms (Sui et al., MobiSys 2016, 47,000 devices): used for the good radio and for the others,
  respectively. On another campus, more than half were above 20 ms (Pei et al., INFOCOM 2016); the
  rest of a crowded radio's delay is queueing delay, which arises here by itself. That delays
  are drawn uniformly is a choice.
- Losses: what a radio loses, it retransmits by itself, which adds delay (Korhonen, Wang 2005). What
  is lost for good comes in bursts, longer ones than this channel's (Carvalho et al. 2005; Cardoso,
  de Rezende 2009). We found no publication of how much is lost by signal strength: the rates
  (0.05 %, 1 % and 2 % of all packets) are choices, and so are bursts of two and four packets.
- The access point's queue of 50 packets is a choice, as are the internet's 20 ms of round trip.
"""

from __future__ import annotations

from collections.abc import Mapping

from testbed.scenario.losses import GilbertElliott
from testbed.scenario.named_networks import LinkSettings, access_link
from testbed.scenario.network import Direction, Graph, Queue, Radio

INTERNET = LinkSettings(delay_ms=10)
LINE_DELAY_MS = 2.0
IFB = Queue("pfifo", limit_packets=32)
SFQ = Queue("pfifo", limit_packets=127)
ROUTER = Queue("pfifo", limit_packets=1000)
ACCESS_POINT = Queue("pfifo", limit_packets=50)

GOOD_MBIT, BEST_PHY_MBIT, WEAK_PHY_MBIT = 44.03, 65.0, 6.5
WEAK_MBIT = round(GOOD_MBIT * WEAK_PHY_MBIT / BEST_PHY_MBIT, 2)

ETHERNET = LinkSettings(100, queue=ROUTER, delay_ms=LINE_DELAY_MS)
SHAPED = LinkSettings(
    1.024,
    queue=IFB,
    delay_ms=LINE_DELAY_MS,
    reverse=Direction(0.512, queue=SFQ, delay_ms=LINE_DELAY_MS),
)

GOOD_NETEM = LinkSettings(
    delay_ms=1.5,
    jitter_ms=1,
    rate_mbit=GOOD_MBIT,
    queue=ACCESS_POINT,
    loss=GilbertElliott(to_bad=0.0005, to_good=0.5, loss_in_bad=0.5),
)
WEAK_NETEM = LinkSettings(
    delay_ms=10,
    jitter_ms=8,
    rate_mbit=WEAK_MBIT,
    queue=ACCESS_POINT,
    loss=GilbertElliott(to_bad=0.005, to_good=0.25, loss_in_bad=0.5),
)
CONGESTED_DOWN, CONGESTED_UP = (
    Direction(
        delay_ms=10,
        jitter_ms=8,
        rate_mbit=rate_mbit,
        queue=ACCESS_POINT,
        loss=GilbertElliott(to_bad=0.01, to_good=0.25, loss_in_bad=0.5),
    )
    for rate_mbit in (1.89, 0.01)
)
CONGESTED_NETEM = LinkSettings(**vars(CONGESTED_DOWN), reverse=CONGESTED_UP)


GOOD_RADIO = LinkSettings(radio=Radio(-60), queue=ACCESS_POINT)
WEAK_RADIO = LinkSettings(radio=Radio(-80), queue=ACCESS_POINT)
CONGESTED_RADIO = LinkSettings(radio=Radio(-80, busy=0.5), queue=ACCESS_POINT)

ACCESS_LINKS: Mapping[str, tuple[LinkSettings, LinkSettings]] = {  # the line, and the last link
    # the paper's
    "ethernet": (ETHERNET, LinkSettings()),
    "shaped": (SHAPED, LinkSettings()),
    "wifi-good": (ETHERNET, GOOD_RADIO),
    "wifi-congested": (ETHERNET, CONGESTED_RADIO),
    "wifi-weak": (ETHERNET, WEAK_RADIO),
    # its radios, emulated with netem
    "netem-good": (ETHERNET, GOOD_NETEM),
    "netem-congested": (ETHERNET, CONGESTED_NETEM),
    "netem-weak": (ETHERNET, WEAK_NETEM),
}
NETWORKS: Mapping[str, Graph] = {
    name: access_link(line, links={"server-isp": INTERNET, "ap-station": last})
    for name, (line, last) in ACCESS_LINKS.items()
}
