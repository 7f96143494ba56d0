"""Packets as tshark prints them, and the comparison of the project's reader with them."""

from __future__ import annotations

import contextlib
import csv
import functools
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.captures.tcp import CAPTURE_COLUMNS, Array, read_capture
from testbed.errors import TestbedError
from testbed.machine.process import run, stream

MARK_FIELDS = {  # our column → the field that is there or not
    "retransmission": "tcp.analysis.retransmission",
    "fast_retransmission": "tcp.analysis.fast_retransmission",
    "spurious_retransmission": "tcp.analysis.spurious_retransmission",
    "out_of_order": "tcp.analysis.out_of_order",
    "duplicate_ack": "tcp.analysis.duplicate_ack",
    "lost_segment": "tcp.analysis.lost_segment",
    "ack_lost_segment": "tcp.analysis.ack_lost_segment",
    "window_update": "tcp.analysis.window_update",
    "window_full": "tcp.analysis.window_full",
    "zero_window": "tcp.analysis.zero_window",
    "zero_window_probe": "tcp.analysis.zero_window_probe",
    "zero_window_probe_ack": "tcp.analysis.zero_window_probe_ack",
    "keep_alive": "tcp.analysis.keep_alive",
    "keep_alive_ack": "tcp.analysis.keep_alive_ack",
    "reused_ports": "tcp.analysis.reused_ports",
}
NUMBER_FIELDS = {  # our column → the fields of which a packet has one
    "frame": ("frame.number",),
    "length": ("frame.len",),
    "stream": ("tcp.stream", "udp.stream"),
    "src_port": ("tcp.srcport", "udp.srcport"),
    "dst_port": ("tcp.dstport", "udp.dstport"),
    "seq": ("tcp.seq_raw",),
    "ack": ("tcp.ack_raw",),
    "payload": ("tcp.len", "udp.length"),
    "acked_frame": ("tcp.analysis.acks_frame",),
    "duplicate_ack_number": ("tcp.analysis.duplicate_ack_num",),
    "duplicate_ack_frame": ("tcp.analysis.duplicate_ack_frame",),
    "bytes_in_flight": ("tcp.analysis.bytes_in_flight",),
    "push_bytes_sent": ("tcp.analysis.push_bytes_sent",),
    "relative_seq": ("tcp.seq",),
    "relative_ack": ("tcp.ack",),
    "window": ("tcp.window_size",),
    "window_scale": ("tcp.window_size_scalefactor",),
    "completeness": ("tcp.completeness",),
}
HEXADECIMAL = {"ip_id": "ip.id", "flags": "tcp.flags"}
TIME_FIELDS = {  # ours in ns or ms, theirs in seconds
    "time_ns": "frame.time_epoch",
    "ack_rtt_ms": "tcp.analysis.ack_rtt",
    "initial_rtt_ms": "tcp.analysis.initial_rtt",
}
ADDRESSES = {"src": ("ip.src", "ipv6.src"), "dst": ("ip.dst", "ipv6.dst")}
ECN_FIELDS = ("ip.dsfield.ecn", "ipv6.tclass.ecn")
SACK = ("tcp.options.sack_le", "tcp.options.sack_re")  # an occurrence a block

PRINTED_FIELDS = (
    *(field for fields in NUMBER_FIELDS.values() for field in fields),
    *TIME_FIELDS.values(),
    *HEXADECIMAL.values(),
    *(field for fields in ADDRESSES.values() for field in fields),
    *ECN_FIELDS,
    SACK[0],
    *MARK_FIELDS.values(),
)

