"""A cluster's addresses: who answers there, who is believed, and what is said of it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import pytest

from testbed.engine import Job
from testbed.errors import TestbedError
from testbed.guest import kernels, worker
from testbed.guest.worker import GuestReport, Requirements
from testbed.runs import cluster
from testbed.runs.sweep import WorkerRejected
from testbed.store.names import GUEST_CONSOLE

PUBLIC = "tcp://8.8.8.8:8786"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tls://127.0.0.1:9", "dask knows no certificates"),
        ("foo://x", "unknown address scheme"),
        ("127.0.0.1", "missing port number"),
        (PUBLIC, "no TLS, and outside of private networks"),
        ("8.8.8.8:8786", "no TLS, and outside of private networks"),
        ("tcp://[2001:4860::8888]:8786", "no TLS, and outside of private networks"),
        ("tcp://[::ffff:8.8.8.8]:8786", "no TLS, and outside of private networks"),
    ],
)
def test_no_scheduler(address: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT_S", 1)
    with pytest.raises(TestbedError) as caught, cluster._client(address):
        pass
    assert address in caught.value.message and said in caught.value.message
    assert caught.value.hint


def test_where_tls_can_be_done_without() -> None:
    for host in ("127.0.0.1", "[::1]", "10.1.2.3", "192.168.0.9", "[fd00::1]", "localhost"):
        assert cluster.lacks_tls(f"tcp://{host}:8786") == "", host
    assert cluster.lacks_tls("tls://8.8.8.8:8786") == ""
    with dask.config.set({cluster.REQUIRE_ENCRYPTION: False}):
        assert cluster.lacks_tls(PUBLIC) == ""
    with dask.config.set({cluster.REQUIRE_ENCRYPTION: True}):
        assert "demands" in cluster.lacks_tls("tcp://127.0.0.1:8786")


class Client:
    """A connection to a scheduler whose workers all answer that they have nothing."""

    def __init__(self, workers: Sequence[str]) -> None:
        self.workers = workers
        self.queried: list[str] = []

    def nthreads(self) -> Mapping[str, int]:
        return dict.fromkeys(self.workers, 1)

    def run(self, *_: object, workers: Sequence[str], **__: object) -> Mapping[str, Any]:
        self.queried += workers
        return {name: {} for name in workers}


@pytest.mark.parametrize(
    ("encrypted", "queried", "reason"),
    [
        (True, ["tls://8.8.4.4:2"], "no TLS, which the scheduler has"),
        (False, ["tcp://10.0.0.1:1", "tls://8.8.4.4:2"], "no TLS, and outside"),
    ],
)
def test_a_worker_without_tls_is_not_listened_to(
    monkeypatch: pytest.MonkeyPatch, encrypted: bool, queried: list[str], reason: str
) -> None:
    """Its answers would be unpickled."""
    monkeypatch.setattr(worker, "equipment", lambda _needed: {})
    client, events = Client(["tcp://10.0.0.1:1", "tls://8.8.4.4:2", PUBLIC]), list[object]()
    needed = Requirements({}, {}, [], [], [])
    workers = cluster._Workers(client, encrypted, needed, events.append)
    assert workers.fitting() == client.queried == queried
    rejected = [event for event in events if isinstance(event, WorkerRejected)]
    assert len(rejected) == 3 - len(queried)
    assert reason in rejected[-1].reason and rejected[-1].worker == PUBLIC


def test_refused_system_calls_of_a_worker_are_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As they are of a trial on this machine: from the console that the worker sends."""
    kernel = worker.cache_folder() / "somewhere"
    monkeypatch.setattr(kernels, "built_folder", lambda _name: kernel)
    console = b"testbed-confine: refused system call 41 socket\n"
    report = GuestReport(files={GUEST_CONSOLE: (console, len(console), 0o600, 0.0)})
    workers: Any = SimpleNamespace(run=lambda _shipment, _cancel: report)
    engine = cluster.ClusterEngine(workers, kernels.default_kernel())
    job = Job(1, 0, threading.Event())
    ended = engine._boot(tmp_path, job, 60, 100)
    assert ended.warnings == ("the guest's kernel was refused system call 41 socket",)
