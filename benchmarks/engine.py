"""The guest engine's speed and memory, as ratios to real time and to simulators in the same run.

    .venv/bin/python -m benchmarks.engine [--repeats N] [--rates 1,10,100] [--no-simulators]

A trial is what `testbed run` runs: boot, network, verification, four captures, samples
every 10 ms, one Cubic flow of 60 s; on one core. Real time is the 60 s. ns-3 (Debian's
libns3-dev, if installed) runs the same network with captures at the same four points, and ns-2
(Debian's ns2) with a trace of both links. They take turns, and the best of the repeats counts:
what is slower had company on the machine. Processor time is of all processes, and says more
on a machine that is busy with other work. The table is that of docs/performance.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from benchmarks import simulators
from benchmarks.harness import Cost, in_turns, parser_of, print_costs, record_of, require_guest
from benchmarks.simulators import SimulatedFlow, queue_bytes, queue_packets
from testbed.host.engine import HostEngine
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Direction, Queue

TRIAL_SECONDS = 60
RTT_BY_RATE_MS = {1: 0, 10: 60, 100: 60}
MAX_OF_NS3_TIME = {1: 1.5, 10: 0.5, 100: 0.25}  # of ns-3's time; it is only printed


def scenario(
    rate_mbit: int, seconds: float = TRIAL_SECONDS, delay_ms: float | None = None
) -> Scenario:
    """Return one Cubic flow; its buffer is a bandwidth-delay product, and at least 0.1 MB."""
    rtt_ms = RTT_BY_RATE_MS[rate_mbit] if delay_ms is None else 2 * delay_ms
    buffer = Queue("bfifo", limit_bytes=queue_bytes(rate_mbit, rtt_ms))
    return Scenario(
        experiment="benchmark",
        network=router_bottleneck(
            LinkSettings(rate_mbit, queue=buffer, reverse=Direction()),
            access=LinkSettings(delay_ms=rtt_ms / 2),
        ),
        flows=(Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant="cubic"),),
        duration_s=seconds,
    )


def compare(rate_mbit: int, repeats: int, core: int, with_simulators: bool) -> None:
    """Print one rate: the trial, and beside it what is installed of the simulators."""
    rtt_ms, ups_s = RTT_BY_RATE_MS[rate_mbit], list[float]()

    def guest() -> Cost:
        record = record_of(scenario(rate_mbit))
        ups_s.append(record.network_up_s)
        return Cost(record.wall_s, memory_mb=record.peak_memory_mb)

    cases: dict[str, Callable[[], Cost]] = {"guest": guest}
    flow = SimulatedFlow(rate_mbit, rtt_ms, TRIAL_SECONDS, queue_packets(rate_mbit, rtt_ms))
    if with_simulators and simulators.has_ns3():
        simulators.build_ns3()
        cases["ns-3"] = lambda: Cost(simulators.run_ns3(flow, core).wall_s)
    if with_simulators and simulators.has_ns2():
        cases["ns-2"] = lambda: Cost(simulators.run_ns2(flow, core).wall_s)
    costs = in_turns(cases, repeats)
    real_time = f"real time {TRIAL_SECONDS / costs['guest'].wall_s:.1f} times"
    print(f"{rate_mbit} Mbit/s, {rtt_ms} ms: {real_time}; network up after {min(ups_s):.2f} s")
    limits = {("guest", "ns-3"): MAX_OF_NS3_TIME[rate_mbit]}
    print_costs(costs, [*cases][1:], limits)


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rates", default="1,10,100", help="Mbit/s, of 1, 10 and 100")
    parser.add_argument("--no-simulators", action="store_true")
    options = parser.parse_args()
    core = min(os.sched_getaffinity(0))  # the one that a single worker is given
    for name, installed, package in (
        ("ns-3", simulators.has_ns3(), "libns3-dev"),
        ("ns-2", simulators.has_ns2(), "ns2"),
    ):
        if not installed:
            print(f"{name} is not installed (apt install {package}): no comparison with it")
    require_guest()
    best = f"best of {options.repeats}, core {core}"
    print(f"{TRIAL_SECONDS} s of one Cubic flow in the guest, {best}")
    for rate in map(int, options.rates.split(",")):
        compare(rate, options.repeats, core, not options.no_simulators)
    if os.geteuid() == 0:
        trials = [record_of(scenario(1, 1), HostEngine()) for _ in range(options.repeats)]
        up_s = min(each.network_up_s for each in trials)
        print(f"host engine: network up after {up_s:.2f} s, Python's start included, at most 0.3 s")


if __name__ == "__main__":
    main()
