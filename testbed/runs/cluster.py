"""Trials on many machines: a dask scheduler hands them out, results come back to our store.

The scheduler and its workers are dask's own (`dask scheduler`, `dask worker`, or what starts them
on Slurm, Kubernetes or over SSH); a worker runs one trial at a time with the same code as here. It
takes trials only if it has the same version of us, the same kernel and the same iperf3.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.engines.choice import Choice, choose
from testbed.errors import TestbedError
from testbed.machine.journal import WORKPLACE
from testbed.plan.task import Task
from testbed.plan.task import tasks as plan_tasks
from testbed.runs.provenance import versions
from testbed.runs.sweep import (
    Finished,
    Unfit,
    Watcher,
    folder_in_the_making,
    folder_name,
    is_done,
    prepare_folder,
    run_all,
)
from testbed.scenario.model import Scenario
from testbed.store import RECORD, SCENARIO, Record, Status, open_trial

PACKAGE = Path(__file__).resolve().parents[1]
PATIENCE_S = 10  # for the scheduler to answer, and for a worker to be there
POLL_S = 0.2
AHEAD = 2  # trials a worker that are handed out: one runs, one waits


@dataclass(frozen=True)
class Equipment:
    """What a machine runs trials with; two of them give the same results if it is equal."""

    code: str
    kernel: str
    iperf3: str
    problem: str = ""  # why no trial can run there at all

    def differences(self, other: Equipment) -> str:
        """In words, empty if there are none."""
        if self.problem:
            return self.problem
        pairs = (
            ("version of the testbed", self.code, other.code),
            ("kernel", self.kernel, other.kernel),
            ("iperf3", self.iperf3, other.iperf3),
        )
        return ", ".join(f"another {what}" for what, mine, theirs in pairs if mine != theirs)


def equipment(engine: str) -> Equipment:
    """This machine's; runs on the workers too."""
    try:
        choice = choose(engine, ())
        return Equipment(_code(), choice.engine.version(), versions()["iperf3"])
    except TestbedError as error:
        return Equipment("", "", "", error.message)


@functools.cache
def _code() -> str:
    """A hash of our source: what the package's number does not tell apart."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run_on_cluster(
    address: str,
    tasks: Sequence[Task],
    choice: Choice,
    out: Path,
    watch: Watcher,
    rerun: bool = False,
) -> list[Finished]:
    """As `run_all`, on the workers of a dask scheduler."""
    prepare_folder(out)
    there = {task.scenario.name: not rerun and is_done(out, task, choice.engine) for task in tasks}
    done = [
        Finished(task, out / folder_name(task.scenario, choice.engine), Status.OK, fresh=False)
        for task in tasks
        if there[task.scenario.name]
    ]
    for finished in done:
        watch(finished)
    missing = [task for task in tasks if not there[task.scenario.name]]
    if missing:
        with _client(address) as client:
            done += _hand_out(client, missing, choice, out, watch)
    return done


class _client:
    """A connection to the scheduler, its failures in our own words."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> Any:
        try:
            from distributed import Client
        except ImportError as error:
            raise TestbedError(
                "--cluster needs dask.distributed", "pip install tcp-testbed[cluster]"
            ) from error
        try:
            self._client = Client(self._address, timeout=PATIENCE_S)
        except (OSError, ValueError) as error:
            raise TestbedError(
                f"no dask scheduler answers at {self._address}", "start one: dask scheduler"
            ) from error
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


class _Workers:
    """The workers that are equipped as we are; the others are told of, once."""

    def __init__(self, client: Any, engine: str, watch: Watcher) -> None:
        self._client, self._engine, self._watch = client, engine, watch
        self._ours = equipment(engine)
        self._differences: dict[str, str] = {}

    def fitting(self) -> list[str]:
        """Those that are there now: workers may come and go."""
        present = list(self._client.nthreads())
        new = [worker for worker in present if worker not in self._differences]
        found: dict[str, Any] = {}
        if new:
            look = {"workers": new, "on_error": "return"}
            with contextlib.suppress(OSError):  # one died just now: look again next time
                found = self._client.run(equipment, self._engine, **look)
        for worker, each in found.items():
            if not isinstance(each, Equipment):
                continue
            self._differences[worker] = each.differences(self._ours)
            if self._differences[worker]:
                self._watch(Unfit(worker, self._differences[worker]))
        return [worker for worker in present if self._differences.get(worker) == ""]

    def wait(self) -> list[str]:
        """At least one, or an error."""
        deadline = time.monotonic() + PATIENCE_S
        while not (workers := self.fitting()):
            if time.monotonic() > deadline:
                reasons = "; ".join(f"{w}: {d}" for w, d in self._differences.items() if d)
                raise TestbedError(
                    "no worker of the cluster can take trials", reasons or "start one: dask worker"
                )
            time.sleep(POLL_S)
        return workers


def _hand_out(
    client: Any, tasks: Sequence[Task], choice: Choice, out: Path, watch: Watcher
) -> Iterator[Finished]:
    """A few trials at a time, so that results do not pile up, here or at the scheduler."""
    from distributed import wait

    workers = _Workers(client, choice.engine.name, watch)
    queue = list(tasks)[::-1]
    pending: dict[Any, tuple[Task, list[str]]] = {}
    try:
        while queue or pending:
            present = workers.wait()
            for future, (task, takers) in list(pending.items()):
                if not set(takers) & set(present):  # all that might run it are gone
                    del pending[future]
                    client.cancel([future])
                    queue.append(task)
            while queue and len(pending) < AHEAD * len(present):
                task = queue.pop()
                words = (task.scenario.to_json(), choice.engine.name)
                future = client.submit(run_remotely, *words, workers=present, pure=False)
                pending[future] = task, present
            with contextlib.suppress(TimeoutError):
                wait(list(pending), timeout=1, return_when="FIRST_COMPLETED")
            for future in [future for future in pending if future.done()]:
                task, _ = pending.pop(future)
                path = out / folder_name(task.scenario, choice.engine)
                yield _receive(future, task, path, watch)
                future.release()
    finally:
        client.cancel(list(pending))


def run_remotely(scenario: str, engine: str) -> dict[str, bytes]:
    """One trial on a worker; gives its files by their names within the trial's folder."""
    with tempfile.TemporaryDirectory(prefix=WORKPLACE) as name:
        out, choice = Path(name), choose(engine, ())
        (finished,) = run_all(
            plan_tasks([Scenario.from_json(scenario)]), choice, out, lambda _: None, jobs=1
        )
        files = [path for path in finished.path.rglob("*") if path.is_file()]
        return {str(path.relative_to(finished.path)): path.read_bytes() for path in files}


def _receive(future: Any, task: Task, path: Path, watch: Watcher) -> Finished:
    """What a worker made becomes a folder of ours; one whose workers keep dying has failed."""
    with folder_in_the_making(path) as folder:
        try:
            _write_files(folder, future.result())
        except Exception as error:  # whatever a worker raises or dies of
            (folder / SCENARIO).write_text(task.scenario.to_json())
            record = Record(Status.FAILED, f"on the cluster: {error}", seed=task.scenario.seed)
            (folder / RECORD).write_text(record.to_json())
    finished = Finished(task, path, open_trial(path).record.status)
    watch(finished)
    return finished


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise TestbedError(f"a file outside of the trial's folder: {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
