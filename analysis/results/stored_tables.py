"""A trial's tables as they are stored: a document in JSON, compressed.

A table has its columns' names. The numbers of all columns of a type are together: their bytes, in
base64, under numpy's name of the type. So are its texts, as places in the list of those that occur,
or -1 where none is known. Most tables are a hundred columns of one row: Parquet needs longer to say
what is in it than to read it.

Whoever sends results may have written what is here: it holds numbers, and texts that figures can
show, or it is not read.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from analysis.metrics.columns import TEXT_COLUMNS
from testbed.machine import json_files
from testbed.machine.safe_files import read_bytes
from testbed.store.names import REDUCED
from testbed.store.records import DAMAGED

TABLES = ("flows", "links", "transfers", "series")
ENCODED = "series"  # its texts stay places in memory: thousands of trials have a million rows
TEXTS = {*TEXT_COLUMNS, "link", "size_class", "state", "what"}  # the others are numbers
NUMBERS = ("<f8", "<i8", "|b1")
TEXT_PLACES = "<i4"
NO_TEXT = -1
MAX_TEXT = 200  # characters, of the parts of one
MAX_STORED_BYTES = 1 << 27  # of a document
MAX_STORED_VALUES = 1 << 20  # of it: its numbers are one text for each type
Json = dict[str, Any]


@dataclass(frozen=True)
class StoredReduction:
    """What is stored of a trial beside its verdict, and the revision of what computed it.

    `plotted` are the trial's series as `analysis.results.page_series` of version `plotted_by` packs
    them; empty in documents of others.
    """

    revision: str
    warnings: tuple[str, ...]
    tables: Mapping[str, pa.Table]
    plotted: str = ""
    plotted_by: str = ""


def write(path: Path, stored: StoredReduction) -> None:
    """Write what is stored of a trial."""
    text = json.dumps(_document(stored), separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read(trial: Path) -> StoredReduction | None:
    """Read what is stored of a trial; None if it is damaged."""
    with contextlib.suppress(OSError, NotImplementedError, zlib.error, *DAMAGED):
        return _checked(_read_document(trial))
    return None


def as_arrow(frame: pd.DataFrame) -> pa.Table:
    """Return pandas' frame as Arrow's table, with the types of one that was stored."""
    arrays = [
        pa.array(frame[name], pa.large_string(), from_pandas=True)
        if name in TEXTS
        else _numbers(frame[name].to_numpy())
        for name in frame.columns
    ]
    return pa.Table.from_arrays(arrays, list(frame.columns))


def encoded(table: pa.Table) -> pa.Table:
    """Return the table with each text as its place among those that occur."""
    arrays = [column.combine_chunks() for column in table.columns]
    names = table.column_names
    return pa.table(
        [a.dictionary_encode() if n in TEXTS else a for n, a in zip(names, arrays, strict=True)],
        names,
    )


def decoded(table: pa.Table) -> pd.DataFrame:
    """Return pandas' frame with the texts themselves."""
    columns = [
        column.cast(pa.large_string()) if name in TEXTS else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    frame: pd.DataFrame = pa.table(columns, table.column_names).to_pandas()
    return frame


def _document(stored: StoredReduction) -> Json:
    return {**vars(stored), "tables": {n: _written(each) for n, each in stored.tables.items()}}


def _written(table: pa.Table) -> Json:
    known: dict[str | None, int] = {None: NO_TEXT}
    blocks = dict[str, tuple[list[str], list[npt.NDArray[Any]]]]()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in TEXTS:
            texts = column.cast(pa.large_string()).to_pylist()
            values = np.array(
                [known.setdefault(text, len(known) - 1) for text in texts], TEXT_PLACES
            )
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            raise TypeError(f"{name}: texts for numbers")
        else:
            values = _numbers(column.to_numpy()).to_numpy(zero_copy_only=False)
        names, rows = blocks.setdefault(values.dtype.str, ([], []))
        names.append(name)
        rows.append(values)
    return {
        "columns": table.column_names,
        "texts": [text for text in known if text is not None],
        "blocks": {kind: [names, _base64(rows)] for kind, (names, rows) in blocks.items()},
    }


def _base64(rows: Sequence[npt.NDArray[Any]]) -> str:
    return base64.b64encode(np.concatenate(rows).tobytes()).decode()


def _numbers(values: npt.NDArray[Any]) -> pa.Array:
    """Return numbers as Arrow's, unknown ones as null."""
    if values.dtype.str not in NUMBERS:
        values = values.astype(np.float64)
    return pa.array(values, from_pandas=True)


def _read_document(trial: Path) -> Json:
    packed = read_bytes(trial / REDUCED, MAX_STORED_BYTES)
    document: Json = json.loads(json_files.unpacked(packed, MAX_STORED_VALUES))
    return document


def _checked(document: Json) -> StoredReduction:
    tables = {name: _read_table(name, document["tables"][name]) for name in TABLES}
    texts = [document[name] for name in ("revision", "plotted", "plotted_by")]
    warnings = tuple(document["warnings"])
    if not all(isinstance(each, str) for each in (*texts, *warnings)):
        raise TypeError("texts are something else")
    return StoredReduction(texts[0], warnings, tables, *texts[1:])


def _read_table(name: str, table: Json) -> pa.Table:
    columns: list[str] = table["columns"]
    arrays = dict[str, pa.Array]()
    for kind, (names, content) in table["blocks"].items():
        if kind not in (TEXT_PLACES, *NUMBERS) or (kind == TEXT_PLACES) != TEXTS.issuperset(names):
            raise TypeError(f"{names} are no {kind}")
        values = np.frombuffer(base64.b64decode(content, validate=True), kind)
        block = _texts(values, names, table["texts"]) if kind == TEXT_PLACES else _numbers(values)
        if kind == TEXT_PLACES and name != ENCODED:
            block = block.dictionary_decode()
        rows = len(values) // max(1, len(names))
        arrays |= {each: block.slice(n * rows, rows) for n, each in enumerate(names)}
    return pa.Table.from_arrays([arrays[each] for each in columns], columns)


def _texts(places: npt.NDArray[Any], names: Sequence[str], texts: Sequence[str]) -> pa.Array:
    hidden = [place for place, text in enumerate(texts) if not _can_be_shown(text)]
    if hidden:  # only reasons may be anything
        of_others = places.reshape(len(names), -1)[[name != "why" for name in names]]
        if np.isin(of_others, hidden).any():
            raise ValueError("a text that no figure can show")
    known = pa.array(places, mask=places == NO_TEXT)
    return pa.DictionaryArray.from_arrays(known, pa.array(texts, pa.large_string()))


def _can_be_shown(text: str) -> bool:
    shortened = max(map(len, text.split(";"))) <= MAX_TEXT
    return text.isprintable() and "$" not in text and shortened
