"""The reduction of captures beside tshark and pyshark: speed, start and memory.

    .venv/bin/python -m benchmarks.reduce [--packets N] [--repeats N] [--long GB] [--no-pyshark]

The captures are written for it, in /var/tmp: bulk transfer over 40 connections, with late segments.
Each time is a whole process's, Python's start included, with the file in the page cache: medians,
and their ratios to tshark. It prints the fields that our columns are compared with
(analysis/captures/tshark.py), once, because ten million packets take it minutes. pyshark's time is
extrapolated from 5,000 packets. A capture of `--long` GB, and one of a tenth of it, show whether
the memory that flows take grows with the capture.
"""

from __future__ import annotations

import functools
import statistics
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.captures.tshark import command
from benchmarks.harness import (
    Cost,
    in_turns,
    measured,
    one_more,
    parser_of,
    print_costs,
    scratch_folder,
)
from testbed.machine.process import run, stream

CONNECTIONS = 40
BULK_SEGMENT_BYTES = 1448
LATE_SHARE, LATE_BY = 0.002, 20  # of the segments; segments that overtake a late one
ROUNDS_AT_ONCE = 4096  # that are written; one is two segments and an ACK of each connection
PACKET_NS = 2500  # from one packet to the next
PCAP_RECORD = np.dtype(
    [("s", "<u4"), ("ns", "<u4"), ("sizes", "<u4", 2), ("ethernet", "V14"), ("ip", "V12")]
    + [("ends", ">u4", 2), ("ports", ">u2", 2), ("seq", ">u4"), ("ack", ">u4"), ("flags", ">u2")]
    + [("window", ">u2"), ("rest", ">u4"), ("option", "V4"), ("stamps", ">u4", 2)]
)
PYSHARK_PACKETS = 5_000
MAX_BYTES_A_PACKET = 150
TSHARK, SMALL_CAPTURE = "tshark -T fields", "a small capture"
MAX_OF_TSHARK_TIME = {("all columns", TSHARK): 1 / 300, ("flows", TSHARK): 1 / 350}
# of a process that prints the length of a table; ru_maxrss would count the parent's memory
COUNT_ROWS = """
import sys
from pathlib import Path
from analysis.captures.{module} import {function}
found = {function}(Path(sys.argv[1])).{table}
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(len(found), peak)
"""
REDUCTION_PROGRAMS = {
    "all columns": COUNT_ROWS.format(
        module="tcp", function="read_arrays", table='columns["frame"]'
    ),
    "as a pandas table": COUNT_ROWS.format(module="tcp", function="read_capture", table="rows"),
    "flows": COUNT_ROWS.format(module="flow_tables", function="read_flows", table="table"),
}
PYSHARK = f"""
import itertools, sys, pyshark
with pyshark.FileCapture(sys.argv[1], keep_packets=False) as capture:
    print(sum(1 for packet in itertools.islice(capture, {PYSHARK_PACKETS})))
"""


def write_capture(path: Path, packets: int) -> Path:
    """Write a capture of that many packets, of which it has the first 66 bytes."""
    rounds = packets // (3 * CONNECTIONS)
    numbers = np.arange(2 * rounds)
    late = np.random.default_rng(1).random(2 * rounds) < LATE_SHARE
    arrived = np.argsort(numbers + LATE_BY * late, kind="stable")  # segments, by their arrival
    missing = np.append(np.minimum.accumulate(arrived[::-1])[::-1], 2 * rounds)[2::2]
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for begin in range(0, rounds, ROUNDS_AT_ONCE):
            few = slice(begin, min(begin + ROUNDS_AT_ONCE, rounds))
            records = np.zeros((few.stop - begin, 3, CONNECTIONS), PCAP_RECORD)
            times = (3 * CONNECTIONS * begin + np.arange(records.size)) * PACKET_NS
            records["s"], records["ns"] = np.divmod(times.reshape(records.shape), 10**9)
            records["stamps"] = records["s"][..., np.newaxis]
            records["ethernet"] = bytes.fromhex("020000000001 020000000002 0800")
            records["option"] = bytes.fromhex("0101080a")
            records["flags"], records["window"] = 0x8010, 500
            segments = 1 + BULK_SEGMENT_BYTES * arrived.reshape(rounds, 2, 1)[few]
            acks = 1 + BULK_SEGMENT_BYTES * missing[few, np.newaxis]
            records["seq"][:, :2], records["ack"][:, :2] = segments.astype(np.uint32), 1
            records["seq"][:, 2], records["ack"][:, 2] = 1, acks.astype(np.uint32)
            for row, payload in enumerate((BULK_SEGMENT_BYTES, BULK_SEGMENT_BYTES, 0)):
                packet = records[:, row]
                packet["sizes"] = (66, 66 + payload)
                packet["ip"] = struct.pack("!BBHHHBBH", 0x45, 2, 52 + payload, 0, 0x4000, 64, 6, 0)
                way = 1 if payload else -1
                packet["ends"] = (0x0A000001, 0x0A000102)[::way]
                ports = np.stack((40000 + np.arange(CONNECTIONS), np.full(CONNECTIONS, 5201)), 1)
                packet["ports"] = ports[:, ::way]
            file.write(records.tobytes())
    return path


