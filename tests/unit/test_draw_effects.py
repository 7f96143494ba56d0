"""What results depend on of what a seed draws, on made-up numbers that follow from the draw."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.figures.general import draw_effects
from experiments.catalogue import EXPERIMENTS
from testbed.scenario.model import Scenario
from testbed.scenario.variations import drawn
from tests.stand_ins import StandIn


def results(networks: int, noise: float = 1e-4, **settings: Any) -> Any:
    """A flow whose goodput falls with the round trip and rises with the buffer's square."""
    chosen = {"variant": ["cubic"], "queue": ["bfifo", "codel"], "path": ["receiver"]}
    scenarios = EXPERIMENTS["router-bottleneck"].scenarios(chosen, networks, quick=False)
    own = [dataclasses.replace(each, **settings) for each in scenarios]
    dice = np.random.default_rng(1)
    rows = pd.DataFrame(
        {
            "trial": each.name,
            "seed": float(each.seed),
            "variant": "cubic",
            "flow": "tcp",
            "src": "sender1",
            "dst": "receiver",
            "axis_queue": each.axes["queue"],
            "goodput_mbps": goodput(each) * (1 + noise * dice.standard_normal()),
        }
        for each in own
    )
    trials = tuple(
        SimpleNamespace(path=SimpleNamespace(name=each.name), scenario=each) for each in own
    )
    return StandIn(trials=trials, tcp=rows)


def goodput(scenario: Scenario) -> float:
    stated, own = scenario.network, drawn(scenario).network
    rtts = [each.path("sender1", "receiver").rtt_ms for each in (own, stated)]
    limits = [draw_effects._limit(each.bottleneck_queue) for each in (own, stated)]
    return (
        (1 if scenario.axes["queue"] == "bfifo" else 3)
        * rtts[1]
        / rtts[0]
        * (limits[0] / limits[1]) ** 2
    )


def of_round_trip_and_buffer(found: Any) -> Any:
    table = draw_effects.effects(found, "goodput_mbps").set_index("what")
    return table.loc["rtt"], table.loc["buffer"]


def test_an_effect_is_what_the_drawn_network_does() -> None:
    """Of two settings with other levels, one number for each network."""
    rtt, buffer = of_round_trip_and_buffer(results(12))
    assert rtt["effect"] == pytest.approx(-5, abs=0.4) and rtt["high"] - rtt["low"] < 1
    assert buffer["effect"] == pytest.approx(10, abs=0.4)
    rtt, _ = of_round_trip_and_buffer(results(12, noise=0.1))
    assert rtt["low"] < -5 < rtt["high"] and rtt["high"] - rtt["low"] > 1


def test_exact_networks_and_few_of_them_have_no_effects() -> None:
    assert draw_effects.effects(results(12, drawn_share=0.0), "goodput_mbps").empty
    assert draw_effects.effects(results(4), "goodput_mbps").empty
    assert not draw_effects.effects(results(5), "goodput_mbps").empty
