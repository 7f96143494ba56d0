"""Background traffic in the guest: what the sessions drew is what they fetched, and how fast."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from analysis.trials.background import read_files, read_traffic
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from testbed.plan.background import draw_sessions, path_rtt_ms
from testbed.plan.network import build_network
from testbed.scenario.model import Bottleneck, CapturePoint, Queue, Scenario
from testbed.store import Status, Trial
from tests.draws import Generator
from tests.lab import capture_hashes, run_by, run_trials
from tests.scenarios import background

ENDS = (CapturePoint.SENDERS, CapturePoint.RECEIVERS)


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """16 sessions beside a flow: with all captures, again, and with those of the flow's hosts."""
    folder = tmp_path_factory.mktemp("background")
    few = background(captures=ENDS)
    runs = [(background(), "one"), (background(), "other"), (few, "few")]
    return [run_trials([scenario], folder / name)[0] for scenario, name in runs]


def test_sessions_fetch_what_they_drew(trials: list[Trial]) -> None:
    """Files whole and in their order, thoughts between them, each over a new connection."""
    scenario = trials[0].scenario
    assert scenario.background
    drawn = draw_sessions(scenario.background, scenario.seed, 14)
    traffic = read_traffic(trials[0])
    assert traffic is not None and len(traffic.sessions) == 16
    assert list(traffic.sessions["kind"]) == [session.kind for session in drawn]
    files = read_files(trials[0])
    for number, session in enumerate(drawn):
        own, row = files[files["session"] == number], traffic.sessions.iloc[number]
        if session.kind == "long":
            assert own.empty and row["connections"] == 1 and row["bytes"] > 0
            continue
        dice, due_s = Generator(session.seed), session.start_s
        for _, file in own.iterrows():
            assert file["bytes"] == dice.size(48_000, 1.2)
            assert file["begun_s"] == pytest.approx(due_s, abs=1e-6)
            # the handshake, then the request and its answer
            assert file["took_s"] >= 2 * session.rtt_ms / 1e3
            due_s = file["begun_s"] + file["took_s"] + dice.thought(0.5)
        assert len(own) > 0 and row["connections"] - len(own) <= 1


def test_round_trips_are_those_that_were_drawn(trials: list[Trial]) -> None:
    """To the microsecond: each session had a moment in which the queue was empty."""
    traffic = read_traffic(trials[0])
    assert traffic is not None
    sessions = traffic.sessions
    assert (sessions["rtt_min_ms"] - sessions["rtt_ms"]).abs().median() < 2e-3
    assert set(sessions["control"]) == {"newreno"}
    assert (sessions["failures"] + sessions["resets"]).sum() == 0


def test_load_and_loss_are_those_of_the_queue(trials: list[Trial]) -> None:
    trial = trials[0]
    traffic = read_traffic(trial)
    assert traffic is not None
    report = json.loads((trial.path / "samples" / "background.json").read_text())
    qdiscs = json.loads((trial.path / "samples" / "qdiscs.json").read_text())
    queue = next(q for q in qdiscs["left"] if q["kind"] == "pfifo" and q["dev"] == "left-eth0")
    assert 0 < traffic.whole.mbit < 15
    assert traffic.whole.share == pytest.approx(traffic.whole.mbit / 15)
    assert 0 <= report["lost_packets"] <= queue["drops"]
    assert traffic.load(0, 10).mbit == pytest.approx(traffic.whole.mbit)
    assert traffic.load(5, 10).mbit > 0


def test_the_same_seed_gives_the_same_packets(trials: list[Trial]) -> None:
    one, other, few = (capture_hashes(trial) for trial in trials)
    assert one == other and len(one) == 5
    assert {name: one[name] for name in few} == few  # looking changes nothing
    reports = [(t.path / "flows" / "background.client.json").read_text() for t in trials]
    assert len(set(reports)) == 1


def test_a_window_a_round_trip(tmp_path: Path) -> None:
    """Alone on a wide link a long session sends its window once a round trip: no packet waits
    for longer than its own session's delay."""
    scenario = background(4, 20)
    assert scenario.background
    wide = Bottleneck(1000, Queue("pfifo", limit_packets=10_000), delay_ms=5)
    scenario = dataclasses.replace(
        scenario,
        topology=dataclasses.replace(scenario.named, bottleneck=wide),
        flows=(dataclasses.replace(scenario.flows[0], bytes=1000),),
        captures=(),
        background=dataclasses.replace(scenario.background, long_share=1.0),
    )
    traffic = read_traffic(run_trials([scenario], tmp_path)[0])
    assert traffic is not None
    for _, row in traffic.sessions.iterrows():
        trips = (20 - row["start_s"]) / (row["rtt_ms"] / 1e3)
        # one goes by with the handshake, and slow start sends some five windows less than it might
        assert row["bytes"] == pytest.approx((trips - 6.5) * 64_000, abs=64_000)
        assert row["window_bytes"] == 64_000 and row["retransmissions"] == 0


def broken(fault: str, folder: Path) -> Trial:
    scenario = background(4, 5, captures=ENDS)
    return run_by("tests.sabotage", fault, scenario=scenario, out=folder)


def test_a_program_that_dies_fails_the_trial(tmp_path: Path) -> None:
    record = broken("dead-background", tmp_path).record
    assert record.status is Status.FAILED
    assert record.reason == "background: the server ended early, with status -9"


def test_round_trips_that_are_not_kept_are_named(tmp_path: Path) -> None:
    found = judge(broken("no-delays", tmp_path))
    assert found and found.verdict is Grade.INVALID
    assert found.why.startswith("background RTT of session")


def test_the_path_of_the_tests() -> None:
    """14 ms, as the draws above are given."""
    scenario: Scenario = background()
    assert scenario.background
    assert path_rtt_ms(build_network(scenario.named), scenario.background) == 14
