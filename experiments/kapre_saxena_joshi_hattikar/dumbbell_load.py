#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Kapre, Saxena 1 and Joshi, Hattikar 1: one TCP flow against CBR of increasing rate.

    tcp:  N1 ── N2 ══ N3 ── N4        cbr:  N2 ══ N3

CBR of up to 10 Mbit/s crosses the 10 Mbit/s link between N2 and N3. KS's curves fit a window of 20
packets, JH's a large one. CBR starts first; KS ran the other order as well: `order=tcp-first`.
"""

from __future__ import annotations

import sys

from experiments.kapre_saxena_joshi_hattikar import dumbbell_settings
from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Profile, Scenario

STARTS_S = {
    "cbr-first": (dumbbell_settings.GAP_S, 0.0),
    "tcp-first": (0.0, dumbbell_settings.GAP_S),
}  # tcp, cbr


def scenario(
    *,
    variant: str,
    cbr_mbit: float,
    order: str,
    window: str,
    profile: str,
    duration_s: float,
    seed: int,
) -> Scenario:
    """Return the scenario of one trial."""
    tcp_s, cbr_s = STARTS_S[order]
    return Scenario(
        experiment="dumbbell-load",
        label=f"{variant}-cbr{cbr_mbit:g}-{order}-{window}-{profile}",
        network=dumbbell_settings.network(),
        flows=(
            dumbbell_settings.tcp(
                "tcp",
                dumbbell_settings.N1_N4,
                variant,
                window=window,
                start_s=tcp_s,
                profile=profile,
            ),
            dumbbell_settings.cbr("left", "right", cbr_mbit, cbr_s),
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
    name="dumbbell-load",
    paper="Kapre, Saxena 1; Joshi, Hattikar 1",
    about="one TCP flow on the six-node dumbbell against CBR of 2 to 10 Mbit/s",
    axes={
        "variant": dumbbell_settings.PAPER_VARIANTS,
        "cbr_mbit": dumbbell_settings.DUMBBELL_LOADS,
        "order": ("cbr-first",),
        "window": ("large", "small"),
        "profile": ("ns2",),
        "duration_s": (30.0,),
    },
    build=scenario,
    quick={"cbr_mbit": (2.0, 6.0, 8.0, 10.0), "duration_s": (20.0,)},
    figures=on_demand("experiments.kapre_saxena_joshi_hattikar.figures", "load_figures"),
    claims=on_demand("experiments.kapre_saxena_joshi_hattikar.papers", "papers"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
