"""What a message says to type in place of what a user typed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from testbed.cli.parser import build_parser
from testbed.cli.programs import machine_program
from testbed.errors import UsageError
from testbed.faults import Fault, hint_of, listed, of_axes, unknown, without_consequences
from testbed.own_files.scenario_file import Document, in_document
from testbed.runs.orchestration import RunOptions
from testbed.runs.selection import parse_settings
from testbed.scenario.model import plain
from testbed.scenario.setting_units import number_hint
from tests.scenarios import router


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


RATES = [
    Fault(("network", "links", n, "forward", "rate_mbit"), "-5 is not between") for n in (0, 1)
]


def axes(faults: Iterable[Fault], **values: str) -> list[str]:
    return list(map(str, of_axes(faults, values)))


def test_a_fault_speaks_of_the_axis_that_was_set() -> None:
    assert axes(RATES, rate_mbit="-5") == ["rate_mbit=-5: -5 is not between"]
    queues = [unknown(("network", "links", n, "queue", "discipline"), "queue", "x", ["red"])
              for n in (0, 1)]  # fmt: skip
    assert axes(queues, queue="x") == ["queue=x: unknown queue 'x': known: red"]
    assert axes(queues, queue="red") == list(map(str, queues))
    assert hint_of(of_axes(queues, {"queue": "x"})) == "choose a known value of queue, such as red"
    label = Fault(("label",), "'a b': not a name")
    assert of_axes([label], {}) == [label]
    assert of_axes([label, RATES[0]], {}) == RATES[:1]


def test_faults_that_differ_in_an_index_count_once() -> None:
    faults = [Fault(("schedule", n), "the queue has a trace") for n in range(7)]
    said = listed([*faults, Fault(("seed",), "missing")])
    assert said == "schedule[0] to schedule[6] (7): the queue has a trace; seed: missing"


def test_what_only_follows_from_another_fault_is_not_told() -> None:
    """At the field, at what holds it and at its neighbours; not elsewhere in the document."""
    link = ("network", "links", 1, "forward")
    causes = [Fault((*link, "delay_ms"), ""), Fault(("flows", 0, "mss"), "")]
    told = [Fault(("flows", 0, "dst"), ""), Fault(("network", "links", 0, "ends"), "")]
    follows = [(*link, "jitter_ms"), (*link, "queue", "ecn"), ("network", "links"), ("flows", 0)]
    faults = [*(Fault(keys, "") for keys in follows), *told]
    assert without_consequences(faults, causes) == told


def scenario(**changes: Any) -> dict[str, Any]:
    """Return a scenario with other values at places like `flows.0.loss`."""
    data: dict[str, Any] = json.loads(router().to_json())
    for place, value in changes.items():
        *outer, last = [int(key) if key.isdigit() else key for key in place.split(".")]
        holder: Any = data
        for key in outer:
            holder = holder[key]
        holder[last] = value
    return data


LINK = "network.links.1.forward"


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"network": "dumbbell"}, "every trial's folder holds a scenario"),
        ({"flows": [plain(router().flows[0])] * 3000}, "docs/workloads.md"),
        ({"flows.0.loss": 0.005}, '"loss": {"events": {"rate": 0.005}}'),
        ({f"{LINK}.loss": 0.005}, '"loss": {"to_bad": 0.005, "to_good": 1}'),
        ({f"{LINK}.delay_ms": "20ms"}, "--set delay_ms=20"),
        ({f"{LINK}.queue.discipline": "x"}, "choose a known value of discipline, such as bfifo"),
        ({f"{LINK}.queue.discipline": "coddel"}, "correct the spelling"),
        ({f"{LINK}.rate_mbit": -1}, "rate_mbit takes numbers from 0.001 to 100000"),
        ({f"{LINK}.queue.limit_packets": 9}, '"limit_packets": 1000'),
        ({"profile": "x"}, "choose a known value of profile, such as modern"),
        ({"flows.0.kernel": "6.12"}, "--set kernel=…"),
        ({f"{LINK}.queue.ecn": True}, "testbed schema"),
    ],
)
def test_a_hint_says_what_to_type(changes: dict[str, Any], hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        in_document(Document(scenario(**changes)), "file")
    assert hint in caught.value.hint


def test_every_fault_of_a_file_is_told_at_once() -> None:
    """Those of single fields, of the network and of flows; none that only follows from another."""
    changes: dict[str, Any] = {
        f"{LINK}.delay_ms": -5,
        f"{LINK}.jitter_ms": 2,
        "seed": -1,
        "duration_s": 0,
    }
    changes |= {"network.links.0.ends": ["sender1", "ruoter"], "flows.0.variant": "Cubic"}
    changes |= {"flows.0.drops": [0, 0]}
    with pytest.raises(UsageError) as caught:
        in_document(Document(scenario(**changes)), "file")
    assert caught.value.message.removeprefix("file: ").split("; ") == [
        "network.links[1].forward.delay_ms: -5 is not between 0 and 60000",
        "flows[0].drops[0] to flows[0].drops[1] (2): 0 is not between 1 and 536870912, the last "
        "that is counted",
        "duration_s: 0 is not above 0 and at most 86400",
        "seed: -1 is not between 0 and 4294967295",
        "network.links[0].ends: unknown node 'ruoter': did you mean 'router'?",
        "flows[0].variant: unknown variant 'Cubic': did you mean 'cubic'?",
    ]


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