def compressed(path: Path) -> Path:
    """Write a capture again as zstd, as trials keep it."""
    packed = path.with_suffix(".pcap.zst")
    with path.open("rb") as file, pa.CompressedOutputStream(str(packed), "zstd") as into:
        while chunk := file.read(1 << 20):
            into.write(chunk)
    return packed


def run_python(program: str, path: Path) -> list[int]:
    """Run a program in its own process, and return the numbers that it prints."""
    return [int(word) for word in run([sys.executable, "-c", program, str(path)]).stdout.split()]


def print_fields(path: Path) -> None:
    """Let tshark print a capture's fields, and discard them."""
    with stream(command(path)) as process:
        assert process.stdout is not None
        while process.stdout.read(1 << 20):
            pass


def beside_tshark(folder: Path, packets: int, repeats: int, with_pyshark: bool) -> None:
    """Print the times of columns, table and flows beside those of tshark and pyshark."""
    large, small = (folder / name for name in ("large.pcap", "small.pcap"))
    write_capture(large, packets)
    write_capture(small, 3 * CONNECTIONS)
    cases: dict[str, Callable[[], object]] = {
        name: functools.partial(run_python, program, large)
        for name, program in REDUCTION_PROGRAMS.items()
    }
    packed = compressed(large)
    cases["flows, zstd"] = lambda: run_python(REDUCTION_PROGRAMS["flows"], packed)
    reduce = [sys.executable, "-m", "experiments", "reduce", str(small)]
    cases[SMALL_CAPTURE] = lambda: run(reduce)
    in_turns(cases, 1)  # to warm up
    costs = in_turns(cases, repeats, statistics.median)
    costs[TSHARK] = measured(lambda: print_fields(large))[1]
    if with_pyshark:
        some, times = (
            write_capture(folder / "some.pcap", PYSHARK_PACKETS),
            packets / PYSHARK_PACKETS,
        )
        few = measured(lambda: run_python(PYSHARK, some))[1]
        costs["pyshark, extrapolated"] = one_more(Cost(0), few, 1 / times)

    def speed(_name: str, spent: Cost) -> str:
        return f"{packets / spent.wall_s / 1e6:.2f} M packets/s"

    print("medians of whole processes: a small capture, at most 0.5 s")
    print_costs({SMALL_CAPTURE: costs.pop(SMALL_CAPTURE)})
    print(f"{packets} packets")
    print_costs(costs, [TSHARK], MAX_OF_TSHARK_TIME, speed)


def memory(folder: Path, packets: int, long_gb: float) -> None:
    """Print the memory that a packet takes in columns, and flows of captures of two sizes."""
    large, empty = folder / "large.pcap", write_capture(folder / "empty.pcap", 0)
    for name in ("all columns", "as a pandas table"):
        kib, least_kib = (run_python(REDUCTION_PROGRAMS[name], at)[1] for at in (large, empty))
        grown = 1024 * (kib - least_kib) / packets
        print(f"  {name}: {grown:.0f} bytes a packet (at most {MAX_BYTES_A_PACKET})")
    for gigabytes in (long_gb / 10, long_gb):
        path = write_capture(large, round(gigabytes * 1e9 / PCAP_RECORD.itemsize))
        peak_mb = run_python(REDUCTION_PROGRAMS["flows"], path)[1] / 1024
        print(f"  flows of {gigabytes:g} GB: {peak_mb:.0f} MB")


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--packets", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--long", type=float, default=1, metavar="GB")
    parser.add_argument("--no-pyshark", action="store_true")
    options = parser.parse_args()
    with scratch_folder() as name:
        folder = Path(name)
        beside_tshark(folder, options.packets, options.repeats, not options.no_pyshark)
        memory(folder, options.packets, options.long)


if __name__ == "__main__":
    main()
