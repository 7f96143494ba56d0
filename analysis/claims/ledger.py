"""All claims answered from the metrics of whatever experiments were run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from analysis.claims.engine.answers import Answer, Claim, answer, unanswered
from analysis.claims.engine.reference import Reference
from analysis.claims.engine.selection import Group, groups, usable
from analysis.claims.guo_yuan_sheng import gys
from analysis.claims.joshi_hattikar import jh
from analysis.claims.kapre_saxena import ks
from analysis.claims.parvez_mahanti_williamson import pmw
from analysis.claims.rajore_gupta_sikka_jain import rgsj
from analysis.metrics.per_second import NotMeasured

CLAIMS: tuple[Claim, ...] = (*ks.CLAIMS, *jh.CLAIMS, *gys.CLAIMS, *pmw.CLAIMS, *rgsj.CLAIMS)
SET = {
    "receiver": "The variant was set on the laptop, as in the paper; the server had its own.",
    "sender": "The variant was set on the server.",
}
EXPERIMENTS = tuple(dict.fromkeys(claim.experiment for claim in CLAIMS))


def answers(
    metrics: Mapping[str, pd.DataFrame],
    folders: Mapping[str, Path] | None = None,
    reference: Path | None = None,
) -> tuple[Answer, ...]:
    """Every claim, once for each profile that there is data of, and each setting that it asks for.

    `metrics` are the tables by experiment, `folders` hold the trials that they are of (some claims
    need what happened when), `reference` holds ns-2's numbers as CSV files.
    """
    places, ns2 = folders or {}, Reference(reference)
    rows = {name: usable(metrics[name]) for name in EXPERIMENTS if name in metrics}
    return tuple(
        each
        for claim in CLAIMS
        for each in _answers(claim, rows.get(claim.experiment), places.get(claim.experiment), ns2)
    )


def _answers(
    claim: Claim, rows: pd.DataFrame | None, folder: Path | None, reference: Reference
) -> Iterator[Answer]:
    if rows is None:
        yield unanswered(claim, f"Not run: testbed run {claim.experiment}")
        return
    found = list(groups(claim, rows, folder, reference))
    if not found:
        yield unanswered(claim, f"No usable trials: testbed run {claim.experiment}")
    for group in found:
        yield _answer(claim, group)


def _answer(claim: Claim, group: Group) -> Answer:
    try:
        finding = claim.judge(group)
    except NotMeasured as error:
        why = f"{str(error)[:1].upper()}{str(error)[1:]}."
        return unanswered(claim, why, group.profile, group.setting)
    return answer(claim, group, finding, claim.tested + _note(claim, group))


def _note(claim: Claim, group: Group) -> str:
    """Which window, where there is a choice; and who was set to the variant."""
    if group.setting:
        return f" {SET[group.setting]}"
    if not group.window:
        return ""
    if group.window == claim.window:
        return f" Window: {group.window}, which fits the paper's figures."
    return f" Window: {group.window}; the paper's ({claim.window}) was not run with this profile."
