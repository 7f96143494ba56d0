"""The space that an evaluation draws from: any rate, round trip, buffer, load and queue.

In each setting a variant's flows run alone, and beside a victim's. What a guest cannot hold, or
would send for too long, is left out by the setting alone, so that all subjects have the same
settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from experiments.evaluation import evaluation_settings as settings
from experiments.evaluation.path_evaluations import losses
from testbed.errors import UsageError, require_known
from testbed.scenario.experiment import ALONE, on_demand
from testbed.scenario.model import CapturePoint, Flow, Scenario
from testbed.scenario.network import FRAME_BYTES, Change, Queue, Schedule
from testbed.scenario.space import Adversary, DrawnSetting, NameChoice, NumberRange, SettingSpace

MIXES = {"1:1": (1, 1), "1:4": (1, 4), "4:1": (4, 1), "1:16": (1, 16)}  # subject's : victim's flows
SIGNALS = ("drops", "marks")
MAX_IN_FLIGHT_BYTES = 12e6  # a guest's sockets have some 15 MB before windows shrink
MAX_TRIAL_PACKETS = 80_000  # that a trial's link carries
MIN_TRIAL_S, MAX_TRIAL_S = 0.5, 40.0
MIN_DRAWN_TRIAL_S = 5.0  # of trials whose packets allow it
TRIAL_ROUND_TRIPS, TRIAL_FRAMES = 60, 400  # that a trial lasts at least, up to the longest
BOTTLENECK_PART = 0.1  # of the one-way delay: the access links have the rest
MAX_SAMPLE_TIMES = 300
MAX_SAMPLED_ROWS = 40_000
MIN_BUFFER_PACKETS = 10  # a shorter queue loses connections' first packets
EASY_FLOWS = 250  # of more, each needs a window, and their starts a time
MIN_WINDOW = 4  # packets: with less, a thousand flows wait for timers (`collapse`), at a cost
FIRST_WINDOW = 10  # packets (RFC 6928)
MIN_FRAMES = 25  # of a flow in a trial: with fewer there is nothing to compare
PAIRS_OF_A_SIDE = 2


def parts_of_flows(flows: int, mix: str) -> tuple[int, int]:
    """Return the numbers of the subject's and of the victim's flows, each at least one."""
    if flows < 2:
        raise UsageError(f"flows: {flows}: the subject and the victim have at least one each")
    require_known("mix", mix, MIXES)
    one, other = MIXES[mix]
    subjects = min(flows - 1, max(1, round(flows * one / (one + other))))
    return subjects, flows - subjects


def duration_s(rate_mbit: float, rtt_ms: float) -> float:
    """Return how long a setting's trials last: many round trips and packets, within limits."""
    wanted = max(
        MIN_DRAWN_TRIAL_S, TRIAL_ROUND_TRIPS * rtt_ms / 1e3, TRIAL_FRAMES * frame_s(rate_mbit)
    )
    affordable = MAX_TRIAL_PACKETS * frame_s(rate_mbit)
    return round(max(MIN_TRIAL_S, min(MAX_TRIAL_S, wanted, affordable)), 1)


def frame_s(rate_mbit: float) -> float:
    """Return the time of a full frame."""
    return FRAME_BYTES * 8e-6 / rate_mbit


def refused(setting: DrawnSetting) -> str:
    """Return why a guest cannot run a setting, or too little would happen in it, or nothing."""
    rate, rtt_ms, bdp = (float(setting[name]) for name in ("rate_mbit", "rtt_ms", "buffer_bdp"))
    in_flight = rate * 1e6 / 8 * rtt_ms / 1e3 * (1 + bdp)
    if in_flight > MAX_IN_FLIGHT_BYTES:
        return f"{in_flight / 1e6:.0f} MB in flight; a guest has {MAX_IN_FLIGHT_BYTES / 1e6:g}"
    flows = float(setting["flows"])
    window = in_flight / FRAME_BYTES / flows
    if flows > EASY_FLOWS and window < MIN_WINDOW:
        return f"room for {window:.1f} packets of each of {flows:.0f} flows"
    frames = duration_s(rate, rtt_ms) / frame_s(rate) / flows
    return f"{frames:.0f} packets for each flow" if frames < MIN_FRAMES else ""


def starts_ms(flows: int, rate_mbit: float, lasts_s: float) -> float:
    """Return the time within which flows start: many take as long as their first windows do."""
    if flows <= EASY_FLOWS:
        return min(settings.STARTS_MS, 50 * lasts_s)
    return round(1e3 * min(lasts_s / 4, flows * FIRST_WINDOW * frame_s(rate_mbit)), 1)


def space_flows(
    variant: str, victim: str, flows: int, mix: str, loss_percent: float
) -> Iterator[Flow]:
    """Yield a side's flows after the other's; alone, the victim's are the variant's own."""
    subjects, victims = parts_of_flows(flows, mix)
    sides = [("victim", victims, variant if victim == ALONE else victim, 1)]
    if victim != ALONE:
        sides.append(("one", subjects, variant, 1 + PAIRS_OF_A_SIDE))
    loss = losses(loss_percent, 1.0) if loss_percent else None
    for name, count, control, first in sides:
        for number in range(count):
            pair = first + number % PAIRS_OF_A_SIDE
            flow = settings.flow(f"{name}{number + 1}", pair, control)
            yield dataclasses.replace(flow, loss=loss)


