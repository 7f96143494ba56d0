"""A capture's TCP and UDP packets as Wireshark dissects them: one tshark process a capture."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from testbed.errors import TestbedError
from testbed.process import stream

# What each column is read from; a packet has one of the two or three, so they are merged.
FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "frame.time_relative",
    "frame.len",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "ip.id",
    "tcp.stream",
    "udp.stream",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
    "tcp.seq",
    "tcp.ack",
    "tcp.len",
    "udp.length",
    "tcp.flags",
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.duplicate_ack",
    "tcp.analysis.ack_rtt",
    "tcp.analysis.acks_frame",
)
# Present or not, whatever the version prints for present
MARKS = tuple(field for field in FIELDS[20:25])
_TEXT = ("frame.time_epoch", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "ip.id", "tcp.flags")

COLUMNS = (
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
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "duplicate_ack",
    "ack_rtt_ms",  # NaN where the packet acknowledges nothing new
    "acked_frame",  # 0 where the packet acknowledges nothing new
)

# The user's own Wireshark preferences must not change a result.
PREFERENCES = (
    "tcp.analyze_sequence_numbers:TRUE",
    "tcp.relative_sequence_numbers:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.track_bytes_in_flight:FALSE",
    "tcp.fastrt_supersedes_ooo:TRUE",
)
# An ICMP error quotes a TCP header without being TCP.
FILTER = "(tcp or udp) and not (icmp or icmpv6)"

MAGICS = {
    bytes.fromhex(text)
    for text in (
        "a1b2c3d4 d4c3b2a1 a1b23c4d 4d3cb2a1 0a0d0d0a"  # pcap and pcapng
        " 1f8b 28b52ffd 04224d18"  # gzip, zstd and lz4 of them
    ).split()
}
CUT_SHORT = "cut short"  # tshark's words; what came before is good


@dataclass(frozen=True)
class Packets:
    """The TCP and UDP packets of a capture (see COLUMNS), and what was wrong with the file."""

    rows: pd.DataFrame
    start_ns: int  # the capture's first packet, of whatever protocol
    warnings: tuple[str, ...] = ()


def read_capture(path: Path) -> Packets:
    """Dissect a capture; a file that ends in the middle gives what is whole and a warning."""
    check_file(path)
    with stream(command(path)) as process:
        assert process.stdout is not None and process.stderr is not None
        packets = parse_fields(process.stdout, path.name)
        said = process.stderr.read()
        status = process.wait()
    warnings = tuple(line for line in complaints(said) if CUT_SHORT in line)
    if status and not warnings:
        complaint = "; ".join(complaints(said)) or f"tshark ended with status {status}"
        raise TestbedError(f"{path}: {complaint}", "is it a whole pcap or pcapng file?")
    told = (f"{path.name}: the capture ends in the middle of a packet",) if warnings else ()
    return Packets(packets.rows, packets.start_ns, (*packets.warnings, *told))


def command(path: Path) -> tuple[str, ...]:
    """The command line that prints a capture's fields."""
    argv = ["tshark", "-n", "-r", os.fspath(path), "-Y", FILTER]
    for preference in PREFERENCES:
        argv += ["-o", preference]
    # the last occurrence: within a tunnel, the innermost headers
    argv += ["-T", "fields", "-E", "header=y", "-E", "separator=/t", "-E", "occurrence=l"]
    for field in FIELDS:
        argv += ["-e", field]
    return tuple(argv)


