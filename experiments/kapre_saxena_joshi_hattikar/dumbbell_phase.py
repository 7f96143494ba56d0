#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""How drops and shares depend on the round trip within one packet's time at the bottleneck.

    tcp:  N1 ── N2 ══ N3 ── N4        cbr:  N2 ══ N3

Two cases of the papers at the load where they decide most, with a large window: Vegas or NewReno
beside CBR of 9 Mbit/s, and NewReno beside Vegas and CBR of 7 Mbit/s. Delays are exact and the same
for all seeds. That of N2–N3 is moved in steps, so that the round trip grows by the time that the
bottleneck takes for a packet: 0.84 ms. The other experiments of the papers draw delays.
"""

from __future__ import annotations

import sys

from experiments.kapre_saxena_joshi_hattikar import dumbbell_settings
from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Profile, Scenario

PHASE_CASES = {"vegas": 9.0, "newreno": 9.0, "newreno/vegas": 7.0}  # CBR beside them, Mbit/s
PACKET_TIME_MS = 0.8432  # a segment of 1000 bytes with its headers, 1054 bytes at 10 Mbit/s
PHASE_STEPS_MS = tuple(round(PACKET_TIME_MS * n / 10, 4) for n in range(11))
PATHS = (dumbbell_settings.N1_N4, dumbbell_settings.N5_N6)


def scenario(*, case: str, more_ms: float, duration_s: float, seed: int) -> Scenario:
    """Return the scenario of one trial."""
    flows = [
        dumbbell_settings.tcp(
            f"tcp{number}",
            ends,
            variant,
            window="large",
            start_s=dumbbell_settings.GAP_S,
            profile="ns2",
        )
        for number, (variant, ends) in enumerate(zip(case.split("/"), PATHS, strict=False), start=1)
    ]
    load = dumbbell_settings.cbr("left", "right", PHASE_CASES[case], 0.0)
    return Scenario(
        experiment="dumbbell-phase",
        label=f"{case.replace('/', '-')}-{more_ms:g}ms",
        network=dumbbell_settings.network(pairs=2, more_ms=more_ms),
        flows=(*flows, load),
        duration_s=duration_s,
        measure_from_s=dumbbell_settings.settled_s(duration_s),
        seed=seed,
        start_jitter_ms=dumbbell_settings.DUMBBELL_JITTER_MS,
        profile=Profile.NS2,
        sample_interval_ms=dumbbell_settings.SAMPLE_MS,
    )


EXPERIMENT = Experiment(
    name="dumbbell-phase",
    paper="Kapre, Saxena; Joshi, Hattikar",
    about="drops and shares over the round trip, within one packet's time at the bottleneck",
    axes={
        "case": tuple(PHASE_CASES),
        "more_ms": PHASE_STEPS_MS,
        "duration_s": (30.0,),
    },
    build=scenario,
    quick={"case": ("vegas",), "more_ms": PHASE_STEPS_MS[::5], "duration_s": (20.0,)},
    figures=on_demand("experiments.kapre_saxena_joshi_hattikar.phase_figures", "draw"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
