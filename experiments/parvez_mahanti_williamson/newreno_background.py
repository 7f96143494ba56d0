#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Parvez, Mahanti, Williamson, figure 3 and table II: NewReno's two forms in real traffic.

    slow-but-steady:  sender1 ──┐                   ┌── receiver1
    impatient:        sender2 ──┼─ left ═════ right ┼── receiver2
    sessions:         sender3 ──┘                   └── receiver3

15 Mbit/s with a queue of 150 packets; the two foreground flows have a round-trip time of 50 ms. In
the background are 4 to 256 sessions, a quarter of them long transfers, the others web sessions,
each with its own round-trip time between 20 and 460 ms. A seed draws the sessions, and within 5 %
of the paper's the queue and the links' delays.
"""

from __future__ import annotations

import sys

from experiments.parvez_mahanti_williamson import newreno_settings
from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Flow, FlowKind, Profile, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Queue
from testbed.scenario.workload import (
    Arrivals,
    Distribution,
    Process,
    Sessions,
    Sizes,
    Workload,
)

BACKGROUND_MBIT = 15.0
KILOBYTE_FRAME_BYTES = (
    1054  # a packet of 1 KB as in the other papers' profile: 1000 bytes of payload
)
QUEUE_PACKETS = 150
BACKGROUND_MIDDLE_MS, BACKGROUND_ACCESS_MS = 5.0, 10.0  # one way: a round-trip time of 50 ms
# The foreground flows start when the sessions are already running. On an idle link, their first
# slow start loses hundreds of segments at once, and without timestamps a timer that has backed off
# during the repair stays so (Karn's algorithm): for minutes, in single trials.
START_S = 10.0
# with round trips of 50 to 130 ms this gives a timer of about 200 ms, ns-2's minimum
BACKGROUND_RTO_MIN_MS = 100
SESSIONS = (4, 16, 64, 128, 192, 256)  # of table II's fifteen numbers
RED_SESSIONS = (4, 16, 64)
BACKGROUND_WINDOW_BYTES = 4_000_000  # never the limit
BACKGROUND_QUEUES = {
    "droptail": Queue("pfifo", limit_packets=QUEUE_PACKETS),
    # thresholds at a third and two thirds of the queue; weight (2^-9, by a burst of 200) and
    # probability are ns-2's defaults
    "red": Queue(
        "red",
        limit_bytes=QUEUE_PACKETS * KILOBYTE_FRAME_BYTES,
        options={
            "min_bytes": QUEUE_PACKETS * KILOBYTE_FRAME_BYTES // 3,
            "max_bytes": 2 * QUEUE_PACKETS * KILOBYTE_FRAME_BYTES // 3,
            "avpkt_bytes": KILOBYTE_FRAME_BYTES,
            "burst_packets": 200,
            "probability": 0.1,
        },
    ),
}


def background(sessions: int, src: str, dst: str) -> Flow:
    """Build the paper's mix of traffic (IV.A); docs/workloads.md says what it leaves open."""
    return Flow(
        "background",
        FlowKind.WORKLOAD,
        src,
        dst,
        variant="newreno",
        window_bytes=64_000,  # 64 packets of 1 KB, which are ns-2's of 1000 bytes
        workload=Workload(
            Arrivals(
                Process.SESSIONS,
                sessions=Sessions(
                    sessions, long_share=0.25, think_ms=500, rtt_min_ms=20, rtt_max_ms=460
                ),
            ),
            Sizes(Distribution.PARETO, mean_bytes=48_000, shape=1.2),
        ),
        captured=False,
    )


def scenario(
    *, queue: str, sessions: float, profile: str, duration_s: float, seed: int
) -> Scenario:
    """Put both forms among a number of sessions."""
    return Scenario(
        experiment="newreno-background",
        label=f"{queue}-{sessions:g}",
        network=dumbbell(
            LinkSettings(
                BACKGROUND_MBIT, queue=BACKGROUND_QUEUES[queue], delay_ms=BACKGROUND_MIDDLE_MS
            ),
            pairs=len(newreno_settings.FORMS) + 1,
            access=LinkSettings(delay_ms=BACKGROUND_ACCESS_MS),
            # the sessions have round-trip times of their own
            links={"sender3-left": LinkSettings(), "receiver3-right": LinkSettings()},
        ),
        flows=(
            *newreno_settings.flows(
                BACKGROUND_RTO_MIN_MS,
                BACKGROUND_WINDOW_BYTES,
                start_s=min(START_S, duration_s / 10),
            ),
            background(int(sessions), "sender3", "receiver3"),
        ),
        duration_s=duration_s,
        measure_from_s=newreno_settings.WARM_UP * duration_s,
        seed=seed,
        start_jitter_ms=100,
        drawn_service_times=1.0,
        drawn_share=newreno_settings.NEWRENO_DRAWN_SHARE,
        profile=Profile(profile),
        captures=newreno_settings.CAPTURES,
        sample_interval_ms=newreno_settings.NEWRENO_SAMPLE_MS,
    )


EXPERIMENT = Experiment(
    name="newreno-background",
    paper="Parvez, Mahanti, Williamson figure 3, table II",
    about="NewReno's two forms among 4 to 256 sessions of web and long transfers",
    axes={
        "queue": ("droptail",),
        "sessions": tuple(map(float, SESSIONS)),
        "profile": ("ns2",),
        "duration_s": (300.0,),
    },
    parts=({}, {"queue": ("red",), "sessions": tuple(map(float, RED_SESSIONS))}),
    build=scenario,
    quick={"sessions": (4.0, 64.0, 256.0), "duration_s": (80.0,)},
    figures=on_demand("experiments.parvez_mahanti_williamson.figures", "background_figures"),
    tables=on_demand("experiments.parvez_mahanti_williamson.tables", "table_two"),
    claims=on_demand("experiments.parvez_mahanti_williamson.claims", "papers"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
