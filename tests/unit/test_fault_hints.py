"""What a message says to type in place of what a user typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cli.parser import build_parser
from testbed.cli.programs import machine_program
from testbed.errors import UsageError, listed
from testbed.runs.orchestration import RunOptions
from testbed.runs.selection import parse_settings
from testbed.scenario.fault_hints import hint_of, number_hint, of_axes


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("delay_ms", "20ms", "delay_ms is in ms: --set delay_ms=20"),
        ("rate_mbit", "10Mbit/s", "rate_mbit is in Mbit/s: --set rate_mbit=10"),
        ("frames_per_s", "25fps", "frames_per_s is in 1/s: --set frames_per_s=25"),
        ("delay_ms", "1..5", "list the values: --set delay_ms=1,5"),
        ("duration_s", "long", "duration_s is in s: --set duration_s=60"),
        ("flows", "x", "flows is a number: --set flows=60"),
    ],
)
def test_a_number_is_asked_for_in_its_unit(name: str, text: str, hint: str) -> None:
    assert number_hint(name, text, 60) == hint


def test_a_fault_speaks_of_the_axis_that_was_set() -> None:
    faults = [f"network.links[{n}].forward.rate_mbit: -5 is not between" for n in (0, 1)]
    assert of_axes(faults, {"rate_mbit": "-5"}) == ["rate_mbit=-5: -5 is not between"]
    unknown = [f"network.links[{n}].forward.queue.discipline: unknown queue 'x'" for n in (0, 1)]
    assert of_axes(unknown, {"queue": "x"}) == ["queue=x: unknown queue 'x'"]
    assert of_axes(unknown, {"queue": "red"}) == unknown
    label = "label: 'a b': not a name"
    assert of_axes([label], {}) == [label]
    assert of_axes([label, faults[0]], {}) == [faults[0]]


def test_faults_that_differ_in_an_index_count_once() -> None:
    faults = [f"schedule[{n}]: the queue has a trace" for n in range(7)]
    said = listed([*faults, "seed: missing"])
    assert said == "schedule[0] to schedule[6] (7): the queue has a trace; seed: missing"


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        (
            "flows: h1 sends cubic and bbr: one variant per host that plays a video",
            "a sender of its own",
        ),
        ("flows: 3000 flows; between 1 and 1248 can run", "docs/workloads.md"),
        ("flows[0].loss: expected an object, got 0.005", '"loss": {"events": {"rate": 0.005}}'),
        (
            "network.links[1].forward.loss: expected an object, got 0.005",
            '"loss": {"to_bad": 0.005, "to_good": 1}',
        ),
        ("links[0].delay_ms: expected a valid number, got '20ms'", "--set delay_ms=20"),
        ("network.links[3]: s3-s1 closes a loop of switches", "mn --switch lxbr,stp=1"),
        (
            "a.queue.discipline: unknown queue 'x': known: fq_codel, pfifo",
            "choose a known value of discipline, such as fq_codel",
        ),
        ("queue=x: unknown queue 'x': known: red", "choose a known value of queue, such as red"),
        ("a.rate_mbit: -1 is not between 0.001 and 9", "rate_mbit takes numbers from 0.001 to 9"),
        (
            "queue: give the limit in one unit: limit_bytes, _packets or _bdp",
            '"limit_packets": 1000',
        ),
        ("something: else", "testbed schema"),
    ],
)
def test_a_hint_says_what_to_type(fault: str, hint: str) -> None:
    assert hint in hint_of([fault])


def test_spaces_after_commas_are_no_part_of_values() -> None:
    assert parse_settings(["variant=cubic, bbr"], "") == {"variant": ["cubic", "bbr"]}


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["rnu"], "unknown verb 'rnu'", "did you mean 'run'?"),
        (["run", "x", "--quik"], "unknown option --quik", "did you mean '--quick'?"),
        (["help"], "unknown verb 'help'", "testbed VERB --help"),
        (["--versoin"], "unknown option --versoin", "did you mean '--version'?"),
        (["run", "x", "--zzzz"], "unknown option --zzzz", "testbed run --help lists the options"),
        (["run", "x", "y"], "one argument too many: 'y'", "testbed run --help"),
        (["report"], "report: missing FOLDER", "testbed report results/"),
        (["compare", "a"], "compare: missing B", "testbed compare results/guest results/host"),
        (["--quick", "run", "x"], "unknown option --quick", "testbed VERB --quick"),
        (["run", "x", "--format", "jsn"], "--format: unknown value 'jsn'", "did you mean 'json'?"),
    ],
)
def test_a_wrong_command_line(words: list[str], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        build_parser().parse_args(words)
    assert caught.value.message == message
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["latest", "a/b", "my run"])
def test_a_name_that_no_run_can_have(name: str) -> None:
    with pytest.raises(UsageError, match="--name"):
        RunOptions(name=name)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--memory", "1"], "--memory 1: not between 64 and this machine's"),
        (["--memory", "99999999"], "not between 64 and this machine's"),
        (["--env", "=x"], "--env: a variable has a name"),
    ],
)
def test_a_guest_that_could_not_run_a_program(words: list[str], message: str) -> None:
    options = build_parser().parse_args(["exec", *words, "--", "true"])
    with pytest.raises(UsageError, match=message):
        machine_program(options, ["true"], Path(), seed=1, captured=())
