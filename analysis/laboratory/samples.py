"""Samples of a whole program's queues and sockets: from the guest's lines to tables.

`testbed/guest/sampler.c` writes the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from analysis.captures.flow_tables import endpoint
from analysis.laboratory.observation import MACHINE_ITSELF
from testbed.machine import safe_files
from testbed.store.names import MACHINE_QUEUES, MACHINE_SOCKETS
from testbed.store.writing import spreadsheet_cell, write_table

Row = tuple[object, ...]


def write_sample_tables(lines: Path, began_ns: int, folder: Path) -> None:
    """Write the samples in a file as tables of a run's results."""
    for kind, table in (("queue", MACHINE_QUEUES), ("socket", MACHINE_SOCKETS)):
        rows = _rows(lines, kind, began_ns)
        write_table(folder, table, (row for row in rows if len(row) == len(table.columns)))


def _rows(lines: Path, kind: str, began_ns: int) -> Iterator[Row]:
    """Yield the rows of a kind; a line that was cut off has too few columns, or no numbers."""
    for line in safe_files.lines(lines):
        subject, *fields = line.split() or [""]
        if subject != kind:
            continue
        try:
            time_s = (int(fields[0]) - began_ns) / 1e9
            texts = [spreadsheet_cell(unquote(word)) for word in fields]
            texts[1] = MACHINE_ITSELF if fields[1] == "-" else texts[1]
            yield _queue(time_s, texts) if kind == "queue" else _socket(time_s, texts)
        except (ValueError, IndexError, OverflowError):
            continue


def _queue(time_s: float, texts: list[str]) -> Row:
    return (time_s, *texts[1:5], *map(int, texts[5:]))


def _socket(time_s: float, texts: list[str]) -> Row:
    source, destination = endpoint(*texts[2:4]), endpoint(*texts[4:6])
    cwnd, ssthresh, srtt_us, *others = map(int, texts[6:])
    return (time_s, texts[1], source, destination, cwnd, ssthresh, srtt_us / 1e3, *others)
