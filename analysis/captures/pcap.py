"""Capture files: opened, decompressed, and fed to the core in pieces.

pcap and pcapng are told apart by the core (core/file.c). A file is mapped a
window at a time, so that captures larger than the memory go through.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from analysis.captures.native import Columns, Core, Stop
from testbed.errors import TestbedError

WINDOW = 4 << 20  # bytes mapped at a time; a record that is larger doubles it
CHUNK = 1 << 20  # bytes decompressed at a time
SMALL_CHUNK = 1 << 14  # where what was decompressed before the file ended is lost

GZIP, ZSTD, LZ4 = (bytes.fromhex(text) for text in ("1f8b", "28b52ffd", "04224d18"))
COMPRESSED = (GZIP, ZSTD, LZ4)
MAGICS = tuple(
    bytes.fromhex(text) for text in "a1b2c3d4 d4c3b2a1 a1b23c4d 4d3cb2a1 0a0d0d0a".split()
)

# Called where the columns are full or missing: the next ones, or None if rows are not wanted.
Supply = Callable[[], Columns | None]


def feed(path: Path, core: Core, supply: Supply) -> tuple[str, ...]:
    """Read a capture into the core; gives the warnings. What is damaged raises an error."""
    with _opened(path) as (file, head):
        if head.startswith(COMPRESSED):
            whole = _feed_decompressed(file, head, core, supply)
        else:
            whole = _feed_mapped(file, core, supply)
    return _judge(path, core, whole)


def check_file(path: Path) -> None:
    """Raise an error for what is no capture: tshark takes any text for a capture of nothing."""
    with _opened(path):
        pass


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, bytes]]:
    """The file and its first bytes, if they are a capture's."""
    if not path.is_file():
        kind = "a folder, not a capture" if path.is_dir() else "no such file"
        raise TestbedError(f"{path}: {kind}", "name a pcap or pcapng file")
    try:
        with path.open("rb") as file:
            head = file.read(4)
            if not head.startswith((*MAGICS, *COMPRESSED)):
                raise TestbedError(
                    f"{path}: not a pcap or pcapng capture", "editcap converts other formats"
                )
            yield file, head
    except OSError as error:
        raise TestbedError(
            f"{path}: {error.strerror or error}", "who may read it? ls -l shows"
        ) from error


def _feed_mapped(file: BinaryIO, core: Core, supply: Supply) -> bool:
    size, offset, window = os.fstat(file.fileno()).st_size, 0, WINDOW
    while offset < size:
        begin = offset - offset % mmap.ALLOCATIONGRANULARITY
        length = min(window + offset - begin, size - begin)
        # a copy on write, which is never written: ctypes gives addresses of what it may write
        with mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY, offset=begin) as mapped:
            last = begin + length == size
            first = ctypes.c_char.from_buffer(mapped, offset - begin)
            address = ctypes.addressof(first)
            del first  # or the file could not be unmapped
            done = _feed_piece(address, begin + length - offset, last, core, supply)
        if last or core.state.stop != Stop.HUNGRY:
            break
        window = window if done else 2 * window
        offset += done
    return True


def _feed_decompressed(file: BinaryIO, head: bytes, core: Core, supply: Supply) -> bool:
    """False if the compressed file ends too early."""
    file.seek(0)
    chunks = _inflated(file) if head.startswith(GZIP) else _unpacked(file, head)
    rest, whole = b"", True
    while whole:
        try:
            chunk = next(chunks, b"")
        except (EOFError, OSError, zlib.error):
            chunk, whole = b"", False
        piece = rest + chunk
        address = ctypes.cast(ctypes.c_char_p(piece), ctypes.c_void_p).value or 0
        done = _feed_piece(address, len(piece), not chunk, core, supply) if piece else 0
        if not chunk or core.state.stop != Stop.HUNGRY:
            break
        rest = piece[done:]
    return whole


def _inflated(file: BinaryIO) -> Iterator[bytes]:
    """gzip, of any number of members."""
    packed = b""
    while packed or (packed := file.read(CHUNK)):
        stream = zlib.decompressobj(wbits=31)
        while not stream.eof:
            if not packed and not (packed := file.read(CHUNK)):
                raise EOFError
            plain = stream.decompress(packed, CHUNK)
            packed = stream.unconsumed_tail
            if plain:
                yield plain
        packed = stream.unused_data


def _unpacked(file: BinaryIO, head: bytes) -> Iterator[bytes]:
    """zstd and lz4."""
    import pyarrow as pa  # only here: it takes a while to load

    kind = "zstd" if head == ZSTD else "lz4"
    with closing(pa.CompressedInputStream(file, kind)) as stream:
        while chunk := stream.read(SMALL_CHUNK):
            yield chunk


def _feed_piece(address: int, size: int, last: bool, core: Core, supply: Supply) -> int:
    """Feed until the core has had enough of the piece; returns the bytes that are done with."""
    done = 0
    while True:
        done += core.feed(address + done, size - done, last=last, columns=supply())
        if core.state.stop != Stop.FULL:
            return done


def _judge(path: Path, core: Core, whole: bool) -> tuple[str, ...]:
    """Errors and warnings of a capture that was read as far as it goes."""
    state = core.state
    if state.stop == Stop.NO_MEMORY:
        raise TestbedError(f"{path}: not enough memory", "reduce a part of it: editcap -c 1000000")
    if state.stop == Stop.CORRUPT:
        raise TestbedError(
            f"{path}: damaged at byte {state.offset}, after frame {state.frames}: "
            f"{state.reason.decode(errors='replace')}",
            "is it a whole pcap or pcapng file?",
        )
    warnings = []
    if state.stop == Stop.CUT_SHORT or not whole:
        if not state.offset:
            raise TestbedError(
                f"{path}: the capture ends within its header", "was it written to its end?"
            )
        warnings.append(
            f"{path.name}: the capture ends in the middle of a packet, after frame "
            f"{state.frames} (byte {state.offset})"
        )
    if state.cut:
        warnings.append(f"{path.name}: {state.cut} packets with headers cut short are left out")
    return tuple(warnings)
