"""The ledger as CSV and as JSON; for people it is on the report's page."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable

import pandas as pd

from analysis.claims.engine.answers import Answer

# a row of the CSV is an answer; lists are only in the JSON
FLAT = tuple(
    field.name
    for field in dataclasses.fields(Answer)
    if field.name not in ("authors", "rows", "evidence", "varied")
)

WHICH = ("id", "profile", "setting", "reading")  # what tells an answer from every other


def ledger_frame(found: Iterable[Answer]) -> pd.DataFrame:
    """One row per answer, for CSV; `trials` are those that it names."""
    rows = [
        {name: str(getattr(each, name)) for name in FLAT}
        | {"n": each.n, "survival": each.survival}
        | {"trials": " ".join(trial for e in each.evidence for trial in e.trials)}
        for each in found
    ]
    return pd.DataFrame(rows, columns=[*FLAT, "survival", "trials"])


def numbers_frame(found: Iterable[Answer]) -> pd.DataFrame:
    """One row per number on which an answer is based: ours, the paper's, ns-2's."""
    rows = [
        {name: getattr(each, name) for name in WHICH} | dataclasses.asdict(row)
        for each in found
        for row in each.rows
    ]
    return pd.DataFrame(rows, columns=[*WHICH, "what", "ours", "paper", "ns2"])


def ledger_json(found: Iterable[Answer]) -> str:
    """Everything, as a list of objects."""
    entries = [dataclasses.asdict(each) | {"survival": each.survival} for each in found]
    for entry in entries:
        del entry["authors"]
    return json.dumps(entries, indent=1, ensure_ascii=False)
