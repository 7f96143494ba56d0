"""Running real trials in tests, and reading what they left."""

from __future__ import annotations

import csv
import functools
import hashlib
import json
import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from testbed.guest import kernels
from testbed.guest.worker import HIDDEN
from testbed.machine import tracefs
from testbed.plan.plan import Task, tasks
from testbed.runs.engine_choice import Choice, choose
from testbed.runs.orchestration import with_ready_kernels
from testbed.runs.sources import PROJECT
from testbed.runs.sweep import run_all
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.store.names import trial_folder
from testbed.store.reading import Trial, open_trial
from testbed.store.records import Status

T = TypeVar("T")
PATIENCE_S = 300.0  # longer than a busy machine takes: what has not happened then will not
# a Python in another folder whose packages are links to this checkout, of which a guest sees only
# that folder: it hides /tmp
needs_a_seen_checkout = pytest.mark.skipif(
    any(PROJECT.is_relative_to(folder) for folder in HIDDEN),
    reason=f"guests hide the folder of this checkout, {PROJECT}: clone it outside /tmp",
)
ON_FIRST = kernels.default_kernel() == BASE_KERNEL  # that of the stored numbers


def run_trials(scenarios: Sequence[Scenario], out: Path, engine: str = "guest") -> list[Trial]:
    """Run them all, in the order given; each has to end well, in the guest with a sound verdict."""
    plain = engine == "guest" and all(each.kernel == BASE_KERNEL for each in scenarios)
    trials = ended_trials(scenarios, out, _guest() if plain else choose(engine, ()))
    assert len(trials) == len(scenarios) > 0
    for trial in trials:
        assert trial.record.status is Status.OK, (trial.path.name, trial.record.reason)
        if engine == "guest":
            found = judge(trial)
            assert found and found.verdict is Grade.VALID, (trial.path.name, found and found.why)
    return trials


@functools.cache
def _guest() -> Choice:
    """Found once: while tests run, nothing builds the base kernel anew."""
    return choose("guest", ())


def ended_trials(scenarios: Sequence[Scenario], out: Path, choice: Choice) -> list[Trial]:
    """Run them all, in the order given, on a kernel that the machine has, however they end."""
    planned = planned_here(scenarios, choice)
    run_all(planned, choice, out, lambda _event: None)
    return [open_trial(out / trial_folder(task.scenario, choice.engine.name)) for task in planned]


def planned_here(scenarios: Sequence[Scenario], choice: Choice) -> list[Task]:
    """Their trials, those that name no kernel on one that this machine has."""
    return with_ready_kernels(choice.engine, tasks(scenarios), lambda _line: None, named=False)


def ended_in_the_guest(scenario: Scenario, out: Path) -> Trial:
    """Run a trial in the guest, however it ends."""
    (trial,) = ended_trials([scenario], out, choose("guest", ()))
    return trial


def capture_hashes(trial: Trial) -> dict[str, str]:
    """Every capture's sha256."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((trial.path / "captures").iterdir())
    }


def report(trial: Trial, flow: str, role: str) -> dict[str, Any]:
    """What iperf3 printed."""
    data: dict[str, Any] = json.loads((trial.path / "flows" / f"{flow}.{role}.json").read_text())
    return data


def samples(trial: Trial, name: str) -> list[dict[str, str]]:
    """sockets.csv or queues.csv."""
    with (trial.path / "samples" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True)
class Packet:
    """What the tests ask of a captured packet."""

    time_s: float  # of the trial's clock
    length: int  # of the frame
    src_port: int
    payload: int


def packets(trial: Trial, role: str, condition: str) -> list[Packet]:
    """The packets of a capture that Wireshark's filter lets through."""
    path = trial.capture(role)
    assert path is not None, role
    fields = ["frame.time_epoch", "frame.len", "tcp.srcport", "udp.srcport"]
    fields += ["tcp.len", "udp.length"]
    argv: list[str] = ["tshark", "-n", "-r", str(path), "-Y", condition, "-T", "fields"]
    argv += [word for field in fields for word in ("-e", field)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return list(_packets(done.stdout.splitlines(), trial.record.epoch_s))


def _packets(lines: Iterable[str], epoch_s: float) -> Iterable[Packet]:
    for line in lines:
        time, length, tcp, udp, tcp_payload, udp_length = line.split("\t")
        seconds, _, nanoseconds = time.partition(".")
        payload = int(tcp_payload) if tcp_payload else int(udp_length) - 8
        yield Packet(
            # two steps: a float has no room for the epoch and nanoseconds at once
            (int(seconds) - int(epoch_s)) + (int(nanoseconds) / 1e9 - epoch_s % 1),
            int(length),
            int(tcp or udp),
            payload,
        )


def rate_mbit(found: Sequence[Packet], start_s: float, stop_s: float) -> float:
    """The rate of frames between two of them near the given times, exact to a frame."""
    inside = [packet for packet in found if start_s <= packet.time_s <= stop_s]
    size = sum(packet.length for packet in inside[1:])
    return size * 8e-6 / (inside[-1].time_s - inside[0].time_s)


def has_no_tracing() -> bool:
    """Whether the kernel cannot be asked for events."""
    try:
        os.close(tracefs._mount())
    except OSError:
        return True
    return False


def wait_until(condition: Callable[[], T], seconds: float = PATIENCE_S) -> T:
    """Wait for something to happen; return what the condition gave then, which may pass."""
    deadline = time.monotonic() + seconds
    while not (given := condition()):
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.02)
    return given


def alive(pid: int) -> bool:
    """Not one that has ended, and waits for its parent, or the first process, to see it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class OrdinaryUser:
    """A user without any rights, whose home has a kernel's image, for as long as the context."""

    def __init__(self, kernel: Path) -> None:
        found = (u for u in pwd.getpwall() if u.pw_name == "nobody" or u.pw_uid >= 1000)
        user = next(found)
        self.uid, self._gid, self._kernel = user.pw_uid, user.pw_gid, kernel
        self.home = Path("/var/tmp") / f"testbed-user-{os.getpid()}"

    def __enter__(self) -> OrdinaryUser:
        self.home.mkdir()
        try:
            os.chown(self.home, self.uid, self._gid)
            cached = self.home / "cache" / "tcp-testbed" / "kernel" / self._kernel.name
            shutil.copytree(self._kernel, cached)
        except BaseException:
            shutil.rmtree(self.home)
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        shutil.rmtree(self.home)

    def testbed(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the user's home."""
        argv = ["setpriv", "--reuid", str(self.uid), "--regid", str(self._gid), "--clear-groups"]
        argv += ["--no-new-privs", str(Path(sys.executable).with_name("testbed")), *words]
        home = str(self.home)
        environment = {"PATH": os.environ["PATH"], "HOME": home, "MPLCONFIGDIR": home}
        environment["XDG_CACHE_HOME"] = str(self.home / "cache")
        return subprocess.run(
            argv, env=environment, check=False, capture_output=True, text=True, cwd=self.home
        )
