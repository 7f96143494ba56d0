"""The packets of the trials behind the pages: one short hash per trial, in docs/data/packets/.

In the guest the same scenario gives the same captures, to the byte. So a change that must not
change a packet (a faster kernel, a smaller one) does not call for all trials of all pages again:
some of them, drawn anew at each change, are run and their captures compared with what is stored.
The keys of TLS and QUIC depend on all that has run before in the guest, so that a change of the
set-up makes others; and in trials of hundreds of seconds, the window of an ACK that leaves in the
instant in which its receiver reads may do so too. Those tables are then made again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.results.table import revision
from benchmarks.pages import (
    DATA,
    ROOT,
    Block,
    Files,
    identity_of,
    planned,
    plans_of,
    store,
    stored,
    with_files,
)
from testbed.engines.choice import choose
from testbed.errors import TestbedError
from testbed.plan.task import Task
from testbed.runs.same_captures import captured
from testbed.runs.sweep import run_all
from testbed.store import Record, Status, Trial

DIGITS = 12


@dataclass(frozen=True)
class Sample:
    """How many of the stored trials ran again, and which of them sent other packets."""

    trials: int
    of: int
    others: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.trials} of {self.of} trials ran again: the same packets"


def digest(record: Record) -> str:
    """Of all captures of a trial."""
    each = sorted((*place, sha256) for place, sha256 in captured(record).items())
    return hashlib.sha256(repr(each).encode()).hexdigest()[:DIGITS]


def file_of(command: str, data: Path) -> Path:
    """Where the hashes of a command's trials are."""
    return data / "packets" / f"{re.sub(r'[^a-z0-9]+', '-', command.lower()).strip('-')[:80]}.txt"


def keep(command: str, trials: Sequence[Trial], data: Path) -> None:
    """Store the hashes of the trials that a command ran."""
    path = file_of(command, data)
    path.parent.mkdir(exist_ok=True)
    lines = sorted(f"{trial.scenario.name} {digest(trial.record)}\n" for trial in trials)
    path.write_text("".join(lines), encoding="utf-8")


def kept(commands: Sequence[str], data: Path) -> Mapping[str, str]:
    """The hashes of the commands' trials, by the scenarios' names; none where none were stored."""
    paths = [path for command in commands if (path := file_of(command, data)).is_file()]
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return dict(line.split() for line in lines)


def again(trials: Sequence[Task], stored: Mapping[str, str], count: int, draw: str) -> Sample:
    """Run so many of these trials, drawn by the text `draw`, and compare their packets."""
    chosen = random.Random(draw).sample(list(trials), min(count, len(trials)))
    others = []
    with tempfile.TemporaryDirectory() as folder:
        for done in run_all(chosen, choose("guest", ()), Path(folder), lambda _event: None):
            name = done.scenario.name
            if done.status is not Status.OK or digest(done.record) != stored.get(name):
                others.append(name)
    return Sample(len(chosen), len(trials), tuple(sorted(others)))


def compare(due: Sequence[Block], count: int) -> int:
    """Run some trials of each stale table again; those that still hold are of this code."""
    status = 0
    samples = dict[tuple[tuple[str, ...], Files], Sample]()
    for block in due:
        if why := has_to_be_made(block):
            print(f"{block.name}: {why}: --stale makes it again", flush=True)
            status = 1
            continue
        own = (block.commands, block.files)
        if own not in samples:
            hashes = kept(block.commands, ROOT / DATA)
            samples[own] = again(_trials_of(block), hashes, count, identity_of(*own))
        sample = samples[own]
        if sample.others:
            print(f"{block.name}: other packets in {', '.join(sample.others)}", flush=True)
            status = 1
            continue
        found = stored(block.name)
        said = f"{sample}, since {found.trials[:12]}"
        store(block.name, dataclasses.replace(found, trials=identity_of(*own), again=said))
        print(f"{block.name}: {sample}", flush=True)
    return status


def has_to_be_made(block: Block) -> str:
    """Why a comparison of packets does not tell; empty if it does."""
    try:
        found = stored(block.name)
    except TestbedError:
        return "nothing is stored"
    if found.commands != block.commands or found.plans != plans_of(block.commands, block.files):
        return "other trials"
    if found.metrics != revision():
        return "other metrics"
    names = {task.scenario.name for task in _trials_of(block)}
    return "" if names <= set(kept(block.commands, ROOT / DATA)) else "no packets stored"


def _trials_of(block: Block) -> list[Task]:
    """Those of its commands, each once."""
    with with_files(block.files):
        return list({task.scenario.name: task for task in planned(block.commands)}.values())
