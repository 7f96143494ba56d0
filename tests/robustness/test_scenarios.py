"""Wrong and odd scenarios: each is refused in one line, or has a plan that runs as it says."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import pytest
from jsonschema import Draft202012Validator

from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from testbed.errors import FAULT_BREAK, UsageError
from testbed.own_files.json_schema import scenario_schema
from testbed.plan.plan import tasks
from testbed.runs.engine_choice import choose
from testbed.runs.sweep import run_all
from testbed.scenario.discipline import timer_ticks
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.reading import read_scenario
from testbed.store.names import QDISCS_FILE, trial_folder
from testbed.store.reading import Trial, open_trial, read_json
from testbed.store.records import Status
from tests.fuzz.attempts import MAX_MEMORY_BYTES, memory_limit
from tests.robustness.oddities import oddities
from tests.robustness.scenario_mutations import mutated

FEW, ALL = 200, 100_000  # in this process
FEW_CALLS, ALL_CALLS = 12, 1000  # of the command line
MAX_S = 10  # of processor time
PATIENCE_S = 300
MAX_LINE = 8000  # characters: twenty faults
WIDTH = 80  # of an output that is no terminal


@pytest.fixture
def alarm() -> Iterator[None]:
    """What hangs raises; by processor time, whatever else the machine does."""

    def hung(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, hung)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.fixture
def bounded() -> Iterator[None]:
    """What takes more memory than MAX_MEMORY_BYTES on top of what is held now raises."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (memory_limit(), hard))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@pytest.mark.usefixtures("alarm", "bounded")
def test_in_this_process(full: bool) -> None:
    """What is read is also read as we write it, and the schema allows it."""
    planned = 0
    schema = Draft202012Validator(scenario_schema())
    for number in range(ALL if full else FEW):
        text = mutated(number)
        signal.setitimer(signal.ITIMER_VIRTUAL, MAX_S)
        try:
            scenario = read_scenario(text)
            tasks([scenario])
            planned += 1
            assert read_scenario(scenario.to_json()) == scenario
            assert schema.is_valid(json.loads(text))
        except UsageError as error:
            assert "\n" not in error.message and len(error.message) < MAX_LINE, number
        except Exception as error:
            raise AssertionError(f"mutation {number}") from error
    assert planned > (ALL if full else FEW) / 20  # else they are all of one kind


def limited() -> None:
    """End a process that computes for too long; refuse it memory beyond its share."""
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_S, MAX_S))
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


@pytest.mark.slow
def test_by_the_command_line(full: bool, root: Path, tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    told = set()
    for number in range(ALL_CALLS if full else FEW_CALLS):
        file.write_bytes(mutated(f"file {number}"))
        argv = [str(root / ".venv/bin/testbed"), "plan", str(file), "--commands"]
        done = subprocess.run(
            argv,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": str(WIDTH)},
            preexec_fn=limited,
        )
        lines = done.stderr.decode().splitlines()
        assert done.returncode in (0, 2), (number, lines)
        assert bool(lines) == (done.returncode == 2), (number, lines)
        assert not lines or is_refusal(lines, file), (number, lines)
        told.add(done.returncode)
    assert told == {0, 2}


def is_refusal(lines: Sequence[str], file: Path) -> bool:
    """Say whether these are one message and its hint; a message that is wide has a fault a line."""
    first, *others, hint = lines
    fits = len(FAULT_BREAK.join((first, *(line.strip() for line in others)))) <= WIDTH
    return (
        first.startswith(f"testbed: {file}:")
        and all(re.match(r"    (?!hint: )\S", line) for line in others)
        and not (others if fits else FAULT_BREAK in first)
        and hint.startswith("    hint: ")
    )


def test_oddities_run(full: bool, tmp_path: Path) -> None:
    if not full:
        pytest.skip("--full runs two hundred trials")
    odd = dict(oddities())
    choice = choose("guest", ())
    run_all(tasks(odd.values()), choice, tmp_path, lambda _event: None)
    found = {
        name: outcome(open_trial(tmp_path / trial_folder(scenario, choice.engine.name)))
        for name, scenario in odd.items()
    }
    assert not {name: said for name, said in found.items() if said}


def outcome(trial: Trial) -> str:
    """Why a trial could not run, or is called valid though its queue is another; empty if not."""
    if trial.record.status is not Status.OK:
        return f"{trial.record.status}: {trial.record.reason}"
    verdict = judge(trial)
    if verdict is None or verdict.verdict is not Grade.VALID:
        return ""
    return "; ".join(others(trial))


def others(trial: Trial) -> Iterator[str]:
    """Options of the bottleneck's queue that tc prints otherwise than the scenario has them."""
    queue = trial.scenario.network.bottleneck_queue
    place = next(each for each in trial.record.queues if each.sampled)
    shown = next(
        each["options"]
        for each in read_json(trial.path, QDISCS_FILE)[place.node]
        if each.get("dev") == place.interface and each["kind"] == queue.discipline
    )
    for name, wanted in queue.options.items():
        option = DISCIPLINES[queue.discipline].options[name]
        if option.keyword in shown:
            told = float(shown[option.keyword]) / (1000 if option.unit == "ms" else 1)
            if abs(told - wanted) > 0.1 * wanted and option.stored is not timer_ticks:
                yield f"{name}: {told}, not {wanted}"
