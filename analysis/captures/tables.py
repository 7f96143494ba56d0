"""What `testbed reduce` makes of captures: tables of flows, bins, packets or lengths, as text.

Text is written block by block: a million rows take seconds, and no more memory than a few.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from analysis.captures.flow_tables import (
    CaptureTable,
    constant,
    endpoints,
    labels,
    read_bins,
    read_flows,
    table_of,
)
from analysis.captures.tcp import CAPTURE_COLUMNS, WIRESHARK_MARKS, read_arrays, read_capture
from testbed.errors import UsageError
from testbed.machine.atomic import replace
from testbed.store.names import CAPTURES_FOLDER
from testbed.store.reading import is_trial, open_trial, trials_in
from testbed.store.writing import spreadsheet_cell

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed: it takes longer than a small capture

AHEAD = 2  # captures that are read while others are written
BLOCK = 1 << 14  # rows
GAP = 2  # blanks between columns


CAPTURE_NAMES = ("*.pcap", "*.pcapng", "*.cap", "*.pcap.*", "*.pcapng.*")


def captures_of(path: Path) -> list[Path]:
    """Return a capture itself; of a trial's or a results folder, all captures that it keeps.

    Of another folder, they are the files in it with the names of captures.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file", "name a pcap or pcapng file")
    if not path.is_dir():
        return [path]
    trials = [open_trial(path)] if is_trial(path) else list(trials_in(path))
    kept = [(t, each.file) for t in trials for each in t.record.captures if each.file]
    captures = [*filter(None, (trial.file(name) for trial, name in kept))]
    if not trials:
        captures = sorted(each for end in CAPTURE_NAMES for each in path.glob(end))
    files = [each for each in captures if each.is_file()]
    if not files:
        why = "its trials kept none" if trials else f"no {', '.join(CAPTURE_NAMES)} in it"
        raise UsageError(f"{path}: no captures: {why}", "name captures, or a folder of captures")
    return files


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return file names for tables, with the trials' names where file names are equal."""
    counts = Counter(path.name for path in paths)
    names = [path.name if counts[path.name] == 1 else _with_its_folder(path) for path in paths]
    return [os.fsencode(name).decode(errors="replace") for name in names]


def _with_its_folder(path: Path) -> str:
    folder = path.absolute().parent
    trial = folder.parent if folder.name == CAPTURES_FOLDER else folder
    return f"{trial.name}/{path.name}"


def flow_tables(paths: Sequence[Path], *, tunnels: bool) -> Iterator[CaptureTable]:
    """Yield each capture's flows; `tunnels`: with those in VXLAN and GENEVE, here and below."""
    return _side_by_side(paths, partial(read_flows, tunnels=tunnels))


def bin_tables(paths: Sequence[Path], width_s: float, *, tunnels: bool) -> Iterator[CaptureTable]:
    """Yield each capture's flows over time."""
    return _side_by_side(paths, partial(read_bins, width_s=width_s, tunnels=tunnels))


def packet_tables(
    paths: Sequence[Path], *, tunnels: bool, for_people: bool
) -> Iterator[CaptureTable]:
    """Yield each capture's packets: every column, or those that fit on a screen."""
    return _side_by_side(paths, partial(_packets, tunnels=tunnels, for_people=for_people))


def length_tables(paths: Sequence[Path], *, tunnels: bool) -> Iterator[CaptureTable]:
    """Yield each capture's packet lengths, as Wireshark's statistics have them for TCP and UDP."""
    return _side_by_side(paths, partial(_lengths, tunnels=tunnels))


def _side_by_side(
    paths: Sequence[Path], read: Callable[[Path], CaptureTable]
) -> Iterator[CaptureTable]:
    """Read captures in threads, few ahead: the core works outside of Python's lock."""
    with ThreadPoolExecutor(AHEAD) as pool:
        for start in range(0, len(paths), AHEAD):
            yield from pool.map(read, paths[start : start + AHEAD])


def _packets(path: Path, tunnels: bool, for_people: bool) -> CaptureTable:
    packets = read_capture(path, tunnels=tunnels)
    rows = (
        _few_columns(packets.rows)
        if for_people
        else _from_pandas(packets.rows[list(CAPTURE_COLUMNS)])
    )
    return CaptureTable(_with_file(rows, path), packets.warnings)


def _lengths(path: Path, tunnels: bool) -> CaptureTable:
    from analysis.captures.lengths import packet_lengths

    arrays = read_arrays(path, ("time_ns", "length"), tunnels=tunnels)
    packets = arrays.columns
    rows = packet_lengths(packets["time_ns"], packets["length"], arrays.start_ns)
    return CaptureTable(_with_file(_from_pandas(rows), path), arrays.warnings)


