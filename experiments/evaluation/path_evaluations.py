"""What losses, reordering and changing paths do to a flow: standard evaluations."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path

from experiments.evaluation import evaluation_settings as settings
from testbed.errors import UsageError, nearest, quoted
from testbed.scenario.losses import Loss, LossEvents
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Change, Graph, Link, Node
from testbed.scenario.trace import PATH_FILE_HINT, read_path_file, read_trace
from testbed.scenario.transfers import rate_per_s
from testbed.scenario.workload import Arrivals, Sizes, Workload


def losses(percent: float, burst: float) -> Loss:
    """Lose that percentage of the packets, `burst` in a row, by the same dice in all trials."""
    events = LossEvents(percent / 100 / burst, losses=round(burst), one_at_a_time=False)
    return Loss(events, spare_retransmissions=False, dice="lossy")


def lossy_trial(
    *, variant: str, loss_percent: float, burst: float, duration_s: float, seed: int
) -> Scenario:
    """Lose 0.001 to 5 % of the packets, singly and in bursts, without congestion.

    sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms
    """
    lossy = dataclasses.replace(settings.flow("tcp", 1, variant), loss=losses(loss_percent, burst))
    return settings.trial(
        "lossy",
        (variant, f"{loss_percent:g}pc", f"burst{burst:g}"),
        settings.dumbbell(settings.buffer(settings.FIFO), 1),
        (lossy,),
        duration_s,
        seed,
    )


LOSSY = settings.evaluation(
    name="lossy",
    paper="RFC 9743, 6.4",
    about="random losses of 0.001 to 5 %, singly and in bursts, beside models of the throughput",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "loss_percent": (0.001, 0.01, 0.1, 1.0, 5.0),
        "burst": (1.0, 4.0),
        "duration_s": (40.0,),
    },
    build=lossy_trial,
    quick={"loss_percent": (0.1, 2.0), "burst": (1.0,), "duration_s": (10.0,)},
    scores="LOSSY_SCORES",
    laws="lossy_laws",
)


RETURN_LINK = ("receiver1", "right")  # the data come back


def reordering_network(percent: float) -> Graph:
    """Return the dumbbell with reordering on the receiver's link.

    It is built without the dumbbell's names: each direction of a link is drawn by itself, and
    addresses are numbered.
    """
    graph = settings.dumbbell(settings.buffer(settings.FIFO), 1)
    *others, last = (Link(link.ends, *link.directions, link.observed) for link in graph.links)
    assert last.ends == RETURN_LINK
    data = dataclasses.replace(last.directions[1], reorder=percent / 100)
    return Graph(
        tuple(Node(node.name, node.kind) for node in graph.nodes),
        (*others, dataclasses.replace(last, reverse=data)),
        rtt_ms=settings.RTT_MS,
    )


def reordering_trial(
    *, variant: str, reordered_percent: float, duration_s: float, seed: int
) -> Scenario:
    """Let 0.01 to 20 % of the data packets overtake others.

        sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms

    A packet that overtakes crosses the receiver's link, of 9 ms, at once, and with it the seven
    packets that are on it when the bottleneck is full. Acknowledgements keep their order.
    """
    return settings.trial(
        "reordering",
        (variant, f"{reordered_percent:g}pc"),
        reordering_network(reordered_percent),
        (settings.flow("tcp", 1, variant),),
        duration_s,
        seed,
    )


REORDERING = settings.evaluation(
    name="reordering",
    paper="RFC 9743, 7.7",
    about="packets that overtake others, 0.01 to 20 % of them: goodput, spurious retransmissions",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "reordered_percent": (0.01, 0.1, 1.0, 5.0, 20.0),
        "duration_s": (24.0,),
    },
    build=reordering_trial,
    quick={"reordered_percent": (0.1, 5.0), "duration_s": (8.0,)},
    scores="REORDERING_SCORES",
)


TRACE_LIMIT_BDP = 4.0


def trace_network(trace: str, queue: str) -> Graph:
    """Return the dumbbell, with the trace in place of the bottleneck's rate."""
    return settings.dumbbell(settings.buffer(queue, TRACE_LIMIT_BDP), 1, trace=read_trace(trace))