# The user's own Wireshark preferences must not change a result.
PREFERENCES = (
    "tcp.analyze_sequence_numbers:TRUE",
    "tcp.relative_sequence_numbers:TRUE",
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.track_bytes_in_flight:TRUE",
    "tcp.bif_seq_based:FALSE",
    "tcp.default_window_scaling:Not known",
    "tcp.fastrt_supersedes_ooo:TRUE",
    "tcp.check_checksum:FALSE",
    "udp.check_checksum:FALSE",
    "ip.check_checksum:FALSE",
    "ip.defragment:TRUE",
    "ipv6.defragment:TRUE",
    "ip.tso_support:TRUE",
)
# Protocols over UDP that carry packets, which we read as UDP, …
DISABLED = ("gtp", "teredo", "l2tp", "capwap.data")
TUNNEL_PROTOCOLS = ("vxlan", "geneve")  # … and these too, unless they are asked for
VXLAN_GPE = "udp.port==4790"  # the same, but Wireshark 4.4 cannot disable it apart from vxlan
# An ICMP error quotes a TCP header without being TCP.
FILTER = "(tcp or udp) and not (icmp or icmpv6)"
FOLLOWED = "4.0"  # the Wireshark whose rules ours are
ROWS_AT_ONCE = 1 << 17  # read at a time
CUT_SHORT = "cut short"  # tshark's words; what came before is good


def command(
    path: Path,
    fields: Sequence[str] = PRINTED_FIELDS,
    chosen: str = FILTER,
    occurrence: str = "l",
    *,
    tunnels: bool = False,
) -> tuple[str, ...]:
    """Return the command line that prints a capture's fields."""
    argv = ["tshark", "-n", "-r", os.fspath(path), "-Y", chosen]
    for protocol in DISABLED if tunnels else (*DISABLED, *TUNNEL_PROTOCOLS):
        argv += ["--disable-protocol", protocol]
    argv += ["-d", f"{VXLAN_GPE},data"]
    for preference in PREFERENCES:
        argv += ["-o", preference]
    # `l`, the last occurrence: within a tunnel, the innermost headers; `a`: all of them
    argv += [
        "-T",
        "fields",
        "-E",
        "header=n",
        "-E",
        "separator=/t",
        "-E",
        f"occurrence={occurrence}",
    ]
    for name in fields:
        argv += ["-e", name]
    return tuple(argv)


@functools.cache
def version() -> str:
    """Return the installed tshark's version, as `4.0.17`."""
    match = re.search(r"\d+\.\d+\.\d+", run(["tshark", "--version"]).stdout)
    return match[0] if match else "of unknown version"


def read_fields(path: Path, *, tunnels: bool = False) -> Iterator[pd.DataFrame]:
    """Yield the packets' fields as texts, some rows at a time.

    Packets whose headers are cut short, so that their length is not known, are left out.
    """
    return map(_whole, _read(path, command(path, tunnels=tunnels), PRINTED_FIELDS))


def read_sacks(
    path: Path, *, tunnels: bool = False
) -> Iterator[tuple[int, list[tuple[int, int]] | None]]:
    """Yield the frames with SACK blocks, and those; None where an option is malformed."""
    fields = ("frame.number", *SACK)
    argv = command(path, fields, f"{SACK[0]} and tcp.len and {FILTER}", "a", tunnels=tunnels)
    for rows in _read(path, argv, fields):
        for frame, *edges in rows.itertuples(index=False):
            left, right = (
                [int(edge) for edge in each.split(",")] if isinstance(each, str) else []
                for each in edges
            )
            whole = len(left) == len(right)
            yield int(frame), list(zip(left, right, strict=True)) if whole else None


def _read(path: Path, argv: Sequence[str], fields: Sequence[str]) -> Iterator[pd.DataFrame]:
    with stream(argv) as process:
        assert process.stdout is not None and process.stderr is not None
        with contextlib.suppress(pd.errors.EmptyDataError):  # no such packet
            yield from pd.read_csv(
                process.stdout,
                sep="\t",
                header=None,
                names=list(fields),
                dtype="str",
                quoting=csv.QUOTE_NONE,
                keep_default_na=False,
                na_values=[""],
                chunksize=ROWS_AT_ONCE,
            )
        errors = process.stderr.read()
        status = process.wait()
    # 2: the capture is damaged or cut short; what came before was printed
    if status not in (0, 2):
        complaint = "; ".join(complaints(errors)) or f"tshark ended with status {status}"
        raise TestbedError(f"{path}: {complaint}")


