"""Tables of Wireshark's Statistics menu, as tshark prints them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd

from analysis.captures.lengths import ALL


def _said(path: Path, statistics: str) -> list[str]:
    argv = ["tshark", "-r", str(path), "-q", "-z", statistics]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def lengths(path: Path, chosen: str = "frame") -> dict[str, list[str]]:
    """Packet Lengths of the frames that a filter lets through: a bucket's name and its cells."""
    rows = {}
    for line in _said(path, f"plen,tree,{chosen}"):
        name, cells = line[:18].strip(), line[18:].split()
        if len(cells) == 8:
            rows[name] = cells
    return rows


def as_wireshark_writes(row: pd.Series) -> list[str]:
    """The cells of a row of our own table of lengths."""
    known = row["count"] > 0
    percent = "100%" if row["lengths"] == ALL else f"{row['percent']:.2f}%"
    return [
        str(row["count"]),
        f"{row['average']:.2f}" if known else "-",
        str(int(row["min"])) if known else "-",
        str(int(row["max"])) if known else "-",
        f"{row['rate_per_ms']:.4f}",
        percent,
        f"{row['burst_rate_per_ms']:.4f}" if known else "-",
        f"{row['burst_start_s']:.3f}" if known else "-",
    ]


def frames_per_second(path: Path, chosen: str) -> list[int]:
    """An I/O graph: the frames of each second of the capture that a filter lets through."""
    cells = ([c.strip() for c in line.split("|")] for line in _said(path, f"io,stat,1,{chosen}"))
    return [int(each[2]) for each in cells if len(each) > 3 and "<>" in each[1]]
