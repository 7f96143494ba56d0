"""The report of a radio link's medium: its frames, its stations, and the air that they used."""

from __future__ import annotations

from typing import Any

from testbed.store import RADIO, Trial, read_json


def read_medium(trial: Trial) -> dict[str, Any] | None:
    """The medium's counters; None if the trial had no radio, or it left no report."""
    found: dict[str, Any] | None = read_json(trial.path, RADIO)
    return found


def frames_lost(trial: Trial) -> int:
    """Frames that a radio gave up after its last attempt."""
    medium = read_medium(trial)
    return sum(int(radio["lost"]) for radio in medium["radios"]) if medium else 0
