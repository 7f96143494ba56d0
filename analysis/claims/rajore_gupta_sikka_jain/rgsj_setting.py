"""Whose congestion control governs a download: the laptop's, as RGSJ assume, or the server's.

A claim of our own beside the paper's, all of which assume that it is the laptop's.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from analysis.claims.engine.answers import Finding, JudgedPart, Part, Row, Verdict, merged
from analysis.claims.engine.contrasts import Outcome, Sample, all_are, contrasts
from analysis.claims.engine.selection import Group, means, samples
from analysis.claims.rajore_gupta_sikka_jain.rgsj_selection import (
    LAPTOP,
    SECONDS,
    SERVER,
    TCP,
    THREE,
    middle,
    ranked,
)
from analysis.metrics.digest import NotMeasured

BESIDE = {  # what else would differ if a setting had any effect
    "goodput_mbps": "goodput",
    "sent_packets": "packets sent",
    "wireshark_retransmissions": "retransmissions as Wireshark has them",
    "duplicate_acks": "duplicate ACKs",
    "stall_s": "time stalled",
}
OPPOSITE = {
    Verdict.SUPPORTED: Verdict.CONTRADICTED,
    Verdict.CONTRADICTED: Verdict.SUPPORTED,
    Verdict.OPEN: Verdict.OPEN,
}
Spreads = (
    pd.DataFrame
)  # by seed, one column per network: the largest minus the smallest of the three


def spreads(group: Group, setting: str, metric: str) -> Spreads:
    """The spreads over the three variants, where all three are known."""
    own = group.where(transport=TCP, setting=setting).asked("variant", THREE)
    table = means(own.rows, metric, ["seed", "axis_network"], "axis_variant")
    return (table.max(axis=1) - table.min(axis=1)).unstack("axis_network")


def governing(group: Group) -> Finding:
    """The spread of load times: set on the laptop, and set on the server."""
    laptop, server = (spreads(group, each, "loaded_s") for each in (LAPTOP, SERVER))
    shared = laptop.dropna(axis=1).columns.intersection(server.dropna(axis=1).columns)
    if shared.empty:
        raise NotMeasured("no network has load times of both settings")
    own, other = (_means(each[shared]) for each in (laptop, server))
    names = "spread of load times, set on the laptop,", "that set on the server"
    beside = contrasts(SECONDS, [(*names[:1], own, names[1], other)], paired=True)
    parts = (
        _differ(group, [str(name) for name in shared]),
        all_are(Outcome.ABOVE, beside, also=(Outcome.EQUAL,)),
    )
    rows = [
        Row(
            f"spread of load times, {network}, set on the {where}",
            middle(SECONDS, _sample(table[network])),
        )
        for network in shared
        for where, table in (("laptop", laptop), ("server", server))
    ]
    return Finding(parts, (*rows, *_beside(group)))


def _differ(group: Group, networks: list[str]) -> Part:
    """Test that the three load times are not all equal."""
    rows = group.where(setting=LAPTOP, variant=THREE, network=networks).rows
    found = samples(rows, "loaded_s", "axis_variant", ["axis_network"])
    pairs = (("veno", "cubic"), ("veno", "vegas"), ("cubic", "vegas"))
    equal = ranked(SECONDS, found, pairs, Outcome.EQUAL, "set on the laptop")
    return merged((equal,), _opposite)


def _opposite(results: tuple[JudgedPart, ...]) -> JudgedPart:
    (found,) = results
    return replace(found, verdict=OPPOSITE[found.verdict])


def _means(table: Spreads) -> Sample:
    return {int(float(str(seed))): float(value) for seed, value in table.mean(axis=1).items()}


def _sample(column: pd.Series[float]) -> Sample:
    return {int(float(str(seed))): float(value) for seed, value in column.items()}


def _beside(group: Group) -> list[Row]:
    """The largest spread of each other measure."""
    rows = []
    for metric, words in BESIDE.items():
        found = [float(spreads(group, each, metric).max().max()) for each in (LAPTOP, SERVER)]
        said = f"{found[0]:.4g} set on the laptop, {found[1]:.4g} on the server"
        rows.append(Row(f"largest spread of {words}, any network and seed", said))
    return rows
