"""Captures as tables: one row per flow, per packet, or per flow and time bin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from analysis.captures.atomic_write import replace
from analysis.captures.tcp import MARKS, read_capture
from testbed.store import CAPTURES, is_trial, open_trial, trials_in

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed: it takes longer than a small capture

_T = TypeVar("_T")
AHEAD = 2  # captures that are read while others are written
# `--packets` as a table for people; other formats have every column
SHOWN = ("file", "frame", "time_s", "src", "dst", "seq", "ack", "payload", "window", "analysis")


def captures_of(path: Path) -> list[Path]:
    """A capture itself; of a trial's folder, or one of results, all captures that it keeps."""
    if not path.is_dir():
        return [path]
    trials = [open_trial(path)] if is_trial(path) else list(trials_in(path))
    found = [trial.path / each.file for trial in trials for each in trial.record.captures]
    return [each for each in found if each.is_file()]


def names_of(paths: Sequence[Path]) -> list[str]:
    """Names of captures in tables: file names, with the trials' names where these are equal."""
    counts = Counter(path.name for path in paths)
    return [path.name if counts[path.name] == 1 else _with_its_folder(path) for path in paths]


def _with_its_folder(path: Path) -> str:
    folder = path.absolute().parent
    trial = folder.parent if folder.name == CAPTURES else folder
    return f"{trial.name}/{path.name}"


def each_of(paths: Sequence[Path], read: Callable[[Path], _T]) -> Iterator[_T]:
    """Read captures side by side, in their order; few are held at a time.

    Threads do: the core works outside of Python's lock.
    """
    with ThreadPoolExecutor(AHEAD) as pool:
        for start in range(0, len(paths), AHEAD):
            yield from pool.map(read, paths[start : start + AHEAD])


def packet_tables(paths: Sequence[Path]) -> Iterator[tuple[pd.DataFrame, tuple[str, ...]]]:
    """Each capture's packets with every column, and what was wrong with the file."""
    return each_of(paths, _packets)


def _packets(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    packets = read_capture(path)
    packets.rows.insert(0, "file", path.name)
    return packets.rows, packets.warnings


def bin_tables(
    paths: Sequence[Path], width_s: float
) -> Iterator[tuple[pd.DataFrame, tuple[str, ...]]]:
    """Each capture's flows over time, and what was wrong with the file."""
    return each_of(paths, partial(_bins, width_s=width_s))


def _bins(path: Path, width_s: float) -> tuple[pd.DataFrame, tuple[str, ...]]:
    from analysis.captures.bins import flow_bins

    packets = read_capture(path)
    return flow_bins(packets, path.name, width_s), packets.warnings


def length_tables(paths: Sequence[Path]) -> Iterator[tuple[pd.DataFrame, tuple[str, ...]]]:
    """Each capture's packet lengths, as Wireshark's statistics have them for TCP and UDP."""
    return each_of(paths, _lengths)


def _lengths(path: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    from analysis.captures.lengths import packet_lengths

    packets = read_capture(path)
    rows = packets.rows
    table = packet_lengths(
        rows["time_ns"].to_numpy(dtype="int64"), rows["length"].to_numpy(dtype="int64")
    )
    table.insert(0, "file", path.name)
    return table, packets.warnings


def write_text(tables: Iterator[pd.DataFrame], form: str, file: IO[str]) -> None:
    """Tables one after the other as one CSV, or as one JSON list of records."""
    for number, rows in enumerate(tables):
        if form == "csv":
            text = rows.to_csv(index=False, float_format="%.9g", header=not number)
        else:
            body = rows.to_json(orient="records", indent=1)[1:-1].strip("\n")
            text = ("[\n" if not number else ",\n") + body
        file.write(text)
    if form == "json":
        file.write("\n]\n")


def write_parquet(tables: Iterator[pd.DataFrame], path: Path) -> None:
    """Tables one after the other as one Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(aside: Path) -> None:
        writer = None
        for rows in tables:
            table = pa.Table.from_pandas(_plain(rows), preserve_index=False)
            writer = writer or pq.ParquetWriter(aside, table.schema, compression="zstd")
            writer.write_table(table.cast(writer.schema))
        if writer:
            writer.close()

    replace(path, write)


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Texts instead of categories, which differ from capture to capture."""
    texts = rows.select_dtypes("category").columns
    return rows.astype(dict.fromkeys(texts, "str"))


def for_people(rows: pd.DataFrame) -> pd.DataFrame:
    """A packet table with few columns, Wireshark's numbers, and its remarks in the last column."""
    import pandas as pd

    start_ns = int(rows["time_ns"].iloc[0]) if len(rows) else 0
    words = [""] * len(rows)
    for mark in MARKS:
        for place in rows[mark].to_numpy().nonzero()[0]:
            words[place] += (", " if words[place] else "") + mark.replace("_", " ")
    columns = {
        "file": rows["file"],
        "frame": rows["frame"],
        "time_s": (rows["time_ns"] - start_ns) / 1e9,
        "src": _ends(rows, "src"),
        "dst": _ends(rows, "dst"),
        "seq": rows["relative_seq"],
        "ack": rows["relative_ack"],
        "payload": rows["payload"],
        "window": rows["window"],
        "analysis": words,
    }
    return pd.DataFrame(columns, columns=list(SHOWN))


def _ends(rows: pd.DataFrame, end: str) -> pd.Series[str]:
    return rows[end].astype("str") + ":" + rows[f"{end}_port"].astype("str")
