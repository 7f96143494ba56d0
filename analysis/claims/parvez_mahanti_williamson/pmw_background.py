"""NewReno's two forms among web sessions and long transfers: the tests of PMW's table II.

The bounds, chosen beforehand: a mean error agrees with the paper's within 5 percentage
points, a lead within 5.5; the losses per event are compared with the ranges that the paper prints.
"""

from __future__ import annotations

import pandas as pd

from analysis.claims.engine.answers import Finding, Part, Row
from analysis.claims.engine.contrasts import (
    Outcome,
    Sample,
    all_are,
    contrasts,
    left_open,
    spread,
    within,
)
from analysis.claims.engine.quantities import RATE, Measure
from analysis.claims.engine.selection import Group, means, sample, samples
from analysis.claims.parvez_mahanti_williamson.pmw_events import IMP, NAMES, PERCENT, SBS
from analysis.claims.parvez_mahanti_williamson.pmw_numbers import (
    PMW_LOSSES_PER_EVENT,
    PMW_MEAN_ERROR,
    PMW_STEADY_AHEAD,
    PMW_TABLE_2,
    PMW_WORST_ERROR,
)
from analysis.metrics.digest import NotMeasured
from analysis.models.flow_against_model import with_model

LOSSES = Measure("losses", 2, absolute=0.05)
MODERATE = (4, 199)  # sessions: the paper's "4 to 200"; its table ends at 192
MOST = 256
ERROR_NEAR = 0.05
OVER_AT_MOST = 0.10
LEAD_NEAR = 0.055
QUEUES = ("droptail", "red")
# ns-2's drops between the upper threshold and its double with a probability that rises to 1;
# Linux's drops all, so that more of a burst is lost at once.
NOT_GENTLE = "Linux's RED is not gentle, as ns-2's is by default"


def between(rows: pd.DataFrame, low: float, high: float) -> pd.DataFrame:
    """The foreground flows among this many sessions."""
    return rows[rows["axis_sessions"].between(low, high)]


def of_queue(group: Group, queue: str) -> pd.DataFrame:
    """The flows through this queue, compared with their models."""
    if queue not in group.values("queue"):
        raise NotMeasured(f"no usable trials with {queue}", f"testbed run {group.experiment}")
    return with_model(group.where(queue=queue).rows)


def over_sessions(rows: pd.DataFrame, variant: str, metric: str) -> Sample:
    """By seed, the mean over the numbers of sessions."""
    return sample(rows[rows["variant"] == variant], metric, ["axis_sessions"])


def accuracy(group: Group) -> Finding:
    """The model's mean error, and the losses per event."""
    parts: list[Part] = []
    for queue in QUEUES:
        moderate = between(of_queue(group, queue), *MODERATE)
        moderate = moderate.assign(magnitude=moderate["model_error"].abs())
        printed = PMW_MEAN_ERROR[queue]  # of magnitudes: docs/papers explains why
        parts.append(
            within(
                f"mean error of the model, {queue}",
                PERCENT,
                over_sessions(moderate, SBS, "magnitude"),
                printed - ERROR_NEAR,
                printed + ERROR_NEAR,
            )
        )
    plain = of_queue(group, "droptail")
    at_most = over_sessions(between(plain, MOST, MOST), SBS, "model_error")
    parts.append(within(f"error at {MOST} sessions", PERCENT, at_most, low=OVER_AT_MOST))
    for (variant, queue), (low, high) in PMW_LOSSES_PER_EVENT.items():
        rows = of_queue(group, queue)
        rows = between(rows, *MODERATE) if queue == "droptail" else rows
        name = f"losses per event, {NAMES[variant]}, {queue}"
        found = within(name, LOSSES, over_sessions(rows, variant, "losses_per_event"), low, high)
        parts.append(left_open(found, NOT_GENTLE) if queue == "red" else found)
    return Finding(tuple(parts), (*table_rows(plain), _worst_row(at_most)))


def table_rows(rows: pd.DataFrame) -> list[Row]:
    """Table II: ours beside the paper's."""
    found = []
    steady = rows[rows["variant"] == SBS]
    for line in PMW_TABLE_2:
        own = steady[steady["axis_sessions"] == line.flows]
        if own.empty:
            continue
        rtt_s = own["srtt_mean_ms"] / 1e3
        means = (
            f"p {own['loss_event_rate'].mean():.2%}, losses {own['loss_rate'].mean():.2%}, "
            f"{(own['goodput_pps'] * rtt_s).mean():.2f}, "
            f"model {(own['expected_pps'] * rtt_s).mean():.2f}"
        )
        paper = (
            f"p {line.loss_event_rate:.2%}, losses {line.loss_rate:.2%}, {line.simulated:.2f}, "
            f"model {line.predicted:.2f}"
        )
        found.append(Row(f"{line.flows} sessions, segments per round trip", means, paper))
    return found


def _worst_row(at_most: Sample) -> Row:
    return Row(
        f"error of the model at {MOST} sessions",
        spread(PERCENT, at_most),
        PERCENT.write(PMW_WORST_ERROR, "+"),
    )


def lead(rows: pd.DataFrame, low: float, high: float) -> Sample:
    """By seed: the ratio of Slow-but-Steady's goodput to Impatient's, minus one, averaged over the
    numbers of sessions; empty where one of the two was not run."""
    own = between(rows, low, high)
    table = means(own, "goodput_mbps", ["seed", "axis_sessions"], "variant")
    table = table.reindex(columns=[SBS, IMP]).dropna()
    ratio = table[SBS] / table[IMP] - 1
    by_seed = ratio.groupby("seed").mean()
    return {int(float(str(seed))): float(value) for seed, value in by_seed.items()}


def ahead(group: Group) -> Finding:
    """By how much Slow-but-Steady is ahead, where, and with which queue."""
    plain, red = (of_queue(group, queue) for queue in QUEUES)
    leads = {bounds: lead(plain, *bounds) for bounds in PMW_STEADY_AHEAD}
    (few, few_printed), (many, _) = PMW_STEADY_AHEAD.items()
    parts = []
    for low, high in PMW_STEADY_AHEAD:
        found = samples(between(plain, low, high), "goodput_mbps", "variant", ["axis_sessions"])
        pair = (NAMES[SBS], found.get(SBS, {}), NAMES[IMP], found.get(IMP, {}))
        parts.append(
            all_are(
                Outcome.ABOVE, contrasts(RATE, [pair], paired=True), f"{low} to {high} sessions"
            )
        )
    low, high = few
    parts.append(
        within(
            f"lead with {low} to {high} sessions",
            PERCENT,
            leads[few],
            few_printed - LEAD_NEAR,
            few_printed + LEAD_NEAR,
        )
    )
    narrow = lead(red, *few)
    pairs = [
        ("lead with many sessions", leads[many], "with few", leads[few]),
        ("lead with RED", narrow, "with DropTail", leads[few]),
    ]
    parts += [all_are(Outcome.BELOW, contrasts(PERCENT, [pair], paired=True)) for pair in pairs]
    rows = [
        Row(
            f"Slow-but-Steady over Impatient, {low} to {high} sessions, DropTail",
            spread(PERCENT, leads[(low, high)]),
            PERCENT.write(printed),
        )
        for (low, high), printed in PMW_STEADY_AHEAD.items()
    ]
    rows += [
        Row(
            f"Slow-but-Steady over Impatient, {low} to {high} sessions, RED",
            spread(PERCENT, lead(red, low, high)),
        )
        for low, high in PMW_STEADY_AHEAD
    ]
    return Finding(tuple(parts), tuple(rows))
