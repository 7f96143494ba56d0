"""Trials on a dask cluster: a scheduler and two workers on this machine, started by hand."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.guest import kernels
from testbed.machine.leftovers import clean
from testbed.plan.plan import Task
from testbed.runs.cluster import run_on_cluster
from testbed.runs.engine_choice import choose
from testbed.runs.sweep import TrialFinished, TrialStarted, WorkerRejected
from testbed.scenario.model import Scenario
from testbed.store import Status, open_trial
from tests.lab import capture_hashes, planned_here, run_trials, wait_until
from tests.scenarios import router

LONGEST_S = 8.0  # from the workers' start to the last trial's end
SCENARIOS = [router(variant=name, duration_s=3) for name in ("reno", "cubic", "vegas", "bbr")]


class Cluster:
    """A scheduler, and workers that a test starts and kills."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder, self._root = folder, root
        self._processes: list[subprocess.Popen[bytes]] = []
        self._file = folder / "scheduler.json"
        # port 0: any that is free
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_until(lambda: self._file.exists() and self._file.read_text().strip().endswith("}"))
        self.address = str(json.loads(self._file.read_text())["address"])

    def worker(self, **env: str) -> subprocess.Popen[bytes]:
        """One more worker."""
        words = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        return self._start("worker", *words, **env)

    def _start(self, what: str, *words: str, **env: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self._file), *words]
        log = (self._folder / f"{what}{len(self._processes)}.log").open("wb")
        (self._folder / "tmp").mkdir(exist_ok=True)
        env = {"TMPDIR": str(self._folder / "tmp"), "XDG_STATE_HOME": str(self._folder), **env}
        process = subprocess.Popen(
            argv, cwd=self._root, stdout=log, stderr=log, env={**os.environ, **env}
        )
        self._processes.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()


def planned(scenarios: Sequence[Scenario]) -> list[Task]:
    return planned_here(scenarios, choose("guest", ()))


@pytest.fixture
def cluster(tmp_path: Path, root: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, root)
    yield made
    made.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A worker is killed at one moment, and in the full run at twenty."""
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(20 if metafunc.config.getoption("--full") else 1))


def test_a_cluster_gives_what_this_machine_gives(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Two workers, one of them killed at a random moment: the other does the rest."""
    workers = [cluster.worker(), cluster.worker()]
    killer = threading.Timer(random.Random(number).uniform(1, LONGEST_S), workers[0].kill)
    killer.start()
    finished = run_on_cluster(
        cluster.address,
        planned(SCENARIOS),
        choose("guest", ()),
        tmp_path / "there",
        lambda _event: None,
    )
    killer.join()
    assert {each.status for each in finished} == {Status.OK}
    here = run_trials(SCENARIOS, tmp_path / "here")
    for each, ours in zip(
        sorted(finished, key=lambda f: f.path.name),
        sorted(here, key=lambda t: t.path.name),
        strict=True,
    ):
        assert capture_hashes(open_trial(each.path)) == capture_hashes(ours)
        assert each.record.identity == ours.record.identity
    workers[0].wait()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    clean()  # what the killed worker left
    assert list((tmp_path / "tmp").glob("testbed-worker-*")) == []
    again = run_on_cluster(
        cluster.address,
        planned(SCENARIOS),
        choose("guest", ()),
        tmp_path / "there",
        lambda _event: None,
    )
    assert [each.fresh for each in again] == [False] * len(SCENARIOS)


def test_a_worker_without_the_kernel_takes_none(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.runs.cluster.CONNECT_TIMEOUT_S", 5)
    cluster.worker(XDG_CACHE_HOME=str(tmp_path / "empty"))
    events: list[object] = []
    with pytest.raises(TestbedError, match="no worker of the cluster can take trials"):
        run_on_cluster(
            cluster.address,
            planned(SCENARIOS[:1]),
            choose("guest", ()),
            tmp_path / "out",
            events.append,
        )
    assert [type(event) for event in events] == [WorkerRejected]
    assert f"kernel {kernels.default_kernel()} is not built" in str(events[0])


def test_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.runs.cluster.CONNECT_TIMEOUT_S", 1)
    with pytest.raises(TestbedError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run_on_cluster(
            "tcp://127.0.0.1:9",
            planned(SCENARIOS[:1]),
            choose("guest", ()),
            tmp_path,
            lambda _event: None,
        )


def test_it_is_told_which_trial_begins_where(cluster: Cluster, tmp_path: Path) -> None:
    cluster.worker()
    events: list[object] = []
    (only,) = planned([router(variant="reno", duration_s=1)])
    run_on_cluster(cluster.address, [only], choose("guest", ()), tmp_path / "out", events.append)
    begun, finished = (each for each in events if isinstance(each, TrialStarted | TrialFinished))
    assert isinstance(begun, TrialStarted) and begun.scenario == only.scenario
    assert begun.where.startswith("tcp://127.0.0.1:")
    assert isinstance(finished, TrialFinished) and finished.status is Status.OK
