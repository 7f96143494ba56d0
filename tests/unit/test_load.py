"""What /proc says of processors and processes, between two looks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.store import CPU_LOAD, PROCESS_TIMES
from testbed.trial.parts import cpu_load
from testbed.trial.parts.cpu_load import (
    CpuLoad,
    Scheduled,
    Watched,
    counts_time,
    read_schedstats,
    read_stat,
    shares,
)

BEFORE = """cpu  100 0 50 800 50 0 10 0 0 0
cpu0 60 0 30 380 25 0 5 0 0 0
cpu1 40 0 20 420 25 0 5 0 0 0
intr 12 0
"""
AFTER = """cpu  180 0 60 880 50 0 20 20 0 0
cpu0 140 0 30 380 25 0 15 10 0 0
cpu1 40 0 30 500 25 0 5 10 0 0
"""
ANY_TRIAL: Any = SimpleNamespace()
VIRTUAL = "cpu  0 0 0 300 0 0 0 0 0 0\ncpu0 0 0 0 300 0 0 0 0 0 0\n"


def test_shares_between_two_looks() -> None:
    """Of 200 ticks, 10 of softirq and 20 stolen; cpu0 was never idle."""
    assert shares(read_stat(BEFORE), read_stat(AFTER)) == (1.0, 10 / 200, 20 / 200)


def test_no_tick_between_two_looks() -> None:
    assert shares(read_stat(BEFORE), read_stat(BEFORE)) is None


def test_a_processor_that_was_switched_on() -> None:
    before = read_stat("cpu  0 0 0 10 0 0 0 0\ncpu0 0 0 0 10 0 0 0 0\n")
    after = read_stat("cpu  5 0 0 20 0 0 0 0\ncpu0 0 0 0 20 0 0 0 0\ncpu1 5 0 0 0 0 0 0 0\n")
    assert shares(before, after) == (0.0, 0.0, 0.0)


def test_virtual_time_is_told_from_real_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert counts_time(read_stat(BEFORE))
    assert not counts_time(read_stat(VIRTUAL))
    stat = tmp_path / "stat"
    stat.write_text(VIRTUAL)
    monkeypatch.setattr(cpu_load, "STAT", stat)
    found = CpuLoad(ANY_TRIAL)
    found.write(tmp_path)
    assert list(tmp_path.iterdir()) == [stat]


def test_threads_are_added_up() -> None:
    assert read_schedstats(["10 20 3\n", "1 2 4\n"]) == Scheduled(11, 22, 7)
    assert read_schedstats([]) == Scheduled()


needs_schedstat = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="this kernel does not count"
)


@needs_schedstat
def test_a_process_that_computes() -> None:
    argv = [sys.executable, "-c", "input(); sum(range(10**6)); print(); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(argv, text=True, **pipes)  # type: ignore[call-overload]
    watched = Watched("it", "node", process.pid)
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    watched.look()
    row = watched.row()
    process.communicate("\n")
    watched.look()  # gone: what was read stays
    assert row == watched.row()
    assert row is not None
    assert row[:2] == ("it", "node")
    assert float(str(row[2])) > 0


def test_a_process_that_was_never_seen() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert Watched("it", "", process.pid).row() is None


@needs_schedstat
def test_both_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    stat.write_text(BEFORE)
    monkeypatch.setattr(cpu_load, "STAT", stat)
    found = CpuLoad(ANY_TRIAL)
    found.sample(0.0)
    stat.write_text(AFTER)
    found.sample(1.0)
    found.stop()
    found.write(tmp_path)
    said = (tmp_path / CPU_LOAD.file).read_text().splitlines()
    assert said == ["time_s,busiest,softirq,steal", "1.000000,1.0000,0.0500,0.1000"]
    names, row = (tmp_path / PROCESS_TIMES.file).read_text().splitlines()
    assert names == "name,node,run_s,wait_s,slices"
    assert row.startswith("trial,,")