def bottleneck_queue(discipline: str, buffer_bdp: float, bdp_bytes: float, *, ecn: bool) -> Queue:
    """Return a queue that holds a part of the BDP, and in any case some packets."""
    if buffer_bdp * bdp_bytes < MIN_BUFFER_PACKETS * FRAME_BYTES:
        return Queue(discipline, limit_packets=MIN_BUFFER_PACKETS, ecn=ecn)
    return Queue(discipline, limit_bdp=buffer_bdp, ecn=ecn)


def _drawn_service_times(rate_mbit: float, rtt_ms: float) -> float:
    """Return for how many frames' time delays are drawn: none may be drawn below zero."""
    shortest_ms = BOTTLENECK_PART * rtt_ms / 2
    return float(f"{min(1.0, shortest_ms / (1e3 * frame_s(rate_mbit))):.2g}")


def space_trial(
    *,
    variant: str,
    victim: str,
    rate_mbit: float,
    rtt_ms: float,
    buffer_bdp: float,
    flows: float,
    mix: str,
    loss_percent: float,
    queue: str,
    signal: str,
    change: float,
    seed: int,
) -> Scenario:
    """Run flows of a variant beside a victim's, or the victim's number of them alone.

        two senders of victims  ── left ══ right ── two receivers
        two senders of others   ──┘          └──   two receivers

    `mix` is the number of the variant's flows to that of the victim's; `loss_percent` of the data
    are lost behind the bottleneck; the buffer has at least ten packets; queues that can mark do so
    with `signal=marks`, and drop otherwise. In the middle third of the trial the rate is `change`
    times what it is before and after; 0: it does not change.
    """
    if rate_mbit <= 0:
        raise UsageError(f"rate_mbit: {rate_mbit:g} is not above 0")
    require_known("signal", signal, SIGNALS)
    lasts_s = duration_s(rate_mbit, rtt_ms)
    number = round(flows)
    marks = signal == "marks" and queue != settings.FIFO
    schedule: Schedule = ()
    if change:
        schedule = (
            Change(round(lasts_s / 3, 3), rate_mbit=change * rate_mbit),
            Change(round(2 * lasts_s / 3, 3), rate_mbit=rate_mbit),
        )
    network = settings.dumbbell(
        bottleneck_queue(queue, buffer_bdp, rate_mbit * rtt_ms * 1e3 / 8, ecn=marks),
        2 * PAIRS_OF_A_SIDE,
        (rtt_ms,),
        rate_mbit,
        delay_ms=round(BOTTLENECK_PART * rtt_ms / 2, 3),
        schedule=schedule,
    )
    trial = settings.trial(
        "space",
        (variant, ALONE) if victim == ALONE else (variant, "on", victim),
        network,
        tuple(space_flows(variant, victim, number, mix, loss_percent)),
        lasts_s,
        seed,
        asks_ecn=marks,
    )
    times = min(MAX_SAMPLE_TIMES, MAX_SAMPLED_ROWS / number)
    interval_ms = max(1.0, float(round(1e3 * lasts_s / times)))
    return dataclasses.replace(
        trial,
        sample_interval_ms=interval_ms,
        start_jitter_ms=starts_ms(number, rate_mbit, lasts_s),
        drawn_service_times=_drawn_service_times(rate_mbit, rtt_ms),
        captures=(CapturePoint.RECEIVERS, CapturePoint.BOTTLENECK),
    )


SPACE_AXES = (
    NumberRange("rate_mbit", 0.064, 10_000),
    NumberRange("rtt_ms", 0.1, 1000),
    NumberRange("buffer_bdp", 0.05, 16),
    NumberRange("flows", 2, 1000, whole=True),
    NameChoice("mix", tuple(MIXES)),
    NumberRange("loss_percent", 0.001, 5, zero=0.5),
    NameChoice("queue", ("pfifo", "pfifo", "codel", "fq_codel", "pie")),
    NameChoice("signal", SIGNALS),
    NumberRange("change", 0.1, 4, zero=0.75),
)
SPACE = settings.evaluation(
    name="space",
    paper="RFC 9743, 5",
    about="a variant alone and beside another, in any setting: `testbed evaluate` draws them",
    axes={
        "variant": settings.EVALUATED_VARIANTS,
        "victim": ("cubic", ALONE),
        "rate_mbit": (settings.EVALUATION_MBIT,),
        "rtt_ms": (settings.RTT_MS,),
        "buffer_bdp": (1.0,),
        "flows": (2.0,),
        "mix": ("1:1",),
        "loss_percent": (0.0,),
        "queue": (settings.FIFO,),
        "signal": ("drops",),
        "change": (0.0,),
    },
    build=space_trial,
    quick={},
    shown_by="space_figures",
    scored_by="space_scores",
    figures="space_figures",
    tables="space_tables",
    summary="space_summary",
    scores="SPACE_SCORES",
    conclusion="space_conclusion",
    space=SettingSpace(
        SPACE_AXES,
        refused,
        on_demand("experiments.evaluation.space_effects", "is_decided"),
        {
            name: Adversary(about, victims, on_demand("experiments.evaluation.space_effects", name))
            for name, about, victims in (
                ("starvation", "the victims' time below a tenth of fair", ("incumbent",)),
                ("stall", "a flow's longest time below a tenth of fair, alone", (ALONE,)),
                ("harm", "the harm to the victims' throughput", ("incumbent", ALONE)),
            )
        },
    ),
)
