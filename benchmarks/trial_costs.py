"""What some trials cost beside others: samples, kernels, starts, transfers, sessions.

    .venv/bin/python -m benchmarks.trial_costs {samples,kernels,starts,transfers,sessions}

`samples`: the same trial (one Cubic flow, 60 ms, a buffer of one bandwidth-delay product) without
samples of sockets and queues, and with one every 10 and every 1 ms; `--rate` and `--seconds` say
of which flow. In virtual time samples change no packet: this is all that they cost.

`kernels`: the same trial on each of the three versions of Linux that is built, or on the
`--kernels` named, which may be the user's own: an older state of this project builds one by
`testbed kernel build --source 6.1 --name before`, and is compared with today's in one run.

`starts`: on the same kernels, a trial whose shell starts `tc` once, and one in which it does so
`--starts` times, one after the other; the difference is what starting and ending a program costs.

`transfers`: 10,000 transfers that fill 0.9 of 100 Mbit/s, with web-search sizes of 50 KB in the
mean, and one flow of as many bytes.

`sessions`: sessions of the paper's mix (a quarter of them long) beside one flow through 15 Mbit/s,
captured at the flow's two hosts; then long transfers as sessions, by one process at either end,
and the same as flows of iperf3, two processes each.

Trials take turns, so that whatever else the machine does meets all of them. Beside the wall time,
boot and captures included, stands the processors' time, which company disturbs less. Ratios are
to the first line, of trials that ran one after the other.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections.abc import Callable
from dataclasses import replace

from benchmarks.engine import TRIAL_SECONDS, scenario
from benchmarks.harness import Cost, in_turns, parser_of, print_costs, require_guest, trial
from experiments.parvez_mahanti_williamson.newreno_background import background
from testbed.guest import kernels
from testbed.guest.engine import GuestEngine
from testbed.scenario.model import CapturePoint, Flow, FlowKind, Profile, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Queue
from testbed.scenario.programs import Programs
from testbed.scenario.transfers import mean_bytes, planned_transfers, rate_per_s
from testbed.scenario.workload import Arrivals, Process, Sessions, Sizes, Workload

INTERVALS_MS = (0.0, 10.0, 1.0)
TRANSFERS, TRANSFER_BYTES, OFFERED_LOAD, LINK_RATE_MBIT = 10_000, 50_000, 0.9, 100.0
MIXED_SESSIONS, LONG_SESSIONS = (4, 64, 256), 16
LONG_MS = 44.0  # of the background's link, where all its round trips are one
LONG_RTT_MS = 2 * (1 + 5 + LONG_MS)

SHELLS_HOSTS = "sender1", "receiver"
Trials = dict[str, Scenario]  # what it is → the trial


def sampled(options: argparse.Namespace) -> Trials:
    """Return the same trial with samples at several intervals."""
    plain = scenario(options.rate, options.seconds)
    return {
        f"every {ms:g} ms" if ms else "no samples": replace(plain, sample_interval_ms=ms)
        for ms in INTERVALS_MS
    }


def chosen_kernels(options: argparse.Namespace) -> list[str]:
    """Return the names of the kernels that are compared."""
    if options.kernels:
        return list(options.kernels.split(","))
    guest = GuestEngine()
    return [name for name in kernels.versions() if not guest.with_kernel(name).ready()]


def on_kernels(options: argparse.Namespace) -> Trials:
    """Return the same trial on each kernel."""
    plain = scenario(options.rate, options.seconds)
    return {f"Linux {name}": replace(plain, kernel=name) for name in chosen_kernels(options)}


def starting(options: argparse.Namespace) -> Trials:
    """Return a trial with one start of a program and one with many, on each kernel."""

    def trial_with(starts: int, kernel: str) -> Scenario:
        loop = f"for i in $(seq {starts}); do tc -s qdisc show dev lo >/dev/null; done"
        shell = Programs(("/bin/sh", "-c", loop))
        flow = Flow("shell", FlowKind.COMMAND, *SHELLS_HOSTS, variant="cubic", command=shell)
        return replace(scenario(10, 1), flows=(flow,), kernel=kernel, sample_interval_ms=0)

    return {
        f"{starts} starts, {name}": trial_with(starts, name)
        for name in chosen_kernels(options)
        for starts in (1, options.starts)
    }


def transferred(_options: argparse.Namespace) -> Trials:
    """Return a single flow, and transfers of as many bytes."""
    sizes = Sizes(scale=TRANSFER_BYTES / mean_bytes(Sizes()))
    workload = Workload(Arrivals(load=OFFERED_LOAD), sizes, count=TRANSFERS)
    ends = ("sender1", "receiver1")
    flow = Flow("many", FlowKind.WORKLOAD, *ends, variant="cubic", workload=workload)
    many = Scenario(
        experiment="benchmark",
        network=dumbbell(LinkSettings(LINK_RATE_MBIT, 10.0, Queue("bfifo", limit_bdp=1.0))),
        flows=(flow,),
        duration_s=round(1.2 * TRANSFERS / rate_per_s(workload, LINK_RATE_MBIT)) + 15.0,
    )
    size = sum(each.size for each in planned_transfers(many, flow))
    one = Flow("one", FlowKind.TCP, *ends, variant="cubic", bytes=size)
    return {
        f"one flow of {size / 1e6:.0f} MB": replace(many, flows=(one,)),
        f"{TRANSFERS} transfers": many,
    }


def in_sessions(options: argparse.Namespace) -> Trials:
    """Return mixed sessions, long ones, and the long ones as flows of iperf3."""
    mixed = {f"{n} sessions": mix(n, options.seconds) for n in MIXED_SESSIONS}
    wanted = mix(LONG_SESSIONS, options.seconds, "receiver2", LONG_MS)
    wanted = replace(wanted, captures=(), sample_interval_ms=0)
    tcp, flow = wanted.flows
    rtts = {"rtt_min_ms": LONG_RTT_MS, "rtt_max_ms": LONG_RTT_MS}
    loops = Sessions(LONG_SESSIONS, long_share=1, spread_s=0, **rtts)
    workload = Workload(Arrivals(Process.SESSIONS, sessions=loops))
    iperf3 = Flow("", FlowKind.TCP, "sender2", "receiver2", variant="newreno", window_bytes=64_000)
    flows = (replace(iperf3, name=f"tcp{number}") for number in range(LONG_SESSIONS))
    return {
        **mixed,
        f"{LONG_SESSIONS} long sessions": replace(
            wanted, flows=(tcp, replace(flow, workload=workload))
        ),
        f"{LONG_SESSIONS} flows of iperf3": replace(wanted, flows=(tcp, *flows)),
    }


def mix(sessions: int, seconds: float, link: str = "receiver1", ms: float = 19) -> Scenario:
    """Return the paper's mix of sessions beside one flow; one receiver's link is longer."""
    return Scenario(
        experiment="benchmark",
        network=dumbbell(
            LinkSettings(15, 5, Queue("pfifo", limit_packets=150)),
            pairs=2,
            access=LinkSettings(delay_ms=1),
            links={f"{link}-right": LinkSettings(delay_ms=ms)},
        ),
        flows=(
            Flow("tcp", FlowKind.TCP, "sender1", "receiver1", variant="newreno"),
            background(sessions, "sender2", "receiver2"),
        ),
        duration_s=seconds,
        profile=Profile.NS2,
        captures=(CapturePoint.SENDERS, CapturePoint.RECEIVERS),
    )


COMPARED: dict[str, Callable[[argparse.Namespace], Trials]] = {
    "samples": sampled,
    "kernels": on_kernels,
    "starts": starting,
    "transfers": transferred,
    "sessions": in_sessions,
}


def main() -> None:
    """Print a line for each trial: the medians, and their ratios to the first."""
    parser = parser_of(__doc__)
    parser.add_argument("what", choices=COMPARED)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rate", type=int, default=10, help="Mbit/s, of `samples` and `kernels`")
    parser.add_argument("--kernels", default="", help="of `kernels` and `starts`: names")
    parser.add_argument("--starts", type=int, default=201)
    parser.add_argument("--seconds", type=float, default=TRIAL_SECONDS)
    options = parser.parse_args()
    require_guest()
    trials = COMPARED[options.what](options)
    cases = {name: functools.partial(trial, wanted) for name, wanted in trials.items()}

    def emulated(name: str, spent: Cost) -> str:
        return f"{trials[name].duration_s / spent.processor_s:.1f} times real time"

    costs = in_turns(cases, options.repeats, statistics.median)
    print_costs(costs, [*costs][:1], speed=emulated)


if __name__ == "__main__":
    main()
