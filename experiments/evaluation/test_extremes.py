"""The evaluations at the edges, and that of incast: what they send, and what their scores read."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from analysis.evaluation.trial_view import TrialView
from analysis.trials.capacity import Capacity
from experiments.catalogue import EXPERIMENTS
from experiments.evaluation import scores
from experiments.evaluation.extreme_evaluations import CALLS_TCP
from experiments.incast_results import INCAST_SCORES
from testbed.errors import UsageError
from testbed.evaluate.evaluation import OTHER_QUEUES, standard_evaluation, with_settings
from testbed.plan.plan import make_plan
from testbed.scenario.call import Media
from testbed.scenario.model import FlowKind

ADDED = ("collapse", "long-delay", "aggregation", "calls", "incast")


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", ADDED)
def test_every_trial_can_be_planned(name: str, quick: bool) -> None:
    trials = EXPERIMENTS[name].scenarios({}, 1, quick)
    assert trials
    for trial in trials:
        make_plan(trial)


def test_a_collapse_is_of_many_flows_or_of_one_whose_packets_are_lost() -> None:
    trials = EXPERIMENTS["collapse"].scenarios({"variant": ["bbr"]}, 1, quick=False)
    chances = [each.flows[-1].loss for each in trials]
    rates = [loss.events.rate if loss and loss.events else 0.0 for loss in chances]
    assert [len(each.flows) for each in trials] == [100, 500, 1, 1]
    assert rates == [0, 0, 0.5, 0.7]
    assert {each.network.bottleneck.rate_mbit for each in trials} == {1.0}


def test_a_link_that_sends_bursts_takes_as_many_packets_as_are_asked_for() -> None:
    trials = EXPERIMENTS["aggregation"].scenarios({"variant": ["bbr"]}, 1, quick=False)
    links = [each.network.bottleneck for each in trials]
    assert [(e.aggregate_packets, e.aggregate_ms) for e in links] == [(1, 0), (4, 20), (16, 20)]


@pytest.mark.parametrize("sends", CALLS_TCP)
def test_calls_are_beside_the_variant(sends: str) -> None:
    settings = {"variant": ["bbr"], "tcp": [sends]}
    ((tcp, voice, video),) = (
        each.flows for each in EXPERIMENTS["calls"].scenarios(settings, 1, quick=False)
    )
    assert tcp.variant == "bbr"
    assert tcp.kind is (FlowKind.TCP if sends == "long" else FlowKind.WORKLOAD)
    assert [call.call.media for call in (voice, video) if call.call] == [Media.VOICE, Media.VIDEO]
    with pytest.raises(UsageError, match=r"^tcp: unknown"):
        EXPERIMENTS["calls"].scenarios({"tcp": ["web"]}, 1, quick=False)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("queue", OTHER_QUEUES)
def test_an_evaluation_with_a_queue_has_trials_everywhere(queue: str) -> None:
    """And so has one with the value of an axis that several evaluations have."""
    wanted = standard_evaluation("bbr", queue, ["cubic"])
    chosen = wanted.experiments(EXPERIMENTS.values())
    for axes in ({}, {"beside": ["cubic"], "flows": ["2"], "rtt_ms": ["20"]}):
        fixed = with_settings(wanted, axes, chosen)
        for each in chosen:
            for trial in fixed.selection(each, quick=True).scenarios(1):
                make_plan(trial)


def view(flows: pd.DataFrame, stopped_s: float = 10.0) -> TrialView:
    """Return a trial that stopped at a second, with rows of its flows."""
    records = [SimpleNamespace(name=name, stopped_s=stopped_s) for name in flows["flow"]]
    trial = SimpleNamespace(
        record=SimpleNamespace(flows=records), scenario=SimpleNamespace(measure_from_s=2.0)
    )
    return TrialView(cast(Any, trial), flows, pd.DataFrame())


def test_what_is_sent_is_measured_by_what_the_link_carries() -> None:
    """8 s of 1 Mbit/s carry 660 frames; twice as many are sent."""
    seen_here = view(pd.DataFrame({"flow": ["a", "b"], "sent_packets": [1000, 321]}))
    seen_here.__dict__["capacity"] = Capacity((0.0,), (1.0,))
    score = next(each for each in scores.COLLAPSE_SCORES if each.name == "offered_percent")
    assert score.of(seen_here) == pytest.approx(200, abs=0.1)


def test_calls_are_scored_by_their_own_rows() -> None:
    seen_here = view(pd.DataFrame({"flow": ["tcp"]}))
    seen_here.__dict__["calls"] = pd.DataFrame(
        {
            "datagram_loss_rate": [0.01, 0.03],
            "owd_p95_ms": [60.0, 100.0],
            "jitter_ms": [1.0, 2.0],
        }
    )
    assert [each.of(seen_here) for each in scores.CALLS_SCORES] == pytest.approx([2.0, 80.0, 1.5])


def test_only_calls_are_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pd.DataFrame({"flow": ["tcp", "voice"], "kind": ["tcp", "call"]})
    monkeypatch.setattr(
        "analysis.evaluation.trial_view.reduction_of", lambda _trial: SimpleNamespace(flows=rows)
    )
    assert list(view(rows).calls["flow"]) == ["voice"]


def test_a_request_that_is_never_complete_counts_until_its_end() -> None:
    rows = {
        "flow": ["a", "b"],
        "start_s": [0.0, 0.001],
        "completion_s": [0.003, 0.009],
        "timeouts_seen": [0, 2],
    }
    request, timeouts = (each.of(view(pd.DataFrame(rows), 5.0)) for each in INCAST_SCORES)
    assert (request, timeouts) == pytest.approx((10.0, 2.0))
    rows["completion_s"] = [0.003, math.nan]
    assert INCAST_SCORES[0].of(view(pd.DataFrame(rows), 5.0)) == pytest.approx(5000)