def cellular_trial(
    *, variant: str, queue: str, trace: str, duration_s: float, seed: int
) -> Scenario:
    """Replay traces of delivery opportunities: links whose rate changes from moment to moment.

        sender1 ── left ══ right ── receiver1      a trace each way's data, 40 ms

    `driving` is a model of a cellular link in a moving car, `satellite` one of a link that is
    handed over every 15 s, `step` has 10 and 2 Mbit/s by turns
    (`testbed/scenario/make_traces.py`); `--set trace=FILE` takes any in Mahimahi's format. The
    buffer is deep, as such links' are: four bandwidth–delay products of 10 Mbit/s.
    """
    return settings.trial(
        "cellular",
        (variant, queue, Path(trace).stem),
        trace_network(trace, queue),
        (settings.flow("tcp", 1, variant),),
        duration_s,
        seed,
        settling=0.0,
    )


CELLULAR = settings.evaluation(
    name="cellular",
    paper="RFC 9743, 6.4",
    about="traces of cellular and satellite links: their use against the delay",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "trace": ("driving", "satellite", "step"),
        "duration_s": (60.0,),
    },
    build=cellular_trial,
    quick={"trace": ("driving", "step"), "duration_s": (15.0,)},
    figures="use_and_delay",
    scores="CELLULAR_SCORES",
    laws="cellular_laws",
)


LEO = "leo"
LEO_ACCESS_MS = 2.5  # each way, at both ends
LEO_S, HANDOVER_S, OUTAGE_S = 60, 15, 0.1
LEO_DELAYS_MS = (18.0, 30.0)  # the least of a pass, one way: overhead, and near the horizon
LEO_MBIT = (5.0, 15.0)


def leo_changes() -> Iterator[Change]:
    """Yield a model of a path over low-orbit satellites, each of which serves for 15 s.

    At a handover nothing arrives for 0.1 s. From second to second, the delay falls and rises as a
    satellite passes. Its least delay and its rate are drawn, the same in all trials.
    """
    dice = random.Random(LEO)
    for begin_s in range(0, LEO_S, HANDOVER_S):
        least_ms, rate_mbit = dice.uniform(*LEO_DELAYS_MS), round(dice.uniform(*LEO_MBIT), 2)
        nearest_s = dice.uniform(0, HANDOVER_S)
        for second in range(HANDOVER_S):
            delay_ms = round(least_ms + 0.05 * (second - nearest_s) ** 2, 2)
            at_s = float(begin_s + second)
            if second or not begin_s:
                yield Change(at_s, None if second else rate_mbit, delay_ms)
            else:
                yield Change(at_s, rate_mbit, delay_ms, up=False)
                yield Change(at_s + OUTAGE_S, up=True)


def leo_trial(*, variant: str, queue: str, path: str, duration_s: float, seed: int) -> Scenario:
    """Run a flow over a path whose delay and rate change as satellites pass and hand over.

        sender1 ── left ══ right ── receiver1      what the path has, and 10 ms

    `leo` is a model; `--set path=FILE.csv` reads any path, with the columns time_s, delay_ms,
    rate_mbit and up (`testbed/scenario/trace.py`). The buffer is one bandwidth–delay product at
    the path's first rate and delay.
    """
    changes = tuple(leo_changes()) if path == LEO else read_path_file(Path(path))
    first = changes[0]
    if first.rate_mbit is None or first.delay_ms is None or first.up is False:
        raise UsageError(f"path: {path} begins without a rate or a delay, or down", PATH_FILE_HINT)
    bottleneck = LinkSettings(
        first.rate_mbit,
        first.delay_ms,
        settings.buffer(queue),
        schedule=tuple(each for each in changes[1:] if each.at_s < duration_s),
    )
    return settings.trial(
        "leo",
        (variant, queue, Path(path).stem),
        dumbbell(bottleneck, 1, access=LinkSettings(delay_ms=LEO_ACCESS_MS)),
        (settings.flow("tcp", 1, variant),),
        duration_s,
        seed,
        settling=0.0,
    )


LEO_PATH = settings.evaluation(
    name="leo",
    paper="RFC 9743, 7.3",
    about="a path over low-orbit satellites, handed over every 15 s: use of the link against delay",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "path": (LEO,),
        "duration_s": (60.0,),
    },
    build=leo_trial,
    quick={"duration_s": (20.0,)},
    figures="use_and_delay",
    scores="CELLULAR_SCORES",
)


CHANGE_AT = 0.5
FACTOR = 4.0
STEPS = ("delay-up", "delay-down", "rate-up", "rate-down")
LONG_BOTTLENECK_MS = (
    settings.BOTTLENECK_MS + (FACTOR - 1) * settings.RTT_MS / 2
)  # a round trip of 160 ms
SLOW_MBIT = settings.EVALUATION_MBIT / FACTOR


