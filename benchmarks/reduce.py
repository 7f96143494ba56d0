"""The reduction of captures beside tshark and pyshark: speed, start and memory.

    .venv/bin/python -m benchmarks.reduce [--packets N] [--repeats N] [--no-pyshark]

The capture is bulk transfer over 40 connections with a little loss and reordering. Each time
is a whole process's, Python's start included, with the file in the page cache; ratios are of
medians. tshark prints the fields that our columns are held against (analysis/captures/tshark.py).
pyshark's time is extrapolated from 5,000 packets.
"""

from __future__ import annotations

import argparse
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np

from analysis.captures.tshark import command
from testbed.machine.process import run, stream

CONNECTIONS = 40
SEGMENT = 1448
RECORD = 16 + 66  # a record's header; Ethernet, IP, and TCP with timestamps
PYSHARK_PACKETS = 5_000
SMALL_PACKETS = 100

# ru_maxrss would count what the parent had when it forked
PEAK = """
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
"""
COLUMNS = f"""
import sys
from pathlib import Path
from analysis.captures.tcp import read_arrays
arrays = read_arrays(Path(sys.argv[1]))
{PEAK}
print(len(arrays.columns["frame"]), peak)
"""
TABLE = f"""
import sys
from pathlib import Path
from analysis.captures.tcp import read_capture
rows = read_capture(Path(sys.argv[1])).rows
{PEAK}
print(len(rows), peak)
"""
FLOWS = f"""
import sys
from pathlib import Path
from analysis.captures.flow_table import read_flows
rows = read_flows(Path(sys.argv[1])).table["flow"]
{PEAK}
print(len(rows), peak)
"""
PYSHARK = """
import sys, pyshark
with pyshark.FileCapture(sys.argv[1], keep_packets=False) as capture:
    print(sum(1 for packet in capture if "TCP" in packet))
"""


# The capture


def _record(time_ns: int, connection: int, back: bool, seq: int, ack: int, size: int) -> bytes:
    seconds, rest = divmod(time_ns, 10**9)
    ends = bytes((10, 0, 0, 2)), bytes((10, 0, 1, connection))
    ports = 5201, 40000 + connection
    src, dst = (0, 1) if back else (1, 0)
    return b"".join(
        (
            struct.pack("<IIII", seconds, rest, RECORD - 16, RECORD - 16 + size),
            bytes.fromhex("020000000001 020000000002 0800"),
            struct.pack("!BBHHHBBH", 0x45, 2, 52 + size, 0, 0x4000, 64, 6, 0),
            ends[src],
            ends[dst],
            struct.pack("!HHIIBBHHH", ports[src], ports[dst], seq, ack, 0x80, 16, 500, 0, 0),
            bytes.fromhex("0101080a") + struct.pack("!II", seconds, seconds),
        )
    )


def _transfer(connection: int, count: int) -> Iterator[tuple[int, bytes]]:
    """One connection's packets: two segments, an acknowledgement, now and then a loss."""
    rng = Random(connection)
    time_ns, seq, acked = 1_700_000_000 * 10**9, 1, 1
    lost: int | None = None
    for number in range(count):
        time_ns += 100_000
        if number % 3 == 2:
            acked = seq if lost is None else lost
            yield time_ns, _record(time_ns, connection, True, 1, acked, 0)
        elif lost is not None and rng.random() < 0.1:
            yield time_ns, _record(time_ns, connection, False, lost, 1, SEGMENT)
            lost = None
        else:
            if lost is None and rng.random() < 0.002:
                lost = seq
            yield time_ns, _record(time_ns, connection, False, seq, 1, SEGMENT)
            seq = (seq + SEGMENT) % 2**32


# of a record, what makes it a later one of the same connection
LAYOUT = np.dtype(
    {
        "names": ["seconds", "seq", "ack"],
        "formats": ["<u4", ">u4", ">u4"],
        "offsets": [0, 16 + 38, 16 + 42],
        "itemsize": RECORD,
    }
)


