"""Four senders at once through a router of 1 Mbit/s: the tests of GYS's fairness.

The bounds, chosen beforehand. The paper's iperf reports every 10 s: *at the beginning* is the first
report. *Stable* is a coefficient of variation of at most 20 % of the later ones.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.claims.engine import moments
from analysis.claims.engine.answers import Finding, Row
from analysis.claims.engine.contrasts import (
    Contrast,
    Outcome,
    Sample,
    all_are,
    contrasts,
    spread,
    within,
)
from analysis.claims.engine.quantities import RATE, RATIO, SHARE
from analysis.claims.engine.selection import Group, samples
from analysis.claims.guo_yuan_sheng.gys_numbers import GYS_BBR_SHARE, GYS_CUBIC_SHARE
from analysis.claims.guo_yuan_sheng.gys_one_flow import FOUR, against, network, others
from analysis.metrics.digest import NotMeasured

STABLE = 0.2
REPORT_S = 10


def four_senders(group: Group) -> Group:
    """Four flows at once, named by their variants."""
    own = network(group).where(flow=FOUR)
    missing = set(FOUR) - set(own.rows["flow"])
    if missing:
        raise NotMeasured(f"no flows of {', '.join(sorted(missing))}")
    return own


def shares(group: Group) -> Finding:
    """BBR is above 60 %; Cubic is below each other variant, and below 10 %."""
    found = samples(four_senders(group).rows, "share", "flow")
    parts = (
        within("share of bbr", SHARE, found.get("bbr", {}), low=GYS_BBR_SHARE),
        within("share of cubic", SHARE, found.get("cubic", {}), high=GYS_CUBIC_SHARE),
        all_are(Outcome.BELOW, _within_trial(found, "cubic")),
    )
    printed = {"bbr": "more than 60 %", "cubic": "less than 10 %"}
    rows = tuple(
        Row(f"share of {each}", spread(SHARE, found.get(each, {})), printed.get(each, ""))
        for each in FOUR
    )
    return Finding(parts, (*rows, *_by_seed(found, printed)))


def _by_seed(found: dict[str, Sample], printed: dict[str, str]) -> tuple[Row, ...]:
    """Each seed's share, for a mean may be of two kinds of outcome."""
    bbr, cubic = found.get("bbr", {}), found.get("cubic", {})
    met = [s for s in bbr if bbr[s] >= GYS_BBR_SHARE and cubic.get(s, 1.0) <= GYS_CUBIC_SHARE]
    rows = tuple(
        Row(
            f"share of {each}, by seed",
            ", ".join(SHARE.write(value) for _, value in sorted(found.get(each, {}).items())),
            printed.get(each, ""),
        )
        for each in FOUR
    )
    both = Row("seeds in which both are as in the paper", f"{len(met)} of {len(bbr)}")
    return (*rows, both)


def _within_trial(found: dict[str, Sample], hero: str) -> tuple[Contrast, ...]:
    return contrasts(SHARE, against(found, hero, others(hero)), paired=True)


def shares_over_time(group: Group) -> Finding:
    """In intervals of 10 s, as iperf reports: each flow's first is above the mean of the rest; the
    rest is stable except for BBR, whose level and variation are above every other's."""
    found = moments.seconds(four_senders(group))
    firsts, levels, variations = {}, {}, {}
    for each in FOUR:
        firsts[each] = moments.each_seed(found, partial(_first, flow=each))
        levels[each] = moments.each_seed(found, partial(_level, flow=each))
        variations[each] = moments.each_seed(found, partial(_variation, flow=each))
    falls = [(f"{each}'s first 10 s", firsts[each], "the rest", levels[each]) for each in FOUR]
    parts = [all_are(Outcome.ABOVE, contrasts(RATE, falls, paired=True))]
    for each in others("bbr"):
        parts.append(within(f"variation of {each}", RATIO, variations[each], high=STABLE))
    level, variation = (against(each, "bbr", others("bbr")) for each in (levels, variations))
    parts.append(all_are(Outcome.ABOVE, contrasts(RATE, level, paired=True), "level after 10 s"))
    parts.append(all_are(Outcome.ABOVE, contrasts(RATIO, variation, paired=True), "variation"))
    rows = [
        row
        for each in FOUR
        for row in (
            Row(f"first 10 s, {each}", spread(RATE, firsts[each])),
            Row(f"mean of the later reports, {each}", spread(RATE, levels[each])),
            Row(f"their coefficient of variation, {each}", spread(RATIO, variations[each])),
        )
    ]
    return Finding(tuple(parts), tuple(rows))


def _reports(table: pd.DataFrame, flow: str) -> npt.NDArray[np.float64]:
    """The throughputs that iperf would report every 10 s."""
    rates = moments.phase(table, flow, 0, math.inf).to_numpy()
    whole = len(rates) // REPORT_S
    if whole < 3:
        raise NotMeasured("the trials are too short for three reports of 10 s")
    reports = rates[: whole * REPORT_S].reshape(whole, REPORT_S).mean(axis=1)
    return np.asarray(reports, dtype=np.float64)


def _first(table: pd.DataFrame, flow: str) -> float:
    return float(_reports(table, flow)[0])


def _level(table: pd.DataFrame, flow: str) -> float:
    return float(_reports(table, flow)[1:].mean())


def _variation(table: pd.DataFrame, flow: str) -> float:
    later = _reports(table, flow)[1:]
    return float(later.std(ddof=1) / later.mean()) if later.mean() else math.nan
