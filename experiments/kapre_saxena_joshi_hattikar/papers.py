"""The two papers on the dumbbell, with their claims."""

from __future__ import annotations

from analysis.claims.ledger import Paper
from experiments.kapre_saxena_joshi_hattikar import jh_claims, ks_claims


def papers() -> tuple[Paper, ...]:
    """Return both papers with their claims."""
    return ks_claims.PAPER, jh_claims.PAPER
