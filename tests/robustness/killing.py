"""The command line in forked processes that are killed: at a moment, or before a file operation.

`Laboratory` talks to a process of this file, which has imported everything and forks for each run.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.engine import Job, ProcessOutcome
from testbed.guest.engine import GuestEngine
from testbed.runs.engine_choice import choose
from testbed.scenario.model import Scenario
from testbed.store.names import SCENARIO
from testbed.store.reading import Trial, trials_in
from testbed.store.records import Status
from tests import report_writer
from tests.lab import PATIENCE_S, planned_here, wait_until
from tests.scenarios import router

ROOT = Path(__file__).resolve().parents[2]
# what Python reports before it happens; files that are only read are left out
OPERATIONS = ("os.", "shutil.", "subprocess.", "fcntl.", "tempfile.")
HARMLESS = ("os.listdir", "os.scandir", "os.putenv", "os.unsetenv", "os.walk", "os.fwalk")
IMPORTED = (
    "analysis.figures.general.presentation",
    "analysis.results.reduction",
    "analysis.statistics.text_tables",
    "experiments.command",
)
KILLED = -signal.SIGKILL
KILL = "kill"  # what a file that releases a run may say
SHORT = router(variant="cubic", duration_s=0.5, seed=1)


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    status: int  # negative: killed by that signal
    operations: int  # file operations, if it was not killed
    seconds: float
    said: str


def written(folder: Path, scenario: Scenario = SHORT) -> str:
    """The file of a scenario."""
    path = folder / "asked.json"
    path.write_text(scenario.to_json())
    return str(path)


def moments(count: int, longest_s: float) -> list[float]:
    """So many moments by chance, the same each time."""
    chance = random.Random(count)
    return [chance.uniform(0.005, longest_s) for _ in range(count)]


@functools.cache
def _server(_number: int) -> subprocess.Popen[str]:
    """It ends with us, as its input does; ^C is for us alone."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.robustness.killing"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )


def children_of_server(number: int) -> list[int]:
    """The runs of a server that are under way."""
    pid = _server(number).pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Laboratory:
    """A results folder with all that belongs to it, and runs in it, one at a time."""

    def __init__(self, folder: Path, server: int = 0) -> None:
        self.out, self.state, self.temporary = (folder / n for n in ("out", "state", "tmp"))
        for each in (self.out, self.state, self.temporary):
            each.mkdir(parents=True)
        self.environment = {"XDG_STATE_HOME": str(self.state), "TMPDIR": str(self.temporary)}
        self.work = folder  # where commands run, and whole programs
        self._said = folder / "said"
        self._server = _server(server)

    def begin(
        self,
        *argv: str,
        kill_at: int = 0,
        kill_s: float = 0,
        replay: Path | None = None,
        released_by: Path | None = None,
    ) -> None:
        """Begin a run.

        `replay` is what a guest once left, to be copied instead, as soon as the file `released_by`
        is there; where that file says so, the process is killed instead.
        """
        assert self._server.stdin
        asked = {
            "argv": argv,
            "kill_at": kill_at,
            "kill_s": kill_s,
            "replay": str(replay or ""),
            "released_by": str(released_by or ""),
            "said": str(self._said),
            "environment": self.environment,
            "folder": str(self.work),
        }
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()

    def said(self) -> str:
        """What the run has printed until now."""
        return self._said.read_text() if self._said.exists() else ""

    def end(self) -> Ended:
        """Wait for its end."""
        assert self._server.stdout
        answer = json.loads(self._server.stdout.readline())
        return Ended(**answer, said=self.said())

    def run(
        self, *argv: str, kill_at: int = 0, kill_s: float = 0, replay: Path | None = None
    ) -> Ended:
        """Begin a run, and wait for its end."""
        self.begin(*argv, kill_at=kill_at, kill_s=kill_s, replay=replay)
        return self.end()

    def clean(self) -> str:
        """`testbed clean`, which must not fail."""
        ended = self.run("clean")
        assert ended.status == 0, ended.said
        return ended.said

    def left(self) -> list[str]:
        """What should not be there when nothing runs: temporary files, journals, processes."""
        deadline = time.monotonic() + PATIENCE_S
        while processes := processes_in(self.out) | processes_with(str(self.state)):
            if time.monotonic() > deadline:
                return [f"{pid} {words!r}" for pid, words in processes.items()]
            time.sleep(0.02)
        kept = [self.state / "tcp-testbed" / name for name in ("", "cores", "running")]
        state = [path for path in self.state.glob("tcp-testbed/**/*") if path.is_file()]
        return [
            *(str(path) for path in self.out.rglob(".*")),
            *(str(path) for path in self.temporary.iterdir()),
            *(str(path) for path in state if path.parent not in kept[:2]),
        ]

    def whole(self) -> dict[str, dict[str, str]]:
        """The captures of every trial by their hashes; each trial must be whole and have run."""
        return {trial.path.name: hashes(trial) for trial in trials_in(self.out)}


