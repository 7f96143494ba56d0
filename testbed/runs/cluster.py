"""Trials on many machines: a dask scheduler distributes guests; all else is done here.

The scheduler and its workers are dask's own (`dask scheduler`, `dask worker`, or what starts them
on Slurm, Kubernetes or over SSH). A worker gets a trial's finished programme, boots a guest that
obeys it, and returns what the guest leaves. It does so only if all that determines the results is
the same there; of the testbed's Python it needs nothing (testbed/guest/worker.py is sent there).
"""

from __future__ import annotations

import contextlib
import ipaddress
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from testbed.engine import Cancelled, Job
from testbed.errors import TestbedError, UsageError
from testbed.guest import kernels, worker
from testbed.guest.boot import (
    GuestEnd,
    does_without_confinement,
    guest_hung,
    guest_options,
    guest_warnings,
    refused_calls,
)
from testbed.guest.engine import LEFT_BY_TRIALS, GuestEngine
from testbed.guest.worker import START_TOPIC, GuestReport, Requirements, Shipment
from testbed.machine import trees
from testbed.machine.compiled import LIBRARIES
from testbed.machine.trees import Taken
from testbed.plan.plan import Task
from testbed.runs.engine_choice import Choice
from testbed.runs.provenance import VERSION_COMMANDS, programs_of, user_files
from testbed.runs.sources import BUILT, require_compiled
from testbed.runs.sweep import (
    ClusterExposed,
    SweepEvent,
    TrialFinished,
    TrialStarted,
    Watcher,
    WorkerRejected,
    is_done,
    run_all,
)
from testbed.store.names import GUEST_COMMAND, GUEST_CONSOLE, GUEST_MEMORY, GUEST_PATHS, PROGRAMME

CONNECT_TIMEOUT_S = 10  # time limits for the scheduler's answer and for a first worker
POLL_S = 0.5
ADDRESS_HINT = "a scheduler's address, e.g. tcp://host:8786 or tls://host:8786"
TRIALS_PER_WORKER = 2  # one runs, one waits
ENCRYPTED = ("tls://", "wss://")  # dask's protocols in which both ends show certificates
REQUIRE_ENCRYPTION = "distributed.comm.require-encryption"  # dask's setting
TLS_HINT = (
    "use TLS (docs/cluster.md); to do without: "
    "export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=False"
)
HASH_DIGITS = 64  # a value this long is a sha256, which messages do not quote

Equipment = Mapping[str, str]  # what determines results on a machine: name → value


class ClusterLost(Cancelled):
    """No machine of the cluster can take trials any more: the run ends."""


def requirements(tasks: Sequence[Task], engine: GuestEngine) -> Requirements:
    """Return what a worker must have for these trials."""
    names = dict.fromkeys(task.scenario.kernel for task in tasks)
    folders = {name: engine.with_kernel(name).kernel for name in names}
    for name, folder in folders.items():
        if folder is None:
            raise kernels.not_built(name)
    programs = dict.fromkeys(name for task in tasks for name in programs_of(task.scenario))
    needs = {need.name for task in tasks for need in task.plan.needs if need.kind == "program"}
    files = {path for task in tasks for path in user_files(task.scenario)}
    return Requirements(
        kernels={name: worker.where_is(path) for name, path in folders.items() if path},
        commands={name: VERSION_COMMANDS[name] for name in programs if name in VERSION_COMMANDS},
        packages=[name for name in programs if name not in VERSION_COMMANDS],
        programs=sorted({"setarch", "taskset", *needs}),
        files=sorted(map(str, files)),
    )


def differences(there: Equipment, here: Equipment) -> str:
    """List the reasons why a worker's results would differ from this machine's."""
    if worker.PROBLEM in there:
        return there[worker.PROBLEM]
    names = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    return ", ".join(_difference(name, there.get(name, ""), here.get(name, "")) for name in names)


def _difference(name: str, there: str, here: str) -> str:
    if HASH_DIGITS in (len(there), len(here)):
        return f"another {name}" if there and here else f"{'no' if here else 'an extra'} {name}"
    return f"{name} {there}, here {here}"


def run_on_cluster(
    address: str,
    tasks: Sequence[Task],
    choice: Choice,
    out: Path,
    watch: Watcher,
    rerun: bool = False,
) -> list[TrialFinished]:
    """Like `run_all`, with guests on the workers of a dask scheduler."""
    engine = choice.engine
    if not isinstance(engine, GuestEngine):
        raise UsageError("a cluster's workers boot guests", "with --cluster: --engine guest")
    if not rerun and all(is_done(out, task, engine) for task in tasks):
        return run_all(tasks, choice, out, watch)
    require_compiled(BUILT)
    with _client(address) as client:
        watch = _serialised(watch)
        encrypted = address.startswith(ENCRYPTED)
        if not encrypted:
            watch(ClusterExposed(exposure(address)))
        client.subscribe_topic(START_TOPIC, _start_forwarder(tasks, watch))
        there = _Workers(client, encrypted, requirements(tasks, engine), watch)
        remote = ClusterEngine(there, engine.kernel_name)
        return run_all(tasks, Choice(remote, choice.reason), out, watch, rerun=rerun)


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


