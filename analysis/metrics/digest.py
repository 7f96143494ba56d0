"""The digest of a trial: what figures and claims need beside the metrics, small and cached.

A trial's captures are read once, when it is reduced, and never again for a report of a thousand
trials. A digest is one table: a row says what it holds of which flow, and has an x and a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd

from analysis.metrics import flow_digest, per_second, video_digest
from analysis.metrics.flow_digest import Part
from analysis.metrics.measured_flow import MeasuredFlow
from analysis.metrics.per_second import SECOND, seconds_table
from analysis.trials.kept_table import kept_or_computed, read_kept
from analysis.trials.packets import TrialPackets
from analysis.trials.samples import Samples
from testbed.store import DIGEST_FILE, Status, Trial

REVISION = "2"  # raise it when a change here gives other numbers
COLUMNS = ("flow", "what", "x", "value")

# The parts of a flow's digest; a part of a kind of flow yields nothing for the others.
PARTS: tuple[Callable[[MeasuredFlow], Iterator[Part]], ...] = (
    flow_digest.parts,
    video_digest.parts,
    per_second.parts,
)


def cached_digest(trial: Trial, packets: TrialPackets | None = None) -> pd.DataFrame:
    """The rows for figures: all except those of single seconds, which claims read."""
    table = _whole_digest(trial, packets)
    return table[~table["what"].str.startswith(SECOND)].reset_index(drop=True)


def trial_seconds(trial: Trial, packets: TrialPackets | None = None) -> pd.DataFrame:
    """One row per flow and second of the trial: rate at the receiver, mean delays, their number."""
    return seconds_table(trial, _whole_digest(trial, packets))


def _whole_digest(trial: Trial, packets: TrialPackets | None) -> pd.DataFrame:
    """The digest kept with the trial if it is of this revision, or a new one."""
    path = trial.path / DIGEST_FILE
    dropped = any(not capture.file for capture in trial.record.captures)
    if trial.record.status is Status.OK and not dropped:
        return kept_or_computed(path, REVISION, lambda: _compute(trial, packets))
    kept = read_kept(path)
    return kept.frame() if kept and kept.revision == REVISION else _table([])


def _compute(trial: Trial, packets: TrialPackets | None) -> pd.DataFrame:
    packets, samples = packets or TrialPackets(trial), Samples(trial)
    flows = (MeasuredFlow(trial, record, packets, samples) for record in trial.record.flows)
    return _table([_rows(flow, part) for flow in flows for find in PARTS for part in find(flow)])


def _rows(flow: MeasuredFlow, part: Part) -> pd.DataFrame:
    what, x, value = part
    return pd.DataFrame({"flow": flow.record.name, "what": what, "x": x, "value": value})


def _table(parts: list[pd.DataFrame]) -> pd.DataFrame:
    empty = pd.DataFrame({name: pd.Series(dtype="str") for name in COLUMNS})
    found = pd.concat(parts, ignore_index=True) if parts else empty
    return found.astype({"x": float, "value": float})
