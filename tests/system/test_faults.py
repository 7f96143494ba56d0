"""Killed at random moments and resumed: the same results as if nothing had happened.

FAULTS=20 pytest tests/system/test_faults.py kills twenty times each.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from testbed.store import Status, trials_in
from tests.lab import alive, capture_hashes

TIMES = int(os.environ.get("FAULTS", "1"))
VARIANTS = ("linux-reno", "cubic", "bbr")
LONGEST_S = 4.0  # of a sweep, as long as nothing disturbs it


class Sweeper:
    """Runs a small sweep by the command line, in folders of its own."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.out = folder / "out"
        self._testbed = str(root / ".venv/bin/testbed")
        self._env = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}

    def start(self) -> subprocess.Popen[bytes]:
        """The sweep: three trials of a few seconds."""
        argv = [self._testbed, "run", "router-bottleneck", "--engine", "guest"]
        settings = (f"variant={','.join(VARIANTS)}", "queue=bfifo", "path=receiver", "duration_s=3")
        argv += [word for each in settings for word in ("--set", each)]
        argv += ["--out", str(self.out)]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(argv, env=self._env, stdout=quiet, stderr=quiet)

    def clean(self) -> None:
        subprocess.run([self._testbed, "clean"], env=self._env, check=True, capture_output=True)

    def results(self) -> dict[str, dict[str, str]]:
        """The captures of every trial that ended well, by their hashes."""
        trials = trials_in(self.out) if self.out.exists() else ()
        return {t.path.name: capture_hashes(t) for t in trials if t.record.status is Status.OK}


def guests_of(parent: int) -> list[int]:
    """The guests that a sweep has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if any(word.startswith(b"um_seed=") for word in words) and int(stat[1]) == parent:
            found.append(int(entry.name))
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, root: Path) -> dict[str, dict[str, str]]:
    """What the sweep gives."""
    sweeper = Sweeper(tmp_path_factory.mktemp("undisturbed"), root)
    assert sweeper.start().wait() == 0
    results = sweeper.results()
    assert len(results) == len(VARIANTS)
    return results


@pytest.mark.parametrize("number", range(TIMES))
@pytest.mark.parametrize("victim", ["parent", "guest"])
def test_killed_and_resumed(
    tmp_path: Path,
    root: Path,
    undisturbed: dict[str, dict[str, str]],
    victim: str,
    number: int,
) -> None:
    dice = random.Random(f"{victim} {number}")
    sweeper = Sweeper(tmp_path, root)
    run = sweeper.start()
    time.sleep(dice.uniform(0.5, LONGEST_S))
    guests = guests_of(run.pid)
    if victim == "parent":
        run.kill()
        run.wait()
        deadline = time.monotonic() + 20
        while any(map(alive, guests)):
            assert time.monotonic() < deadline, "a guest outlives its sweep"
            time.sleep(0.02)
        sweeper.clean()
    else:
        for pid in guests[:1]:
            os.kill(pid, signal.SIGKILL)
        # it may have ended well between the look and the kill
        assert run.wait() in (0, 1)
    assert [path for path in tmp_path.rglob(".*") if path.is_dir()] == []
    assert sweeper.results().items() <= undisturbed.items()
    assert sweeper.start().wait() == 0
    assert sweeper.results() == undisturbed
