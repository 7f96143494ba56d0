"""A capture's flows as pandas' rows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.captures.flow_tables import read_flows


def capture_flows(path: Path, *, tunnels: bool = False) -> pd.DataFrame:
    """Read a capture's flows; `attrs["warnings"]` says what was wrong with the file."""
    made = read_flows(path, tunnels=tunnels)
    texts = dict.fromkeys(("file", "kind", "src", "dst", "unread"), "str")
    rows: pd.DataFrame = made.table.to_pandas().astype(texts)
    rows.attrs["warnings"] = list(made.warnings)
    return rows
