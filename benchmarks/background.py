"""Measure what sessions cost in the guest: all in one process, against a process each.

    .venv/bin/python -m benchmarks.background [--seconds S] [--sessions 4,64,256] [--each N]

The sessions (a quarter of them long, round trips of 20 to 460 ms) and one NewReno flow share
15 Mbit/s, captured at the flow's two hosts. Emulated seconds over wall seconds say how far a core
is ahead of real time; over the processors' seconds (the machine's boot included in both), what it
would be without company. Then N long transfers as sessions, and the same N as flows of iperf3,
two processes each, over the same round trip.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from benchmarks.engine import Cost, trial_cost
from experiments.parvez_mahanti_williamson.newreno_background import background
from testbed.guest.engine import GuestEngine
from testbed.scenario.model import CapturePoint, Flow, FlowKind, Profile, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Queue
from testbed.scenario.workload import Arrivals, Process, Sessions, Workload

MIX_RATE_MBIT = 15
ENDS = (CapturePoint.SENDERS, CapturePoint.RECEIVERS)
LONG_MS = 44.0  # of the background's link, where all its round trips are one
LONG_RTT_MS = 2 * (1 + 5 + LONG_MS)


def shared(sessions: int, seconds: float, link: str = "receiver1", ms: float = 19) -> Scenario:
    """Return the paper's mix of sessions beside one flow; one receiver's link is longer."""
    return Scenario(
        experiment="benchmark",
        network=dumbbell(
            LinkSettings(MIX_RATE_MBIT, 5, Queue("pfifo", limit_packets=150)),
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
        captures=ENDS,
    )


def as_sessions(count: int, seconds: float) -> Scenario:
    """Long transfers by one process at either end."""
    wanted = shared(count, seconds, "receiver2", LONG_MS)
    tcp, flow = wanted.flows
    loops = Sessions(
        count, long_share=1, spread_s=0, rtt_min_ms=LONG_RTT_MS, rtt_max_ms=LONG_RTT_MS
    )
    workload = Workload(Arrivals(Process.SESSIONS, sessions=loops))
    return replace(
        wanted,
        flows=(tcp, replace(flow, workload=workload)),
        captures=(),
        sample_interval_ms=0,
    )


def as_flows(count: int, seconds: float) -> Scenario:
    """Return the same load by iperf3, a client and a server for each session."""
    wanted = as_sessions(count, seconds)
    each = Flow("", FlowKind.TCP, "sender2", "receiver2", variant="newreno", window_bytes=64_000)
    flows = tuple(replace(each, name=f"tcp{number}") for number in range(count))
    return replace(wanted, flows=(wanted.flows[0], *flows))


def run_and_print(what: str, wanted: Scenario) -> Cost:
    """Run a trial, and print its line of the table."""
    spent, seconds = trial_cost(wanted), wanted.duration_s
    print(
        f"{what:<22} wall {spent.wall_s:6.1f} s, {seconds / spent.wall_s:5.2f} x real time"
        f"  processors {spent.processor_s:6.1f} s, {seconds / spent.processor_s:5.2f} x"
        f"  {spent.memory_mb:4.0f} MB",
        flush=True,
    )
    return spent


def main() -> None:
    """Print the table and the ratio."""
    parser = argparse.ArgumentParser(description="The cost of background traffic in the guest.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--sessions", default="4,64,256")
    parser.add_argument("--each", type=int, default=16, help="long transfers, made both ways")
    options = parser.parse_args()
    if problem := GuestEngine().ready():
        raise SystemExit(problem)
    seconds = options.seconds
    print(f"{seconds:g} s at {MIX_RATE_MBIT} Mbit/s beside one flow")
    for sessions in map(int, options.sessions.split(",")):
        run_and_print(f"{sessions} sessions", shared(sessions, seconds))
    ours = run_and_print(f"{options.each} long sessions", as_sessions(options.each, seconds))
    theirs = run_and_print(f"{options.each} flows of iperf3", as_flows(options.each, seconds))
    print(
        f"iperf3 against sessions: wall {theirs.wall_s / ours.wall_s:.2f} x, "
        f"processors {theirs.processor_s / ours.processor_s:.2f} x"
    )


if __name__ == "__main__":
    main()
