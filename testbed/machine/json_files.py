"""JSON that somebody else may have written: what it may hold is bounded before it is parsed.

A megabyte of `[],[],…` takes 27 in memory. So the signs that stand before values are counted first,
in a hundredth of the time of parsing. (Some may stand in texts: the count is an upper bound.)
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

from testbed.machine.safe_files import MAX_DOCUMENT_BYTES, read_bytes

MAX_VALUES = 1 << 23  # an iperf3 report of a day has half as many
MAX_RECORD_BYTES = 1 << 25  # of a trial's record, scenario or verdict
MAX_RECORD_VALUES = 1 << 20
PACKED_JSON = zlib.MAX_WBITS | 16  # with gzip's checksum
MAX_PACKING = 64  # bytes that one stands for, beyond the first; our own have up to 36
FREE_BYTES = 1 << 24  # that a small file may stand for


def read(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES, max_values: int = MAX_VALUES) -> Any:
    """Read a JSON file; raise a ValueError if it is not JSON or may hold too many values."""
    return parse(read_bytes(path, max_bytes), max_values)


def read_record(path: Path) -> Any:
    """Read a JSON file of the size of a trial's record."""
    return read(path, MAX_RECORD_BYTES, MAX_RECORD_VALUES)


def parse(text: bytes, max_values: int = MAX_VALUES) -> Any:
    """Parse JSON; raise a ValueError if it may hold more values than that."""
    return json.loads(checked(text, max_values))


def unpacked(packed: bytes, max_values: int, wbits: int = PACKED_JSON) -> bytes:
    """Decompress JSON; raise a ValueError if it is not whole, or too long for its packed size.

    A kilobyte can stand for a megabyte, and that for 27 in memory.
    """
    whole = zlib.decompressobj(wbits)
    content = whole.decompress(packed, FREE_BYTES + MAX_PACKING * len(packed))
    if not whole.eof:
        raise ValueError("too long, or not whole")
    return checked(content, max_values)


def checked(text: bytes, max_values: int = MAX_VALUES) -> bytes:
    """Return JSON as it is; raise a ValueError if it may hold more values than that."""
    if sum(map(text.count, (b"[", b"{", b",", b":"))) > max_values:
        raise ValueError(f"more than {max_values} values")
    return text
