"""The papers of all experiments, and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from analysis.claims import ledger
from analysis.claims.ledger import Answer, Paper
from experiments.catalogue import EXPERIMENTS

PAPERS: tuple[Paper, ...] = tuple(
    {
        paper.id: paper
        for experiment in EXPERIMENTS.values()
        if experiment.claims
        for paper in experiment.claims()
    }.values()
)


def answers(
    metrics: Mapping[str, pd.DataFrame],
    folders: Mapping[str, Path] | None = None,
    reference: Path | None = None,
    papers: Sequence[Paper] = PAPERS,
) -> tuple[Answer, ...]:
    """Answer the claims of all papers, or of these."""
    return ledger.answers(papers, metrics, folders, reference)
