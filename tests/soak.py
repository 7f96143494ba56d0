"""Kill sweeps again and again: python -m tests.soak FOLDER [--trials N] [--minutes M] [--round N].

A round is three sweeps at once on one results folder, whose processes are killed at random moments:
sweeps, guests, their helpers, and what reduces trials; every third round's disk is too small (root
only). Then the sweeps run again, undisturbed, and must have the same results as a sweep that nobody
disturbed, with nothing left behind: no file, no process. That sweep is also watched for descriptors
and memory that grow. FOLDER/rounds.jsonl says which rounds were done; the same command continues
after them, so that N trials can be done in pieces.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from analysis.results.reduction import reduction_of
from testbed.machine.process import interruptible
from testbed.store.reading import Trial, is_trial, trials_in
from tests.lab import alive, wait_until
from tests.robustness.killing import Laboratory, children_of_server, hashes, written

ROUNDS = "rounds.jsonl"
SWEEPS = 3
MAX_REPEATS = 6  # of a sweep until it is complete
MAX_PAUSE_S = 1.5  # between two kills
LOOK_S = 0.1  # between two looks at a sweep's descriptors and memory
BEGINNING = 20  # trials, from which on other processes reduce
MAX_DESCRIPTORS = 3  # more in a sweep's second half than in its first
MAX_GROWTH_MB = 20.0
ENDING_S = 60.0  # from a sweep's SIGTERM on: its guests end at once, and nothing is drawn


@dataclass
class Growth:
    """A sweep's descriptors and memory, as often as they were looked at while trials ran."""

    descriptors: list[int] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    def faults(self) -> list[str]:
        """What was more in the second half than in the first."""
        half = len(self.descriptors) // 2
        if not half:
            return []
        found = []
        for what, values, most in (
            ("descriptors", self.descriptors, MAX_DESCRIPTORS),
            ("MB", self.megabytes, MAX_GROWTH_MB),
        ):
            before, after = max(values[:half]), max(values[half:])
            if after - before > most:
                found.append(f"a sweep's {what} grew from {before:.0f} to {after:.0f}")
        return found


class Soak:
    """Rounds of a number of trials, in a folder that outlives the process."""

    def __init__(self, folder: Path, trials: int, sweeps: int = SWEEPS) -> None:
        self.folder, self.trials, self.sweeps = folder, trials, sweeps
        folder.mkdir(parents=True, exist_ok=True)
        self.scenario = written(folder)

    def argv(self, out: Path, trials: int) -> list[str]:
        """The command of a sweep."""
        words = f"--seeds {trials} --engine guest --out"
        return ["run", self.scenario, *words.split(), str(out)]

    def undisturbed(self) -> tuple[Path, list[str]]:
        """Run the trials once, unless that was done; return where they are, and what grew."""
        place = self.folder / f"undisturbed-{self.trials}"
        if place.exists():
            return place / "out", []
        shutil.rmtree(aside := self.folder / "aside", ignore_errors=True)
        lab, growth = Laboratory(aside), Growth()
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(lab.out, growth, over))
        with ended_sweeps(aside, 1):
            lab.begin(*self.argv(lab.out, self.trials))
            watcher.start()
            try:
                ended = lab.end()
            finally:
                over.set()
                watcher.join()
        assert ended.status == 0, ended.said
        aside.rename(place)
        return place / "out", growth.faults()

    def _watch(self, out: Path, growth: Growth, over: threading.Event) -> None:
        """Look at the first server's sweep, but not as it begins, nor when it draws figures."""
        while not over.wait(LOOK_S) and (done := sum(map(is_trial, out.iterdir()))) < self.trials:
            for pid in children_of_server(0) if done > BEGINNING else ():
                with contextlib.suppress(OSError, IndexError):
                    descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                    growth.descriptors.append(descriptors)
                    growth.megabytes.append(pages * os.sysconf("SC_PAGESIZE") / 1e6)

    def round(self, number: int, kills: int) -> tuple[Counter[str], list[str]]:
        """Disturb sweeps, let them complete; return what was killed, and all faults."""
        wanted, faults = self.undisturbed()
        place = self.folder / f"round-{number}"
        shutil.rmtree(place, ignore_errors=True)
        labs = [Laboratory(place / str(each), server=each) for each in range(self.sweeps)]
        out, dice = labs[0].out, random.Random(number)
        too_small = number % 3 == 0 and os.geteuid() == 0
        small = disk(out, wanted) if too_small else contextlib.nullcontext()
        with ended_sweeps(place, self.sweeps), small:
            for each, lab in enumerate(labs):
                lab.begin(*self.argv(out, max(1, self.trials - each)))
            killed = kill_some(dice, kills, self.sweeps)
            said = [lab.end().said for lab in labs]
            if too_small:
                subprocess.run(["mount", "-o", "remount,size=4g", out], check=True)
            for lab in labs:
                for _ in range(MAX_REPEATS):
                    ended = lab.run(*self.argv(out, self.trials))
                    said.append(ended.said)
                    if ended.status == 0:
                        break
                said.append(lab.clean())
            faults += [text for text in said if "Traceback" in text]
            faults += [f"left behind: {name}" for lab in labs for name in lab.left()]
            faults += differences(out, wanted)
        if not faults:
            shutil.rmtree(place)
        return killed, faults


