"""Trials on a dask cluster: a scheduler and two workers on this machine, started by hand."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.guest import kernels, worker
from testbed.plan.plan import Task
from testbed.runs.cluster import run_on_cluster
from testbed.runs.engine_choice import choose
from testbed.runs.sweep import (
    ClusterExposed,
    SweepEvent,
    TrialFinished,
    TrialStarted,
    WorkerRejected,
)
from testbed.scenario.model import Scenario
from testbed.store.reading import open_trial, trials_in
from testbed.store.records import Status
from testbed.traffic.iperf3.iperf3_flow import PRELOAD
from testbed.trial.make import RUNNER
from tests.lab import capture_hashes, needs_a_seen_checkout, planned_here, run_trials, wait_until
from tests.scenarios import router

MAX_S = 8.0  # from the workers' start to the last trial's end
SCENARIOS = [router(variant=name, duration_s=3) for name in ("reno", "cubic", "vegas", "bbr")]


NO_TESTBED = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("testbed", "analysis", "experiments", "topologies"):
            raise ImportError(f"{name} is not installed on a worker")
sys.meta_path.insert(0, Absent())
"""


class Cluster:
    """A scheduler, and workers that a test starts and kills."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.python = sys.executable
        self._bare = folder / "bare"
        self._bare.mkdir()
        (self._bare / "sitecustomize.py").write_text(NO_TESTBED)
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
        argv = [self.python, "-m", "dask", what, "--scheduler-file", str(self._file), *words]
        log = (self._folder / f"{what}{len(self._processes)}.log").open("wb")
        (self._folder / "tmp").mkdir(exist_ok=True)
        env = {
            "TMPDIR": str(self._folder / "tmp"),
            "XDG_STATE_HOME": str(self._folder),
            "PYTHONPATH": str(self._bare),
            **env,
        }
        process = subprocess.Popen(
            argv, cwd=self._folder, stdout=log, stderr=log, env={**os.environ, **env}
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
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A worker is killed at one moment, and in the full run at twenty."""
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(20 if metafunc.config.getoption("--full") else 1))


def test_a_cluster_gives_what_this_machine_gives(
    cluster: Cluster, tmp_path: Path, number: int
) -> None:
    """Two workers, one of them killed at a random moment: the other does the rest."""
    workers = [cluster.worker(), cluster.worker()]
    killer = threading.Timer(random.Random(number).uniform(1, MAX_S), workers[0].kill)
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
    cluster.worker()  # dask removes what the killed one left, before this one registers
    wait_until(lambda: "Registered to" in (tmp_path / "worker3.log").read_text())
    assert not list((tmp_path / "tmp").rglob("trial-*"))
    again = run_on_cluster(
        cluster.address,
        planned(SCENARIOS),
        choose("guest", ()),
        tmp_path / "there",
        lambda _event: None,
    )
    assert [each.fresh for each in again] == [False] * len(SCENARIOS)


@pytest.mark.slow
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
    assert [type(event) for event in events] == [ClusterExposed, WorkerRejected]
    assert f"kernel {kernels.default_kernel()} is not built" in str(events[1])


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


@pytest.mark.slow
def test_a_worker_with_another_kernel_takes_none(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.runs.cluster.CONNECT_TIMEOUT_S", 5)
    kernel = kernels.built_folder(kernels.default_kernel())
    assert kernel is not None
    there = tmp_path / "cache" / "tcp-testbed" / "kernel" / kernel.name
    there.mkdir(parents=True)
    for name in ("version", "linux"):
        shutil.copy(kernel / name, there)
    (there / "base").write_text("another\n")
    cluster.worker(XDG_CACHE_HOME=str(tmp_path / "cache"))
    with pytest.raises(TestbedError, match="no worker of the cluster can take trials") as caught:
        only = planned(SCENARIOS[:1])
        run_on_cluster(cluster.address, only, choose("guest", ()), tmp_path / "out", print)
    assert f"kernel {kernels.default_kernel()}" in caught.value.hint
    assert "another, here" in caught.value.hint


@pytest.mark.slow
@needs_a_seen_checkout
def test_a_worker_whose_programs_are_elsewhere(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs are where that worker's Python has them, not where they are here."""
    elsewhere = tmp_path / "some" / "where" / "else"
    (elsewhere / "bin").mkdir(parents=True)
    (elsewhere / "lib").symlink_to(Path(sys.prefix) / "lib")
    (elsewhere / "bin" / "python").symlink_to(sys.executable)
    shutil.copy(Path(sys.prefix) / "pyvenv.cfg", elsewhere)
    cluster.python = str(elsewhere / "bin" / "python")
    cluster.worker()
    scenario = router(variant="reno", duration_s=1)
    nowhere = Path("/nowhere/venv/lib")
    with monkeypatch.context() as here_only:
        here_only.setattr("testbed.runs.cluster.LIBRARIES", nowhere)
        here_only.setattr("testbed.guest.engine.RUNNER", nowhere / RUNNER.name)
        here_only.setattr("testbed.traffic.iperf3.iperf3_flow.PRELOAD", nowhere / PRELOAD.name)
        (there,) = run_on_cluster(
            cluster.address, planned([scenario]), choose("guest", ()), tmp_path / "there", print
        )
    assert there.status is Status.OK, there.record.reason
    (here,) = run_trials([scenario], tmp_path / "here")
    assert capture_hashes(open_trial(there.path)) == capture_hashes(here)


@pytest.mark.slow
def test_a_worker_whose_disk_is_full_takes_no_more(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends with one line; no trial failed for it."""
    monkeypatch.setattr("testbed.runs.cluster.CONNECT_TIMEOUT_S", 5)
    monkeypatch.setattr(worker, "FULL_DISK_BYTES", 1 << 60)  # as the worker gets it
    cluster.worker()
    events: list[object] = []
    out = tmp_path / "out"
    with pytest.raises(TestbedError, match="no worker of the cluster can take trials") as caught:
        both = planned(SCENARIOS[:2])
        run_on_cluster(cluster.address, both, choose("guest", ()), out, events.append)
    assert "its disk is full" in caught.value.hint
    assert [e.reason for e in events if isinstance(e, WorkerRejected)] == ["its disk is full"]
    assert not list(trials_in(out)) and not list(out.glob(".*.*.*"))


@pytest.mark.slow
def test_interrupting_keeps_whole_trials(cluster: Cluster, tmp_path: Path) -> None:
    cluster.worker()

    def interrupt(event: SweepEvent) -> None:
        if isinstance(event, TrialFinished):
            raise KeyboardInterrupt

    out = tmp_path / "out"
    short = [router(variant=name, duration_s=1) for name in ("reno", "cubic", "vegas")]
    with pytest.raises(KeyboardInterrupt):
        run_on_cluster(cluster.address, planned(short), choose("guest", ()), out, interrupt)
    assert [trial.record.status for trial in trials_in(out)] == [Status.OK]
    assert len(list(out.iterdir())) == 1
