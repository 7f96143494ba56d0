"""Captures that are cheap to make and dear to read: bounded in time and in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import heavy_captures

CPU_S = 20  # what was quadratic took minutes of it
MEMORY_BYTES = 10**9
TABLES = ((), ("--format", "csv"), ("--bin", "1s"), ("--bin", "1s", "--format", "csv"))


@dataclass(frozen=True)
class Spent:
    """How a `testbed reduce` ended, and what it took."""

    status: int
    cpu_s: float
    memory_bytes: int


# A small process starts it: what its parent had in memory counts as a new process's own.
STARTER = """
import resource, subprocess, sys
cpu_s, *argv = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s)))
status = subprocess.run(argv, stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
"""


def reduce(path: Path, *arguments: str) -> Spent:
    """In a process of its own, which ends at the limit."""
    reduced = (sys.executable, "-m", "experiments", "reduce", *arguments, str(path))
    argv = (sys.executable, "-c", STARTER, str(CPU_S), *reduced)
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    return Spent(int(said[0]), float(said[1]), int(said[2]))


@pytest.mark.parametrize(
    ("write", "size"), [(heavy_captures.large_blocks, 12), (heavy_captures.fragments, 250_000)]
)
def test_small_files(tmp_path: Path, write: Callable[[Path, int], Path], size: int) -> None:
    assert reduce(write(tmp_path / "x", size)).status == 0


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("arguments", TABLES, ids=" ".join)
def test_many_flows(tmp_path: Path, full: bool, arguments: tuple[str, ...]) -> None:
    path = heavy_captures.flows(tmp_path / "x.pcap", 1_000_000 if full else 20_000)
    spent = reduce(path, *arguments)
    print(f"\n{' '.join(arguments) or 'flows'}: {spent}")
    assert spent.status == 0 and spent.memory_bytes < MEMORY_BYTES
