#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Kapre, Saxena 2 and Joshi, Hattikar 2: two TCP flows and a CBR flow.

    tcp1: N1 ── N2 ══ N3 ── N4        tcp2: N5 ── N2 ══ N3 ── N6        cbr: N2 ══ N3

The papers' four pairs beside CBR of 2, 5 and 8 Mbit/s; of 10, the phase decides who gets what is
left. The two paths are alike, so a pair also represents its mirror image.

JH list a source at N5, but in their text the second TCP goes from N2 to N3: `second=n2-n3`.
"""

from __future__ import annotations

import sys
from functools import partial

from experiments.kapre_saxena_joshi_hattikar import dumbbell_settings
from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Profile, Scenario

PAPER_PAIRS = ("reno/reno", "newreno/reno", "vegas/vegas", "newreno/vegas")
PAIR_LOADS = (2.0, 5.0, 8.0)
SECOND_LINKS = {"n5-n6": dumbbell_settings.N5_N6, "n2-n3": dumbbell_settings.MIDDLE}


def scenario(
    *,
    pair: str,
    cbr_mbit: float,
    second: str,
    window: str,
    profile: str,
    duration_s: float,
    seed: int,
) -> Scenario:
    """Return the scenario of one trial."""
    one, _, other = pair.partition("/")
    tcp = partial(
        dumbbell_settings.tcp, window=window, start_s=dumbbell_settings.GAP_S, profile=profile
    )
    return Scenario(
        experiment="dumbbell-pairs",
        label=f"{one}-{other}-cbr{cbr_mbit:g}-{second}-{window}-{profile}",
        network=dumbbell_settings.network(pairs=2),
        flows=(
            tcp("tcp1", dumbbell_settings.N1_N4, one),
            tcp("tcp2", SECOND_LINKS[second], other),
            dumbbell_settings.cbr("left", "right", cbr_mbit, 0.0),
        ),
        duration_s=duration_s,
        measure_from_s=dumbbell_settings.settled_s(duration_s),
        seed=seed,
        start_jitter_ms=dumbbell_settings.DUMBBELL_JITTER_MS,
        drawn_service_times=dumbbell_settings.DRAWN_SERVICE_TIMES,
        profile=Profile(profile),
        sample_interval_ms=dumbbell_settings.SAMPLE_MS,
    )


EXPERIMENT = Experiment(
    name="dumbbell-pairs",
    paper="Kapre, Saxena 2; Joshi, Hattikar 2",
    about="two TCP flows and CBR on the six-node dumbbell: who takes bandwidth from whom",
    axes={
        "pair": PAPER_PAIRS,
        "cbr_mbit": PAIR_LOADS,
        "second": ("n5-n6",),
        "window": ("small", "large"),
        "profile": ("ns2",),
        "duration_s": (30.0,),
    },
    build=scenario,
    quick={"duration_s": (20.0,)},
    figures=on_demand("experiments.kapre_saxena_joshi_hattikar.figures", "pair_figures"),
    claims=on_demand("experiments.kapre_saxena_joshi_hattikar.papers", "papers"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
