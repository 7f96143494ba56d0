"""Numbers that programs print: a column each, or a sentence that says why one is missing."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from analysis.metrics import program_output
from analysis.metrics.program_output import MAX_MEASURED_LINE, answer, numbers_of
from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.scenario.model import Flow, FlowKind
from testbed.scenario.program_numbers import ProgramNumber, Take
from testbed.scenario.programs import Programs
from testbed.scenario.reading import read_scenario
from testbed.store.names import FLOWS_FOLDER, output_file
from testbed.store.reading import Trial, open_trial
from tests.sealing import seal
from tests.trial_writer import write_trial

PRINTED = 'connected\nrtt 20.5 ms\nrtt 30 ms\n{"a": {"b": [1, 7]}}\n'


@pytest.mark.parametrize(
    ("pattern", "keys", "take", "value", "why"),
    [
        (r"rtt ([\d.]+)", "", "first", 20.5, ""),
        (r"rtt ([\d.]+)", "", "last", 30, ""),
        (r"rtt ([\d.]+)", "", "min", 20.5, ""),
        (r"rtt ([\d.]+)", "", "max", 30, ""),
        (r"rtt ([\d.]+)", "", "sum", 50.5, ""),
        (r"rtt ([\d.]+)", "", "mean", 25.25, ""),
        (r"rtt ([\d.]+)", "", "count", 2, ""),
        (r"rtt ([\d.]+)", "", "only", None, "2 numbers match: `take` says which"),
        (r"loss ([\d.]+)", "", "only", None, "nothing matches"),
        (r"(connected)", "", "only", None, "no number: 'connected'"),
        ("", "a.b.1", "only", 7, ""),
        ("", "a.c", "only", None, "nothing matches"),
        ("", "a.b", "only", None, "no number: '[1, 7]'"),
    ],
)
def test_a_number_or_the_reason_why_it_is_missing(
    pattern: str, keys: str, take: str, value: float | None, why: str, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text(PRINTED)
    assert answer(str(tmp_path / "out"), pattern, keys, take) == (value, why)


def test_a_line_without_an_end_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x" * MAX_MEASURED_LINE + " rtt 1 ms\n")
    value, why = answer(str(tmp_path / "out"), r"rtt (\d)", "", "only")
    assert value is None and why.startswith("out: a line of more than")


def test_one_document_over_several_lines(tmp_path: Path) -> None:
    document = {"end": {"sum": {"bits_per_second": 5e6}}}
    (tmp_path / "out").write_text(json.dumps(document, indent=2))
    assert answer(str(tmp_path / "out"), "", "end.sum.bits_per_second", "only") == (5e6, "")


def trial_of(folder: Path, printed: str, *numbers: ProgramNumber) -> Trial:
    """Write a trial with a flow whose client printed something."""
    path = write_trial(folder)
    (path / FLOWS_FOLDER).mkdir(exist_ok=True)
    (path / output_file("app", "client")).write_text(printed)
    trial = open_trial(seal(path))
    command = Programs(client=("app",), measure=numbers)
    flow = Flow("app", FlowKind.COMMAND, "sender1", "receiver", command=command)
    return dataclasses.replace(trial, scenario=dataclasses.replace(trial.scenario, flows=(flow,)))


def test_the_numbers_of_a_trial(tmp_path: Path) -> None:
    first = ProgramNumber("rtt_ms", r"rtt ([\d.]+)", take=Take.FIRST)
    trial = trial_of(tmp_path / "t", PRINTED, first, ProgramNumber("lost", r"lost (\d+)"))
    numbers, missing = numbers_of(trial)
    assert numbers["app"]["measured_rtt_ms"] == 20.5
    assert math.isnan(numbers["app"]["measured_lost"])
    assert missing == ["flow app: lost: nothing matches"]


def test_a_pattern_that_takes_for_ever_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers before it are there, and those from it on are missing."""
    monkeypatch.setattr(program_output, "MAX_MATCHING_S", 1)
    slow = ProgramNumber("slow", r"(?:a*)*(?:a*)*(?:a*)*([\d]+)")
    trial = trial_of(tmp_path / "t", "n 1\n" + "a" * 40_000, ProgramNumber("n", r"n (\d)"), slow)
    numbers, missing = numbers_of(trial)
    assert numbers["app"]["measured_n"] == 1
    assert missing == ["flow app: slow: it was still tried after 1 s"]


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        ({"name": "Latency", "pattern": "(1)"}, "not a column's name"),
        ({"name": "a_ms", "pattern": "("}, "missing )"),
        ({"name": "a_ms", "pattern": "1"}, "0 groups"),
        ({"name": "a_ms", "pattern": "(1)", "json": "a"}, "a pattern or the keys"),
        ({"name": "a_ms"}, "a pattern or the keys"),
        ({"name": "a_ms", "pattern": "(1)", "take": "best"}, "best"),
    ],
)
def test_what_cannot_be_measured_is_said_with_its_field(number: dict[str, str], fault: str) -> None:
    command = {"client": ["app"], "measure": [number]}
    flow = {"name": "app", "kind": "command", "src": "sender1", "dst": "receiver"}
    document = {
        "experiment": "x",
        "topology": {"kind": "router-bottleneck", "bottleneck": {"rate_mbit": 4}},
        "flows": [flow | {"variant": "cubic", "command": command}],
        "duration_s": 5,
    }
    with pytest.raises(UsageError, match="measure") as raised:
        make_plan(read_scenario(json.dumps(document)))
    assert fault in str(raised.value)
