"""One sender through a router of 1 Mbit/s, CoDel in place of a plain buffer: the tests of what that
changes in GYS's throughput and delay.

The bound, chosen beforehand: *clearly* lower is by 20 % or more.
"""

from __future__ import annotations

from analysis.claims.engine.answers import Finding, Part, Row
from analysis.claims.engine.contrasts import Outcome, all_are, contrasts, relative, spread, within
from analysis.claims.engine.quantities import DELAY, RATE, RATIO
from analysis.claims.engine.selection import Group
from analysis.claims.guo_yuan_sheng.gys_one_flow import FOUR, by_variant, others, single

CLEARLY = 0.2


def ecn_throughput(group: Group) -> Finding:
    """CoDel beside bfifo: less goodput for Reno, Cubic, Vegas; more for BBR."""
    return Finding(
        (
            _changed(group, "goodput_mbps", others("bbr"), Outcome.BELOW),
            _changed(group, "goodput_mbps", ("bbr",), Outcome.ABOVE),
        ),
        _before_and_after(group, "goodput_mbps"),
    )


def ecn_delay(group: Group) -> Finding:
    """Under load: at least 20 % less one-way delay for Cubic, and less than that for the rest."""
    plain, marked = (
        by_variant(single(group, queue=each), "owd_mean_ms") for each in ("bfifo", _codel(group))
    )
    parts = []
    for each in ("cubic", *others("cubic")):
        left = relative(marked.get(each, {}), plain.get(each, {}))
        bounds = (
            {"high": 1 - CLEARLY} if each == "cubic" else {"low": 1 - CLEARLY, "high": 1 + CLEARLY}
        )
        parts.append(within(f"delay with CoDel over delay without, {each}", RATIO, left, **bounds))
    return Finding(tuple(parts), _before_and_after(group, "owd_mean_ms"))


def _codel(group: Group) -> str:
    """The reading's CoDel: the one whose marks are asked for, or the other."""
    return next((str(each) for each in group.values("queue") if each != "bfifo"), "codel")


def _changed(group: Group, metric: str, variants: tuple[str, ...], wanted: Outcome) -> Part:
    queues = ("bfifo", _codel(group))
    plain, marked = (by_variant(single(group, queue=each), metric) for each in queues)
    triples = [
        (f"{each} with CoDel", marked.get(each, {}), "without", plain.get(each, {}))
        for each in variants
    ]
    return all_are(wanted, contrasts(RATE, triples))


def _before_and_after(group: Group, metric: str) -> tuple[Row, ...]:
    measure = DELAY if metric.endswith("_ms") else RATE
    name = "one-way delay" if metric.endswith("_ms") else "goodput"
    rows = []
    for queue, words in (("bfifo", "bfifo"), (_codel(group), "CoDel")):
        found = by_variant(single(group, queue=queue), metric)
        rows += [
            Row(f"{name}, {each}, {words}", spread(measure, found.get(each, {}))) for each in FOUR
        ]
    return tuple(rows)
