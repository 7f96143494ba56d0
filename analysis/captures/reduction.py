"""Captures as tables: one row per flow, per packet, or per flow and time bin."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from analysis.captures.bins import read_bins
from analysis.captures.flow_table import endpoints, read_flows
from analysis.captures.plain_table import Labels, Table, constant, frame_of, table_of
from analysis.captures.tcp import COLUMNS, MARKS, read_arrays, read_capture
from testbed.machine.atomic import replace
from testbed.store import CAPTURES, is_trial, open_trial, trials_in

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed: it takes longer than a small capture

_T = TypeVar("_T")
AHEAD = 2  # captures that are read while others are written


@dataclass(frozen=True)
class Reduced:
    """A capture's table, and what was wrong with the file."""

    table: Table
    warnings: tuple[str, ...]


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
    names = [path.name if counts[path.name] == 1 else _with_its_folder(path) for path in paths]
    return [os.fsencode(name).decode(errors="replace") for name in names]


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


def flow_tables(paths: Sequence[Path], *, tunnels: bool) -> Iterator[Reduced]:
    """Each capture's flows; `tunnels`: with those in VXLAN and GENEVE, here and below."""
    return each_of(paths, partial(_flows, tunnels=tunnels))


def _flows(path: Path, tunnels: bool) -> Reduced:
    flows = read_flows(path, tunnels=tunnels)
    return Reduced(flows.table, flows.warnings)


def packet_tables(paths: Sequence[Path], *, tunnels: bool, for_people: bool) -> Iterator[Reduced]:
    """Each capture's packets: every column, or those that fit on a screen."""
    return each_of(paths, partial(_packets, tunnels=tunnels, for_people=for_people))


def _packets(path: Path, tunnels: bool, for_people: bool) -> Reduced:
    packets = read_capture(path, tunnels=tunnels)
    file = {"file": constant(path.name, len(packets.rows))}
    table = _shown(packets.rows) if for_people else table_of(packets.rows[list(COLUMNS)])
    return Reduced({**file, **table}, packets.warnings)


def bin_tables(paths: Sequence[Path], width_s: float, *, tunnels: bool) -> Iterator[Reduced]:
    """Each capture's flows over time."""
    return each_of(paths, partial(_bins, width_s=width_s, tunnels=tunnels))


def _bins(path: Path, width_s: float, tunnels: bool) -> Reduced:
    return Reduced(*read_bins(path, width_s, tunnels=tunnels))


def length_tables(paths: Sequence[Path], *, tunnels: bool) -> Iterator[Reduced]:
    """Each capture's packet lengths, as Wireshark's statistics have them for TCP and UDP."""
    return each_of(paths, partial(_lengths, tunnels=tunnels))


def _lengths(path: Path, tunnels: bool) -> Reduced:
    from analysis.captures.lengths import packet_lengths

    arrays = read_arrays(path, ("time_ns", "length"), tunnels=tunnels)
    packets = arrays.columns
    table = packet_lengths(packets["time_ns"], packets["length"], arrays.start_ns)
    file = {"file": constant(path.name, len(table))}
    return Reduced({**file, **table_of(table)}, arrays.warnings)


def write_parquet(tables: Iterator[Table], path: Path) -> None:
    """Tables one after the other as one Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(aside: Path) -> None:
        writer = None
        for each in tables:
            table = pa.Table.from_pandas(_plain(frame_of(each)), preserve_index=False)
            writer = writer or pq.ParquetWriter(aside, table.schema, compression="zstd")
            writer.write_table(table.cast(writer.schema))
        if writer:
            writer.close()

    replace(path, write)


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Texts instead of categories, which differ from capture to capture."""
    texts = rows.select_dtypes("category").columns
    return rows.astype(dict.fromkeys(texts, "str"))


def _shown(rows: pd.DataFrame) -> Table:
    """A packet table with few columns, Wireshark's numbers, and its remarks in the last column."""
    start_ns = int(rows["time_ns"].iloc[0]) if len(rows) else 0
    table = table_of(rows)
    return {
        "frame": table["frame"],
        "time_s": (rows["time_ns"].to_numpy() - start_ns) / 1e9,
        "src": _ends(rows, "src"),
        "dst": _ends(rows, "dst"),
        "seq": table["relative_seq"],
        "ack": table["relative_ack"],
        "payload": table["payload"],
        "window": table["window"],
        "analysis": _remarks(rows),
    }


def _remarks(rows: pd.DataFrame) -> Labels:
    bits = sum(rows[mark].to_numpy().astype("int64") << n for n, mark in enumerate(MARKS))
    found, codes = np.unique(bits, return_inverse=True)
    words = [mark.replace("_", " ") for mark in MARKS]
    texts = (
        ", ".join(word for n, word in enumerate(words) if value >> n & 1)
        for value in found.tolist()
    )
    return Labels(codes, tuple(texts))


def _ends(rows: pd.DataFrame, end: str) -> Labels:
    addresses = rows[end].cat
    ports = rows[f"{end}_port"].to_numpy()
    return endpoints(addresses.codes.to_numpy(), ports, tuple(addresses.categories))
