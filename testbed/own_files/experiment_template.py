"""How much buffer does one flow need: a bottleneck of 10 Mbit/s, 40 ms, and a growing FIFO.

testbed plan ./NAME.py              what would run
testbed run ./NAME.py --quick       a first look; results go to results/ in this folder
testbed run ./NAME.py --seeds 5     with confidence intervals
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Queue


def scenario(*, variant: str, buffer_bdp: float, duration_s: float, seed: int) -> Scenario:
    """Return one trial's scenario: every keyword but `seed` is an axis below."""
    return Scenario(
        experiment="NAME",
        label=f"{variant}-{buffer_bdp:g}bdp",  # tells people which trial is which
        network=router_bottleneck(  # or Graph(nodes, links): any network
            LinkSettings(10.0, delay_ms=10.0, queue=Queue("bfifo", limit_bdp=buffer_bdp)),
            access=LinkSettings(delay_ms=10.0),
        ),
        flows=(Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant=variant),),
        duration_s=duration_s,
        seed=seed,
        start_jitter_ms=100.0,  # what a seed changes: when the flow starts
    )


EXPERIMENT = Experiment(
    name="NAME",  # of the folder in results/
    paper="",
    about="how much buffer one flow needs at 10 Mbit/s and 40 ms",
    axes={  # every combination runs; `--set variant=cubic,bbr` takes other values
        "variant": ("linux-reno",),
        "buffer_bdp": (0.1, 0.25, 0.5, 1.0, 2.0),
        "duration_s": (30.0,),
    },
    build=scenario,
    quick={"duration_s": (10.0,)},
)


def figures(rows: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Yield figures with their names.

    `rows` has a row per flow and trial, with every column of metrics.csv, and the axes as `axis_…`.
    Without this function the general figures are drawn.
    """
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    for variant, flows in rows.groupby("variant"):
        mean = flows.groupby("axis_buffer_bdp")["goodput_mbps"].mean()
        axes.plot(mean.index, mean, marker="o", label=str(variant))
    axes.set(xlabel="buffer (bandwidth–delay products)", ylabel="goodput (Mbit/s)", ylim=(0, None))
    axes.legend()
    yield "goodput", figure
