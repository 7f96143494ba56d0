"""What a trial sampled and counted while it ran: its files under samples/, read."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from testbed.store import SAMPLES, Trial


def read_samples(trial: Trial, name: str) -> pd.DataFrame | None:
    """A table of samples, None if the trial took none."""
    path: Path = trial.path / SAMPLES / name
    if not path.is_file():
        return None
    table = pd.read_csv(path)
    return None if table.empty else table


def read_counters(trial: Trial, node: str) -> dict[str, int]:
    """What a node's kernel counted over the trial; empty if that was not kept."""
    path = trial.path / SAMPLES / "counters.json"
    counters: dict[str, dict[str, int]] = json.loads(path.read_text()) if path.is_file() else {}
    return counters.get(node, {})
