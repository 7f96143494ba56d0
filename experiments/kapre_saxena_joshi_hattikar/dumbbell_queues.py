#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Kapre, Saxena 3 and Joshi, Hattikar 3: how the queue divides the link, over time.

    tcp:  N1 ── N2 ══ N3 ── N4        cbr:  N5 ── N2 ══ N3 ── N6

TCP runs from 0 s on, CBR of 7 Mbit/s from 40 s to 60 s, and TCP for another 20 s. DropTail and RED
are the papers' queues; in addition there are today's queues, with their default limits.

JH's CBR "is then stopped after 60 seconds": at second 60, or when it has run for 60 s
(`cbr_stop=for-60`, with `duration_s=120`).
"""

from __future__ import annotations

import sys

from experiments.kapre_saxena_joshi_hattikar import dumbbell_settings
from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Profile, Scenario
from testbed.scenario.network import Queue

CBR_MBIT = 7.0
CBR_S = {"at-60": (40.0, 60.0, 80.0), "for-60": (40.0, 100.0, 120.0)}  # from, to, the trial's end

# ns-2's default RED: in bytes, with a mean packet of 500. Its limit of 10 is then about five
# packets, and its thresholds are 6.25 and 18.75 packets of 500 bytes, so the queue is full before
# the average reaches the upper one. Its weight follows from the link's 2500 such packets a second,
# 1 - exp(-1/2500) = 2^-11.3; with a burst of 120 tc chooses 2^-11. ns-2's RED is gentle, Linux's is
# not: they differ only above the upper threshold, where this queue is full anyway.
FRAME = dumbbell_settings.PACKET_BYTES + 54
RED = Queue(
    "red",
    limit_bytes=5 * FRAME,
    options={
        "min_bytes": 3125,
        "max_bytes": 9375,
        "avpkt_bytes": 500,
        "burst_packets": 120,
        "probability": 0.1,
    },
)
DUMBBELL_QUEUES = {
    "droptail": dumbbell_settings.DROPTAIL,
    "red": RED,
    "codel": Queue("codel", limit_packets=1000),
    "fq_codel": Queue("fq_codel", limit_packets=10240),
    "pie": Queue("pie", limit_packets=1000),
    "cake": Queue("cake", limit_bytes=4_000_000),
}


def scenario(
    *, variant: str, queue: str, cbr_stop: str, profile: str, duration_s: float, seed: int
) -> Scenario:
    """Return the scenario of one trial: the times of CBR scale with its duration."""
    *times_s, whole_s = CBR_S[cbr_stop]
    begin_s, end_s = (time_s * duration_s / whole_s for time_s in times_s)
    return Scenario(
        experiment="dumbbell-queues",
        label=f"{variant}-{queue}-{cbr_stop}-{profile}",
        network=dumbbell_settings.network(DUMBBELL_QUEUES[queue], pairs=2),
        flows=(
            dumbbell_settings.tcp(
                "tcp",
                dumbbell_settings.N1_N4,
                variant,
                window="large",
                start_s=0.0,
                profile=profile,
            ),
            dumbbell_settings.cbr("sender2", "receiver2", CBR_MBIT, begin_s, end_s),
        ),
        duration_s=duration_s,
        seed=seed,
        start_jitter_ms=dumbbell_settings.DUMBBELL_JITTER_MS,
        drawn_service_times=dumbbell_settings.DRAWN_SERVICE_TIMES,
        profile=Profile(profile),
        sample_interval_ms=dumbbell_settings.SAMPLE_MS,
    )


EXPERIMENT = Experiment(
    name="dumbbell-queues",
    paper="Kapre, Saxena 3; Joshi, Hattikar 3",
    about="Reno and SACK with CBR for 20 s: DropTail, RED and today's queues",
    axes={
        "variant": ("reno", "sack"),
        "queue": tuple(DUMBBELL_QUEUES),
        "cbr_stop": ("at-60",),
        "profile": ("ns2",),
        "duration_s": (80.0,),
    },
    build=scenario,
    quick={"duration_s": (40.0,)},
    figures=on_demand("experiments.kapre_saxena_joshi_hattikar.figures", "queue_figures"),
    claims=on_demand("experiments.kapre_saxena_joshi_hattikar.papers", "papers"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
