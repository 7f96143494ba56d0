"""The trial's programme: what happens when, and what happens before and after."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest

from testbed.plan.plan import Task, make_plan
from testbed.runner.programme import NS, Programme
from testbed.scenario.model import Scenario
from testbed.trial.make import BEGINNINGS_NS, TrialProgramme
from testbed.trial.parts.part import TrialTimeline
from tests.scenarios import access, router

Lines = list[list[str]]


def lines_of(programme: Programme) -> Lines:
    return [line.split("\t") for line in programme.text.splitlines()]


def planned(folder: Path, scenario: Scenario, virtual_time: bool = True) -> Lines:
    task = Task(scenario, make_plan(scenario))
    made = TrialProgramme(task, folder, virtual_time=virtual_time, controls=("reno", "cubic"))
    return lines_of(made.trial.programme)


def names(lines: Lines) -> list[str]:
    return [line[0] for line in lines]


def test_everything_in_its_time_and_ties_in_order_of_calls() -> None:
    timeline, programme, waits = TrialTimeline(), Programme(), []
    for name, due in (("late", 2.0), ("first", 1.0), ("second", 1.0)):

        def write(at: int, name: str = name) -> None:
            waits.append(at)
            programme.add(name)

        timeline.at(due, write)
    timeline.write(programme)
    expected = [["at", f"{NS}"], ["first"], ["second"], ["at", f"{2 * NS}"], ["late"]]
    assert lines_of(programme) == expected
    assert waits == [0, 0, 3]


def test_a_guest_begins_before_each_part_that_others_must_not_move(tmp_path: Path) -> None:
    """Settings, then what only looks, then what measures, then second 0."""
    lines = planned(tmp_path, router())
    begun = [(number, line) for number, line in enumerate(lines) if line[0] == "begin"]
    numbered = enumerate(BEGINNINGS_NS, start=1)
    assert [line[1:] for _, line in begun] == [[f"{n}", f"{instant}"] for n, instant in numbered]
    first, watching, opening, zero = (number for number, _ in begun)
    phases = [names(lines[a:b]) for a, b in itertools.pairwise((0, first, watching, opening, zero))]
    assert {"node", "send", "write", "offloads"} <= set(phases[0]) and "start" not in phases[0]
    assert "touch" in phases[1] and not {"start", "send"} & set(phases[1])
    assert "echo" in phases[2] and "dump" in phases[2]
    assert "rehearse" in phases[3] and "zero" in phases[3]
    assert names(lines[zero:])[1] == "at" and "zero" not in names(lines[zero:])


def test_the_host_begins_nothing_and_takes_the_next_second_zero(tmp_path: Path) -> None:
    lines = planned(tmp_path, router(), virtual_time=False)
    assert "begin" not in names(lines)
    assert ["zero", "0", "100000000"] in lines
    assert not any("OPENSSL_CONF" in word for line in lines for word in line)


def test_times_never_run_back_and_captures_outlast_the_flows(tmp_path: Path) -> None:
    scenario = router(cbr_mbit=1)
    lines = planned(tmp_path, scenario)
    times = [int(line[1]) for line in lines if line[0] == "at"]
    assert times == sorted(times)
    assert times[-1] == round(make_plan(scenario).end_s * NS)
    last_wait = max(n for n, line in enumerate(lines) if line[0] == "at")
    ends = [n for n, line in enumerate(lines) if line[0] == "captured"]
    assert ends and min(ends) > last_wait


@pytest.mark.parametrize("length", [None, 30_000])
def test_only_flows_that_may_end_are_looked_at(tmp_path: Path, length: int | None) -> None:
    """Every second from the last start on; the end begins behind all planned stops."""
    scenario = router(duration_s=5)
    (flow,) = scenario.flows
    scenario = dataclasses.replace(scenario, flows=(dataclasses.replace(flow, bytes=length),))
    lines = planned(tmp_path, scenario)
    looks = [(n, line) for n, line in enumerate(lines) if line[0] == "ended"]
    if length is None:
        assert not looks
        return
    (stop,) = (n for n, line in enumerate(lines) if line[:2] == ["signal", "client tcp"])
    last_ns = round(make_plan(scenario).flows[0].stop_s * NS)
    assert len(looks) == 5
    for number, (_, target, planned_ns, *programs) in looks:
        assert number < stop < int(target) and lines[int(target)] == ["at", f"{last_ns}"]
        assert (int(planned_ns), programs) == (last_ns, ["client tcp"])


def test_a_radio_ends_after_the_kernels_final_state_was_read(tmp_path: Path) -> None:
    lines = planned(tmp_path, access("wifi-weak"))
    read = max(n for n, name in enumerate(names(lines)) if name in ("dump", "read"))
    medium = next(n for n, line in enumerate(lines) if line[:2] == ["end", "medium"])
    assert read < medium