def _whole(rows: pd.DataFrame) -> pd.DataFrame:
    stream = rows["tcp.stream"].notna() | rows["udp.stream"].notna()
    length = rows["tcp.len"].notna() | rows["udp.length"].notna()
    return rows[stream & length]


def complaints(errors: str) -> list[str]:
    """Tshark's own lines, without the remark that it runs as root."""
    lines = (line.strip() for line in errors.splitlines())
    return [line.removeprefix("tshark: ") for line in lines if line.startswith("tshark: ")]


MAX_SACK_BLOCKS = 4  # as core.h has it
UNTOLD = np.iinfo(np.int64).min  # tshark does not say it
Sacks = tuple[int, list[tuple[int, int]] | None]
MISSING = {"ip_id": -1}  # our value where tshark prints nothing; 0 elsewhere
# What a packet's own headers say. All else is judged from the packets before it, and Wireshark's
# rules for that, even for where a connection begins, change from version to version.
HEADER_FIELDS = (
    "frame time_ns length protocol src dst src_port dst_port ip_id seq ack payload flags ecn"
).split()


@dataclass(frozen=True)
class Difference:
    """A field of a packet that we and tshark tell differently."""

    frame: int
    field: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"frame {self.frame}: {self.field}: ours {self.ours}, tshark's {self.theirs}"


@dataclass
class TsharkComparison:
    """The result of a verification: what was compared, and what differs."""

    packets: int = 0
    differences: list[Difference] = field(default_factory=list)
    other_rules: Counter[str] = field(default_factory=Counter)  # differing fields → how often

    @property
    def fields(self) -> int:
        """The number of compared values."""
        return self.packets * len(CAPTURE_COLUMNS)

    def __iadd__(self, other: TsharkComparison) -> TsharkComparison:
        self.packets += other.packets
        self.differences += other.differences
        self.other_rules += other.other_rules
        return self

    def set_aside(self) -> None:
        """Count apart what another Wireshark than the followed one may judge otherwise."""
        aside = [each for each in self.differences if each.field not in HEADER_FIELDS]
        self.other_rules += Counter(each.field for each in aside)
        self.differences = [each for each in self.differences if each.field in HEADER_FIELDS]

    def __str__(self) -> str:
        return (
            f"{self.packets} packets, {self.fields} fields compared, "
            f"{len(self.differences)} differences"
        )


def verify(path: Path, *, tunnels: bool = False) -> TsharkComparison:
    """Read a capture twice, by ourselves and with tshark, and compare."""
    packets = read_capture(path, tunnels=tunnels)
    ours = packets.rows
    verdict = TsharkComparison()
    done, blocks = 0, not packets.sacks.empty
    for theirs in read_fields(path, tunnels=tunnels):
        if theirs.empty:
            continue
        frames = theirs["frame.number"].astype("int64").to_numpy()
        until = int(np.searchsorted(ours["frame"], frames[-1], side="right"))
        _compare(ours.iloc[done:until], theirs, frames, verdict)
        done = until
        blocks |= bool(theirs[SACK[0]].notna().any())
    verdict.differences += _alone(ours["frame"].iloc[done:], "a packet", "none")
    if blocks:  # a packet may have several, which takes tshark another reading
        verdict.differences += _compare_sacks(packets.sacks, read_sacks(path, tunnels=tunnels))
    if not version().startswith(f"{FOLLOWED}."):
        verdict.set_aside()
    return verdict


def _compare_sacks(sacks: pd.DataFrame, read: Iterator[Sacks]) -> Iterator[Difference]:
    ours: dict[int, list[tuple[int, int]]] = {}
    for frame, left, right in sacks.itertuples(index=False):
        ours.setdefault(int(frame), []).append((int(left), int(right)))
    for frame, theirs in read:
        mine = ours.pop(frame, [])
        if theirs is not None and mine != theirs[:MAX_SACK_BLOCKS]:
            yield Difference(frame, "sacks", str(mine), str(theirs))
    yield from (Difference(frame, "sacks", str(mine), "none") for frame, mine in ours.items())


