"""The packets and numbers of the trials behind the pages: two short hashes per trial, in
docs/data/packets/.

In the guest the same scenario gives the same captures, to the byte. So a change that must not
change a packet (a faster kernel, a smaller one) does not call for all trials of all pages again:
some of them, drawn anew at each change, are run and compared with what is stored.

The metrics and the verdict, which the tables are made of, have to be the same: they hold what
programs report, besides what was captured, and whatever has become of the checks. It is a sample:
a change that concerns one trial in hundreds may not show in it. The packets of a few trials may
differ. In hundreds of seconds some ACKs have another window, since what a segment takes in its
receiver's memory depends on where the sender's kernel found room for it, and so on all that has run
before. A client's key for TLS and QUIC hangs on an address in its memory (OpenSSL mixes it in), and
so on the length of the project's path; what is encrypted with it has the same lengths and times.
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

from analysis.metrics.columns import NUMBERS
from analysis.results.reduction import reduction_of, revision
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
from testbed.errors import TestbedError
from testbed.guest.kernels import build_missing
from testbed.plan.task import Task
from testbed.runs.engine_choice import choose
from testbed.runs.sweep import is_done, run_all
from testbed.store import Status, Trial, open_trial, trials_in

OK = Status.OK
DIGITS = 12


@dataclass(frozen=True)
class Sample:
    """How many of the stored trials ran again, which of them gave other numbers, and in how many
    the packets are not all the same."""

    trials: int
    of: int
    others: tuple[str, ...] = ()
    other_packets: int = 0

    def __str__(self) -> str:
        again = f"{self.trials} of {self.of} trials ran again"
        if not self.other_packets:
            return f"{again}: the same packets"
        same = self.trials - self.other_packets
        return f"{again}: the same numbers, and in {same} of them the same packets"


@dataclass(frozen=True)
class Hashes:
    """Of a trial: all its captures, and its metrics with the verdict."""

    packets: str
    numbers: str


def hashes_of(trial: Trial) -> Hashes:
    """Those of a trial that was run."""
    each = sorted((c.node, c.interface, c.sha256) for c in trial.record.captures)
    metrics = reduction_of(trial).flows[["verdict", *NUMBERS]]
    return Hashes(_short(repr(each)), _short(metrics.to_csv(index=False, float_format="%.9g")))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def file_of(command: str, data: Path) -> Path:
    """Where the hashes of a command's trials are."""
    return data / "packets" / f"{re.sub(r'[^a-z0-9]+', '-', command.lower()).strip('-')[:80]}.txt"


def keep(command: str, trials: Sequence[Trial], data: Path) -> None:
    """Store the hashes of the trials that a command ran."""
    path = file_of(command, data)
    path.parent.mkdir(exist_ok=True)
    lines = []
    for trial in trials:
        own = hashes_of(trial)
        lines.append(f"{trial.scenario.name} {own.packets} {own.numbers}\n")
    path.write_text("".join(sorted(lines)), encoding="utf-8")


def kept(commands: Sequence[str], data: Path) -> Mapping[str, Hashes]:
    """The hashes of the commands' trials, by the scenarios' names; none where none were stored."""
    paths = [path for command in commands if (path := file_of(command, data)).is_file()]
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return {name: Hashes(*own) for name, *own in map(str.split, lines)}


def here(command: str, folder: Path) -> str | None:
    """How it is known that a command's trials in the folder are of this code: empty if all ran on
    it. None if they do not have the numbers of those of a stored table that is of this code: the
    command has to run."""
    hashes = kept([command], ROOT / DATA)
    tasks = list(planned([command]))
    names = {task.scenario.name for task in tasks}
    tables = (stored(path.stem) for path in sorted((ROOT / DATA).glob("*.json")))
    found = next((each for each in tables if command in each.commands and not each.stale()), None)
    if not found or not folder.is_dir() or not names <= set(hashes):
        return None
    there = {each.scenario.name: each for each in trials_in(folder) if each.record.status is OK}
    if any(
        name not in there or hashes_of(there[name]).numbers != hashes[name].numbers
        for name in names
    ):
        return None
    guest = choose("guest", ()).engine
    return "" if all(is_done(folder, task, guest) for task in tasks) else found.again


def again(trials: Sequence[Task], stored: Mapping[str, Hashes], count: int, draw: str) -> Sample:
    """Run so many of these trials, drawn by the text `draw`, and compare them."""
    chosen = random.Random(draw).sample(list(trials), min(count, len(trials)))
    others, other_packets = list[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        for done in run_all(chosen, choose("guest", ()), Path(folder), lambda _event: None):
            name = done.scenario.name
            now = hashes_of(open_trial(done.path)) if done.status is OK else None
            if now is None or now.numbers != stored[name].numbers:
                others.append(name)
            elif now.packets != stored[name].packets:
                other_packets += 1
    return Sample(len(chosen), len(trials), tuple(sorted(others)), other_packets)


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
            trials, hashes = _trials_of(block), kept(block.commands, ROOT / DATA)
            build_missing((task.scenario.kernel for task in trials), print)
            samples[own] = again(trials, hashes, count, identity_of(*own) + revision())
        sample = samples[own]
        if sample.others:
            print(f"{block.name}: other numbers in {', '.join(sample.others)}", flush=True)
            status = 1
            continue
        found = stored(block.name)
        said = f"{sample}, since {found.trials[:12]} and {found.metrics}"
        code, metrics = identity_of(*own), revision()
        store(block.name, dataclasses.replace(found, trials=code, metrics=metrics, again=said))
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
    names = {task.scenario.name for task in _trials_of(block)}
    return "" if names <= set(kept(block.commands, ROOT / DATA)) else "no packets stored"


def _trials_of(block: Block) -> list[Task]:
    """Those of its commands, each once."""
    with with_files(block.files):
        return list({task.scenario.name: task for task in planned(block.commands)}.values())
