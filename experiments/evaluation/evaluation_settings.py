"""What the standard evaluations share: a bottleneck of 10 Mbit/s, 40 ms, and what a seed changes.

A seed changes when flows start (within 100 ms), every rate and delay of the network (by up to 1 %),
and every delay within one packet's time at the bottleneck, so that repeats sample the phases of a
network in which nothing is random.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from testbed.scenario import named_networks
from testbed.scenario.experiment import Axes, Experiment, on_demand
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings
from testbed.scenario.network import Graph, Queue, Schedule
from testbed.scenario.space import SettingSpace

ROOM = "experiments.evaluation"
EVALUATION_MBIT = 10.0
RTT_MS = 40.0
BOTTLENECK_MS = 2.0  # of the bottleneck, one way; the access links have the rest
EVALUATED_VARIANTS = ("cubic", "bbr", "linux-reno")
FIFO = "pfifo"
STARTS_MS = 100.0
JITTER_FRACTION = 0.01
SETTLING = 0.25  # of a trial: left out, where slow start is not what is asked about


def evaluation(
    *,
    name: str,
    paper: str,
    about: str,
    axes: Axes,
    build: Callable[..., Scenario],
    quick: Axes,
    scores: str,
    parts: tuple[Axes, ...] = ({},),
    figures: str = "score_figures",
    tables: str = "tables",
    summary: str = "summary",
    laws: str = "",
    shown_by: str = "figures",
    scored_by: str = "scores",
    conclusion: str = "",
    space: SettingSpace | None = None,
) -> Experiment:
    """Declare a standard evaluation, which compares variants and queues where both are axes.

    `scores`, `figures`, `tables`, `summary`, `laws` and `conclusion` are names in the modules of
    this room that hold them: `shown_by` has those that show, `scored_by` the scores. One that has a
    `space` is run in settings that are drawn, and not with the others.
    """
    return Experiment(
        name=name,
        paper=paper,
        about=about,
        axes=axes,
        build=build,
        quick=quick,
        parts=parts,
        compares=tuple(axis for axis in ("variant", "queue") if axis in axes and not space),
        figures=on_demand(f"{ROOM}.{shown_by}", figures),
        tables=on_demand(f"{ROOM}.{shown_by}", tables),
        summary=on_demand(f"{ROOM}.{shown_by}", summary),
        scores=on_demand(f"{ROOM}.{scored_by}", scores),
        laws=on_demand(f"{ROOM}.theory", laws) if laws else None,
        conclusion=on_demand(f"{ROOM}.{shown_by}", conclusion) if conclusion else None,
        space=space,
    )


def suite(
    *,
    name: str,
    paper: str,
    about: str,
    variant: str,
    paths: Collection[str],
    quick: tuple[str, ...],
    build: Callable[..., Scenario],
    summary: str,
) -> Experiment:
    """Declare a suite of test cases: a variant on each of its paths.

    `summary` is the function that judges the steps, in the module `NAME_checks` of this room.
    """
    return Experiment(
        name=name,
        paper=paper,
        about=about,
        axes={"variant": (variant,), "path": tuple(paths)},
        build=build,
        quick={"path": quick},
        summary=on_demand(f"{ROOM}.{name.replace('-', '_')}_checks", summary),
        is_suite=True,
    )


def buffer(discipline: str, bdp: float = 1.0) -> Queue:
    """Return a queue with its limit in bandwidth–delay products; it drops and does not mark."""
    return Queue(discipline, limit_bdp=bdp)


def dumbbell(
    queue: Queue,
    pairs: int,
    rtts_ms: tuple[float, ...] = (),
    rate_mbit: float = EVALUATION_MBIT,
    *,
    delay_ms: float = BOTTLENECK_MS,
    trace: str | None = None,
    schedule: Schedule = (),
) -> Graph:
    """Return pairs of hosts with a bottleneck in the middle, 40 ms unless round trips are given."""
    return named_networks.dumbbell(
        LinkSettings(rate_mbit, delay_ms, queue, trace=trace, schedule=schedule),
        pairs=pairs,
        access=LinkSettings(delay_ms=(RTT_MS / 2 - BOTTLENECK_MS) / 2),
        rtts_ms=rtts_ms,
    )


def flow(
    name: str, pair: int, variant: str, start_s: float = 0.0, lasts_s: float | None = None
) -> Flow:
    """Return a transfer from a pair's sender to its receiver, unbounded without `lasts_s`."""
    return Flow(
        name,
        FlowKind.TCP,
        f"sender{pair}",
        f"receiver{pair}",
        start_s=start_s,
        duration_s=lasts_s,
        variant=variant,
    )


def same_variant_flows(variant: str, flows: int, pairs: int) -> tuple[Flow, ...]:
    """Return flows of one variant, spread over the pairs."""
    return tuple(flow(f"flow{n + 1}", n % pairs + 1, variant) for n in range(flows))


def trial(
    experiment: str,
    name_parts: Sequence[str],
    network: Graph,
    flows: tuple[Flow, ...],
    duration_s: float,
    seed: int,
    *,
    settling: float = SETTLING,
    asks_ecn: bool = True,
) -> Scenario:
    """Return a trial of an evaluation; `name_parts` distinguish it from the others."""
    return Scenario(
        experiment=experiment,
        label=re.sub(r"[^\w.-]+", "-", "-".join(name_parts).replace("./", "")),  # quinn:bbr
        network=network,
        flows=flows,
        duration_s=duration_s,
        measure_from_s=settling * duration_s,
        seed=seed,
        start_jitter_ms=STARTS_MS,
        network_jitter=JITTER_FRACTION,
        drawn_service_times=1.0,
        asks_ecn=asks_ecn,
    )
