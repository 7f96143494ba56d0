"""Capture files: opened, decompressed, and fed to the core in pieces.

pcap and pcapng are told apart by the core (core/file.c). A file is read a
window at a time, so that captures larger than the memory go through, and not
mapped: a capture that shrinks meanwhile would end the process.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from analysis.captures.native import Columns, Core, Stop
from analysis.captures.unread import unread_frames
from testbed.errors import TestbedError, hint_for

WINDOW = 4 << 20  # bytes read at a time
CHUNK = 1 << 20  # bytes decompressed at a time
SMALL_CHUNK = 1 << 14  # where what was decompressed before the file ended is lost, or copied

GZIP, ZSTD, LZ4 = (bytes.fromhex(text) for text in ("1f8b", "28b52ffd", "04224d18"))
COMPRESSED = (GZIP, ZSTD, LZ4)
SNOOP = b"snoo"
MAGICS = tuple(
    bytes.fromhex(text) for text in "a1b2c3d4 d4c3b2a1 a1b23c4d 4d3cb2a1 0a0d0d0a".split()
)

# Called where the columns are full or missing: the next ones, or None if rows are not wanted.
Supply = Callable[[], Columns | None]


def feed(path: Path, core: Core, supply: Supply) -> tuple[str, ...]:
    """Read a capture into the core; gives the warnings. What is damaged raises an error."""
    with _opened(path) as (file, head):
        whole = _feed(_contents(file, head), core, supply)
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
                raise _not_a_capture(path, head)
            yield file, head
    except OSError as error:
        raise TestbedError(f"{path}: {error.strerror or error}", hint_for(error)) from error


def _not_a_capture(path: Path, head: bytes) -> TestbedError:
    convert = f"editcap -F pcapng {shlex.quote(str(path))} OUT.pcapng"
    if head == SNOOP:
        return TestbedError(f"{path}: a snoop capture", f"{convert} converts it")
    return TestbedError(
        f"{path}: not a pcap or pcapng capture",
        f"if another program captured it, try: {convert}",
    )


def _contents(file: BinaryIO, head: bytes) -> Iterator[bytes]:
    """The capture without its compression; EOFError or zlib.error where it ends too early."""
    file.seek(0)
    if head.startswith(GZIP):
        return _inflated(file)
    return _unpacked(file, head) if head.startswith(COMPRESSED) else _plain(file)


def _feed(chunks: Iterator[bytes], core: Core, supply: Supply) -> bool:
    """False if the file ends too early."""
    rest, whole, last = bytearray(), True, False
    while not last and core.state.stop == Stop.HUNGRY:
        try:
            chunk = next(chunks, b"")
        except (EOFError, zlib.error):
            chunk, whole = b"", False
        rest += chunk
        last = not chunk
        if rest:
            del rest[: _feed_piece(rest, last, core, supply)]
    return whole


def _plain(file: BinaryIO) -> Iterator[bytes]:
    missing = os.fstat(file.fileno()).st_size
    while chunk := file.read(WINDOW):
        missing -= len(chunk)
        yield chunk
    if missing > 0:
        raise EOFError


def _inflated(file: BinaryIO) -> Iterator[bytes]:
    """gzip, of any number of members."""
    packed = b""
    while packed or (packed := file.read(SMALL_CHUNK)):
        stream = zlib.decompressobj(wbits=31)
        while not stream.eof:
            if not packed and not (packed := file.read(SMALL_CHUNK)):
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
    try:
        with closing(pa.CompressedInputStream(file, kind)) as stream:
            while chunk := stream.read(SMALL_CHUNK):
                yield chunk
    except OSError as error:
        raise EOFError from error


def _feed_piece(piece: bytearray, last: bool, core: Core, supply: Supply) -> int:
    """Feed until the core has had enough of the piece; returns the bytes that are done with."""
    first = ctypes.c_char.from_buffer(piece)  # while it lives, the piece stays where it is
    address, done = ctypes.addressof(first), 0
    while True:
        done += core.feed(address + done, len(piece) - done, last=last, columns=supply())
        if core.state.stop != Stop.FULL:
            return done


def _judge(path: Path, core: Core, whole: bool) -> tuple[str, ...]:
    """Errors and warnings of a capture that was read as far as it goes."""
    state = core.state
    if state.stop == Stop.NO_MEMORY:
        raise TestbedError(f"{path}: not enough memory", "reduce a part of it: editcap -c 1000000")
    warnings = []
    if state.stop == Stop.CORRUPT:
        damage = (
            f"damaged at byte {state.offset}, after frame {state.frames}: "
            f"{state.reason.decode(errors='replace')}"
        )
        if not state.frames:
            raise TestbedError(f"{path}: {damage}", "is it a whole pcap or pcapng file?")
        warnings.append(f"{path.name}: {damage}; what follows is not read")
    elif state.stop == Stop.CUT_SHORT or not whole:
        if not state.offset:
            raise TestbedError(
                f"{path}: the capture ends within its header", "was it written to its end?"
            )
        warnings.append(
            f"{path.name}: the capture ends in the middle of a packet, after frame "
            f"{state.frames} (byte {state.offset})"
        )
    return (*warnings, *unread_frames(core).warnings(path.name, state.frames))
