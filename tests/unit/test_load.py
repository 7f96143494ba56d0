"""What /proc says of processors and processes, between two looks."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import pytest

from testbed.plan.plan import make_plan
from testbed.store.names import CPU_LOAD, PROCESS_TIMES
from testbed.trial.parts.cpu_load import CpuLoad, Scheduled, read_schedstats, read_stat, shares
from testbed.trial.parts.part import PlannedTrial, TrialTimeline
from tests.obeyed import made_up
from tests.scenarios import router

BEFORE = """cpu  100 0 50 800 50 0 10 0 0 0
cpu0 60 0 30 380 25 0 5 0 0 0
cpu1 40 0 20 420 25 0 5 0 0 0
intr 12 0
"""
AFTER = """cpu  180 0 60 880 50 0 20 20 0 0
cpu0 140 0 30 380 25 0 15 10 0 0
cpu1 40 0 30 500 25 0 5 10 0 0
"""


def test_shares_between_two_looks() -> None:
    """Of 200 ticks, 10 of softirq and 20 stolen; cpu0 was never idle."""
    assert shares(read_stat(BEFORE), read_stat(AFTER)) == (1.0, 10 / 200, 20 / 200)


def test_no_tick_between_two_looks() -> None:
    assert shares(read_stat(BEFORE), read_stat(BEFORE)) is None


def test_a_processor_that_was_switched_on() -> None:
    before = read_stat("cpu  0 0 0 10 0 0 0 0\ncpu0 0 0 0 10 0 0 0 0\n")
    after = read_stat("cpu  5 0 0 20 0 0 0 0\ncpu0 0 0 0 20 0 0 0 0\ncpu1 5 0 0 0 0 0 0 0\n")
    assert shares(before, after) == (0.0, 0.0, 0.0)


def test_threads_are_added_up() -> None:
    assert read_schedstats(["10 20 3\n", "1 2 4\n"]) == Scheduled(11, 22, 7)
    assert read_schedstats([]) == Scheduled()


@pytest.fixture
def part(tmp_path: Path) -> CpuLoad:
    scenario = router()
    (tmp_path / "samples").mkdir()
    return CpuLoad(PlannedTrial(scenario, make_plan(scenario), tmp_path, virtual_time=False))


def files(texts: dict[str, str]) -> bytes:
    """What `read` answers."""
    return "".join(f"{path}\0{text}\0" for path, text in texts.items()).encode()


def test_virtual_time_is_told_from_real_time(part: CpuLoad) -> None:
    trial = part._trial
    assert CpuLoad.wanted(trial)
    assert not CpuLoad.wanted(dataclasses.replace(trial, virtual_time=True))


def test_both_files(part: CpuLoad, tmp_path: Path) -> None:
    """A process that ended has what was read before; one that was never seen has no row."""
    part.process_started("it", "node", "server it")
    part.process_started("none", "node", "server none")
    for at in (100, 101):
        part._look(at)
    part.flow_ends("server it")
    end = TrialTimeline()
    part.schedule_end(end, 5)
    end.write(part._programme)
    programme = part._programme.text.splitlines()
    assert programme[0] == "read\t-\t/proc/{pid:server it}/task/*/schedstat"
    assert programme[2] == programme[3] == "read\t-\t/proc/stat"
    answers = made_up(
        {
            0: files({"/proc/9/task/9/schedstat": "1000000 500000 2"}),
            2: files({"/proc/stat": BEFORE}),
            3: files({"/proc/stat": AFTER}),
            4: files({"a": "2000000 500000 4", "b": "1000000 2000000 1"}),
            100: struct.pack("=q", 0),
            101: struct.pack("=q", 1_000_000_000),
        }
    )
    part.write(tmp_path, answers)
    said = (tmp_path / CPU_LOAD.file).read_text().splitlines()
    assert said == ["time_s,busiest,softirq,steal", "1.000000,1.0000,0.0500,0.1000"]
    assert (tmp_path / PROCESS_TIMES.file).read_text().splitlines() == [
        "name,node,run_s,wait_s,slices",
        "it,node,0.002000,0.002000,3",
    ]
