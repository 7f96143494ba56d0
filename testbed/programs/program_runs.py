"""A whole program's run in the guest: its results folder, its output while it runs, its files."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from analysis.laboratory.observation import read_observation
from analysis.laboratory.rules import LaboratoryFinding, laboratory_findings
from testbed.errors import TestbedError, UsageError
from testbed.guest.machine import MachineEnd, MachineProgram, run_on_machine
from testbed.guest.worker import HIDDEN
from testbed.machine import atomic, safe_files
from testbed.store.names import (
    CAPTURES_FOLDER,
    GUEST_ERRORS,
    GUEST_OBSERVED,
    GUEST_OUTPUT,
    GUEST_SAMPLED,
    LABORATORY_FINDINGS,
    MACHINE_ERRORS,
    MACHINE_FILES,
    MACHINE_FLOWS,
    MACHINE_OBSERVED,
    MACHINE_OUTPUT,
    MACHINE_RECORD,
)

RENAMED = {  # a guest's file → its name among the results
    GUEST_OUTPUT: MACHINE_OUTPUT,
    GUEST_ERRORS: MACHINE_ERRORS,
    GUEST_OBSERVED: MACHINE_OBSERVED,
}
# what judges a laboratory in its guest, by the same Python and packages as ours
JUDGE = (sys.executable, "-IB", "-m", "analysis.laboratory.judge")
MAX_OUTPUT_BYTES = 1 << 30  # on each of its two streams: `yes` would fill the disk
RELAYED_BYTES = 1 << 20  # at once
# What a program says when it fails for a reason that is the guest's, and what that means.
EXPLANATIONS = (
    ("no display name and no $DISPLAY", "there is no screen in the guest: X programs do not run"),
    ("Cannot connect to display", "there is no screen in the guest: xterm does not start"),
    ("No module named 'mininet'", "Mininet is not installed: apt install mininet"),
    ("No module named 'matplotlib'", "apt install python3-matplotlib: the system's Python runs it"),
    (
        "Missing parentheses in call to 'print'",
        "a script for Python 2: `2to3 -w SCRIPT` converts it",
    ),
    (
        "No space left on device",
        "changes are held in the guest's memory: --memory MB gives it more",
    ),
    ("Cannot find required executable ofdatapath", "Mininet's user switch is not in Debian"),
)

MISSING_FILE = re.compile(
    rf"({'|'.join(HIDDEN)})/[^\n]*(?:No such file|not found|Errno 2)"
    rf"|(?:No such file|Errno 2)[^\n]*?({'|'.join(HIDDEN)})/"
)
HIDDEN_FOLDER = "the host's {} is not in the guest: run from the folder with what is needed of it"


@dataclass(frozen=True)
class ProgramRun:
    """A program's end, the wall time that it took, and what is to be said about it."""

    end: MachineEnd
    wall_s: float
    notes: Sequence[str]
    findings: Sequence[LaboratoryFinding]
    captures: int = 0  # without those files that are none


class Output(Protocol):
    """What a program's output is passed on to."""

    def write(self, data: bytes, /) -> object:
        """Take the next bytes."""

    def flush(self) -> object:
        """Show them."""


class Relay:
    """Passes on what a guest's growing file has got since the last look."""

    def __init__(self, path: Path, stream: Output) -> None:
        self._file, self._stream = path.open("x+b"), stream  # before the guest gets it
        self._left = MAX_OUTPUT_BYTES

    def look(self) -> None:
        """Pass on what is new, piece by piece; raise an error when it is too much."""
        while new := self._file.read(min(RELAYED_BYTES, self._left + 1)):
            self._left -= len(new)
            if self._left < 0:
                raise TestbedError(
                    f"the program printed more than {MAX_OUTPUT_BYTES >> 20} MB",
                    "is it an endless loop? Otherwise send its output to a file in its folder",
                )
            self._stream.write(new)
            self._stream.flush()


def run_in_folder(
    program: MachineProgram, kernel: Path, out: Path, output: Output, errors: Output
) -> ProgramRun:
    """Run a program whose results take the place of a folder when it has ended.

    Its output is also passed on while it runs.
    """
    _check_replaceable(out)
    safe_files.make_folder(out.parent)
    begun = time.monotonic()
    with atomic.whole_folder(out, private=True) as place:
        relays = (Relay(place / GUEST_OUTPUT, output), Relay(place / GUEST_ERRORS, errors))
        end = run_on_machine(program, kernel, place, _looking(relays))
        for relay in relays:
            relay.look()
        for name, kept in RENAMED.items():
            (place / name).touch()  # unless the program removed it
            (place / name).rename(place / kept)
        for name in (MACHINE_FILES, *([CAPTURES_FOLDER] if program.captured else ())):
            (place / name).mkdir(exist_ok=True)  # an empty folder is not brought back
        wall_s = time.monotonic() - begun
        observation = read_observation(place / MACHINE_OBSERVED, program.folder)
        findings = laboratory_findings(observation, at_once=end.at_finding)
        damaged = _write_flows(place) if program.captured else []
        notes = [*_notes(end, place / MACHINE_ERRORS), *damaged]
        captures = len([*(place / CAPTURES_FOLDER).glob("*")]) - len(damaged)
        run = ProgramRun(end, wall_s, notes, findings, captures)
        (place / LABORATORY_FINDINGS).write_text(record_text([asdict(each) for each in findings]))
        (place / MACHINE_RECORD).write_text(_record(program, kernel, run))
        if program.captured:
            _write_samples(place, observation.began_ns)
    return run


