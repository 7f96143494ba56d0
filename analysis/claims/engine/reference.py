"""ns-2's results in the same experiments: CSV files in a folder, if there is one.

Nothing is tested against these numbers; they are shown beside ours.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class Reference:
    """A folder of CSV files, or none."""

    folder: Path | None = None

    def table(self, name: str) -> pd.DataFrame:
        """A file of the folder; empty if it is not there."""
        if self.folder is None or not (self.folder / name).is_file():
            return pd.DataFrame()
        return _read(self.folder / name)


@functools.lru_cache(8)
def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)
