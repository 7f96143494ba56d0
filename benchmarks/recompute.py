"""Round trips, retransmissions and window limits of trials, computed a second time.

    .venv/bin/python -m benchmarks.recompute TRIAL…

From the senders' captures and nothing of analysis: a reader of pcapng in a page, Karn's rule as
RFC 6298 (section 3) says it, and the receiver's window as the ACKs offer it. A line for each TCP
flow and column has the reducer's value, this one and their difference. What must agree is equal to
1e-6 of the value; the time limited by the window is another quantity here (by the capture: no room
for a whole segment; by the kernel: data wait, too) and stands beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.results.reduction import reduction_of
from benchmarks.harness import errors_as_exit
from testbed.errors import TestbedError
from testbed.store.names import RECORD, SCENARIO
from testbed.store.reading import open_trial

OF_AN_INTERFACE, OF_A_PACKET = 1, 6  # of pcapng
TIME_RESOLUTION = 9  # an option of an interface
SYN_BIT, ACK_BIT = 2, 16
AGREES_WITHIN = 1e-6
CAPTURE_SUFFIX = ".pcapng"
KEEP_HINT = "run it again with --captures keep"
AGREEING = ("rtt_min_ms", "rtt_mean_ms", "rtt_p95_ms", "retransmitted")
BESIDE = "receive_window_limited"


@dataclass(frozen=True)
class CapturedSegment:
    """A TCP segment of a capture."""

    time_ns: int
    ends: tuple[bytes, int, bytes, int]  # addresses and ports, the sender's first
    seq: int
    ack: int
    flags: int
    window: int
    payload: int
    scale: int | None  # of a SYN's option


def segments(path: Path) -> Iterator[CapturedSegment]:
    """Yield the segments of TCP over IPv4 over Ethernet in a pcapng of little-endian hosts."""
    content, at, ns_of_unit = path.read_bytes(), 0, 1000
    while at < len(content):
        kind, size = struct.unpack_from("<II", content, at)
        if kind == OF_AN_INTERFACE:
            ns_of_unit = _resolution(content[at + 16 : at + size - 4])
        elif kind == OF_A_PACKET:
            high, low, kept = struct.unpack_from("<III", content, at + 12)
            segment = _segment((high << 32 | low) * ns_of_unit, content[at + 28 : at + 28 + kept])
            if segment:
                yield segment
        at += size


def _resolution(options: bytes) -> int:
    at = 0
    while at + 4 <= len(options):
        kind, size = struct.unpack_from("<HH", options, at)
        if kind == TIME_RESOLUTION:
            return int(10 ** (9 - options[at + 4]))
        at += 4 + (size + 3) // 4 * 4
    return 1000


def _segment(time_ns: int, frame: bytes) -> CapturedSegment | None:
    if frame[12:14] != b"\x08\x00" or frame[23] != 6:
        return None
    begin = 14 + (frame[14] & 15) * 4
    total = struct.unpack_from(">H", frame, 16)[0]
    src, dst, seq, ack, flags, window = struct.unpack_from(">HHIIHH", frame, begin)
    header = (flags >> 12) * 4
    options, scale = frame[begin + 20 : begin + header], None
    while options and options[0]:
        if options[0] == 3:
            scale = options[2]
        options = options[1 if options[0] == 1 else options[1] :]
    payload = total - (begin - 14) - header
    ends = (frame[26:30], src, frame[30:34], dst)
    return CapturedSegment(time_ns, ends, seq, ack, flags & 0xFF, window, payload, scale)


@dataclass
class Connection:
    """A connection as its sender's capture shows it, segment by segment."""

    start_ns: int
    stop_ns: int
    zero: int | None = None  # the first sequence number
    highest: int = 0
    acked: int = 0
    edge: int | None = None  # of the window that the receiver offers
    scale: int = 0
    segment_bytes: int = 0
    widest: int = 0
    again: int = 0
    limited_ns: int = 0
    latest_ns: int = 0
    rtts_ms: list[float] = field(default_factory=list)
    waiting: deque[tuple[int, int, bool]] = field(default_factory=deque)  # end, time, has data
    twice: list[tuple[int, int]] = field(default_factory=list)  # bytes

    def _place(self, seq: int) -> int:
        """Count bytes from the connection's first one on, past 2³²."""
        assert self.zero is not None
        near = (seq - self.zero - self.highest + 2**31) % 2**32 - 2**31
        return self.highest + near

    def _measures(self, time_ns: int) -> bool:
        return self.start_ns <= time_ns <= self.stop_ns

    def _pass(self, time_ns: int) -> None:
        """Add the time since the last segment if the window had no room for another."""
        if self.edge is not None and self.edge - self.highest < self.segment_bytes:
            begin, end = max(self.latest_ns, self.start_ns), min(time_ns, self.stop_ns)
            self.limited_ns += max(0, end - begin)
        self.latest_ns = time_ns

    def send(self, sent: CapturedSegment) -> None:
        """Take a segment of the sender."""
        size = sent.payload + bool(sent.flags & SYN_BIT) + bool(sent.flags & 1)
        if self.zero is None:
            self.zero = sent.seq
        if not size:
            return
        begin = self._place(sent.seq)
        self._pass(sent.time_ns)
        self.segment_bytes = max(self.segment_bytes, sent.payload)
        if begin < self.highest:
            self.again += self._measures(sent.time_ns)
            self.twice.append((begin, begin + size))
        if begin + size > self.highest:
            self.waiting.append((begin + size, sent.time_ns, sent.payload > 0))
            self.highest = begin + size

    def hear(self, heard: CapturedSegment) -> None:
        """Take a segment of the receiver."""
        if self.zero is None or not heard.flags & ACK_BIT:
            return
        ack = self._place(heard.ack)
        self._pass(heard.time_ns)
        if heard.flags & SYN_BIT:
            self.scale = heard.scale or 0
        window = heard.window << (0 if heard.flags & SYN_BIT else self.scale)
        if not heard.flags & SYN_BIT:
            self.widest = max(self.widest, window)
        if ack >= self.acked:
            self.edge = ack + window
        if ack <= self.acked:
            return
        ambiguous = any(begin < ack and end > self.acked for begin, end in self.twice)
        self.twice = [each for each in self.twice if each[1] > ack]
        self.acked, last = ack, None
        while self.waiting and self.waiting[0][0] <= ack:
            last = self.waiting.popleft()
        ends_here = last is not None and last[0] == ack and last[2]
        if last and ends_here and not ambiguous and self._measures(heard.time_ns):
            self.rtts_ms.append((heard.time_ns - last[1]) / 1e6)


