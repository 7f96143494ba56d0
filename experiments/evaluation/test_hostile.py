"""The evaluations of policers and of misbehaving receivers: what they send, and their scores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from analysis.evaluation.trial_view import TrialView
from experiments.catalogue import EXPERIMENTS
from experiments.evaluation import scores
from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.scenario.model import Misbehaviour


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", ["policer", "misbehaving-receivers"])
def test_every_trial_can_be_planned(name: str, quick: bool) -> None:
    trials = EXPERIMENTS[name].scenarios({}, 1, quick)
    assert trials
    for trial in trials:
        make_plan(trial)


def test_data_are_policed_and_acknowledgements_are_not() -> None:
    trials = EXPERIMENTS["policer"].scenarios({"variant": ["bbr"]}, 1, quick=False)
    links = [each.network.bottleneck_link for each in trials]
    assert {link.forward.queue.discipline for link in links if link.forward.queue} == {"police"}
    assert not any(link.reverse and link.reverse.rate_mbit for link in links)
    buckets = [link.forward.queue.limit_bdp for link in links if link.forward.queue]
    assert buckets == [0.1, 0.1, 1, 1, 4, 4]


def test_one_receiver_misbehaves_and_the_other_does_not() -> None:
    settings = {"variant": ["bbr"], "receiver": ["honest", *Misbehaviour]}
    trials = EXPERIMENTS["misbehaving-receivers"].scenarios(settings, 1, quick=False)
    ends = [(each.flow("flow").receiver, each.flow("victim").receiver) for each in trials]
    assert ends == [(None, None), *((how, None) for how in Misbehaviour)]
    assert [each.network.bottleneck_queue.ecn for each in trials] == [False, False, False, True]
    with pytest.raises(UsageError, match=r"^receiver: unknown"):
        EXPERIMENTS["misbehaving-receivers"].scenarios({"receiver": ["lazy"]}, 1, quick=False)


def test_what_a_receiver_gains_is_its_share() -> None:
    rows = pd.DataFrame(
        {
            "flow": ["flow", "victim"],
            "throughput_mbps": [7.5, 2.5],
            "queue_mean_ms": [1.0, 20.0],
            "sent_packets": [300, 100],
            "drop_rate": [0.1, 0.02],
        }
    )
    records = [SimpleNamespace(name=name) for name in rows["flow"]]
    trial = SimpleNamespace(record=SimpleNamespace(flows=records))
    seen = TrialView(cast(Any, trial), rows, pd.DataFrame())
    shares = [each.of(seen) for each in scores.MISBEHAVING_RECEIVERS_SCORES]
    assert shares == pytest.approx([75.0, 20.0, 8.0])
