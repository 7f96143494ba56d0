"""`testbed fit`: what a capture says of the network is what the network was."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from analysis.statistics.fitting import MTU_FRAME, FittedNetwork, fit
from testbed.cli.entry import main
from testbed.errors import TestbedError, UsageError
from testbed.own_files.scenario_file import Document, in_document
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import Direction, Graph, Link, Node, NodeKind, Queue
from testbed.scenario.trace import read_trace
from tests.lab import run_trials

LOSS = 0.004
VARYING_LIMIT = 136  # packets


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


def varying() -> Scenario:
    """A link whose rate varies, and which loses only where its queue is full."""
    scenario = path(1_000_000)
    queue = Queue("pfifo", limit_packets=VARYING_LIMIT)
    slow = Direction(10, 5, queue, trace=read_trace("step"))
    first, last = scenario.network.links
    links = (first, dataclasses.replace(last, forward=slow))
    graph = dataclasses.replace(scenario.network, links=links)
    return dataclasses.replace(scenario, network=graph)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    scenarios = [path(50_000), path(1_000_000, LOSS), held_back(), varying()]
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


def test_where_the_rate_varies_what_waits_is_counted_in_bytes(
    captures: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All losses were the queue's: none is called one by chance, and the buffer has its bound."""
    capture, out = captures[3] / "a-eth0.pcapng", tmp_path / "fitted.json"
    fitted = fit(capture)
    assert fitted.rate_varied and fitted.full_losses == 0 and fitted.chance_losses > 20
    buffer_kb = VARYING_LIMIT * MTU_FRAME / 1000
    assert 0.95 * buffer_kb < fitted.buffer_kb.low <= buffer_kb
    assert math.isnan(fitted.buffer_kb.high)
    assert fitted.loss_percent.value == fitted.loss_percent.low == 0 < fitted.loss_percent.high
    assert all(link.forward.loss is None for link in fitted.scenario().network.links)
    assert main(["fit", str(capture), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "loss        not known, at most" in said and "by chance" not in said
    assert "neither buffer nor loss can be told" in said and "will not reproduce the flow" in said


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
