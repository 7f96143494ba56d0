"""Guests whose kernel is asked for its own errors, and a sweep on one that looks for them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from benchmarks.coverage import coverage, quickest_trials
from benchmarks.harness import no_watcher
from experiments.catalogue import EXPERIMENTS
from testbed.engine import Job
from testbed.errors import TestbedError
from testbed.guest import kernels
from testbed.guest.engine import GuestEngine
from testbed.kernels.kernel_tests import run_kunit
from testbed.runs.engine_choice import choose
from testbed.runs.sweep import run_all
from testbed.store.names import COVERAGE_FOLDER, KERNEL_LOG
from testbed.store.records import Status

REPORT = "BUG: KASAN: use-after-free in tcp_ack+0x11c/0x2280"
every_version = pytest.mark.parametrize("version", kernels.versions())


def need_debug_kernel(version: str, full: bool) -> str:
    """The name of a version's debug kernel; skips without --full, or if it is not built."""
    name = kernels.debug_name(version)
    if not full:
        pytest.skip("with --full")
    if kernels.built_folder(name) is None:
        pytest.skip(f"testbed kernel build {name}")
    return name


def boot(folder: Path, script: str) -> int:
    job = Job(1, 0, threading.Event())
    return GuestEngine().boot(folder, ["/bin/sh", "-c", script], job, 60).status


def test_what_the_kernel_reports_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a kernel that looks for nothing, and a report that its guest writes itself."""
    monkeypatch.setattr("testbed.guest.engine.looks_for_errors", lambda _config: True)
    assert boot(tmp_path, "exit 3") == 3
    log = tmp_path / KERNEL_LOG
    assert "Linux version" in log.read_text()
    assert [path.name for path in tmp_path.iterdir()] == [KERNEL_LOG]
    log.unlink()
    with pytest.raises(TestbedError) as caught:
        boot(tmp_path, f"echo '<4>{REPORT}' >/dev/kmsg")
    assert caught.value.message == f"the kernel reported: {REPORT}"
    assert REPORT in log.read_text()


@every_version
def test_kunit(version: str, full: bool) -> None:
    need_debug_kernel(version, full)
    ends = run_kunit(version, print)
    assert {end.suite for end in ends} >= {"kunit dev-addr-list-test", "kunit mptcp-token"}
    assert all(end.passed for end in ends)


@every_version
def test_no_experiment_makes_the_kernel_report_an_error(
    version: str, tmp_path: Path, full: bool
) -> None:
    kernel = need_debug_kernel(version, full)
    planned = quickest_trials(kernel, EXPERIMENTS)
    done = run_all(planned, choose("guest", (), kernel), tmp_path, no_watcher)
    assert not [each.record.reason for each in done if each.status is Status.FAILED]
    folder = kernels.built_folder(kernel)
    assert folder is not None
    counted = [each.path / COVERAGE_FOLDER for each in done if each.status is Status.OK]
    covered = coverage(counted, folder / COVERAGE_FOLDER)
    assert "tcp_ack" not in covered["tcp_input.c"].never_called