def changing_network(step: str, queue: str, at_s: float) -> Graph:
    """Return the dumbbell whose bottleneck changes at `at_s`, by a factor of four."""
    buffer, short_ms = settings.buffer(queue), settings.BOTTLENECK_MS
    match step:
        case "delay-up":
            return settings.dumbbell(
                buffer, 1, schedule=(Change(at_s, delay_ms=LONG_BOTTLENECK_MS),)
            )
        case "delay-down":
            change = Change(at_s, delay_ms=short_ms)
            return settings.dumbbell(buffer, 1, delay_ms=LONG_BOTTLENECK_MS, schedule=(change,))
        case "rate-up":
            change = Change(at_s, rate_mbit=settings.EVALUATION_MBIT)
            return settings.dumbbell(buffer, 1, rate_mbit=SLOW_MBIT, schedule=(change,))
        case "rate-down":
            return settings.dumbbell(buffer, 1, schedule=(Change(at_s, rate_mbit=SLOW_MBIT),))
    raise UsageError(f"step: unknown {quoted(step)}", nearest(step, STEPS))


def path_change_trial(
    *, variant: str, queue: str, step: str, duration_s: float, seed: int
) -> Scenario:
    """Change the delay or the rate of the path by a factor of four in the middle of a trial.

        sender1 ── left ══ right ── receiver1      10 Mbit/s and 40 ms, before or after

    Only what comes after the change is measured. The buffer is one bandwidth–delay product of the
    path before it.
    """
    return settings.trial(
        "path-change",
        (variant, queue, step),
        changing_network(step, queue, CHANGE_AT * duration_s),
        (settings.flow("tcp", 1, variant),),
        duration_s,
        seed,
        settling=CHANGE_AT,
    )


PATH_CHANGE = settings.evaluation(
    name="path-change",
    paper="RFC 9743, 7.9",
    about="a step of the delay or the rate: time to the new equilibrium, use of the link, queue",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO,),
        "step": STEPS,
        "duration_s": (48.0,),
    },
    build=path_change_trial,
    quick={"step": ("delay-up", "rate-down"), "duration_s": (16.0,)},
    scores="PATH_CHANGE_SCORES",
    laws="path_change_laws",
)


SCALE = 0.05
POISSON_MARGIN = 1.1  # than the mean: a Poisson process may take longer
LAST_TRANSFERS_S = 5.0  # for the last transfers to end in


def transfers(sizes: Sizes, load: float, rate_mbit: float, duration_s: float) -> Workload:
    """Return a workload of the number of transfers that can end before the trial does."""
    arrivals = Arrivals(load=load)
    per_s = rate_per_s(Workload(arrivals, sizes), rate_mbit)
    count = max(1, round(per_s * (duration_s - LAST_TRANSFERS_S) / POISSON_MARGIN))
    return Workload(arrivals, sizes, count=count)


def completion_trial(
    *, variant: str, queue: str, load: float, duration_s: float, seed: int
) -> Scenario:
    """Send short and long web-search transfers through one bottleneck.

        sender1 ── left ══ right ── receiver1      10 Mbit/s, 40 ms

    The receiver asks for transfers by a Poisson process that fills the part `load` of the link;
    each has a connection of its own. Sizes are those of a data centre that searches the web
    (Alizadeh and others, 2010) times 0.05: half of them are shorter than 4 kB, 2 in 100 longer than
    1 MB. A seed's transfers are the same for every variant and queue.
    """
    flow = Flow(
        "web",
        FlowKind.WORKLOAD,
        "sender1",
        "receiver1",
        variant=variant,
        workload=transfers(Sizes(scale=SCALE), load, settings.EVALUATION_MBIT, duration_s),
    )
    return settings.trial(
        "completion",
        (variant, queue, f"{load:g}"),
        settings.dumbbell(settings.buffer(queue), 1),
        (flow,),
        duration_s,
        seed,
        settling=0.0,
    )


COMPLETION = settings.evaluation(
    name="completion",
    paper="RFC 9743, 5.1.5",
    about="completion times of short and long transfers, by load",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "queue": (settings.FIFO, "fq_codel"),
        "load": (0.3, 0.6, 0.8),
        "duration_s": (60.0,),
    },
    build=completion_trial,
    quick={"queue": (settings.FIFO,), "load": (0.6,), "duration_s": (32.0,)},
    figures="completion_figures",
    tables="completion_tables",
    scores="COMPLETION_SCORES",
    laws="completion_laws",
)
