"""Losses by chance on real kernels: exactly those that were thrown, and the verdict knows them."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.captures.packet_matching import NOWHERE, pair
from analysis.trials.packets import TrialPackets
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from testbed.plan.plan import make_plan
from testbed.scenario.losses import GilbertElliott, Loss, LossEvents, throw
from testbed.scenario.model import Scenario
from testbed.scenario.network import Queue
from testbed.store.reading import Trial
from tests.lab import run_trials
from tests.loss_model import LossModel
from tests.sabotage import run_sabotaged
from tests.scenarios import dumbbell, router, with_loss, with_network

ANY_TIME = Loss(LossEvents(0.01, 3, spacing=2, one_at_a_time=False))
LOSSES = {
    "one event at a time": Loss(LossEvents(0.01, 3)),
    "any time": ANY_TIME,
    "retransmissions too": Loss(
        LossEvents(0.01, 2, one_at_a_time=False), spare_retransmissions=False
    ),
    "a channel": Loss(None, GilbertElliott(0.005, 0.3, 0.9), spare_retransmissions=False),
}


def model(trial: Trial, flow: str, role: str) -> tuple[LossModel, list[bool]]:
    """What the reference says of each segment of data that came to the dropper."""
    (plan,) = (each for each in make_plan(trial.scenario).losses if each.flow == flow)
    made = LossModel(plan.loss, throw(plan.loss, plan.dice, plan.packets))
    came = TrialPackets(trial).flow(role, record(trial, flow))
    assert came is not None
    rows = zip(came.data["seq"], came.data["payload"], strict=True)
    return made, [bool(size) and made.loses(int(seq), int(size)) for seq, size in rows]


def missing(trial: Trial, flow: str, before: str, behind: str) -> list[bool]:
    """Whether each packet of one capture is not at the other."""
    packets = TrialPackets(trial)
    one, other = (packets.flow(role, record(trial, flow)) for role in (before, behind))
    assert one is not None and other is not None
    places = pair(one.data, other.data)
    found = np.ones(len(one.data), dtype=np.bool_)
    found[places[places != NOWHERE]] = False
    return [bool(each) for each in found]


def record(trial: Trial, flow: str) -> Any:
    return next(each for each in trial.record.flows if each.name == flow)


def counts(trial: Trial) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = json.loads(
        (trial.path / "samples" / "drops.json").read_text()
    )
    return found


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", LOSSES)
def test_the_receiver_lacks_exactly_what_the_dice_say(name: str, tmp_path: Path) -> None:
    """A shaped access link, with a delay, behind the dropper; the trial is valid (run_trials)."""
    trial = run_trials([with_loss(dumbbell(), LOSSES[name])], tmp_path)[0]
    reference, said = model(trial, "one", "bottleneck-out")
    assert said == missing(trial, "one", "bottleneck-out", "receiver")
    assert counts(trial) == {"one": {"interface": "right-eth1", **reference.counts}}
    assert reference.counts["dropped"] >= 6
    assert not [w for w in trial.record.warnings if "losses" in w]


def two_flows() -> Scenario:
    """Both lose at the bottleneck's own interface, so that two programs are behind each other."""
    # windows that the queue holds: it drops nothing, and is empty before the captures end
    queue = Queue("bfifo", limit_bytes=200_000)
    scenario = router(rate_mbit=2, queue=queue, duration_s=4)
    scenario = with_loss(scenario, ANY_TIME, window_bytes=40_000)
    second = dataclasses.replace(scenario.flows[0], name="second", src="sender2")
    flows = (scenario.flows[0], second)
    return dataclasses.replace(with_network(scenario, hosts=2), flows=flows)


@pytest.mark.parametrize(
    "engine",
    [
        "guest",
        pytest.param(
            "host",
            marks=pytest.mark.root("the host engine makes namespaces and queues"),
        ),
    ],
)
def test_the_seed_says_which_segments_on_every_engine(engine: str, tmp_path: Path) -> None:
    """Nothing but the runs decides where an event may begin at any time."""
    trial = run_trials([two_flows()], tmp_path, engine)[0]
    judged = judge(trial)
    assert judged is not None
    own = [c.verdict for c in judged.checks if c.name in ("losses by chance", "conservation")]
    assert own and set(own) <= {Grade.VALID, Grade.UNKNOWN}
    for flow in ("tcp", "second"):
        reference, said = model(trial, flow, "bottleneck-in")
        assert said == missing(trial, flow, "bottleneck-in", "bottleneck-out")
        assert counts(trial)[flow]["dropped"] == reference.counts["dropped"] >= 6
        thrown = list(itertools.takewhile(reference.counts["segments"].__ge__, numbers(flow)))
        assert reference.lost_numbers == thrown


def numbers(flow: str) -> list[int]:
    """The segments of new data that the dice of ANY_TIME take, without any trial."""
    at, found = 0, []
    for run in throw(ANY_TIME, f"1 {flow} loss", 10_000):
        found += [at + run.passing + 1 + 2 * number for number in range(3)]
        at += run.passing + 5
    return found


def test_a_loss_that_was_not_asked_for_is_named(tmp_path: Path) -> None:
    """netem loses too, on the link whose losses were asked for."""
    scenario = with_loss(dumbbell(), LOSSES["one event at a time"])
    scenario = dataclasses.replace(scenario, flows=scenario.flows[:1])
    fault = "hidden-loss-behind-the-dropper"
    trial = run_sabotaged(fault, scenario, tmp_path)
    found = judge(trial)
    assert found is not None and found.verdict is Grade.INVALID
    assert found.why.startswith("losses by chance of one: ")
    (loss,) = (c for c in found.checks if c.name == "loss" and c.verdict is Grade.INVALID)
    assert loss.subject == "one left-eth0 to receiver1-eth0"
    _, said = model(trial, "one", "bottleneck-out")
    hidden = sum(missing(trial, "one", "bottleneck-out", "receiver")) - sum(said)
    assert loss.measured == hidden > 0
