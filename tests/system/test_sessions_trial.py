"""Sessions in the guest: each does what was drawn for it, over its own round trip."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from analysis.results.reduction import reduction_of
from analysis.transfers.sessions import load_of, logged_transfers, session_rows
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from testbed.scenario.model import CapturePoint, Scenario
from testbed.scenario.network import Queue
from testbed.scenario.transfers import ENDLESS, planned_transfers
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, Status
from tests.lab import capture_hashes, run_trials
from tests.sabotage import run_sabotaged
from tests.scenarios import background, with_network, with_sessions

ENDS = (CapturePoint.SENDERS, CapturePoint.RECEIVERS)


def captured(scenario: Scenario) -> Scenario:
    """The same scenario with the sessions' flow captured at its hosts."""
    *others, flow = scenario.flows
    flows = (*others, dataclasses.replace(flow, captured=True))
    return dataclasses.replace(scenario, flows=flows)


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """16 sessions beside a flow: captured, again, and as load alone."""
    folder = tmp_path_factory.mktemp("sessions")
    whole, few = captured(background()), background(captures=ENDS)
    runs = [(whole, "one"), (whole, "other"), (few, "few")]
    return [run_trials([scenario], folder / name)[0] for scenario, name in runs]


def sessions_of(trial: Trial) -> FlowRecord:
    return next(flow for flow in trial.record.flows if flow.name == "background")


def test_sessions_fetch_what_they_drew(trials: list[Trial]) -> None:
    """Files in their order, thoughts between them, each over a new connection."""
    trial = trials[0]
    rows, log = session_rows(trial, sessions_of(trial)), logged_transfers(trial, sessions_of(trial))
    assert rows is not None and log is not None and len(rows) == 16
    listed = list(planned_transfers(trial.scenario, trial.scenario.flows[-1]))
    for number, row in rows.iterrows():
        own = log[log["session"] == number]
        planned = [each for each in listed if each.session == number]
        if row["kind"] == "long":
            assert [each.size for each in planned] == [ENDLESS]
            assert row["transfers"] == 0 and row["received_bytes"] > 0
            continue
        assert len(own) > 1 and len(own) - row["transfers"] <= 1
        assert row["transfers"] <= row["connections"] <= len(own)
        due_s = sessions_of(trial).started_s
        for each, (_, found) in zip(planned, own.iterrows(), strict=False):
            assert found["size_bytes"] == each.size
            assert found["start_s"] == pytest.approx(due_s + each.at_ns / 1e9, abs=1e-6)
            # the handshake, then the request and its answer
            assert not found["completion_s"] < 2 * row["rtt_ms"] / 1e3
            due_s = found["start_s"] + found["completion_s"]


def test_round_trips_are_those_that_were_drawn(trials: list[Trial]) -> None:
    """To the microsecond, with the time that the link takes both ways to send what was answered at
    once: each session had a moment in which the queue was empty."""
    rows = session_rows(trials[0], sessions_of(trials[0]))
    assert rows is not None
    handshake_ms, segment_ms = ((there + 54) * 8e-3 / 15 for there in (62, 1054))
    sending_ms = rows["rtt_min_ms"] - rows["rtt_ms"]
    off_ms = [(sending_ms - each).abs() for each in (handshake_ms, segment_ms)]
    assert np.median(np.minimum(off_ms[0], off_ms[1])) < 2e-3
    assert set(rows["control"]) == {"newreno"} and rows["failures"].sum() == 0


def test_load_and_loss_are_those_of_the_queue(trials: list[Trial]) -> None:
    trial = trials[0]
    load, rows = load_of(trial, sessions_of(trial)), session_rows(trial, sessions_of(trial))
    assert load is not None and rows is not None
    qdiscs = json.loads((trial.path / "samples" / "qdiscs.json").read_text())
    queue = next(q for q in qdiscs["left"] if q["kind"] == "pfifo" and q["dev"] == "left-eth0")
    assert 0 < load.mbit < 15 and load.share == pytest.approx(load.mbit / 15)
    assert 0 < load.loss_rate * rows["segments"].sum() <= 1.1 * queue["drops"]


def test_captured_transfers_agree_with_the_log(trials: list[Trial]) -> None:
    verdict = judge(trials[0])
    assert verdict is not None and (verdict.verdict, verdict.why) == (Grade.VALID, "")
    checked = {check.subject for check in verdict.checks if check.name.startswith("transfer")}
    assert {"background list", "background log", "background captured", "background"} <= checked
    rows = reduction_of(trials[0]).transfers
    log = logged_transfers(trials[0], sessions_of(trials[0]))
    assert log is not None and len(rows) == len(log)
    assert rows["completion_s"].tolist() == pytest.approx(log["completion_s"].tolist(), nan_ok=True)
    assert rows["slowdown"].min() >= 1 - 1e-9


def test_the_same_seed_gives_the_same_packets(trials: list[Trial]) -> None:
    one, other, few = (capture_hashes(trial) for trial in trials)
    assert one == other and len(few) == 2
    assert {name: one[name] for name in few} == few  # looking changes nothing
    reports = [(t.path / "flows" / "background.client.json").read_text() for t in trials]
    assert len(set(reports)) == 1
    assert reduction_of(trials[2]).transfers.empty


def test_a_window_a_round_trip(tmp_path: Path) -> None:
    """Alone on a wide link a long session sends its window once a round trip.

    No packet waits for longer than its own session's delay.
    """
    scenario = with_sessions(background(4, 20), long_share=1.0)
    queue = Queue("pfifo", limit_packets=10_000)
    scenario = dataclasses.replace(
        scenario,
        network=with_network(scenario, rate_mbit=1000, queue=queue).network,
        flows=(dataclasses.replace(scenario.flows[0], bytes=1000), scenario.flows[1]),
        captures=(),
    )
    trial = run_trials([scenario], tmp_path)[0]
    rows = session_rows(trial, sessions_of(trial))
    assert rows is not None
    for _, row in rows.iterrows():
        trips = (20 - row["start_s"]) / (row["rtt_ms"] / 1e3)
        # one goes by with the handshake, and slow start sends some five windows less than it might
        assert row["received_bytes"] == pytest.approx((trips - 6.5) * 64_000, abs=64_000)
        assert row["window_bytes"] == 64_000 and row["retransmissions"] == 0


def broken(fault: str, folder: Path) -> Trial:
    return run_sabotaged(fault, background(4, 5, captures=ENDS), folder)


def test_a_program_that_dies_fails_the_trial(tmp_path: Path) -> None:
    record = broken("dead-server", tmp_path).record
    assert record.status is Status.FAILED
    assert record.reason == "background: the workload server ended early, with status -9"


def test_round_trips_that_are_not_kept_are_named(tmp_path: Path) -> None:
    found = judge(broken("no-delays", tmp_path))
    assert found and found.verdict is Grade.INVALID
    assert found.why.startswith("session RTT of background ")