def hashes(trial: Trial) -> dict[str, str]:
    """Those of its captures; the trial must be whole and have run."""
    assert trial.record.status is Status.OK, trial.record.reason
    found = {}
    for capture in trial.record.captures:
        content = (trial.path / capture.file).read_bytes()
        found[capture.file] = hashlib.sha256(content).hexdigest()
        assert found[capture.file] == capture.sha256
    return found


def guests_in(folder: Path) -> list[int]:
    """The guests' kernels that run there."""
    found = processes_in(folder)
    return [pid for pid, words in found.items() if b"\0um_seed=" in words]


def processes_in(folder: Path) -> dict[int, bytes]:
    """Each with its words."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cwd").readlink().is_relative_to(folder):
                found[int(entry.name)] = (entry / "cmdline").read_bytes()
    return found


def processes_with(variable: str) -> dict[int, bytes]:
    """Each that was started with a variable of this value, such as gdb, with its words."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if variable.encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes()
    return found


class _Hook:
    """Counts file operations, and kills the process before one of them."""

    def __init__(self, kill_at: int) -> None:
        self.count = 0
        self._kill_at = kill_at

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT
        if event == "open":
            if not (isinstance(arguments[2], int) and arguments[2] & writes):
                return
        elif not event.startswith(OPERATIONS) or event in HARMLESS:
            return
        self.count += 1
        if self.count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def recorded(folder: Path, scenario: Scenario) -> Path:
    """What a guest leaves of this scenario, before its captures are converted."""
    folder.mkdir()
    (task,) = planned_here([scenario], choose("guest", ()))
    (folder / SCENARIO).write_text(task.scenario.to_json())
    engine = GuestEngine(task.scenario.kernel)
    assert not engine.ready()
    core = min(os.sched_getaffinity(0))
    assert engine.run(folder, task, Job(1, core, threading.Event())).status == 0
    return folder


def _replayed(folder: str, released_by: str) -> None:
    """The guest engine copies what a guest once left."""

    def run(_self: object, target: Path, _task: object, _job: object) -> ProcessOutcome:
        if released_by:
            wait_until(Path(released_by).exists)
            if Path(released_by).read_text() == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
        shutil.copytree(folder, target, dirs_exist_ok=True)
        return ProcessOutcome(0, 1.0, "")

    GuestEngine.run = run  # type: ignore[method-assign, assignment]


def _child(request: dict[str, Any], report: int) -> None:
    from experiments.command import main

    os.setsid()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # ours has the requests, and programs read theirs
    said = os.open(request["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    if request["replay"]:
        _replayed(request["replay"], request["released_by"])
    hook = _Hook(request["kill_at"])
    sys.addaudithook(hook)
    try:
        status = main(request["argv"])
    except SystemExit as error:
        status = int(error.code or 0)
    sys.stdout.flush()
    os.write(report, str(hook.count).encode())
    os._exit(status)


def _serve(request: dict[str, Any]) -> dict[str, Any]:
    begun = time.monotonic()
    reader, report = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _child(request, report)
        finally:
            import traceback

            traceback.print_exc()
            os._exit(99)
    os.close(report)
    if request["kill_s"]:
        process = os.pidfd_open(pid)
        if not select.select([process], [], [], request["kill_s"])[0]:
            os.kill(pid, signal.SIGKILL)
        os.close(process)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    count = os.read(reader, 100) or b"0"
    os.close(reader)
    seconds = time.monotonic() - begun
    return {"status": status, "operations": int(count), "seconds": seconds}


def serve(requests: Sequence[str] | Any) -> None:
    """Answer requests line by line. Of a run's figures one is drawn: all are written alike."""
    for name in IMPORTED:
        importlib.import_module(name)
    with report_writer.first_figures(drawn=True):
        for line in requests:
            print(json.dumps(_serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    serve(sys.stdin)