def write_capture(path: Path, packets: int, copies: int = 1) -> Path:
    """So many packets, by time; each copy goes on where the one before ended."""
    seen = [
        (time_ns, number, data)
        for number in range(CONNECTIONS)
        for time_ns, data in _transfer(number, packets // CONNECTIONS)
    ]
    seen.sort(key=lambda each: each[0])
    connection = np.array([number for _, number, _ in seen], np.intp)
    content = np.frombuffer(b"".join(data for *_, data in seen), np.uint8).copy()
    records = content.view(LAYOUT)
    is_data = records["seq"] > 1
    sent = np.zeros(CONNECTIONS, np.uint32)
    np.maximum.at(sent, connection, records["seq"])
    step = sent[connection] + SEGMENT - 1
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for _ in range(copies):
            file.write(content.tobytes())
            records["seconds"] += 3600
            records["seq"] += np.where(is_data, step, 0).astype(np.uint32)
            records["ack"] += np.where(is_data, 0, step).astype(np.uint32)
    return path


# Measurements


def seconds(act: Callable[[], object]) -> float:
    """How long it takes."""
    begin = time.monotonic()
    act()
    return time.monotonic() - begin


def median(repeats: int, act: Callable[[], object]) -> float:
    """The median of several times, after one that warms up."""
    act()
    return statistics.median(seconds(act) for _ in range(repeats))


def python(program: str, path: Path) -> list[int]:
    """Run a program in a process of its own; the numbers that it prints."""
    return [int(word) for word in run([sys.executable, "-c", program, str(path)]).stdout.split()]


def print_fields(path: Path) -> None:
    """What tshark prints goes nowhere."""
    with stream(command(path)) as process:
        assert process.stdout is not None
        while process.stdout.read(1 << 20):
            pass


def bytes_a_packet(program: str, path: Path, empty: Path, packets: int) -> float:
    """Peak memory beyond what an empty capture takes."""
    return (python(program, path)[1] - python(program, empty)[1]) * 1024 / packets


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Speed and memory of the reduction.")
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-pyshark", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="testbed-benchmark-", dir="/var/tmp") as name:
        compare(Path(name), options.packets, options.repeats, not options.no_pyshark)


def compare(folder: Path, packets: int, repeats: int, with_pyshark: bool) -> None:
    """The table, line by line."""
    empty = write_capture(folder / "empty.pcap", 0)
    small = write_capture(folder / "small.pcap", SMALL_PACKETS)
    large = write_capture(folder / "large.pcap", packets)
    table_s = median(repeats, lambda: python(TABLE, large))
    columns_s = median(repeats, lambda: python(COLUMNS, large))
    flows_s = median(repeats, lambda: python(FLOWS, large))
    theirs_s = median(min(repeats, 3), lambda: print_fields(large))
    print(f"{packets} packets, medians of whole processes")
    print(f"  all columns          {columns_s:8.3f} s {packets / columns_s / 1e6:6.2f} M packets/s")
    print(f"  as a pandas table    {table_s:8.3f} s {packets / table_s / 1e6:6.2f} M packets/s")
    print(f"  flows                {flows_s:8.3f} s {packets / flows_s / 1e6:6.2f} M packets/s")
    print(f"  tshark -T fields     {theirs_s:8.3f} s", end="")
    print(
        f"  columns {theirs_s / columns_s:6.1f} x, flows {theirs_s / flows_s:6.1f} x (at least 50)"
    )
    if with_pyshark:
        some = write_capture(folder / "some.pcap", PYSHARK_PACKETS)
        pyshark_s = seconds(lambda: python(PYSHARK, some)) * packets / PYSHARK_PACKETS
        print(f"  pyshark, extrapolated {pyshark_s:7.0f} s", end="")
        print(f"  columns {pyshark_s / columns_s:6.0f} x (at least 3000)")
    reduce = [sys.executable, "-m", "experiments", "reduce", str(small)]
    print(f"  a small capture      {median(repeats, lambda: run(reduce)):8.3f} s (at most 0.5 s)")
    for name, program in (("all columns ", COLUMNS), ("pandas table", TABLE)):
        grown = bytes_a_packet(program, large, empty, packets)
        print(f"  memory, {name} {grown:8.0f} bytes a packet (at most 150)")
    once_kb = python(FLOWS, large)[1]
    longer = write_capture(folder / "longer.pcap", packets, copies=10)
    print(f"  memory, flows        {once_kb / 1024:8.1f} MB; ", end="")
    print(f"{python(FLOWS, longer)[1] / 1024:.1f} MB for a capture ten times as long")


if __name__ == "__main__":
    main()
