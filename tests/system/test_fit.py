"""`testbed fit`: what a capture says of the network is what the network was."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from analysis.statistics.fitting import FittedNetwork, fit
from testbed.errors import TestbedError, UsageError
from testbed.own_files.scenario_file import Document, in_document
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import Direction, Graph, Link, Node, NodeKind, Queue
from tests.lab import run_trials

LOSS = 0.004


def path(limit_bytes: int, loss: float = 0.0) -> Scenario:
    """A flow over 8 Mbit/s and 40 ms."""
    chance = GilbertElliott(to_bad=loss, to_good=1 - loss) if loss else None
    slow = Direction(8, 5, Queue("bfifo", limit_bytes=limit_bytes), loss=chance)
    back = Direction(8, 5, Queue("bfifo", limit_bytes=limit_bytes))
    nodes = (Node("a"), Node("r", NodeKind.ROUTER), Node("b"))
    links = (Link(("a", "r"), Direction(delay_ms=15)), Link(("r", "b"), slow, back))
    flow = Flow("tcp", FlowKind.TCP, "a", "b", variant="cubic")
    return Scenario("fit", Graph(nodes, links), (flow,), duration_s=20)


def held_back() -> Scenario:
    """The same with losses, and a receiver whose window the path never has to hold back."""
    scenario = path(1_000_000, LOSS)
    flow = dataclasses.replace(scenario.flows[0], window_bytes=12_000)
    return dataclasses.replace(scenario, flows=(flow,))


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    scenarios = [path(50_000), path(1_000_000, LOSS), held_back()]
    trials = run_trials(scenarios, tmp_path_factory.mktemp("fit"))
    return [trial.path / "captures" for trial in trials]


def test_a_full_buffer(captures: list[Path]) -> None:
    fitted = fit(captures[0] / "a-eth0.pcapng")
    assert fitted.rate_mbit.value == pytest.approx(8, rel=0.01)
    assert fitted.rtt_ms.value == pytest.approx(40, rel=0.02)
    assert fitted.buffer_kb.value == pytest.approx(50, rel=0.05)
    assert fitted.full_losses > 5 and fitted.loss_percent.low < 0.02
    assert not fitted.notes


def test_losses_by_chance(captures: list[Path]) -> None:
    fitted = fit(captures[1] / "a-eth0.pcapng")
    assert fitted.loss_percent.low < 100 * LOSS < fitted.loss_percent.high
    assert fitted.rate_mbit.high == pytest.approx(8, rel=0.01)
    assert fitted.full_losses == 0 and math.isnan(fitted.buffer_kb.high)


def test_where_nothing_waits_no_buffer_is_full(captures: list[Path]) -> None:
    fitted = fit(captures[2] / "a-eth0.pcapng")
    assert math.isnan(fitted.rate_mbit.high) and math.isnan(fitted.buffer_kb.low)
    assert fitted.full_losses == 0
    assert fitted.loss_percent.low < 100 * LOSS < fitted.loss_percent.high


def test_the_scenario_runs_and_is_alike(captures: list[Path], tmp_path: Path) -> None:
    """What is measured in the fitted network is what was measured in the first."""
    first = fit(captures[0] / "a-eth0.pcapng")
    document = json.loads(first.scenario().to_json())
    read = in_document(Document(document), "fitted.json")
    (trial,) = run_trials([read.scenario], tmp_path / "again")
    again = fit(trial.path / "captures" / "sender-eth0.pcapng")

    def numbers(fitted: FittedNetwork) -> list[float]:
        return [each.value for each in (fitted.rate_mbit, fitted.rtt_ms, fitted.buffer_kb)]

    assert numbers(again) == pytest.approx(numbers(first), rel=0.03)
    assert again.sent_bytes == pytest.approx(first.sent_bytes, rel=0.05)


def test_where_a_capture_does_not_say_it(captures: list[Path], tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="it was taken near the receiver"):
        fit(captures[0] / "b-eth0.pcapng")
    with pytest.raises(UsageError, match="no TCP flow 7") as caught:
        fit(captures[0] / "a-eth0.pcapng", 7)
    assert "TCP flows: 0 to" in caught.value.hint
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes((captures[0] / "a-eth0.pcapng").read_bytes()[:20_000])
    with pytest.raises(TestbedError, match="segments of data, 100 are needed"):
        fit(cut)
    with pytest.raises(TestbedError, match="no such file"):
        fit(tmp_path / "nothing.pcapng")
