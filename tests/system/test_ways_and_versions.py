"""Flows over IPv6, other ways back, and two variants of one host, on real kernels."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from analysis.captures.tshark import verify
from analysis.results.reduction import reduction_of
from testbed.scenario.call import Call, Media
from testbed.scenario.losses import Loss, LossEvents
from testbed.scenario.model import Flow, FlowKind
from tests.lab import run_trials
from tests.unit.test_ipv6 import scenario as over_ipv6
from tests.unit.test_ipv6 import tcp
from tests.unit.test_routes import DOWN
from tests.unit.test_routes import scenario as by_satellite


def test_a_network_of_both_versions(tmp_path: Path) -> None:
    """With a dropper, and a call beside; our reduction and tshark agree packet by packet."""
    scenario = over_ipv6(
        tcp(loss=Loss(events=LossEvents(0.01))),
        tcp("old", ip=4),
        Flow("call", FlowKind.CALL, "h1", "h2", call=Call(Media.VIDEO, rate_mbit=0.5)),
    )
    (trial,) = run_trials([scenario], tmp_path)
    rows = reduction_of(trial).flows.set_index("flow")
    loss_rate, delay_ms = (rows[name].to_dict() for name in ("loss_rate", "owd_mean_ms"))
    assert loss_rate["tcp"] > 0.005 and delay_ms["tcp"] > 11 and delay_ms["old"] > 11
    lost, jitter_ms = (rows[name].to_dict() for name in ("datagram_loss_rate", "jitter_ms"))
    assert lost["call"] < 0.2 and jitter_ms["call"] > 0
    for capture in trial.record.captures:
        assert not verify(trial.path / capture.file).differences


def test_two_variants_of_a_host_on_a_way_that_is_no_way_back(tmp_path: Path) -> None:
    scenario = by_satellite(DOWN)
    second = dataclasses.replace(scenario.flows[0], name="second", variant="bbr")
    scenario = dataclasses.replace(scenario, flows=(*scenario.flows, second))
    (trial,) = run_trials([scenario], tmp_path)
    rows = reduction_of(trial).flows.set_index("flow")
    assert list(rows["variant_seen"]) == ["cubic", "bbr"]
    assert rows["rtt_min_ms"].tolist() == pytest.approx([109, 109], rel=0.01)
