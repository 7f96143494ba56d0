"""The report of a radio link's medium: its frames, its stations, and the air that they used."""

from __future__ import annotations

from typing import Any

from analysis.trials.json_files import read_json
from testbed.store import SAMPLES, Trial

REPORT = "radio.json"


def read_medium(trial: Trial) -> dict[str, Any] | None:
    """What the medium counted; None if the trial had no radio, or it left no report."""
    return read_json(trial.path / SAMPLES / REPORT)


def frames_lost(trial: Trial) -> int:
    """Frames that a radio gave up after its last attempt."""
    medium = read_medium(trial)
    return sum(int(radio["lost"]) for radio in medium["radios"]) if medium else 0
