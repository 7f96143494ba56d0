"""Stored reductions in the format before this one: a Parquet file of one row."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.results import stored_tables
from testbed.store import FORMER_REDUCED, REDUCED


def make_former(trial: Path, **tables: pa.Table) -> None:
    """Replace what is stored of a trial by the same, or other tables, in the format before."""
    stored = stored_tables.read(trial)
    assert stored is not None
    columns = {name: _as_list(each) for name, each in {**stored.tables, **tables}.items()}
    about = {"revision": stored.revision, "warnings": json.dumps(stored.warnings)}
    whole = pa.table(columns).replace_schema_metadata(about)
    pq.write_table(whole, trial / FORMER_REDUCED, write_page_checksum=True)
    (trial / REDUCED).unlink()


def _as_list(table: pa.Table) -> pa.ListArray:
    plain = [
        column.cast(pa.large_string()) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    table = pa.table(plain, table.column_names)
    rows = table.to_struct_array().combine_chunks() if len(table) else _none(table)
    return pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)


def _none(table: pa.Table) -> pa.StructArray:
    return pa.array([], pa.struct(table.schema))
