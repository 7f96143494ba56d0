"""Misbehaving receivers in the guest: what each does to a flow, as its captures show it."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from analysis.captures.tcp import CE, PacketArrays
from analysis.trials.accurate_ecn import ECE
from analysis.trials.packets import TrialPackets
from testbed.plan.plan import make_plan
from testbed.scenario.model import Misbehaviour, Scenario
from testbed.scenario.network import Queue
from testbed.store.names import RECEIVERS_FILE
from testbed.store.reading import Trial
from testbed.trial.parts.receivers import DIVISION, MAX_AHEAD
from tests.lab import run_trials
from tests.scenarios import router

SHORT = Queue("pfifo", limit_packets=20)
MARKING = Queue("codel", limit_packets=100, ecn=True)


def with_receiver(how: Misbehaviour, queue: Queue) -> Scenario:
    scenario = router(rate_mbit=4, delay_ms=10.3, queue=queue, duration_s=3)
    flow = dataclasses.replace(scenario.flows[0], receiver=how, window_bytes=120_000)
    return dataclasses.replace(scenario, flows=(flow,), label=how)


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[Misbehaviour, Trial]:
    """One valid trial of each kind of misbehaviour."""
    folder = tmp_path_factory.mktemp("receivers")
    queues = {Misbehaviour.BLEACHED_ECN: MARKING}
    scenarios = [with_receiver(how, queues.get(how, SHORT)) for how in Misbehaviour]
    return dict(zip(Misbehaviour, run_trials(scenarios, folder), strict=True))


def seen(trial: Trial, role: str) -> tuple[PacketArrays, PacketArrays]:
    """Return data and acknowledgements at a capture."""
    (flow,) = trial.record.flows
    found = TrialPackets(trial).part(role, flow)
    assert found is not None
    return found.data, found.acks


def counted(trial: Trial) -> dict[str, int]:
    (counts,) = json.loads((trial.path / RECEIVERS_FILE).read_text()).values()
    return dict(counts)


def test_each_acknowledgement_becomes_eight(trials: dict[Misbehaviour, Trial]) -> None:
    trial = trials[Misbehaviour.ACK_DIVISION]
    _, acks = seen(trial, "receiver")
    times, together = np.unique(acks["time_ns"], return_counts=True)
    assert set(together.tolist()) == {1, DIVISION}  # 1: the handshake's, and duplicates
    counts = counted(trial)
    assert counts["added"] == (DIVISION - 1) * counts["changed"] > 1000
    (busiest,) = times[together == DIVISION][-1:]
    steps = np.diff(acks["ack"][acks["time_ns"] == busiest].astype(np.int64))
    assert len(steps) == DIVISION - 1 and steps.min() > 0 and steps.max() - steps.min() <= 1


def test_what_is_lost_or_under_way_is_acknowledged(trials: dict[Misbehaviour, Trial]) -> None:
    trial = trials[Misbehaviour.OPTIMISTIC_ACKS]
    data, acks = seen(trial, "receiver")
    came = np.searchsorted(data["time_ns"], acks["time_ns"], side="right") - 1
    known = (came >= 0) & (acks["ack"] > 0)
    ends = np.maximum.accumulate(data["seq"].astype(np.int64) + data["payload"])
    ahead = acks["ack"].astype(np.int64)[known] - ends[came[known]]
    assert ahead.max() == MAX_AHEAD
    counts = counted(trial)
    sent, _ = seen(trial, "sender")
    assert counts["concealed_bytes"] > 20 * 1448
    assert len(np.unique(sent["seq"])) > 0.99 * len(sent)  # nothing is sent again


def test_marks_are_not_echoed(trials: dict[Misbehaviour, Trial]) -> None:
    trial = trials[Misbehaviour.BLEACHED_ECN]
    data, acks = seen(trial, "receiver")
    assert (data["ecn"] == CE).sum() > 20
    assert not (acks["flags"][2:] & ECE).any()
    assert counted(trial)["changed"] > 500


def test_a_receiver_is_a_program_at_its_own_interface() -> None:
    honest = make_plan(router())
    plan = make_plan(with_receiver(Misbehaviour.ACK_DIVISION, SHORT))
    assert not honest.receivers
    (receiver,) = plan.receivers
    assert (receiver.node, receiver.interface) == ("receiver", "receiver-eth0")