def _quantile(values: list[float], fraction: float) -> float:
    ordered = sorted(values)
    place = fraction * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def recompute(trial: Path, flow: dict[str, Any], measure_from_s: float) -> dict[str, float]:
    """Return the columns of a flow, and the widest window offered after the handshake."""
    record = json.loads((trial / RECORD).read_text())
    zero_ns = round(record["epoch_s"] * 1e6) * 1000
    interval = [
        zero_ns + round(at_s * 1e9)
        for at_s in (max(flow["started_s"], measure_from_s), flow["stopped_s"])
    ]
    role = f"sender:{flow['name']}"
    (file,) = (each["file"] for each in record["captures"] if role in each["roles"])
    if not file.endswith(CAPTURE_SUFFIX):  # dropped, or compressed
        raise TestbedError(f"{trial.name}: its captures are not there as they were made", KEEP_HINT)
    packed = [bytes(map(int, flow[f"{end}_address"].split("."))) for end in ("src", "dst")]
    known: dict[int, Connection] = {}
    for each in segments(trial / file):
        src, src_port, dst, dst_port = each.ends
        if (src, dst, dst_port) == (*packed, flow["dst_port"]):
            if src_port in flow["src_ports"]:
                known.setdefault(src_port, Connection(*interval)).send(each)
        elif (dst, src, src_port) == (*packed, flow["dst_port"]) and dst_port in known:
            known[dst_port].hear(each)
    rtts = [rtt for each in known.values() for rtt in each.rtts_ms]
    seconds = (interval[1] - interval[0]) / 1e9
    return {
        "rtt_min_ms": min(rtts, default=math.nan),
        "rtt_mean_ms": math.fsum(rtts) / len(rtts) if rtts else math.nan,
        "rtt_p95_ms": _quantile(rtts, 0.95) if rtts else math.nan,
        "retransmitted": sum(each.again for each in known.values()),
        BESIDE: sum(each.limited_ns for each in known.values()) / 1e9 / seconds / len(known),
        "widest": max(each.widest for each in known.values()),
    }


@errors_as_exit()
def main() -> None:
    """Print a line for each flow and column; exit with 1 if one differs."""
    parser = argparse.ArgumentParser(description="Columns of trials, computed a second time.")
    parser.add_argument("trials", nargs="+", type=Path, metavar="TRIAL")
    different = 0
    print(f"{'flow':40} {'column':24} {'reducer':>14} {'recomputed':>14} {'difference':>11}")
    for path in parser.parse_args().trials:
        table = reduction_of(open_trial(path)).flows.set_index("flow")
        scenario = json.loads((path / SCENARIO).read_text())
        windows = {each["name"]: each.get("window_bytes") for each in scenario["flows"]}
        for flow in json.loads((path / RECORD).read_text())["flows"]:
            if flow["protocol"] != "tcp" or not flow["src_ports"] or not flow["dst_port"]:
                continue
            recomputed = recompute(path, flow, scenario.get("measure_from_s", 0.0))
            name = f"{path.name.split('-seed')[0][:28]} {flow['name']}"
            for column in (*AGREEING, BESIDE):
                value = float(table.loc[flow["name"], column])
                off = abs(value - recomputed[column])
                unequal = column in AGREEING and not off <= AGREES_WITHIN * max(1.0, abs(value))
                different += unequal
                note = "  DIFFERENT" if unequal else ""
                line = f"{name:40} {column:24} {value:14.6f} {recomputed[column]:14.6f} {off:11.2e}"
                print(line + note)
            told = "" if windows[flow["name"]] is None else f"the scenario: {windows[flow['name']]}"
            print(f"{name:40} {'widest window, bytes':24} {'':14} {recomputed['widest']:14} {told}")
    if different:
        raise TestbedError(f"{different} columns differ")


if __name__ == "__main__":
    main()
