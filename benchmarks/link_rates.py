"""The same network at rates from 1 Mbit/s to 10 Gbit/s, all its times divided alike.

    .venv/bin/python -m benchmarks.link_rates [--variant linux-reno] [--packets 5] [--shaping htb]

A flow crosses a router with a short drop-tail queue. At each rate the round trip, the duration and
what the means leave out are the same number of packets' times, so a link that sends packets one
after the other gives the same utilisation, the same losses and the same queue in packets. What
differs comes from times that do not scale: the kernel's tick, delayed acknowledgements, the
minimum of the retransmission timer, and what a control measures in seconds (Cubic's growth).

The sender's link has a rate, too. Without one (`--access 0`), TCP hands down what it sends in a
millisecond as one packet of many segments (tcp_tso_autosize): one segment at 10 Mbit/s, and whole
windows in bursts at 1 Gbit/s.

Whole trials in the guest: boot, captures, verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness import first_flows, parser_of
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import FRAME_BYTES, Queue, Shaping

COMPARED_RATES_MBIT = (1.0, 10.0, 100.0, 1000.0, 10_000.0)
ROUND_TRIP_MBIT_MS = 200.0  # round trip times the rate: 20 ms at 10 Mbit/s
LENGTH_MBIT_S = 1000.0  # duration times the rate: 100 s at 10 Mbit/s
ACCESS_TIMES = 10.0  # the sender's link is faster than the bottleneck
SETTLED_PART = 0.1  # of the duration, which the means leave out
MIN_SAMPLE_MS = 1.0
TEN_MBIT_SAMPLE_MS = 100.0


@dataclass(frozen=True)
class RateResult:
    """What a flow came to at a rate, in units of the link's."""

    rate_mbit: float
    utilisation: float
    drop_rate: float
    queue_packets: float  # the mean wait, in the times that the link takes for a full frame
    verdict: str


def at_rate(
    rate_mbit: float,
    variant: str = "linux-reno",
    packets: int = 5,
    shaping: Shaping = Shaping.LINK,
    access_times: float = ACCESS_TIMES,
    length_mbit_s: float = LENGTH_MBIT_S,
) -> Scenario:
    """Return a flow through a queue of `packets`, with all times scaled by 1/rate."""
    duration_s = length_mbit_s / rate_mbit
    bottleneck = LinkSettings(
        rate_mbit, queue=Queue("pfifo", limit_packets=packets), shaping=shaping
    )
    access = LinkSettings(
        rate_mbit * access_times if access_times else None,
        delay_ms=ROUND_TRIP_MBIT_MS / rate_mbit / 2,
        shaping=shaping if access_times else Shaping.LINK,
    )
    return Scenario(
        experiment="link-rates",
        label=f"{variant}-{rate_mbit:g}",
        network=router_bottleneck(bottleneck, access=access),
        flows=(Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant=variant),),
        duration_s=duration_s,
        measure_from_s=duration_s * SETTLED_PART,
        sample_interval_ms=max(MIN_SAMPLE_MS, TEN_MBIT_SAMPLE_MS * 10 / rate_mbit),
    )


def results(scenarios: Sequence[Scenario]) -> list[RateResult]:
    """Run the scenarios, one for each rate, and return what their flows came to."""
    rates = []
    for scenario, row in first_flows(scenarios):
        rate_mbit = scenario.network.bottleneck_mbit
        rates.append(
            RateResult(
                rate_mbit=rate_mbit,
                utilisation=float(row["throughput_mbps"]) / rate_mbit,
                drop_rate=float(row["drop_rate"]),
                queue_packets=float(row["queue_mean_ms"]) * rate_mbit / (FRAME_BYTES * 8e-3),
                verdict=f"{row['verdict']} {row['why']}".strip(),
            )
        )
    return sorted(rates, key=lambda each: each.rate_mbit)


def main() -> None:
    """Print a row for each rate."""
    parser = parser_of(__doc__)
    parser.add_argument("--variant", default="linux-reno")
    parser.add_argument("--packets", type=int, default=5, help="the queue's limit")
    parser.add_argument("--shaping", type=Shaping, choices=list(Shaping), default=Shaping.LINK)
    parser.add_argument(
        "--access", type=float, default=ACCESS_TIMES, help="the sender's rate, times the link's"
    )
    parser.add_argument(
        "--rates", type=float, nargs="+", default=COMPARED_RATES_MBIT, help="in Mbit/s"
    )
    options = parser.parse_args()
    print("rate Mbit/s  utilisation  dropped  queue  verdict")
    choices = (options.variant, options.packets, options.shaping, options.access)
    for each in results([at_rate(rate, *choices) for rate in options.rates]):
        print(
            f"{each.rate_mbit:11g} {each.utilisation:11.2%} {each.drop_rate:9.3%} "
            f"{each.queue_packets:6.2f}  {each.verdict}"
        )


if __name__ == "__main__":
    main()
