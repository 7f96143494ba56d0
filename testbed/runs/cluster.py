"""Trials on many machines: a dask scheduler distributes them; results are stored here.

The scheduler and its workers are dask's own (`dask scheduler`, `dask worker`, or what starts them
on Slurm, Kubernetes or over SSH); a worker runs one trial at a time with the same code as this
machine, and only if everything that determines the results is the same.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError, UsageError
from testbed.machine.atomic import whole_folder, workplace
from testbed.plan.plan import Task
from testbed.plan.plan import tasks as plan_tasks
from testbed.runs.engine_choice import Choice, choose
from testbed.runs.provenance import programs_of, versions_of
from testbed.runs.results_folders import prepare_folder
from testbed.runs.sources import BUILT, all_sources, require_compiled
from testbed.runs.sweep import (
    SweepEvent,
    TrialFinished,
    TrialStarted,
    Watcher,
    WorkerRejected,
    is_done,
    run_all,
)
from testbed.scenario.reading import read_scenario
from testbed.store import RECORD, SCENARIO, Record, Status, open_trial, trial_folder

CONNECT_TIMEOUT_S = 10  # time limits for the scheduler's answer and for a first worker
POLL_S = 0.2
ADDRESS_HINT = "a scheduler's address, e.g. tcp://host:8786 or tls://host:8786"
TRIALS_PER_WORKER = 2  # one runs, one waits
_OTHER_CODE = (AttributeError, ImportError, TypeError)  # raised by calling code that differs

Equipment = Mapping[str, str]  # what determines results on a machine: name → value
PROBLEM = "problem"  # the only key on a machine that cannot run trials
START_TOPIC = "testbed-begun"  # dask's topic for the workers' messages that a trial starts
HASH_DIGITS = 64  # a value this long is a sha256, which messages do not quote


def equipment(engine: str, names: Sequence[str], kernels: Sequence[str] = ()) -> Equipment:
    """Return this machine's equipment, with the versions of these programs and kernels.

    It also runs on the workers.
    """
    try:
        require_compiled(BUILT)
        return {**all_sources(), **_kernels(engine, kernels), **versions_of(names)}
    except TestbedError as error:
        return {PROBLEM: error.message}


def _kernels(engine: str, names: Sequence[str]) -> dict[str, str]:
    """Return the versions of the named kernels, or of the engine's default."""
    own = choose(engine, ()).engine
    found = [own.with_kernel(name) for name in names] or [own]
    for each in found:
        if problem := each.ready():
            raise TestbedError(problem)
    words = ["kernel", *(f"kernel {name}" for name in names[1:])]
    return {word: each.version() for word, each in zip(words, found, strict=True)}


def differences(there: Equipment, here: Equipment) -> str:
    """List the reasons why a worker's results would differ from this machine's."""
    if PROBLEM in there:
        return there[PROBLEM]
    names = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    return ", ".join(_difference(name, there.get(name, ""), here.get(name, "")) for name in names)


def _difference(name: str, there: str, here: str) -> str:
    if HASH_DIGITS in (len(there), len(here)):
        return f"another {name}" if there and here else f"{'no' if here else 'an extra'} {name}"
    return f"{name} {there}, here {here}"


def _equipment_of(answer: object) -> Equipment | None:
    """Return a worker's equipment from its answer, which may be an exception."""
    if isinstance(answer, _OTHER_CODE):
        return {PROBLEM: "another version of the testbed"}
    return answer if isinstance(answer, dict) else None


def run_on_cluster(
    address: str,
    tasks: Sequence[Task],
    choice: Choice,
    out: Path,
    watch: Watcher,
    rerun: bool = False,
) -> list[TrialFinished]:
    """Like `run_all`, on the workers of a dask scheduler."""
    prepare_folder(out)
    there = {task.scenario.name: not rerun and is_done(out, task, choice.engine) for task in tasks}
    done = [
        TrialFinished(
            task, out / trial_folder(task.scenario, choice.engine.name), Status.OK, fresh=False
        )
        for task in tasks
        if there[task.scenario.name]
    ]
    for finished in done:
        watch(finished)
    missing = [task for task in tasks if not there[task.scenario.name]]
    if missing:
        with _client(address) as client:
            watch = _serialised(watch)
            client.subscribe_topic(START_TOPIC, _start_forwarder(missing, watch))
            done += _distribute(client, missing, choice, out, watch)
    return done


def _serialised(watch: Watcher) -> Watcher:
    """Serialise calls of a watcher: dask delivers the workers' events on its own thread."""
    lock = threading.Lock()

    def tell(event: SweepEvent) -> None:
        with lock:
            watch(event)

    return tell


def _start_forwarder(
    tasks: Sequence[Task], watch: Watcher
) -> Callable[[tuple[float, object]], None]:
    """Return what forwards the workers' messages, each with its time, that a trial starts."""
    scenarios = {task.scenario.name: task.scenario for task in tasks}

    def forward(event: tuple[float, object]) -> None:
        _, message = event
        if isinstance(message, dict) and message.get("trial") in scenarios:
            scenario = scenarios[message["trial"]]
            watch(TrialStarted(scenario, where=str(message.get("where", ""))))

    return forward


