"""A table that a trial keeps once it was computed: a Parquet file in its directory.

It is read again only if it is of the same revision. A file that is damaged, or a folder that cannot
be written, costs time and nothing else. Plain Arrow: pandas' own reader takes longer than all else
in a report of a thousand trials.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from testbed.errors import TestbedError
from testbed.machine.atomic import replace

_REVISION, _WARNINGS = b"revision", b"warnings"


@dataclass(frozen=True)
class Kept:
    """The rows, the revision of what computed them, and what to distrust in them."""

    table: pa.Table
    revision: str
    warnings: list[str]

    def frame(self) -> pd.DataFrame:
        """The rows for pandas; `attrs["warnings"]` says what to distrust."""
        found: pd.DataFrame = self.table.to_pandas()
        found.attrs["warnings"] = self.warnings
        return found


def read_kept(path: Path) -> Kept | None:
    """The table kept there, of any revision; None if there is none, or it is damaged."""
    with contextlib.suppress(OSError, ValueError):
        with pa.memory_map(str(path)) as file:
            table = pq.ParquetFile(file).read(use_threads=False)
        told = table.schema.metadata or {}  # an earlier version's may lack what ours say
        warnings = json.loads(told.get(_WARNINGS, b"[]"))
        return Kept(table, told.get(_REVISION, b"").decode(), warnings)
    return None


def keep(path: Path, frame: pd.DataFrame, revision: str) -> None:
    """Keep the rows, and their `attrs["warnings"]`."""
    warnings = json.dumps(frame.attrs.get("warnings", []))
    bare = frame.copy(deep=False)
    bare.attrs = {}
    table = pa.Table.from_pandas(bare, preserve_index=False)
    table = table.replace_schema_metadata({_REVISION: revision, _WARNINGS: warnings})
    with contextlib.suppress(TestbedError):  # another user's results
        replace(path, lambda aside: pq.write_table(table, aside))


def kept_or_computed(
    path: Path, revision: str, compute: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """The rows that are kept there, if they are of this revision, or new ones."""
    kept = read_kept(path)
    if kept and kept.revision == revision:
        return kept.frame()
    frame = compute()
    keep(path, frame, revision)
    return frame