def _write_flows(place: Path) -> list[str]:
    """Write the flows of a run's captures as a table; return what is wrong with captures."""
    from analysis.captures import tables

    captures, damaged = sorted((place / CAPTURES_FOLDER).glob("*")), []
    try:
        flows = list(tables.flow_tables(captures, tunnels=False))
    except TestbedError:  # one by one: the others are left
        flows = []
        for capture in captures:
            try:
                flows += tables.flow_tables([capture], tunnels=False)
            except TestbedError as error:
                damaged.append(
                    f"{CAPTURES_FOLDER}/{capture.name}: {error.message.partition(': ')[2]}"
                )
    (place / MACHINE_FLOWS).write_text("".join(tables.csv_text(each.table for each in flows)))
    return damaged


def _write_samples(place: Path, began_ns: int) -> None:
    """Write the samples of a run's queues and sockets as tables, in place of the guest's file."""
    from analysis.laboratory.samples import write_sample_tables

    samples = place / GUEST_SAMPLED
    samples.touch()  # in case the program removed it
    write_sample_tables(samples, began_ns, place)
    samples.unlink()


def _looking(relays: Sequence[Relay]) -> Callable[[], bool]:
    """Return what the wait for a guest calls: it passes output on, and never cancels."""

    def look() -> bool:
        for relay in relays:
            relay.look()
        return False

    return look


def _check_replaceable(out: Path) -> None:
    """Raise an error if the folder has something else than such results."""
    if out.exists() and not (out / MACHINE_RECORD).exists() and any(out.iterdir()):
        raise UsageError(f"{out} has something else in it", "name another folder with --out")


def _notes(end: MachineEnd, errors: Path) -> list[str]:
    text = safe_files.tail(errors)
    charged = f"loops without system calls took {end.charged_s:.1f} s, which depends on the host: "
    skipped = f"{end.skipped} links, devices or files over 1 GiB were not brought back"
    return [
        *end.notes,
        *(line for cause, line in EXPLANATIONS if cause in text),
        *_hidden_folders(text),
        *([f"{charged}not the same for the same seed"] if end.charged_s else []),
        *([skipped] if end.skipped else []),
        *end.warnings,
    ]


def _hidden_folders(text: str) -> list[str]:
    """Return a note if a program missed a file in a folder that the guest has for itself."""
    missed = MISSING_FILE.search(text)
    return [HIDDEN_FOLDER.format(missed[1] or missed[2])] if missed else []


def _record(program: MachineProgram, kernel: Path, run: ProgramRun) -> str:
    version, base = ((kernel / name).read_text().strip() for name in ("version", "base"))
    facts = {
        "words": list(program.words),
        "folder": str(program.folder),
        "seed": program.seed,
        "memory_mb": program.memory_mb,
        "kernel": f"{version} {base}",
        **asdict(run.end),
        "wall_s": round(run.wall_s, 3),
        "deterministic": not run.end.charged_s,
        "notes": list(run.notes),
    }
    return record_text(facts)


def record_text(value: object) -> str:
    """Return what is recorded of runs as JSON on lines, with all letters as they are."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def copy_in_place(files: Path, folder: Path) -> list[str]:
    """Copy a run's files into the program's own folder; return those left out.

    They are behind a link, or a folder has their place, or a file has the place of their folder.
    """
    left_out = []
    for name in _plain_files(files):
        above = [folder / path for path in name.parents if path != Path()]
        in_a_file = any(path.exists() and not path.is_dir() for path in above)
        linked = any(path.is_symlink() for path in (folder / name, *above))
        if linked or in_a_file or (folder / name).is_dir():
            left_out.append(str(name))
            continue
        safe_files.make_folder((folder / name).parent)
        atomic.replace(folder / name, functools.partial(shutil.copyfile, files / name))
    return left_out


def _plain_files(files: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(files):
        folders.sort()
        for name in sorted(names):
            yield (Path(here) / name).relative_to(files)
