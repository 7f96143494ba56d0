"""A capture's TCP and UDP packets as tshark prints them, the reference for the project's reader."""

from __future__ import annotations

import contextlib
import csv
import functools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from testbed.errors import TestbedError
from testbed.machine.process import run, stream

MARKS = {  # our column → the field that is there or not
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
NUMBERS = {  # our column → the fields of which a packet has one
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
TIMES = {  # ours in ns or ms, theirs in seconds
    "time_ns": "frame.time_epoch",
    "ack_rtt_ms": "tcp.analysis.ack_rtt",
    "initial_rtt_ms": "tcp.analysis.initial_rtt",
}
ADDRESSES = {"src": ("ip.src", "ipv6.src"), "dst": ("ip.dst", "ipv6.dst")}
ECN = ("ip.dsfield.ecn", "ipv6.tclass.ecn")
SACK = ("tcp.options.sack_le", "tcp.options.sack_re")  # an occurrence a block

FIELDS = (
    *(field for fields in NUMBERS.values() for field in fields),
    *TIMES.values(),
    *HEXADECIMAL.values(),
    *(field for fields in ADDRESSES.values() for field in fields),
    *ECN,
    SACK[0],
    *MARKS.values(),
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
TUNNELS = ("vxlan", "geneve")  # … and these too, unless they are asked for
VXLAN_GPE = "udp.port==4790"  # the same, but Wireshark 4.4 cannot disable it apart from vxlan
# An ICMP error quotes a TCP header without being TCP.
FILTER = "(tcp or udp) and not (icmp or icmpv6)"
FOLLOWED = "4.0"  # the Wireshark whose rules ours are
ROWS = 1 << 17  # read at a time
CUT_SHORT = "cut short"  # tshark's words; what came before is good


def command(
    path: Path,
    fields: Sequence[str] = FIELDS,
    chosen: str = FILTER,
    occurrence: str = "l",
    *,
    tunnels: bool = False,
) -> tuple[str, ...]:
    """The command line that prints a capture's fields."""
    argv = ["tshark", "-n", "-r", os.fspath(path), "-Y", chosen]
    for protocol in DISABLED if tunnels else (*DISABLED, *TUNNELS):
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
    for field in fields:
        argv += ["-e", field]
    return tuple(argv)


@functools.cache
def version() -> str:
    """The installed tshark's version, as `4.0.17`."""
    found = re.search(r"\d+\.\d+\.\d+", run(["tshark", "--version"]).stdout)
    return found[0] if found else "of unknown version"


def read_fields(path: Path, *, tunnels: bool = False) -> Iterator[pd.DataFrame]:
    """The packets' fields as texts, missing where a packet has none, some rows at a time.

    Packets whose headers are cut short, so that their length is not known, are left out.
    """
    return map(_whole, _read(path, command(path, tunnels=tunnels), FIELDS))


def read_sacks(
    path: Path, *, tunnels: bool = False
) -> Iterator[tuple[int, list[tuple[int, int]] | None]]:
    """The frames with SACK blocks, and those; None where an option is malformed."""
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
                chunksize=ROWS,
            )
        said = process.stderr.read()
        status = process.wait()
    # 2: the capture is damaged or cut short; what came before was printed
    if status not in (0, 2):
        complaint = "; ".join(complaints(said)) or f"tshark ended with status {status}"
        raise TestbedError(f"{path}: {complaint}")


def _whole(rows: pd.DataFrame) -> pd.DataFrame:
    stream = rows["tcp.stream"].notna() | rows["udp.stream"].notna()
    length = rows["tcp.len"].notna() | rows["udp.length"].notna()
    return rows[stream & length]


def complaints(said: str) -> list[str]:
    """tshark's own lines, without the remark that it runs as root."""
    lines = (line.strip() for line in said.splitlines())
    return [line.removeprefix("tshark: ") for line in lines if line.startswith("tshark: ")]
