#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Guo, Yuan, Sheng 2.2: four variants at once through a router of 1 Mbit/s.

    PC1 … PC4 (sender1 … sender4) ── router ── PC5 (receiver)

Reno, Cubic, Vegas and BBR start together and share the paper's buffer of 0.1 MB, or its CoDel,
without and with ECN (as in `router_bottleneck.py`). *Together* means within a tenth of a second, or
within a second: the paper's were started by hand. A seed draws the starts, and within 5 % of the
paper's the buffer and the delays.
"""

from __future__ import annotations

import sys

from experiments.guo_yuan_sheng.router_bottleneck import (
    CODEL_WITHOUT_ECN,
    DRAWN_SHARE,
    LINK_DELAY_MS,
    ROUTER_QUEUES,
    bottleneck,
)
from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck

FAIRNESS_VARIANTS = ("linux-reno", "cubic", "vegas", "bbr")  # PC1 … PC4
START_SPREADS_S = (0.1, 1.0)  # of each other: when the four start, drawn by the seed


def scenario(
    *, queue: str, within_s: float, rate_mbit: float, duration_s: float, seed: int
) -> Scenario:
    """Return the scenario of one trial."""
    return Scenario(
        experiment="router-fairness",
        label=f"{queue}-within{within_s:g}s",
        network=router_bottleneck(
            bottleneck(rate_mbit, queue, LINK_DELAY_MS),
            senders=len(FAIRNESS_VARIANTS),
            access=LinkSettings(delay_ms=LINK_DELAY_MS),
        ),
        flows=tuple(
            Flow(variant, FlowKind.TCP, f"sender{number}", "receiver", variant=variant)
            for number, variant in enumerate(FAIRNESS_VARIANTS, start=1)
        ),
        duration_s=duration_s,
        seed=seed,
        start_jitter_ms=within_s * 1e3,
        drawn_share=DRAWN_SHARE,
        asks_ecn=queue != CODEL_WITHOUT_ECN,
    )


EXPERIMENT = Experiment(
    name="router-fairness",
    paper="Guo, Yuan, Sheng 2.2",
    about="Reno, Cubic, Vegas and BBR at once through a router of 1 Mbit/s",
    axes={
        "queue": ROUTER_QUEUES,
        "within_s": START_SPREADS_S,
        "rate_mbit": (1.0,),
        "duration_s": (60.0,),
    },
    build=scenario,
    quick={"within_s": START_SPREADS_S[:1], "duration_s": (30.0,)},
    figures=on_demand("experiments.guo_yuan_sheng.fairness_figures", "draw"),
    claims=on_demand("experiments.guo_yuan_sheng.claims", "papers"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