def _compare(
    ours: pd.DataFrame, theirs: pd.DataFrame, frames: Array, verdict: TsharkComparison
) -> None:
    our_frames = ours["frame"].to_numpy()
    common = np.intersect1d(our_frames, frames)
    verdict.differences += _alone(np.setdiff1d(our_frames, common), "a packet", "none")
    verdict.differences += _alone(np.setdiff1d(frames, common), "none", "a packet")
    ours, theirs = ours[np.isin(our_frames, common)], theirs[np.isin(frames, common)]
    verdict.packets += len(common)
    six = ours["src"].astype("str").str.contains(":").to_numpy()
    for name in CAPTURE_COLUMNS:
        mine, other = _mine(ours, name), _theirs(theirs, name, six)
        for place in np.flatnonzero((mine != other) & (other != UNTOLD)):
            frame = int(common[place])
            verdict.differences.append(Difference(frame, name, str(mine[place]), str(other[place])))


def _alone(frames: Iterable[int], ours: str, theirs: str) -> Iterator[Difference]:
    return (Difference(int(frame), "frame", ours, theirs) for frame in frames)


def _mine(rows: pd.DataFrame, name: str) -> Array:
    if name in ("protocol", "src", "dst"):
        return rows[name].astype("object").to_numpy()
    if name.endswith("_ms"):  # as nanoseconds: both sides have no more
        return np.rint(rows[name].fillna(0).to_numpy() * 1e6).astype(np.int64)
    return rows[name].to_numpy().astype(np.int64)


def _theirs(rows: pd.DataFrame, name: str, six: Array) -> Array:
    """Tshark's texts in our form. `six`: whose innermost header is IPv6's."""
    tcp = rows["tcp.stream"].notna().to_numpy()
    if name == "protocol":
        return np.where(tcp, "tcp", "udp").astype(object)
    if name in MARK_FIELDS:
        return rows[MARK_FIELDS[name]].notna().to_numpy().astype(np.int64)
    if name in TIME_FIELDS:
        codes, unique = pd.factorize(rows[TIME_FIELDS[name]])
        return np.array([*map(_nanoseconds, unique), 0], dtype=np.int64)[codes]
    if name in HEXADECIMAL:
        numbers = _numbers(rows[HEXADECIMAL[name]], 16, MISSING.get(name, 0))
        return _either(~six, numbers, np.full(len(numbers), -1)) if name == "ip_id" else numbers
    if name == "ecn":
        four, other = (_numbers(rows[each], 10, 0) for each in ECN_FIELDS)
        return _either(six, other, four)
    if name in ADDRESSES:
        four, other = (rows[each].astype("object").to_numpy() for each in ADDRESSES[name])
        return _either(six, other, four)
    first, *others = (_numbers(rows[each], 10, 0) for each in NUMBER_FIELDS[name])
    if not others:
        return first
    if name == "payload":  # a jumbogram's length is not in UDP's header
        others[0] = _either(others[0] == 0, np.full(len(first), UNTOLD), others[0] - 8)
    return _either(tcp, first, others[0])


def _either(which: Array, one: Array, other: Array) -> Array:
    chosen: Array = np.where(which, one, other)
    return chosen


def _nanoseconds(text: str) -> int:
    """Read seconds with at least nine decimals as nanoseconds.

    They may be more than a second; beyond 64 bits they wrap around, as the core's do.
    """
    seconds, _, rest = text.removeprefix("-").partition(".")
    value = int(seconds) * 10**9 + int(rest or 0)
    value = -value if text.startswith("-") else value
    return (value + 2**63) % 2**64 - 2**63


def _numbers(texts: pd.Series[str], base: int, missing: int) -> Array:
    """Parse a column of numbers; each distinct text is parsed once."""
    codes, unique = pd.factorize(texts)
    values = [int(text, base) for text in unique]
    return np.array([*values, missing], dtype=np.int64)[codes]
