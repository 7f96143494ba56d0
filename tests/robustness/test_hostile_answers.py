"""What a guest leaves for the host to read, written by a hostile program instead of the runner."""

from __future__ import annotations

import random
import shutil
import threading
from pathlib import Path

import pytest

from testbed.engine import Job, ProcessOutcome
from testbed.errors import TestbedError
from testbed.plan.plan import Task
from testbed.runs.engine_choice import choose
from testbed.store.names import ANSWERS, RAW_SAMPLES
from testbed.traffic.command_flow import prepare_folders
from testbed.trial.make import TrialProgramme
from tests.lab import planned_here
from tests.scenarios import router

ENDED = ProcessOutcome(0, 1.0, "")


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, Path]:
    """A task, and the folder that a guest leaves of it before the host reads anything."""
    out = tmp_path_factory.mktemp("left")
    choice = choose("guest", ())
    (task,) = planned_here([router(variant="cubic", duration_s=0.5, seed=1)], choice)
    engine = choice.engine.with_kernel(task.scenario.kernel)
    kept = out / "kept"

    def keep(self: TrialProgramme, outcome: ProcessOutcome) -> None:
        assert outcome.status == 0, outcome
        shutil.copytree(self.trial.folder, kept)
        raise TestbedError("kept")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrialProgramme, "finish", keep)
        (out / "trial").mkdir()
        prepare_folders(task.scenario.flows, out / "trial")
        with pytest.raises(TestbedError, match="kept"):
            engine.run(out / "trial", task, Job(1, 0, threading.Event()))
    return task, kept


def programmed(task: Task, folder: Path) -> TrialProgramme:
    controls = choose("guest", ()).engine.with_kernel(task.scenario.kernel).controls()
    return TrialProgramme(task, folder, virtual_time=True, controls=sorted(controls))


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return the data with an end of another place, or some other bytes."""
    if chance.random() < 0.3:
        return data[: chance.randrange(len(data))]
    bent = bytearray(data)
    for _ in range(chance.choice((1, 10, 1000))):
        bent[chance.randrange(len(bent))] = chance.choice((0, 0xFF, chance.randrange(256)))
    return bytes(bent)


@pytest.mark.parametrize("name", [ANSWERS, RAW_SAMPLES])
def test_damaged_answers_are_read_or_refused_with_one_line(
    tmp_path: Path, left: tuple[Task, Path], name: str, full: bool, with_slow: bool
) -> None:
    task, kept = left
    chance = random.Random(name)
    refused, count = 0, 500 if full else 40 if with_slow else 10
    for number in range(count):
        folder = tmp_path / f"{number}"
        shutil.copytree(kept, folder)
        (folder / name).write_bytes(damaged((kept / name).read_bytes(), chance))
        trial = programmed(task, folder)
        try:
            trial.finish(ENDED)
        except TestbedError as error:
            refused += 1
            assert len(error.message.splitlines()) == 1, error.message
            assert len(error.message) < 2000, error.message
        assert not list(folder.glob("guest.*")), number
        shutil.rmtree(folder)
    if name == ANSWERS:  # of samples, a round that is not whole is left out
        assert refused > count / 10


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("data", [b"", b"\xff" * 8, b"\0" * 8, bytes(range(256)) * 100])
def test_other_files_instead_of_the_answers(
    tmp_path: Path, left: tuple[Task, Path], data: bytes
) -> None:
    task, kept = left
    folder = tmp_path / "trial"
    shutil.copytree(kept, folder)
    (folder / ANSWERS).write_bytes(data)
    with pytest.raises(TestbedError, match=r"^(?!.*\n).+$"):
        programmed(task, folder).finish(ENDED)


def test_a_runner_that_died_says_so(tmp_path: Path, left: tuple[Task, Path]) -> None:
    task, kept = left
    folder = tmp_path / "trial"
    shutil.copytree(kept, folder)
    (folder / ANSWERS).write_bytes(b"")
    with pytest.raises(TestbedError, match=r"^the trial died \(exit status -9\): runner: words$"):
        programmed(task, folder).finish(ProcessOutcome(-9, 1.0, "runner: words"))
