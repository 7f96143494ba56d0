"""Reading trials and results folders, whoever wrote them."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError, UsageError, quoted, short
from testbed.machine import json_files
from testbed.machine.file_hashes import hash_of
from testbed.machine.safe_files import MAX_DOCUMENT_BYTES, plain_file, read_bytes
from testbed.scenario.model import Scenario
from testbed.scenario.names import is_name
from testbed.scenario.reading import read_scenario
from testbed.store.names import (
    CAPTURES_FOLDER,
    FIGURES,
    LATEST,
    MACHINE_RECORD,
    RECORD,
    RUN_FILE,
    RUNS,
    SCENARIO,
    is_file_name,
)
from testbed.store.records import DAMAGED, FileRecord, Record, Status

_BESIDE_TRIALS = (".", "metrics.", FIGURES, "report", RUNS, LATEST)
MAX_BESIDE_S = 1000.0  # before and after a scenario's time, if the host is slow
CHANGED = "damaged: it is not what the trial recorded"


def read_json(folder: Path, name: str) -> Any:
    """Return a JSON document of the trial in this folder; None if it is missing or damaged."""
    try:
        return json_files.read(folder / name)
    except (OSError, *DAMAGED):
        return None


@dataclass(frozen=True)
class Trial:
    """A complete trial on disk."""

    path: Path
    scenario: Scenario
    record: Record

    def capture(self, role: str) -> Path | None:
        """Return the capture that has this role, if it was taken."""
        for capture in self.record.captures:
            if role in capture.roles and capture.file:
                return self.path / capture.file
        return None

    def file(self, name: str) -> Path | None:
        """Return the path of a file; None if the trial left none of that name.

        Raise an error if the file is not what the trial recorded: it would give other numbers, or
        none, without a word.
        """
        if name not in self.record.files:
            return None
        if fault := self.file_fault(name):
            raise TestbedError(f"{self.path / name}: {fault}", f"run it again: {again(self.path)}")
        return self.path / name

    def file_fault(self, name: str) -> str:
        """Return what is wrong with a file of the trial; empty if it is what it recorded."""
        recorded = self.record.files.get(name)
        is_capture = name.startswith(f"{CAPTURES_FOLDER}/")
        largest = None if is_capture else MAX_DOCUMENT_BYTES
        return file_fault(self.path / name, recorded, largest) if recorded else "not recorded"


def file_fault(path: Path, recorded: FileRecord, most_bytes: int | None = None) -> str:
    """Return what is wrong with a file; empty if it is what a trial recorded."""
    try:
        size = plain_file(path, most_bytes).stat().st_size
        if size != recorded.bytes:
            return f"damaged: {size} bytes, of {recorded.bytes} that the trial recorded"
        return "" if hash_of(path) == recorded.sha256 else CHANGED
    except (FileNotFoundError, NotADirectoryError):
        return "missing: the trial recorded it"
    except OSError as error:
        return f"damaged: {error.strerror}"


def scenario_text(scenario: Scenario, trial: Path) -> str:
    """Return a scenario as it is stored: where its programs' files lie, seen from the trial."""
    folder = trial.resolve()

    def relative(file: str) -> str:
        return os.path.relpath(Path(file).resolve(), folder)

    return scenario.with_programs(lambda programs: programs.with_files(relative)).to_json()


def with_files_from(scenario: Scenario, folder: Path) -> Scenario:
    """Return a scenario whose programs' files were named as a folder sees them."""

    def absolute(file: str) -> str:
        return os.path.normpath(folder.resolve() / file)

    return scenario.with_programs(lambda programs: programs.with_files(absolute))


