"""Captures that are cheap to make and dear to read: bounded in time and in memory."""

from __future__ import annotations

import os
import resource
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


def reduce(path: Path, *arguments: str) -> Spent:
    """In a process of its own, which ends at the limit."""
    argv = (sys.executable, "-m", "experiments", "reduce", *arguments, str(path))
    pid = os.fork()
    if not pid:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(argv[0], argv)
    _, status, usage = os.wait4(pid, 0)
    spent = usage.ru_utime + usage.ru_stime
    return Spent(os.waitstatus_to_exitcode(status), spent, usage.ru_maxrss * 1024)


@pytest.mark.parametrize(
    ("write", "size"), [(heavy_captures.large_blocks, 12), (heavy_captures.fragments, 250_000)]
)
def test_small_files(tmp_path: Path, write: Callable[[Path, int], Path], size: int) -> None:
    assert reduce(write(tmp_path / "x", size)).status == 0


@pytest.mark.parametrize("arguments", TABLES, ids=" ".join)
def test_many_flows(tmp_path: Path, full: bool, arguments: tuple[str, ...]) -> None:
    path = heavy_captures.flows(tmp_path / "x.pcap", 1_000_000 if full else 20_000)
    spent = reduce(path, *arguments)
    print(f"\n{' '.join(arguments) or 'flows'}: {spent}")
    assert spent.status == 0 and spent.memory_bytes < MEMORY_BYTES
