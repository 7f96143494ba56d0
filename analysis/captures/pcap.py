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
from functools import partial
from io import BufferedReader
from mmap import mmap
from pathlib import Path
from typing import BinaryIO, Protocol

from analysis.captures.native import Columns, Core, Stop
from analysis.captures.skipped_frames import skipped_frames
from testbed.errors import TestbedError, hint_for

WINDOW = 4 << 20  # bytes read at a time
PIECE_HEADROOM = 16 << 20  # the core's largest block: a piece leaves less than one
LARGE = 1 << 20  # a file's bytes, from which a second thread is worth its start
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
        source = _source(file, head)
        with _starting(os.fstat(file.fileno()).st_size) as start:
            _feed(source, core, supply, start)
    return _judge(path, core, source.is_whole)


def check_file(path: Path) -> None:
    """Raise an error for what is no capture: tshark takes any text for a capture of nothing."""
    with _opened(path):
        pass


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BufferedReader, bytes]]:
    """Open the file and read its first bytes, if they are a capture's."""
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


class _Source(Protocol):
    """The capture without its compression."""

    @property
    def is_whole(self) -> bool:
        """Once it is read: False if the file ends too early."""

    def readinto(self, into: memoryview, /) -> int:
        """Fill the memory, less only at the end; says how much."""


def _source(file: BufferedReader, head: bytes) -> _Source:
    file.seek(0)
    if head.startswith(GZIP):
        return _Chunks(_inflated(file))
    return _Chunks(_unpacked(file, head)) if head.startswith(COMPRESSED) else _Plain(file)


class _Plain:
    """A file as it is."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._missing = os.fstat(file.fileno()).st_size

    @property
    def is_whole(self) -> bool:
        """False if it became shorter meanwhile."""
        return self._missing <= 0

    def readinto(self, into: memoryview) -> int:
        """Fill a buffer, as any file does."""
        size = self._file.readinto(into)
        self._missing -= size
        return size


class _Chunks:
    """What is decompressed, chunk by chunk; EOFError or zlib.error where it ends too early."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._chunk = memoryview(b"")
        self.is_whole: bool = True

    def readinto(self, into: memoryview) -> int:
        """Copy chunks until the memory is full."""
        filled = 0
        while filled < len(into) and self._has_more():
            part = self._chunk[: len(into) - filled]
            into[filled : filled + len(part)] = part
            self._chunk = self._chunk[len(part) :]
            filled += len(part)
        return filled

    def _has_more(self) -> bool:
        if not self._chunk:
            try:
                self._chunk = memoryview(next(self._chunks, b""))
            except (EOFError, zlib.error):
                self.is_whole = False
        return bool(self._chunk)


class _Window:
    """Memory for a piece of the file, with room before it for what the piece before left.

    Memory that is not written to is not used.
    """

    def __init__(self) -> None:
        self._memory = mmap(-1, PIECE_HEADROOM + WINDOW)
        self._first = ctypes.c_char.from_buffer(self._memory)
        self._begin = self._end = PIECE_HEADROOM

    def fill(self, source: _Source) -> int:
        """Read the next piece of the file; says how many bytes it has."""
        size = source.readinto(memoryview(self._memory)[PIECE_HEADROOM:])
        self._end = PIECE_HEADROOM + size
        return size

    def put_before(self, other: _Window, done: int) -> None:
        """Take what is left of another piece, of which so many bytes are done with."""
        rest = memoryview(other._memory)[other._begin + done : other._end]
        self._begin = PIECE_HEADROOM - len(rest)
        self._memory[self._begin : PIECE_HEADROOM] = bytes(rest)

    def feed(self, core: Core, supply: Supply, *, last: bool) -> int:
        """Feed until the core has had enough; returns the bytes that are done with."""
        address, size, done = ctypes.addressof(self._first) + self._begin, self._size, 0
        while True:
            done += core.feed(address + done, size - done, last=last, columns=supply())
            if core.state.stop != Stop.FULL:
                return done

    @property
    def _size(self) -> int:
        return self._end - self._begin


# Begins to fill a window; what it gives waits for it.
_Start = Callable[[_Window, _Source], Callable[[], int]]


@contextmanager
def _starting(size_bytes: int) -> Iterator[_Start]:
    """Read a large file, and decompress it, in a thread beside the one that feeds the core."""
    if size_bytes < LARGE:
        yield lambda window, source: partial(window.fill, source)
        return
    from concurrent.futures import ThreadPoolExecutor  # takes a while to load

    with ThreadPoolExecutor(1) as pool:
        yield lambda window, source: pool.submit(window.fill, source).result


def _feed(source: _Source, core: Core, supply: Supply, start: _Start) -> None:
    piece, following = _Window(), _Window()
    coming, last = start(piece, source), False
    while not last:
        last = not coming()
        if not last:
            coming = start(following, source)
        done = piece.feed(core, supply, last=last)
        last |= core.state.stop != Stop.HUNGRY
        following.put_before(piece, done)
        piece, following = following, piece


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
    """Zstd and lz4."""
    import pyarrow as pa  # only here: it takes a while to load

    kind = "zstd" if head == ZSTD else "lz4"
    try:
        with closing(pa.CompressedInputStream(file, kind)) as stream:
            while chunk := stream.read(SMALL_CHUNK):
                yield chunk
    except OSError as error:
        raise EOFError from error


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
    return (*warnings, *skipped_frames(core).warnings(path.name, state.frames))
