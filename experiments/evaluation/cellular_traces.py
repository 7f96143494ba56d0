"""Links whose rate changes from moment to moment: traces of delivery opportunities.

    sender1 ── left ══ right ── receiver1      a trace each way's data, 40 ms

`driving` is a model of a cellular link in a moving car, `satellite` one of a link that is handed
over every 15 s, `step` has 10 and 2 Mbit/s by turns (`testbed/scenario/links/own_traces.py`);
`--set trace=FILE` takes any in Mahimahi's format. The buffer is deep, as such links' are: four
bandwidth–delay products of 10 Mbit/s.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from experiments.evaluation import evaluation_settings as settings
from testbed.scenario.experiment import Experiment
from testbed.scenario.links.trace_files import read_trace
from testbed.scenario.model import Scenario, Topology

LIMIT_BDP = 4.0


def network(trace: str, queue: str) -> Topology:
    """The dumbbell, with the trace in place of the bottleneck's rate."""
    plain = settings.dumbbell(settings.buffer(queue, LIMIT_BDP), 1)
    neck = dataclasses.replace(plain.bottleneck, trace=read_trace(trace))
    return dataclasses.replace(plain, bottleneck=neck)


def scenario(*, variant: str, queue: str, trace: str, duration_s: float, seed: int) -> Scenario:
    """One trial."""
    return settings.trial(
        "cellular",
        (variant, queue, Path(trace).stem),
        network(trace, queue),
        (settings.flow("tcp", 1, variant),),
        duration_s,
        seed,
        settling=0.0,
    )


EXPERIMENT = Experiment(
    name="cellular",
    paper="RFC 9743, 6.4",
    about="traces of cellular and satellite links: their use against the delay",
    axes={
        "variant": settings.VARIANTS,
        "queue": (settings.FIFO,),
        "trace": ("driving", "satellite", "step"),
        "duration_s": (60.0,),
    },
    build=scenario,
    quick={"trace": ("driving", "step"), "duration_s": (15.0,)},
    compares=("variant", "queue"),
)