def exposure(address: str) -> str:
    """Say what a scheduler without encryption exposes."""
    return (
        f"{address} has no TLS: whoever can connect to it, or to a worker, can run code "
        "there and, as you, here"
    )


def lacks_tls(address: str) -> str:
    """Return why a scheduler or worker has to have TLS, or nothing if it has, or need not.

    What it sends is unpickled, which runs code.
    """
    import dask
    from distributed.comm.addressing import get_address_host_port

    host, _ = get_address_host_port(address)
    required = dask.config.get(REQUIRE_ENCRYPTION)
    if address.startswith(ENCRYPTED) or required is False:
        return ""
    if required:
        return f"no TLS, which dask's {REQUIRE_ENCRYPTION} demands"
    return "" if is_private(host) else "no TLS, and outside of private networks"


def is_private(host: str) -> bool:
    """Return whether a host's addresses are all of this machine or of private networks."""
    try:
        results = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return True  # nobody answers there, which the attempt to connect will say
    addresses = [ipaddress.ip_address(where[0]) for *_, where in results]
    # an IPv4 address within an IPv6 one counts as private before Python 3.13
    plain = [getattr(address, "ipv4_mapped", None) or address for address in addresses]
    return all(address.is_private for address in plain)  # loopback's included


@contextlib.contextmanager
def _client(address: str) -> Iterator[Any]:
    """Connect to the scheduler; failures become TestbedErrors."""
    try:
        from distributed import Client
    except ImportError as error:
        raise TestbedError(
            "--cluster needs dask.distributed", "pip install tcp-testbed[cluster]"
        ) from error
    try:
        if reason := lacks_tls(address):  # before dask starts a thread for it
            raise TestbedError(f"--cluster {address}: {reason}", TLS_HINT)
        client = Client(address, timeout=CONNECT_TIMEOUT_S)
    except OSError as error:
        raise TestbedError(
            f"no dask scheduler answers at {address}",
            "is its certificate of the same authority as yours?"
            if address.startswith(ENCRYPTED)
            else "start one: dask scheduler",
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


class _Code:
    """A function of worker.py that is sent as code, with trees.py: no worker has the modules."""

    def __init__(self, function: Callable[[bytes], object]) -> None:
        import cloudpickle

        for module in (worker, trees):
            cloudpickle.register_pickle_by_value(module)
        self._code = cloudpickle.dumps(function)

    def __reduce__(self) -> tuple[Callable[[bytes], object], tuple[bytes]]:
        return pickle.loads, (self._code,)

    def __call__(self, packed: bytes) -> object:
        return pickle.loads(self._code)(packed)


class _Workers:
    """The workers equipped like this machine; each other worker is reported once."""

    def __init__(self, client: Any, encrypted: bool, needed: Requirements, watch: Watcher) -> None:
        self._client, self._needed, self._watch = client, needed.packed(), watch
        self._encrypted = encrypted
        self._here = worker.equipment(self._needed)
        if worker.PROBLEM in self._here:
            raise TestbedError(self._here[worker.PROBLEM], "`testbed check` shows what can run")
        self._run_guest = _Code(worker.run_guest)
        self._lock = threading.Lock()
        self._differences: dict[str, str] = {}
        self._fitting: list[str] = []
        self._known_until = 0.0

    def fitting(self) -> list[str]:
        """Return the fitting workers among those connected now, which may change at any time."""
        with self._lock:
            if time.monotonic() > self._known_until:
                self._fitting = self._look()
                self._known_until = time.monotonic() + POLL_S
            return self._fitting

    def _look(self) -> list[str]:
        try:
            present = list(self._client.nthreads())
        except OSError as error:
            raise ClusterLost(f"the cluster's scheduler is gone: {error}") from error
        fresh = [name for name in present if name not in self._differences]
        distrusted = {name: why for name in fresh if (why := self._distrusted(name))}
        answers = self._answers([name for name in fresh if name not in distrusted])
        reasons = {name: differences(answer, self._here) for name, answer in answers.items()}
        for name, reason in (distrusted | reasons).items():
            self._differences[name] = reason
            if reason:
                self._watch(WorkerRejected(name, reason))
        return [name for name in present if self._differences.get(name) == ""]

    def _distrusted(self, address: str) -> str:
        """Return why nothing of a worker is unpickled, or nothing."""
        if self._encrypted and not address.startswith(ENCRYPTED):
            return "no TLS, which the scheduler has"
        return lacks_tls(address)

    def _answers(self, names: Sequence[str]) -> Mapping[str, Equipment]:
        """Query the workers' equipment; one that has just died is queried again if it returns."""
        answers: dict[str, Any] = {}
        if names:
            with contextlib.suppress(OSError):
                answers = self._client.run(
                    _Code(worker.equipment), self._needed, workers=list(names), on_error="return"
                )
        return {name: _equipment(answer) for name, answer in answers.items() if answer is not None}

    def reject(self, name: str, reason: str) -> None:
        """Give a worker no more trials."""
        with self._lock:
            is_news = not self._differences.get(name)
            self._differences[name] = reason
            self._fitting = [each for each in self._fitting if each != name]
        if is_news:
            self._watch(WorkerRejected(name, reason))

    def wait(self, cancel: threading.Event) -> list[str]:
        """Wait for at least one fitting worker; raises if none connects in time."""
        deadline = time.monotonic() + CONNECT_TIMEOUT_S
        while not (names := self.fitting()):
            if time.monotonic() > deadline:
                reasons = "; ".join(f"{w}: {d}" for w, d in self._differences.items() if d)
                raise ClusterLost(
                    "no worker of the cluster can take trials", reasons or "start one: dask worker"
                )
            if cancel.wait(POLL_S):
                raise Cancelled("cancelled")
        return names

    def run(self, shipment: Shipment, cancel: threading.Event) -> GuestReport:
        """Run a guest on a fitting worker, on another one if that dies or its disk is full."""
        packed = shipment.packed()
        while True:
            names = self.wait(cancel)
            future = self._client.submit(self._run_guest, packed, workers=names, pure=False)
            try:
                answer = self._result(future, names, cancel)
            finally:
                future.cancel()
            if answer is not None and not answer.problem:
                return answer
            if answer is not None:
                self.reject(answer.where, answer.problem)

    def _result(
        self, future: Any, names: Sequence[str], cancel: threading.Event
    ) -> GuestReport | None:
        """Return a worker's answer; None if no worker that could give it is left."""
        from distributed import wait

        while not future.done():
            with contextlib.suppress(TimeoutError):
                wait([future], timeout=POLL_S)
            if cancel.is_set():
                raise Cancelled("cancelled")
            if not future.done() and not set(names) & set(self.fitting()):
                return None
        try:
            return GuestReport.unpacked(future.result())
        except Exception as error:  # any exception or death of a worker
            raise TestbedError(f"on the cluster: {error}") from error


def _equipment(answer: object) -> Equipment:
    """Return a worker's equipment from its answer, which may be an exception."""
    return answer if isinstance(answer, dict) else {worker.PROBLEM: f"it cannot answer: {answer}"}


class ClusterEngine(GuestEngine):
    """Guests on the workers of a cluster; their programmes and results are made here."""

    remote = True

    def __init__(self, workers: _Workers, kernel_name: str) -> None:
        super().__init__(kernel_name)
        self._workers = workers

    def _of_kernel(self, name: str) -> GuestEngine:
        return ClusterEngine(self._workers, name)

    def jobs(self, _tasks: Sequence[Task]) -> int:
        """Return twice the number of fitting workers, which may change at any time."""
        return TRIALS_PER_WORKER * len(self._workers.wait(threading.Event()))

    def _boot(self, folder: Path, job: Job, patience_s: float, memory_mb: int) -> GuestEnd:
        """Run a guest on a worker, and store what it leaves as if it had run here."""
        assert self.kernel is not None
        started = time.monotonic()
        try:
            folders, files = worker.pack(folder)
        except ValueError as error:
            raise TestbedError(f"it cannot be sent to a cluster: {error}") from error
        shipment = Shipment(
            trial=job.trial,
            folders=folders,
            files=files,
            commands=[name for name in (GUEST_COMMAND, PROGRAMME) if name in files],
            paths=GUEST_PATHS,
            memory=GUEST_MEMORY,
            console=GUEST_CONSOLE,
            programs=str(LIBRARIES),
            kernel=worker.where_is(self.kernel),
            options=guest_options(job.seed, memory_mb),
            patience_s=patience_s,
            confined_only=job.runs_programs and not does_without_confinement(),
            rules=[astuple(rule) for rule in LEFT_BY_TRIALS],
        )
        answer = self._workers.run(shipment, job.cancel)
        _store(folder, answer)
        if answer.hung:
            raise guest_hung(patience_s)
        return GuestEnd(
            answer.status,
            answer.peak_mb,
            Taken(*answer.taken),
            (
                *guest_warnings(answer.why_not_confined, answer.addresses_fixed),
                *refused_calls(folder),
            ),
            max(0.0, time.monotonic() - started - answer.took_s),
        )


def _store(folder: Path, answer: GuestReport) -> None:
    for name in (*answer.folders, *answer.files):
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise TestbedError(f"a worker sent a file outside the trial's folder: {name}")
    for name in answer.folders:
        (folder / name).mkdir(exist_ok=True)
    worker.unpack(folder, answer.files)
