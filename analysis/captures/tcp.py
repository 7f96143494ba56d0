"""A capture's TCP and UDP packets, with what Wireshark's analysis says of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from analysis.captures import native
from analysis.captures.native import TYPES, Columns, Core
from analysis.captures.pcap import feed

if TYPE_CHECKING:
    import pandas as pd  # loaded where it is needed: it takes longer than a small capture

Array = npt.NDArray[Any]

CHUNK_ROWS = 1 << 18
MAX_CHUNK = 1 << 24
UNKNOWN_SCALE = -1  # of a window, whose SYN was not captured whole
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10  # of the column flags
CE = 3  # of the column ecn: congestion was experienced
HALF_SEQUENCE_SPACE = 1 << 31
# Columns of one type lie together after a copy, and rows are then taken from all of them at once.
FEW_FRAMES = 200_000
MIN_RECORD = 16 + 28  # bytes of a file that a packet takes at least: its header, IP and UDP

# enum mark of core.h, in the order of its bits; Wireshark's tcp.analysis.…
WIRESHARK_MARKS = (
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "duplicate_ack",
    "lost_segment",
    "ack_lost_segment",
    "window_update",
    "window_full",
    "zero_window",
    "zero_window_probe",
    "zero_window_probe_ack",
    "keep_alive",
    "keep_alive_ack",
    "reused_ports",
)

CAPTURE_COLUMNS = (
    "frame",  # number in the capture, from 1
    "time_ns",  # since 1970
    "length",  # bytes of the frame on the wire, whatever the snaplen kept
    "protocol",  # "tcp" or "udp"
    "stream",  # Wireshark's number of the connection, separate for TCP and UDP
    "src",
    "dst",
    "src_port",
    "dst_port",
    "ip_id",  # -1: IPv6 has none
    "seq",  # as in the header, so that captures of one connection can be compared
    "ack",
    "payload",  # bytes
    "flags",
    *WIRESHARK_MARKS[:5],
    "ack_rtt_ms",  # NaN where the packet acknowledges nothing new
    "acked_frame",  # 0 where the packet acknowledges nothing new
    *WIRESHARK_MARKS[5:],
    "duplicate_ack_number",  # 0: no duplicate
    "duplicate_ack_frame",  # the acknowledgement that it repeats
    "initial_rtt_ms",  # of the handshake; NaN where Wireshark does not say it
    "bytes_in_flight",  # 0: not said
    "push_bytes_sent",
    "relative_seq",  # as Wireshark shows them
    "relative_ack",
    "window",  # scaled
    "window_scale",  # the factor; -1: not known, -2: not in use, 0: a SYN
    "ecn",  # IP's bits: 1 and 2 are ECT, 3 is CE; TCP's ECE and CWR are flags
    "completeness",  # tcp.completeness before the packet, as tshark prints it
)


PROTOCOLS = ("tcp", "udp")
# Further columns: whether the acknowledged frame carried data, and whether its round trip counts.
# Karn's rule (RFC 6298, section 3) excludes ACKs of any byte that was sent more than once.
ACKED_DATA, TIMED = "acked_data", "timed"
# A hash of what was captured behind the IP header, for packets that no identification of IP tells
# apart: over IPv6, and datagrams of programs that send unconnected. 0 for TCP over IPv4.
CONTENT = "content"
MORE_COLUMNS = (ACKED_DATA, TIMED, CONTENT)


@dataclass(frozen=True)
class Arrays:
    """Packets as plain arrays.

    `marks` has a bit for each of WIRESHARK_MARKS, `protocol` is a place in PROTOCOLS, `src` and
    `dst` are places in `addresses`.
    """

    columns: dict[str, Array]
    addresses: tuple[str, ...]
    sacks: Array  # of the fields `frame`, `left` and `right`
    start_ns: int  # the capture's first packet, of whatever protocol
    warnings: tuple[str, ...]
    frames: int  # all, of whatever protocol

    def marked(self, name: str) -> Array:
        """Return a mask of the packets that have a mark."""
        is_marked: Array = (
            self.columns["marks"] & np.uint32(1 << WIRESHARK_MARKS.index(name))
        ) != 0
        return is_marked

    def column(self, name: str) -> Array:
        """Return one of CAPTURE_COLUMNS or MORE_COLUMNS; those of texts are places."""
        if name in WIRESHARK_MARKS:
            return self.marked(name)
        array = self.columns[name]
        return array.view(np.bool_) if name in (ACKED_DATA, TIMED) else array

    def names(self, column: str) -> tuple[str, ...]:
        """Return what the places in a column stand for; nothing if it has numbers."""
        if column == "protocol":
            return PROTOCOLS
        return self.addresses if column in ("src", "dst") else ()


class Packets:
    """The TCP and UDP packets of a capture, and what was wrong with the file.

    `rows` is a table of all columns; `part` has a few of them, and sooner.
    """

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.start_ns, self.warnings, self.frames = arrays.start_ns, arrays.warnings, arrays.frames

    @cached_property
    def rows(self) -> pd.DataFrame:
        """A row for each packet: CAPTURE_COLUMNS and MORE_COLUMNS."""
        import pandas as pd

        columns = {name: _column(self.arrays, name) for name in (*CAPTURE_COLUMNS, *MORE_COLUMNS)}
        return pd.DataFrame(columns, copy=self.frames < FEW_FRAMES)

    @cached_property
    def sacks(self) -> pd.DataFrame:
        """A row for each block: `frame`, `left`, `right`, relative like `relative_ack`."""
        import pandas as pd

        return pd.DataFrame({name: self.arrays.sacks[name] for name in ("frame", "left", "right")})

    @cached_property
    def part(self) -> PacketArrays:
        """All packets, as plain arrays."""
        return PacketArrays(self.arrays, np.arange(len(self.arrays.columns["time_ns"])))


class PacketArrays:
    """Some of a capture's packets: `part["seq"]` is a column, and `part[mask]` selects.

    It is used like a table of pandas, which takes longer to make and to select from than all that
    is computed from a short capture. A column is taken when it is first used.
    """

    def __init__(self, whole: Arrays, index: Array) -> None:
        self._whole = whole
        self.index = index  # places among the capture's packets
        self._columns: dict[str, Array] = {}

    def __len__(self) -> int:
        return len(self.index)

    @overload
    def __getitem__(self, key: str) -> Array: ...

    @overload
    def __getitem__(self, key: Array) -> PacketArrays: ...

    def __getitem__(self, key: str | Array) -> Array | PacketArrays:
        if not isinstance(key, str):
            return PacketArrays(self._whole, self.index[key])
        if key not in self._columns:
            column = self._whole.column(key)[self.index]
            names = self._whole.names(key)
            self._columns[key] = np.array(names)[column] if names else column
        return self._columns[key]

    def places(self, column: str, name: str) -> Array:
        """Return a mask of the packets with this protocol or address."""
        names = self._whole.names(column)
        place = names.index(name) if name in names else -1
        is_at_place: Array = self._whole.column(column)[self.index] == place
        return is_at_place


Rows = TypeVar("Rows", "pd.DataFrame", PacketArrays)


def rows_at(rows: Rows, places: Array) -> Rows:
    """Return the packets at these places, in their order."""
    return rows[places] if isinstance(rows, PacketArrays) else rows.iloc[places]


@dataclass(frozen=True)
class Excerpt:
    """Some columns of the packets in a stretch of time, which take no more memory than that."""

    names: Collection[str] = tuple(TYPES)
    start_ns: int = -(1 << 63)
    stop_ns: int = (1 << 63) - 1


class _Chunk:
    """Arrays that the core fills."""

    def __init__(self, capacity: int) -> None:
        self.arrays: dict[str, Array] = {
            name: np.empty(capacity, kind) for name, kind in TYPES.items()
        }
        places = (array.ctypes.data for array in self.arrays.values())
        self.columns = Columns(capacity, 0, *places)

    @property
    def is_full(self) -> bool:
        """True if another chunk is needed."""
        return self.columns.used == self.columns.capacity

    def cut(self, excerpt: Excerpt) -> None:
        """Keep an excerpt alone, in as much memory as it takes."""
        time_ns = self.arrays["time_ns"][: self.columns.used]
        kept = (time_ns >= excerpt.start_ns) & (time_ns <= excerpt.stop_ns)
        for name in self.arrays:
            column = self.arrays[name][: self.columns.used]
            self.arrays[name] = column[kept] if name in excerpt.names else column[:0].copy()


class _Supply:
    """Columns for the core, a chunk of rows after the other; one is enough for most files.

    Memory that is not written to is not used, so that a chunk may be as large as the file
    could make it.
    """

    def __init__(self, size_bytes: int, excerpt: Excerpt | None) -> None:
        most = CHUNK_ROWS if excerpt else MAX_CHUNK
        self._rows = min(size_bytes // MIN_RECORD + 1, most)
        self._excerpt = excerpt
        self.chunks: list[_Chunk] = []

    def __call__(self) -> Columns:
        if not self.chunks or self.chunks[-1].is_full:
            self.cut_last()
            # a second one: the file is compressed, or so large that this makes no difference
            self.chunks.append(_Chunk(max(self._rows, CHUNK_ROWS) if self.chunks else self._rows))
        return self.chunks[-1].columns

    def cut_last(self) -> None:
        """Keep the excerpt alone of the chunk that was filled last."""
        if self._excerpt and self.chunks:
            self.chunks[-1].cut(self._excerpt)

    def take(self, name: str) -> Array:
        """Return a column as one array; the chunks give theirs up, so that no two are held long."""
        parts = [chunk.arrays.pop(name)[: chunk.columns.used] for chunk in self.chunks]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros(0, TYPES[name])


def read_arrays(
    path: Path,
    names: Iterable[str] = TYPES,
    *,
    tunnels: bool = False,
    excerpt: Excerpt | None = None,
) -> Arrays:
    """Read some or all columns of a capture, of all packets or of an excerpt.

    A file that ends in the middle of a packet gives all packets before, and a warning.
    """
    with closing(Core(with_flows=False, tunnels=tunnels)) as core:
        supply = _Supply(path.stat().st_size if path.exists() else 0, excerpt)
        warnings = feed(path, core, supply)
        supply.cut_last()
        columns = {name: supply.take(name) for name in names}
        sacks = np.ctypeslib.as_array(core.sacks())
        addresses, state = tuple(core.addresses()), core.state
        return Arrays(columns, addresses, sacks, state.start_ns, warnings, state.frames)


def read_capture(path: Path, *, tunnels: bool = False) -> Packets:
    """Read a capture as a table; `tunnels`: with the packets that VXLAN and GENEVE carry."""
    return Packets(read_arrays(path, tunnels=tunnels))


def _column(arrays: Arrays, name: str) -> Array | pd.Categorical:
    import pandas as pd

    if name not in ("protocol", "src", "dst"):
        return arrays.column(name)
    categories = pd.Index(list(arrays.names(name)), dtype="str")
    return pd.Categorical.from_codes(arrays.column(name), categories=categories)


def contiguous(begins: Array, ends: Array, edge: int) -> Array:
    """Return how far a connection's bytes are contiguous after each of its packets.

    A packet carries the bytes from its `begins` to its `ends`; bytes beyond a hole wait for it to
    be filled. `edge` is the place of the first byte.
    """
    first, last = (np.ascontiguousarray(each, dtype=np.int64) for each in (begins, ends))
    edges = np.empty(len(first), dtype=np.int64)
    addresses = (each.ctypes.data for each in (first, last, edges))
    begin, end, result = addresses
    native.contiguous(len(first), begin, end, edge, result)
    return edges