def open_trial(path: Path) -> Trial:
    """Read a trial's directory, whoever wrote it: it may contain only names that we would give."""
    try:
        content = read_bytes(path / SCENARIO, json_files.MAX_RECORD_BYTES)
        record = Record.from_json(json_files.read_record(path / RECORD))
        _require_recorded(path, record, content)
        scenario = with_files_from(read_scenario(content, str(path / SCENARIO)), path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TestbedError(f"{path}: not a trial: {_lacks(path)}", _trial_hint(path)) from error
    except UsageError as error:
        raise TestbedError(
            error.message, "remove the folder, and run its experiment again"
        ) from error
    except DAMAGED as error:
        raise TestbedError(
            f"{path / RECORD}: damaged: {short(error)}", f"run it again: {again(path)}"
        ) from error
    for fault in record_faults(scenario, record):
        raise TestbedError(f"{path}: {fault}", "the testbed did not write this: leave it out")
    return Trial(path, scenario, record)


def _require_recorded(path: Path, record: Record, scenario: bytes) -> None:
    """Raise an error if the scenario is not the one that the record lists."""
    listed = record.files.get(SCENARIO)
    if listed is None and record.status is Status.OK:
        raise TestbedError(
            f"{path / RECORD}: it does not list the trial's files: an earlier version made it",
            f"run it again: {again(path)}",
        )
    if listed and hashlib.sha256(scenario).hexdigest() != listed.sha256:
        raise TestbedError(
            f"{path / SCENARIO}: {CHANGED}", "remove the folder, and run its experiment again"
        )


def again(trial: Path) -> str:
    """Return the command that replaces a trial's directory."""
    scenario, folder = (shlex.quote(str(each)) for each in (trial / SCENARIO, trial.parent))
    return f"testbed run {scenario} --out {folder} --rerun"


def open_named_trial(path: Path) -> Trial:
    """Read a trial that a user named; a folder that is not a trial is a usage error."""
    if not (path / RECORD).exists():
        raise UsageError(f"{path}: not a trial: {_lacks(path)}", _trial_hint(path))
    return open_trial(path)


def _lacks(path: Path) -> str:
    if path.is_dir():
        missing = next((name for name in (SCENARIO, RECORD) if not (path / name).exists()), RECORD)
        return f"{missing} is missing"
    return "a file" if path.exists() else "no such folder"


def _trial_hint(path: Path) -> str:
    for folder in (path, *_results_in(path)) if path.is_dir() else ():
        if inside := trial_paths(folder):
            return f"name one of those in it: {inside[0]}"
    return "name a trial's directory, such as results/variants/reno-seed1-…"


def _results_in(folder: Path) -> list[Path]:
    """Return the results folders and runs in a folder."""
    with contextlib.suppress(OSError):
        folders = sorted(each for each in folder.iterdir() if not each.is_symlink())
        return [each for each in folders if (each / RUNS).is_dir() or (each / RUN_FILE).is_file()]
    return []


def no_trials(folder: Path) -> TestbedError:
    """Return the error of a folder without trials, with one in it that has some."""
    hint = "name a folder that `testbed run` made"
    for inside in _results_in(folder)[:1]:
        hint = f"name one of those in it: {inside}"
    return TestbedError(f"{folder}: no trials in it", hint)


def record_faults(scenario: Scenario, record: Record) -> Iterator[str]:
    """Yield a fault for each name that leads out of the trial or nowhere, and each time outside."""
    planned = {flow.name for flow in scenario.flows}
    last_s = scenario.duration_s + MAX_BESIDE_S
    engine = (record.engine,) if record.engine else ()
    queues = (name for each in record.queues for name in (each.node, each.interface))
    captures = (name for each in record.captures for name in (each.node, each.interface))
    for name in (*engine, *queues, *captures):
        if not is_name(name):
            yield f"{RECORD}: {quoted(name)}: not a name"
    for flow in scenario.flows:
        for name in (flow.src, flow.dst, *((flow.variant,) if flow.variant else ())):
            if not is_name(name):
                yield f"{SCENARIO}: {quoted(name)}: not a name"
    for each in record.flows:
        if each.name not in planned:
            yield f"{RECORD}: {quoted(each.name)} is not a flow of its scenario"
        if not -MAX_BESIDE_S <= each.started_s <= each.stopped_s <= last_s:
            yield f"{RECORD}: {each.name} cannot run from {each.started_s} to {each.stopped_s} s"
        if each.variant_seen and not is_name(each.variant_seen):
            yield f"{RECORD}: {quoted(each.variant_seen)}: not a name"
    for capture in record.captures:
        folder, _, name = str(capture.file).rpartition("/")
        if capture.file and not (folder == CAPTURES_FOLDER and is_name(name)):
            yield f"{RECORD}: {quoted(capture.file)} is not one of its capture files"
    for name in itertools.filterfalse(is_file_name, record.files):
        yield f"{RECORD}: {quoted(name)} is not one of its files"


def is_trial(path: Path) -> bool:
    """Return whether this is a trial's directory; one that is being written begins with a dot."""
    return not path.name.startswith(".") and (path / RECORD).is_file()


def is_program_run(path: Path) -> bool:
    """Return whether this is the results folder of a whole program's run."""
    return (path / MACHINE_RECORD).is_file()


def belongs_in_results(path: Path) -> bool:
    """Return whether a results folder may hold this: a trial, or what is made from trials."""
    return path.name.startswith(_BESIDE_TRIALS) or is_trial(path)


def run_command(run: Path) -> str:
    """Return the command that made a run; empty if it is not known."""
    data = read_json(run, RUN_FILE)
    command = data.get("command") if isinstance(data, dict) else None
    return command if isinstance(command, str) else ""


def listed_trials(run: Path) -> tuple[str, ...]:
    """Return the names of a run's trials, which are in the results folder above `runs`."""
    try:
        names = tuple(json_files.read(run / RUN_FILE)["trials"])
    except (OSError, *DAMAGED) as error:
        raise TestbedError(
            f"{run / RUN_FILE}: damaged: {short(error)}", "remove the folder: it holds no trials"
        ) from error
    for name in names:
        if not (isinstance(name, str) and name and name == Path(name).name and name[0] != "."):
            raise TestbedError(
                f"{run / RUN_FILE}: {quoted(name)} is not the name of a trial", "remove the folder"
            )
    return names


def trial_paths(results: Path) -> list[Path]:
    """Return the trials' directories in a results folder, or of a run, by name."""
    if not results.is_dir():
        if results.exists():
            hint = "name a results folder"
            if ".pcap" in results.name:
                hint += "; of a capture: `testbed reduce FILE`, `testbed fit FILE`"
            raise UsageError(f"{results}: a file, not a folder", hint)
        raise UsageError(f"{results}: no such folder", "`testbed run` makes one")
    if (results / RUN_FILE).is_file():
        store = _store_of(results)
        paths = [store / name for name in listed_trials(results)]
    else:
        paths = list(results.iterdir())
        if not any(is_trial(each) for each in paths if os.access(each, os.X_OK)):
            return []  # such as /tmp, with folders that are closed to others
    return sorted(filter(is_trial, paths), key=lambda path: path.name)


def _store_of(run: Path) -> Path:
    """Return the results folder of a run or a link to one; relative if `run` is."""
    real = run.resolve().parent.parent
    return real if run.is_absolute() else Path(os.path.relpath(real))


def trials_in(results: Path) -> Iterator[Trial]:
    """Yield the trials of a results folder, or of a run, by name."""
    for path in trial_paths(results):
        yield open_trial(path)


def readable(paths: Iterable[Path]) -> tuple[list[Trial], list[TestbedError]]:
    """Read trials; return those that can be read, and what is wrong with each of the others."""
    trials, errors = list[Trial](), list[TestbedError]()
    for path in paths:
        try:
            trials.append(open_trial(path))
        except TestbedError as error:
            errors.append(error)
    return trials, errors
