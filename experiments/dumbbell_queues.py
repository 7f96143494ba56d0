#!/usr/bin/env -S sh -c 'exec "${0%/*}/../.venv/bin/python" "$0" "$@"'
"""Kapre, Saxena 3 and Joshi, Hattikar 3: how the queue divides the link, over time.

    tcp:  N1 ── N2 ══ N3 ── N4        cbr:  N5 ── N2 ══ N3 ── N6

TCP runs from 0 s on, CBR of 7 Mbit/s from 40 s to 60 s, and TCP for another 20 s. DropTail and RED
are the papers' queues; in addition there are today's queues, with their default limits.
"""

from __future__ import annotations

import sys

from experiments import dumbbell_settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Profile, Queue, Scenario

CBR_MBIT = 7.0
CBR_S = (40.0, 60.0)  # at a duration of 80 s

# ns-2's default RED: in bytes, with a mean packet of 500. Its limit of 10 is then about five
# packets, and its thresholds are 6.25 and 18.75 packets of 500 bytes, so the queue is full before
# the average reaches the upper one.
FRAME = dumbbell_settings.PACKET_BYTES + 54
RED = Queue(
    "red",
    limit_bytes=5 * FRAME,
    options={
        "min_bytes": 3125,
        "max_bytes": 9375,
        "avpkt_bytes": 500,
        "burst_packets": 11,
        "probability": 0.1,
    },
)
QUEUES = {
    "droptail": dumbbell_settings.DROPTAIL,
    "red": RED,
    "codel": Queue("codel", limit_packets=1000),
    "fq_codel": Queue("fq_codel", limit_packets=10240),
    "pie": Queue("pie", limit_packets=1000),
    "cake": Queue("cake", limit_bytes=4_000_000),
}


def scenario(*, variant: str, queue: str, profile: str, duration_s: float, seed: int) -> Scenario:
    """One trial; the times of CBR scale with its duration."""
    begin_s, end_s = (time_s * duration_s / 80 for time_s in CBR_S)
    return Scenario(
        experiment="dumbbell-queues",
        label=f"{variant}-{queue}-{profile}",
        topology=dumbbell_settings.network(QUEUES[queue], pairs=2),
        flows=(
            dumbbell_settings.tcp("tcp", 1, variant, "large", 0.0),
            dumbbell_settings.cbr("sender2", "receiver2", CBR_MBIT, begin_s, end_s),
        ),
        duration_s=duration_s,
        seed=seed,
        start_jitter_ms=dumbbell_settings.JITTER_MS,
        profile=Profile(profile),
        sample_interval_ms=dumbbell_settings.SAMPLE_MS,
    )


EXPERIMENT = Experiment(
    name="dumbbell-queues",
    paper="KS 3, JH 3",
    about="Reno and SACK with CBR for 20 s: DropTail, RED and today's queues",
    axes={
        "variant": ("reno", "sack"),
        "queue": tuple(QUEUES),
        "profile": ("ns2", "modern"),
        "duration_s": (80.0,),
    },
    build=scenario,
    quick={"profile": ("ns2",), "duration_s": (40.0,)},
)

if __name__ == "__main__":
    from testbed.cli import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