def _from_pandas(rows: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata()


def _with_file(table: pa.Table, path: Path) -> pa.Table:
    return table.add_column(0, "file", constant(path.name, len(table)))


def _few_columns(rows: pd.DataFrame) -> pa.Table:
    """Return the columns that fit on a screen, with Wireshark's remarks in the last one."""
    start_ns = int(rows["time_ns"].iloc[0]) if len(rows) else 0
    return table_of(
        {
            "frame": rows["frame"].to_numpy(),
            "time_s": (rows["time_ns"].to_numpy() - start_ns) / 1e9,
            "src": _ends(rows, "src"),
            "dst": _ends(rows, "dst"),
            "seq": rows["relative_seq"].to_numpy(),
            "ack": rows["relative_ack"].to_numpy(),
            "payload": rows["payload"].to_numpy(),
            "window": rows["window"].to_numpy(),
            "analysis": _remarks(rows),
        }
    )


def _remarks(rows: pd.DataFrame) -> pa.DictionaryArray:
    bits = sum(rows[mark].to_numpy().astype("int64") << n for n, mark in enumerate(WIRESHARK_MARKS))
    values, codes = np.unique(bits, return_inverse=True)
    marks = [mark.replace("_", " ") for mark in WIRESHARK_MARKS]
    texts = (
        ", ".join(word for n, word in enumerate(marks) if value >> n & 1)
        for value in values.tolist()
    )
    return labels(codes, list(texts))


def _ends(rows: pd.DataFrame, end: str) -> pa.DictionaryArray:
    addresses = rows[end].cat
    ports = rows[f"{end}_port"].to_numpy()
    return endpoints(addresses.codes.to_numpy(), ports, tuple(addresses.categories))


def csv_text(tables: Iterable[pa.Table]) -> Iterator[str]:
    """Yield one CSV of all tables; unknown numbers are empty."""
    for number, table in enumerate(tables):
        if not number:
            yield ",".join(map(_quoted, table.column_names)) + "\n"
        for columns in _blocks(table, "%.9g", _quoted):
            yield "".join(f"{','.join(row)}\n" for row in zip(*columns, strict=True))


def json_text(tables: Iterable[pa.Table]) -> Iterator[str]:
    """Yield one JSON list of records of all tables."""
    before = "[\n"
    for table in tables:
        for start in range(0, len(table), BLOCK):
            block = _without_dictionaries(table.slice(start, BLOCK)).to_pandas()
            yield before + block.to_json(orient="records", indent=1)[1:-1].strip("\n")
            before = ",\n"
    yield "\n]\n" if before == ",\n" else "[]\n"


def aligned(tables: Iterable[pa.Table], headings: Mapping[str, str]) -> Iterator[str]:
    """Yield lines for people; a column is as wide as its widest cell so far."""
    widths: list[int] = []
    left: list[bool] = []
    waiting: list[tuple[str, ...]] = []
    for table in tables:
        if not widths:
            waiting = [tuple(headings.get(name, name) for name in table.column_names)]
            widths = [0] * table.num_columns
            left = [not _is_number(kind) for kind in table.schema.types]
        for columns in _blocks(table, "%.5g", str):
            waiting += zip(*columns, strict=True)
            if len(waiting) >= BLOCK:
                yield _align(waiting, widths, left)
                waiting = []
    yield _align(waiting, widths, left)


def in_parts(
    tables: Iterable[pa.Table], headings: Mapping[str, str], keys: int, width: int
) -> Iterator[str]:
    """Yield a table for people as several, one below the other, none wider than a terminal.

    Each begins with the first columns, the keys.
    """
    rows: list[tuple[str, ...]] = []
    left: list[bool] = []
    for table in tables:
        if not rows:
            rows = [tuple(headings.get(name, name) for name in table.column_names)]
            left = [not _is_number(kind) for kind in table.schema.types]
        for columns in _blocks(table, "%.5g", str):
            rows += zip(*columns, strict=True)
    widths = [GAP + max(map(len, cells)) for cells in zip(*rows, strict=True)]
    parts: list[list[int]] = []
    for place in range(keys, len(widths)):
        wanted = sum(widths[each] for each in (*range(keys), *(parts or [[]])[-1], place)) - GAP
        if not parts or wanted > width:
            parts.append([])
        parts[-1].append(place)
    for number, part in enumerate(parts):
        if number:
            yield "\n"
        shown = [*range(keys), *part]
        cells = [tuple(row[place] for place in shown) for row in rows]
        yield _align(cells, [0] * len(shown), [left[place] for place in shown])


def write_parquet(tables: Iterable[pa.Table], path: Path) -> None:
    """Write tables one after the other as one Parquet file."""
    import pyarrow.parquet as pq

    def write(aside: Path) -> None:
        writer = None
        for each in tables:
            table = _without_dictionaries(each)  # which differ from capture to capture
            writer = writer or pq.ParquetWriter(aside, table.schema, compression="zstd")
            writer.write_table(table.cast(writer.schema))
        if writer:
            writer.close()

    replace(path, write)


def _align(rows: list[tuple[str, ...]], widths: list[int], left: Sequence[bool]) -> str:
    for place, cells in enumerate(zip(*rows, strict=True)):
        widths[place] = max(widths[place], *map(len, cells))
    form = (" " * GAP).join(
        f"%{'-' * side}{width}s" for width, side in zip(widths, left, strict=True)
    )
    return "".join(f"{(form % row).rstrip()}\n" for row in rows)


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _without_dictionaries(table: pa.Table) -> pa.Table:
    fields = [
        field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _blocks(
    table: pa.Table, form: str, form_text: Callable[[str], str]
) -> Iterator[list[list[str]]]:
    """Yield the cells, column by column, of some rows at a time."""
    for start in range(0, len(table), BLOCK):
        block = table.slice(start, BLOCK)
        yield [_cells(column.combine_chunks(), form, form_text) for column in block.columns]


def _cells(column: pa.Array, form: str, form_text: Callable[[str], str]) -> list[str]:
    if pa.types.is_dictionary(column.type):  # each different text is formed once
        names = [form_text(name) for name in column.dictionary.to_pylist()]
        return ["" if code is None else names[code] for code in column.indices.to_pylist()]
    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        return ["" if value is None or math.isnan(value) else form % value for value in values]
    make = str if _is_number(column.type) else form_text
    return ["" if value is None else make(value) for value in values]


def _quoted(text: str) -> str:
    """Quote a cell of a CSV if it needs that; none is a formula."""
    text = spreadsheet_cell(text)
    if not any(sign in text for sign in ',"\r\n'):
        return text
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow([text])
    return file.getvalue()
