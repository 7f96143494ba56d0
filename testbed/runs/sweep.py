"""Running many trials, each in its own folder, in parallel where the engine allows it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from testbed.engine import Cancelled, Engine, Job, Missing, ProcessOutcome, what_lacks
from testbed.errors import TestbedError, hint_for
from testbed.guest.worker import FULL_DISK_BYTES, reserve_core
from testbed.machine import json_files
from testbed.machine.atomic import whole_folder
from testbed.machine.journal import core_locks
from testbed.plan.plan import Task, make_plan
from testbed.runs.engine_choice import Choice
from testbed.runs.identity import identify
from testbed.runs.provenance import versions_for, versions_of
from testbed.runs.results_folders import prepare_folder
from testbed.runs.sources import compiled_for, require_compiled
from testbed.scenario import variants
from testbed.scenario.model import Scenario
from testbed.store.names import (
    NETWORK_UP,
    RAW_CAPTURE,
    RECORD,
    SCENARIO,
    is_file_name,
    trial_folder,
)
from testbed.store.reading import is_trial, open_trial, record_faults, scenario_text
from testbed.store.records import DAMAGED, Record, Status, file_record
from testbed.traffic.command_flow import prepare_folders
from testbed.trial.parts.pcapng import Source, convert


@dataclass(frozen=True)
class TrialFinished:
    """A trial that is done; `fresh` if it ran now rather than in an earlier call."""

    task: Task
    path: Path
    status: Status
    fresh: bool = True

    @property
    def scenario(self) -> Scenario:
        """The scenario that ran."""
        return self.task.scenario

    @property
    def record(self) -> Record:
        """The trial's record, read on demand so that thousands of trials take no memory.

        A trial that cannot be read counts as failed.
        """
        try:
            return open_trial(self.path).record
        except TestbedError as error:
            return _failed(error)


@dataclass(frozen=True)
class TrialStarted:
    """A trial that starts: in place of one that ran differently, if `stale`.

    `where` names the machine if it is not this one.
    """

    scenario: Scenario
    stale: bool = False
    where: str = ""


@dataclass(frozen=True)
class WorkerRejected:
    """A cluster worker that gets no trials, and the reason."""

    worker: str
    reason: str


@dataclass(frozen=True)
class TrialWaiting:
    """A trial that cannot begin yet, and the reason as a sentence."""

    reason: str


@dataclass(frozen=True)
class ClusterExposed:
    """What connections of a cluster without encryption expose, as a sentence."""

    reason: str


GROWTH_S = 1.0  # after which an engine is asked again how many trials it takes at once

SweepEvent = TrialStarted | TrialFinished | WorkerRejected | TrialWaiting | ClusterExposed
Watcher = Callable[[SweepEvent], None]


def run_all(
    tasks: Sequence[Task],
    choice: Choice,
    out: Path,
    watch: Watcher,
    jobs: int | None = None,
    rerun: bool = False,
) -> list[TrialFinished]:
    """Run every trial that is not complete yet; completed trials are kept in any case."""
    prepare_folder(out)
    tasks = _planned_for(choice.engine, tasks)
    fitting = choice.engine.jobs(tasks)
    workers = max(1, min(jobs or fitting, len(tasks)))
    runner = _Runner(choice, out, watch, workers, rerun)
    engine = choice.engine
    at_once = (lambda: engine.jobs(tasks)) if engine.remote else lambda: len(tasks)
    with ThreadPoolExecutor(len(tasks) if choice.engine.remote else workers) as pool:
        try:
            return _gather(lambda task: pool.submit(runner.run, task), tasks, at_once)
        except BaseException as error:
            runner.cancel.set()
            pool.shutdown(cancel_futures=True)
            if isinstance(error, Cancelled) and runner.cause:
                raise runner.cause from None
            raise


def _planned_for(engine: Engine, tasks: Sequence[Task]) -> Sequence[Task]:
    """Return the trials with their plans for an engine: in real time, links are shaped by htb."""
    if engine.virtual_time:
        return tasks
    return [Task(t.scenario, make_plan(t.scenario, virtual_time=False)) for t in tasks]


def _gather(
    submit: Callable[[Task], Future[TrialFinished]],
    tasks: Sequence[Task],
    at_once: Callable[[], int],
) -> list[TrialFinished]:
    """Submit trials, no more at once than the engine takes at the time, and return their ends."""
    waiting = list(tasks)[::-1]
    pending: set[Future[TrialFinished]] = set()
    done: list[TrialFinished] = []
    while waiting or pending:
        while waiting and len(pending) < at_once():
            pending.add(submit(waiting.pop()))
        finished, pending = wait(pending, timeout=GROWTH_S, return_when=FIRST_COMPLETED)
        done += [future.result() for future in finished]
    return done


def in_order(tasks: Sequence[Task], order: int | None) -> list[Task]:
    """Shuffle the trials within each repeat, seeded by `order`; None keeps the listed order.

    A host that becomes slower during a sweep then favours no variant.
    """
    if order is None:
        return list(tasks)
    shuffled = []
    for seed in dict.fromkeys(task.scenario.seed for task in tasks):
        block = [task for task in tasks if task.scenario.seed == seed]
        random.Random(f"{order} {seed}").shuffle(block)
        shuffled += block
    return shuffled


class _Runner:
    """The state that the worker threads share."""

    def __init__(
        self, choice: Choice, out: Path, watch: Watcher, workers: int, rerun: bool
    ) -> None:
        self._choice = choice
        self._rerun = rerun
        self._pinned = workers > 1
        self._out = out
        self._watch = watch
        self._lock = threading.Lock()
        self.cancel = threading.Event()
        self.cause: BaseException | None = None  # the error of the trial that ended the sweep early

    def _engine(self, task: Task) -> Engine:
        return self._choice.engine.with_kernel(task.scenario.kernel)

    def _tell(self, event: SweepEvent) -> None:
        with self._lock:
            self._watch(event)

    def _tell_to_wait(self, reason: str) -> None:
        self._tell(TrialWaiting(reason))

    def run(self, task: Task) -> TrialFinished:
        """Reuse a complete trial or run it now; an error that escapes ends the sweep."""
        try:
            return self._find_or_run(task)
        except BaseException as error:
            # Set here rather than in the main thread, which may learn of the error only after this
            # worker has begun its next trial.
            if not self.cancel.is_set():
                self.cause = error
            self.cancel.set()
            raise

    def _find_or_run(self, task: Task) -> TrialFinished:
        if self.cancel.is_set():
            raise Cancelled("cancelled")
        engine = self._engine(task)
        path = self._out / trial_folder(task.scenario, engine.name)
        known = None if self._rerun else _known_status(self._out, task, engine)
        if known:
            finished = TrialFinished(task, path, known, fresh=False)
        else:
            if not engine.remote:
                self._tell(TrialStarted(task.scenario, stale=not self._rerun and _ran_well(path)))
            record = self._run_now(task, path)
            finished = TrialFinished(task, path, record.status)
        self._tell(finished)
        return finished

    def _run_now(self, task: Task, path: Path) -> Record:
        try:
            return self._run_in_its_folder(task, path)
        except OSError:
            _stop_if_disk_is_full(self._out)
            raise

    def _run_in_its_folder(self, task: Task, path: Path) -> Record:
        scenario, engine = task.scenario, self._engine(task)
        require_compiled(compiled_for(task.plan))
        identity = identify(scenario, task.plan, engine)
        private = scenario.runs_programs  # which read what their starter may, others may not
        with _core(engine) as core, whole_folder(path, private=private) as folder:
            job = Job(
                *(scenario.seed, core, self.cancel, scenario.name),
                runs_programs=scenario.runs_programs,
                pinned=self._pinned,
                tell=self._tell_to_wait,
            )
            record = self._attempt(folder, task, job)
            made_by = versions_for(scenario, in_guest=engine.virtual_time)
            record = dataclasses.replace(record, identity=identity, versions=made_by)
            (folder / SCENARIO).write_text(scenario_text(scenario, path))
            record = with_files(record, folder, job.check)
            (folder / RECORD).write_text(record.to_json())
            return record

    def _attempt(self, folder: Path, task: Task, job: Job) -> Record:
        """Run the trial; anything but a cancel or a full disk becomes a record."""
        engine = self._engine(task)
        begun, wall_clock = time.monotonic(), time.time()
        missing = engine.missing(task.plan.needs)
        peak_mb = network_up_s = waited_s = 0.0
        warnings: tuple[str, ...] = ()  # of the engine, however the trial ended
        if missing:
            record = unsupported(engine, missing)
        else:
            try:
                prepare_folders(task.scenario.flows, folder)
                outcome = engine.run(folder, task, job)
                peak_mb, waited_s = outcome.peak_memory_mb, outcome.waited_s
                warnings = outcome.warnings
                network_up_s = _modified(folder / NETWORK_UP) - wall_clock - waited_s
                record = _read_record(folder, task.scenario, outcome)
                _convert_captures(folder, record, job.cancel)
            except Cancelled:
                raise
            except (TestbedError, OSError) as error:
                record = _failed(error)
            if record.status is Status.FAILED:
                _stop_if_disk_is_full(self._out)
        return dataclasses.replace(
            record,
            engine=engine.name,
            virtual_time=engine.virtual_time,
            engine_reason=self._choice.reason,
            warnings=(*record.warnings, *warnings),
            seed=job.seed,
            network_up_s=round(max(0.0, network_up_s), 3),
            wall_s=round(time.monotonic() - begun - waited_s, 3),
            peak_memory_mb=round(peak_mb, 1),
        )


def _core(engine: Engine) -> contextlib.AbstractContextManager[int]:
    """Reserve a processor of this machine, if the trial runs here."""
    return contextlib.nullcontext(0) if engine.remote else reserve_core(core_locks())


def _ran_well(path: Path) -> bool:
    return is_trial(path) and open_trial(path).record.status is Status.OK


def _known_status(out: Path, task: Task, engine: Engine) -> Status | None:
    """Return the status of a trial that is not to run; one that cannot be read is not replaced."""
    try:
        return Status.OK if is_done(out, task, engine) else None
    except TestbedError:
        return Status.FAILED


def is_done(out: Path, task: Task, engine: Engine) -> bool:
    """Return whether the trial succeeded with exactly the settings and software of now."""
    path = out / trial_folder(task.scenario, engine.name)
    if not _ran_well(path):
        return False
    identity = identify(task.scenario, task.plan, engine.with_kernel(task.scenario.kernel))
    return open_trial(path).record.identity == identity


def unsupported(engine: Engine, missing: Iterable[Missing]) -> Record:
    """Return the record of a trial that this engine cannot run."""
    each = list(missing)
    reason = f"{what_lacks(engine, each)} has no " + ", no ".join(str(m) for m in each)
    hints = dict.fromkeys(m.remedy for m in each)
    for lack in each:
        if lack.need.kind == "congestion control" and lack.need.name not in variants.KNOWN_VARIANTS:
            hints = {variants.spelling_hint(lack.need.name): None}
    return Record(Status.UNSUPPORTED, reason, "; ".join(hints))


def _stop_if_disk_is_full(out: Path) -> None:
    """Raise if the disk is full, since every further trial would fail too."""
    if shutil.disk_usage(out).free < FULL_DISK_BYTES:
        raise TestbedError(
            f"{out}: the disk is full",
            "finished trials are kept; make room, or name another folder with --out",
        )


def _failed(error: TestbedError | OSError) -> Record:
    if isinstance(error, TestbedError):
        return Record(Status.FAILED, error.message, error.hint)
    where = f"{error.filename}: " if error.filename else ""
    return Record(Status.FAILED, f"{where}{error.strerror or error}", hint_for(error))


def _modified(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def _read_record(folder: Path, scenario: Scenario, outcome: ProcessOutcome) -> Record:
    """Read the record back: a hostile program may have written the answers that it is made of."""
    try:
        record = Record.from_json(json_files.read_record(folder / RECORD))
    except (OSError, *DAMAGED) as error:
        raise outcome.death() from error
    for fault in record_faults(scenario, record):
        raise TestbedError(fault)
    return record


def _convert_captures(folder: Path, record: Record, cancel: threading.Event) -> None:
    """Convert tcpdump's pcap files to pcapng."""
    (folder / NETWORK_UP).unlink(missing_ok=True)
    for capture in record.captures:
        pcapng = folder / capture.file
        pcap = pcapng.with_suffix(RAW_CAPTURE)
        if pcap.exists():
            application = f"tcpdump {versions_of(('tcpdump',))['tcpdump']}"
            convert(pcap, pcapng, Source(capture.interface, capture.node, application), cancel)
            pcap.unlink()


def with_files(
    record: Record, folder: Path, before_piece: Callable[[], None] = lambda: None
) -> Record:
    """Return the record with all files of the trial's folder, itself excepted.

    `before_piece` may raise an error to end it: captures can take a while.
    """
    files = {name: file_record(folder / name, before_piece) for name in _files_below(folder)}
    captures = tuple(
        dataclasses.replace(each, sha256=files[each.file].sha256) if each.file in files else each
        for each in record.captures
    )
    return dataclasses.replace(record, files=files, captures=captures)


def _files_below(folder: Path) -> list[str]:
    """Return the paths of all plain files in a folder and below it, without recursion."""
    names, folders = list[str](), [""]
    while folders:
        above = folders.pop()
        with os.scandir(folder / above) as entries:
            for each in entries:
                name = f"{above}{each.name}"
                if each.is_dir(follow_symlinks=False):
                    folders.append(f"{name}/")
                elif each.is_file(follow_symlinks=False) and is_file_name(name):
                    names.append(name)
    return sorted({*names} - {RECORD})