def parse_fields(text: IO[str], name: str = "capture") -> Packets:
    """What tshark printed, as typed columns."""
    try:
        raw = pd.read_csv(
            text,
            sep="\t",
            header=0,
            names=list(FIELDS),
            dtype=dict.fromkeys((*_TEXT[1:], *MARKS), "category") | {_TEXT[0]: "str"},
            quoting=csv.QUOTE_NONE,
        )
    except pd.errors.EmptyDataError:  # tshark gave up before its header
        raw = pd.DataFrame({field: [] for field in FIELDS})
    whole = raw["tcp.len"].notna() | raw["udp.length"].notna()
    cut = int((~whole).sum())
    warnings = (f"{name}: {cut} packets with headers cut short are left out",) if cut else ()
    raw = raw[whole].reset_index(drop=True)
    if raw.empty:
        return Packets(_typed(raw, 0), 0, warnings)
    relative_ns = round(float(raw["frame.time_relative"].iloc[0]) * 1e9)
    # Decimal: a double holds a time since 1970 to a quarter of a microsecond only
    start_ns = int(Decimal(str(raw["frame.time_epoch"].iloc[0])) * 10**9) - relative_ns
    return Packets(_typed(raw, start_ns), start_ns, warnings)


def _typed(raw: pd.DataFrame, start_ns: int) -> pd.DataFrame:
    tcp = raw["tcp.stream"].notna()

    def either(one: str, other: str) -> pd.Series[int]:
        return raw[one].where(tcp, raw[other]).astype("int64")

    relative_ns = (raw["frame.time_relative"].astype("float64") * 1e9).round().astype("int64")
    udp_payload = raw["udp.length"].astype("float64") - 8
    rows = pd.DataFrame(
        {
            "frame": raw["frame.number"].astype("int64"),
            "time_ns": relative_ns + start_ns,
            "length": raw["frame.len"].astype("int64"),
            "protocol": pd.Categorical(np.where(tcp, "tcp", "udp"), categories=["tcp", "udp"]),
            "stream": either("tcp.stream", "udp.stream"),
            "src": _address(raw, "src"),
            "dst": _address(raw, "dst"),
            "src_port": either("tcp.srcport", "udp.srcport"),
            "dst_port": either("tcp.dstport", "udp.dstport"),
            "ip_id": _hexadecimal(raw["ip.id"], missing=-1),
            "seq": raw["tcp.seq"].where(tcp, 0).fillna(0).astype("int64"),
            "ack": raw["tcp.ack"].where(tcp, 0).fillna(0).astype("int64"),
            "payload": raw["tcp.len"].where(tcp, udp_payload).astype("int64"),
            "flags": _hexadecimal(raw["tcp.flags"], missing=0),
            **{field.rpartition(".")[2]: raw[field].notna() for field in MARKS},
            "ack_rtt_ms": raw["tcp.analysis.ack_rtt"].astype("float64") * 1e3,
            "acked_frame": raw["tcp.analysis.acks_frame"].fillna(0).astype("int64"),
        }
    )
    return rows[list(COLUMNS)]


def _address(raw: pd.DataFrame, end: str) -> pd.Series:
    """IPv4 or IPv6, as categories: a capture has few addresses and many packets."""
    four, six = raw[f"ip.{end}"], raw[f"ipv6.{end}"]
    if six.isna().all():
        return four
    text = four.astype("object").where(four.notna(), six.astype("object"))
    return text.astype("category")


def _hexadecimal(column: pd.Series, missing: int) -> pd.Series[int]:
    """Texts like 0x1f2e as numbers; each different text is read once."""
    numbers = {text: int(str(text), 16) for text in column.dropna().unique()}
    return column.astype("object").map(numbers).fillna(missing).astype("int64")


def check_file(path: Path) -> None:
    """tshark takes any text for a capture of nothing: look at the first bytes."""
    if not path.is_file():
        kind = "a folder, not a capture" if path.is_dir() else "no such file"
        raise TestbedError(f"{path}: {kind}", "name a pcap or pcapng file")
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise TestbedError(f"{path}: {error.strerror}", "who may read it? ls -l shows") from error
    if not any(head.startswith(magic) for magic in MAGICS):
        raise TestbedError(
            f"{path}: not a pcap or pcapng capture", "editcap converts other formats"
        )


def complaints(said: str) -> list[str]:
    """tshark's own lines, without the remark that it runs as root."""
    lines = (line.strip() for line in said.splitlines())
    return [line.removeprefix("tshark: ") for line in lines if line.startswith("tshark: ")]
