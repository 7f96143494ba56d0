"""The packets of the trials behind the pages: one short hash per trial, in docs/data/packets/.

In the guest the same scenario gives the same captures, to the byte. So a change that must not
change a packet (a faster kernel, a smaller one) does not call for all trials of all pages again:
some of them, drawn anew at each change, are run and their captures compared with what is stored.
The keys of TLS and QUIC depend on all that has run before in the guest, so that a change of the
set-up makes others: those tables are then made again.
"""

from __future__ import annotations

import hashlib
import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.engines.choice import choose
from testbed.plan.task import Task
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
    each = sorted((c.node, c.interface, c.sha256) for c in record.captures)
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


def again(planned: Sequence[Task], stored: Mapping[str, str], count: int, draw: str) -> Sample:
    """Run so many of the planned trials, drawn by the text `draw`, and compare their packets."""
    chosen = random.Random(draw).sample(list(planned), min(count, len(planned)))
    others = []
    with tempfile.TemporaryDirectory() as folder:
        for done in run_all(chosen, choose("guest", ()), Path(folder), lambda _event: None):
            name = done.scenario.name
            if done.status is not Status.OK or digest(done.record) != stored.get(name):
                others.append(name)
    return Sample(len(chosen), len(planned), tuple(sorted(others)))