@contextlib.contextmanager
def _client(address: str) -> Iterator[Any]:
    """Connect to the scheduler; failures become TestbedErrors."""
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError as error:
        raise TestbedError(
            "--cluster needs dask.distributed", "pip install tcp-testbed[cluster]"
        ) from error
    try:
        get_address_host_port(address)  # before dask starts a thread for it
        client = Client(address, timeout=CONNECT_TIMEOUT_S)
    except OSError as error:
        raise TestbedError(
            f"no dask scheduler answers at {address}", "start one: dask scheduler"
        ) from error
    except ValueError as error:
        raise UsageError(f"--cluster {address}: {error}", ADDRESS_HINT) from error
    except TypeError as error:  # dask's way to say that it has no certificates
        raise TestbedError(
            f"--cluster {address}: dask knows no certificates to connect with",
            "docs/cluster.md says where to name them (DASK_DISTRIBUTED__COMM__TLS__…)",
        ) from error
    with contextlib.closing(client):
        yield client


class _Workers:
    """The workers equipped like this machine; each other worker is reported once."""

    def __init__(
        self, client: Any, look: tuple[str, Sequence[str], Sequence[str]], watch: Watcher
    ) -> None:
        self._client, self._look, self._watch = client, look, watch
        self._ours = equipment(*look)
        if PROBLEM in self._ours:
            raise TestbedError(self._ours[PROBLEM], "`testbed check` shows what can run here")
        self._differences: dict[str, str] = {}

    def fitting(self) -> list[str]:
        """Return the fitting workers among those connected now, which may change at any time."""
        present = list(self._client.nthreads())
        new = [worker for worker in present if worker not in self._differences]
        for worker, each in self._answers(new).items():
            self._differences[worker] = differences(each, self._ours)
            if self._differences[worker]:
                self._watch(WorkerRejected(worker, self._differences[worker]))
        return [worker for worker in present if self._differences.get(worker) == ""]

    def _answers(self, workers: Sequence[str]) -> Mapping[str, Equipment]:
        """Query the workers' equipment; one that has just died is queried again if it returns."""
        answers: dict[str, Any] = {}
        if workers:
            with contextlib.suppress(OSError):
                answers = self._client.run(
                    equipment, *self._look, workers=list(workers), on_error="return"
                )
        found = {name: _equipment_of(each) for name, each in answers.items()}
        return {name: each for name, each in found.items() if each is not None}

    def wait(self) -> list[str]:
        """Wait for at least one fitting worker; raises if none connects in time."""
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while not (workers := self.fitting()):
            if time.monotonic() > deadline:
                reasons = "; ".join(f"{w}: {d}" for w, d in self._differences.items() if d)
                raise TestbedError(
                    "no worker of the cluster can take trials", reasons or "start one: dask worker"
                )
            time.sleep(POLL_S)
        return workers


def _distribute(
    client: Any, tasks: Sequence[Task], choice: Choice, out: Path, watch: Watcher
) -> Iterator[TrialFinished]:
    """Run trials on the workers, a few at a time so that results do not pile up."""
    from distributed import wait

    names = dict.fromkeys(name for task in tasks for name in programs_of(task.scenario))
    kernels = dict.fromkeys(task.scenario.kernel for task in tasks)
    workers = _Workers(client, (choice.engine.name, tuple(names), tuple(kernels)), watch)
    queue = list(tasks)[::-1]
    pending: dict[Any, tuple[Task, list[str]]] = {}
    try:
        while queue or pending:
            present = workers.wait()
            for future, (task, takers) in list(pending.items()):
                if not set(takers) & set(present):  # no worker that could run it is left
                    del pending[future]
                    client.cancel([future])
                    queue.append(task)
            while queue and len(pending) < TRIALS_PER_WORKER * len(present):
                task = queue.pop()
                words = (task.scenario.to_json(), choice.engine.name)
                future = client.submit(run_remotely, *words, workers=present, pure=False)
                pending[future] = task, present
            with contextlib.suppress(TimeoutError):
                wait(list(pending), timeout=1, return_when="FIRST_COMPLETED")
            for future in [future for future in pending if future.done()]:
                task, _ = pending.pop(future)
                path = out / trial_folder(task.scenario, choice.engine.name)
                yield _receive(future, task, path, watch)
                future.release()
    finally:
        client.cancel(list(pending))


def run_remotely(scenario: str, engine: str) -> dict[str, bytes]:
    """Run one trial on a worker; returns its files by their names in the trial's folder."""
    with workplace("worker") as out:
        choice = choose(engine, ())
        (finished,) = run_all(
            plan_tasks([read_scenario(scenario)]), choice, out, _start_reporter(), jobs=1
        )
        files = [path for path in finished.path.rglob("*") if path.is_file()]
        return {str(path.relative_to(finished.path)): path.read_bytes() for path in files}


def _start_reporter() -> Watcher:
    """Return a worker's watcher, which reports that its trial starts."""
    from distributed import get_worker

    worker = get_worker()

    def tell(event: SweepEvent) -> None:
        if isinstance(event, TrialStarted):
            worker.log_event(START_TOPIC, {"trial": event.scenario.name, "where": str(worker.name)})

    return tell


def _receive(future: Any, task: Task, path: Path, watch: Watcher) -> TrialFinished:
    """Store a worker's files as a local folder; a trial whose workers keep dying has failed."""
    with whole_folder(path) as folder:
        try:
            _write_files(folder, future.result())
        except Exception as error:  # any exception or death of a worker
            (folder / SCENARIO).write_text(task.scenario.to_json())
            record = Record(Status.FAILED, f"on the cluster: {error}", seed=task.scenario.seed)
            (folder / RECORD).write_text(record.to_json())
    finished = TrialFinished(task, path, open_trial(path).record.status)
    watch(finished)
    return finished


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise TestbedError(f"a worker sent a file outside the trial's folder: {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