def differences(out: Path, wanted: Path) -> list[str]:
    """What differs in a folder of trials from the undisturbed one."""
    there = {trial.path.name: trial for trial in trials_in(out)}
    found = []
    for trial in trials_in(wanted):
        name = trial.path.name
        if name not in there:
            found.append(f"{name}: missing")
            continue
        try:
            same = hashes(there[name]) == hashes(trial)
        except (AssertionError, OSError) as error:
            found.append(f"{name}: {error or 'damaged'}")
            continue
        if not same or rows(there[name]) != rows(trial):
            found.append(f"{name}: other captures or numbers")
    return found


def rows(trial: Trial) -> object:
    """A trial's numbers."""
    return reduction_of(trial).flows.to_json()


@contextlib.contextmanager
def disk(out: Path, wanted: Path) -> Iterator[None]:
    """Mount a disk that has room for half of the trials."""
    size = sum(path.stat().st_size for path in wanted.rglob("*")) // 2
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "soak", out], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", out], check=True)


@contextlib.contextmanager
def ended_sweeps(place: Path, sweeps: int) -> Iterator[None]:
    """End the sweeps and remove what they wrote if the soak itself is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        begun = processes_of(sweeps)
        for pid in (pid for pid, kind in begun.items() if kind == "sweep"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not any(map(alive, begun)), ENDING_S)
        shutil.rmtree(place)
        raise


def kill_some(dice: random.Random, kills: int, sweeps: int) -> Counter[str]:
    """Kill processes of the sweeps at random moments; return how many of each kind."""
    killed: Counter[str] = Counter()
    for _ in range(kills):
        time.sleep(dice.uniform(0.05, MAX_PAUSE_S))
        by_kind: dict[str, list[int]] = {}
        for pid, kind in processes_of(sweeps).items():
            by_kind.setdefault(kind, []).append(pid)
        if by_kind:
            kind = dice.choice(sorted(by_kind))
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(by_kind[kind]), signal.SIGKILL)
                killed[kind] += 1
    return killed


def processes_of(sweeps: int) -> dict[int, str]:
    """The sweeps that run, with all that they started, and what each is."""
    found = {pid: "sweep" for server in range(sweeps) for pid in children_of_server(server)}
    pids = list(found)
    for pid in pids:  # grows
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                pids += map(int, (thread / "children").read_text().split())
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            inside = "guest" if b"um_seed=" in words else "other"
            found.setdefault(pid, "reducer" if b"reducing" in words else inside)
    return found


def main() -> int:
    """Run rounds until the trials or the time are done; status 1 if there was a fault."""
    with interruptible(), contextlib.suppress(KeyboardInterrupt):
        return run_rounds()
    return 128 + signal.SIGINT


def run_rounds() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--round", type=int, default=40, help="trials of a round (40)")
    options = parser.parse_args()
    begun, soak = time.monotonic(), Soak(options.folder.absolute(), options.round)
    journal = soak.folder / ROUNDS
    journal.touch()
    done = [json.loads(line) for line in journal.read_text().splitlines()]
    while sum(each["trials"] for each in done) < options.trials:
        if time.monotonic() - begun > 60 * options.minutes:
            break
        number = len(done) + 1
        killed, faults = soak.round(number, kills=max(2, options.round // 5))
        done.append({"round": number, "trials": options.round, "killed": killed, "faults": faults})
        with journal.open("a") as file:
            print(json.dumps(done[-1]), file=file)
        print(json.dumps(done[-1]), flush=True)
    killed = sum((Counter(each["killed"]) for each in done), Counter())
    faults = [fault for each in done for fault in each["faults"]]
    trials = sum(each["trials"] for each in done)
    kinds = ", ".join(f"{count} {kind}" for kind, count in killed.items())
    print(f"{trials} of {options.trials} trials in {len(done)} rounds; killed: {kinds}")
    print(f"{len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
