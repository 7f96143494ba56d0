"""An evaluation as data: its conclusions and its table, and what they were made with."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Sequence
from typing import Any

from analysis.results import reduction
from analysis.results.experiment_results import ResultSet
from analysis.statistics.text_tables import TextTable


def evaluation_document(
    found: ResultSet, subject: str, others: Sequence[str], said: Sequence[str], table: TextTable
) -> dict[str, Any]:
    """Return what an evaluation found, with the revision, kernels, seeds and trials behind it.

    A trial's identity is a hash of its scenario, its commands, the programs and the kernel;
    `trials` is a hash of all of them, the same wherever the same trials ran.
    """
    trials = list(found.trials)
    identities = sorted(trial.record.identity for trial in trials)
    return {
        "subject": subject,
        "others": list(others),
        "conclusions": list(said),
        "made_with": {
            "testbed": importlib.metadata.version("tcp-testbed"),
            "reduction": reduction.revision(),
            "trials": hashlib.sha256("\n".join(identities).encode()).hexdigest(),
            "engines": sorted({trial.record.engine for trial in trials}),
            "kernels": sorted({trial.record.kernel for trial in trials}),
        },
        "seeds": sorted({trial.scenario.seed for trial in trials}),
        "experiments": {each.experiment: len(each.trials) for each in found.experiments},
        "table": [dict(zip(table.header, row, strict=True)) for row in table.rows],
        "note": table.note,
    }
