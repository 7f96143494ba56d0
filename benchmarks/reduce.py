"""The reduction of captures beside tshark and pyshark: speed, start and memory.

    .venv/bin/python -m benchmarks.reduce [--packets N] [--repeats N] [--long GB] [--no-pyshark]

The capture is bulk transfer over 40 connections with a little loss and reordering. Each time
is a whole process's, Python's start included, with the file in the page cache; ratios are of
medians, and of processor time too, which says more on a machine that is busy with other work.
tshark prints the fields that our columns are held against (analysis/captures/tshark.py): once,
because ten million packets take it minutes. pyshark's time is extrapolated from 5,000 packets.
A capture of so many GB is written for the memory of flows, in /var/tmp, and deleted.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from analysis.captures.tshark import command
from testbed.machine.process import run, stream

CONNECTIONS = 40
SEGMENT = 1448
HEADERS_BYTES = 16 + 66  # a record's header; Ethernet, IP, and TCP with timestamps
PYSHARK_PACKETS = 5_000
SMALL_PACKETS = 100

# ru_maxrss would count what the parent had when it forked
PEAK = """
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
"""
COLUMNS_PROGRAM = f"""
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
FLOWS_PROGRAM = f"""
import sys
from pathlib import Path
from analysis.captures.flow_tables import read_flows
rows = read_flows(Path(sys.argv[1])).table
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
            struct.pack("<IIII", seconds, rest, HEADERS_BYTES - 16, HEADERS_BYTES - 16 + size),
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
        "itemsize": HEADERS_BYTES,
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


@dataclass(frozen=True)
class ProcessCost:
    """What a process took."""

    wall_s: float
    processor_s: float  # of all its threads

    def ratio(self, other: ProcessCost) -> str:
        """How many times as much the other one took."""
        return (
            f"{other.wall_s / self.wall_s:.0f} times ({other.processor_s / self.processor_s:.0f} "
            "of the processor time)"
        )


def cost(act: Callable[[], object]) -> ProcessCost:
    """Measure the processes that a function starts and waits for."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    act()
    wall_s, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return ProcessCost(wall_s, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def median(repeats: int, act: Callable[[], object]) -> ProcessCost:
    """Return the median cost of several calls, after one that warms up."""
    act()
    costs = [cost(act) for _ in range(repeats)]
    return ProcessCost(
        statistics.median(each.wall_s for each in costs),
        statistics.median(each.processor_s for each in costs),
    )


def python(program: str, path: Path) -> list[int]:
    """Run a program in a process of its own; the numbers that it prints."""
    return [int(word) for word in run([sys.executable, "-c", program, str(path)]).stdout.split()]


def print_fields(path: Path) -> None:
    """Have tshark print a capture's fields, and discard them."""
    with stream(command(path)) as process:
        assert process.stdout is not None
        while process.stdout.read(1 << 20):
            pass


def bytes_a_packet(program: str, path: Path, empty: Path, packets: int) -> float:
    """Peak memory beyond what an empty capture takes."""
    return (python(program, path)[1] - python(program, empty)[1]) * 1024 / packets


def compressed(path: Path) -> Path:
    """Compress a capture with zstd, as trials do."""
    import pyarrow as pa

    packed = path.with_suffix(".pcap.zst")
    with path.open("rb") as file, pa.CompressedOutputStream(str(packed), "zstd") as into:
        while chunk := file.read(1 << 20):
            into.write(chunk)
    return packed


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Speed and memory of the reduction.")
    parser.add_argument("--packets", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--long", type=float, default=1, metavar="GB")
    parser.add_argument("--no-pyshark", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="testbed-benchmark-", dir="/var/tmp") as name:
        folder = Path(name)
        large = write_capture(folder / "large.pcap", *whole_copies(options.packets))
        speed(folder, large, options.packets, options.repeats)
        if not options.no_pyshark:
            beside_pyshark(folder, options.packets, large)
        memory(folder, large, options.packets)
        large.unlink()
        constant_memory(folder, options.long)


def whole_copies(packets: int) -> tuple[int, int]:
    """So many packets as copies of at most a million, which a second makes."""
    copies = -(-packets // 1_000_000)
    return packets // copies, copies


def speed(folder: Path, large: Path, packets: int, repeats: int) -> None:
    """Columns, tables and flows beside tshark."""
    small = write_capture(folder / "small.pcap", SMALL_PACKETS)
    packed = compressed(large)
    ours = {
        "all columns": median(repeats, lambda: python(COLUMNS_PROGRAM, large)),
        "as a pandas table": median(repeats, lambda: python(TABLE, large)),
        "flows": median(repeats, lambda: python(FLOWS_PROGRAM, large)),
        "flows, zstd": median(repeats, lambda: python(FLOWS_PROGRAM, packed)),
    }
    theirs = cost(lambda: print_fields(large))
    print(f"{packets} packets, medians of whole processes")
    for what, taken in (*ours.items(), ("tshark -T fields", theirs)):
        print(
            f"  {what:18} {taken.wall_s:8.3f} s {packets / taken.wall_s / 1e6:6.2f} M packets/s, "
            f"{taken.processor_s:8.3f} s of processor time"
        )
    print(f"  columns: tshark takes {ours['all columns'].ratio(theirs)} (at least 200 times)")
    print(f"  flows: tshark takes {ours['flows'].ratio(theirs)}")
    reduce = [sys.executable, "-m", "experiments", "reduce", str(small)]
    start = median(repeats, lambda: run(reduce))
    print(f"  a small capture    {start.wall_s:8.3f} s (at most 0.5 s)")


def beside_pyshark(folder: Path, packets: int, large: Path) -> None:
    """pyshark, by its time for a few packets."""
    some = write_capture(folder / "some.pcap", PYSHARK_PACKETS)
    columns = cost(lambda: python(COLUMNS_PROGRAM, large))
    wall_s = cost(lambda: python(PYSHARK, some)).wall_s * packets / PYSHARK_PACKETS
    print(
        f"  pyshark, extrapolated {wall_s:.0f} s: {wall_s / columns.wall_s:.0f} times (at least "
        "3000)"
    )


def memory(folder: Path, large: Path, packets: int) -> None:
    """Bytes that a packet takes."""
    empty = write_capture(folder / "empty.pcap", 0)
    for name, program in (("all columns ", COLUMNS_PROGRAM), ("pandas table", TABLE)):
        grown = bytes_a_packet(program, large, empty, packets)
        print(f"  memory, {name} {grown:8.0f} bytes a packet (at most 150)")


def constant_memory(folder: Path, gigabytes: float) -> None:
    """Flows of a capture of so many GB, and of a tenth of it."""
    copies = max(10, round(gigabytes * 1e9 / (1_000_000 * HEADERS_BYTES)))
    for count in (copies // 10, copies):
        path = write_capture(folder / "long.pcap", 1_000_000, count)
        begin = time.monotonic()
        peak_kb = python(FLOWS_PROGRAM, path)[1]
        print(
            f"  memory, flows of {path.stat().st_size / 1e9:.1f} GB: {peak_kb / 1024:.1f} MB, "
            f"in {time.monotonic() - begin:.1f} s"
        )


if __name__ == "__main__":
    main()
