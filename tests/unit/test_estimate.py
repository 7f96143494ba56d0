"""How long trials will take: what earlier ones took corrects it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.catalogue import EXPERIMENTS
from testbed.plan.plan import TrafficPlan, make_plan, plan_traffic
from testbed.runs import estimate
from testbed.scenario.model import Scenario
from testbed.scenario.video import PlayerKind
from testbed.video_site import Transport
from tests.scenarios import router, video


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_a_faster_link_takes_longer() -> None:
    slow, fast = router(rate_mbit=1), router(rate_mbit=10)
    plans = make_plan(slow), make_plan(fast)
    assert estimate.guest_seconds(plans[0], slow) < estimate.guest_seconds(plans[1], fast)


def test_more_flows_on_the_same_link_take_longer() -> None:
    def seconds(flows: str) -> float:
        settings = {"variant": ["cubic"], "flows": [flows]}
        scenario = EXPERIMENTS["collapse"].scenarios(settings, 1, quick=True)[0]
        return estimate.guest_seconds(make_plan(scenario), scenario)

    assert seconds("500") - seconds("100") == pytest.approx(400 * estimate.IPERF3_S, rel=0.01)


def test_scenarios_that_differ_in_variants_are_planned_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenarios = [
        router(variant=name, rate_mbit=rate) for name in ("reno", "bbr") for rate in (1, 9)
    ]
    each_alone = sum(estimate.guest_seconds(make_plan(one), one) for one in scenarios)
    planned = []

    def noted(scenario: Scenario) -> TrafficPlan:
        planned.append(scenario)
        return plan_traffic(scenario)

    monkeypatch.setattr(estimate, "plan_traffic", noted)
    assert estimate.guest_seconds_of(scenarios) == pytest.approx(each_alone)
    assert planned == scenarios[:2]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_estimates_need_is_the_plans(name: str) -> None:
    for scenario in EXPERIMENTS[name].scenarios({}, 1, quick=True)[:3]:
        plan, part = make_plan(scenario), plan_traffic(scenario)
        assert (part.network, part.flows, part.end_s) == (plan.network, plan.flows, plan.end_s)


def test_a_video_takes_as_long_as_it_is_large() -> None:
    """Whatever the line could bring; a player that chooses may choose the largest."""

    def seconds(**settings: Any) -> float:
        scenario = video(network="ethernet", length_s=270, **settings)
        return estimate.guest_seconds(make_plan(scenario), scenario)

    assert seconds(rule="240p") < seconds(rule="720p") < seconds(rule="buffer")
    assert seconds(rule="buffer") == seconds(rule="1080p")


def test_a_packet_of_quic_costs_several_of_tcp() -> None:
    """Two programs process it in place of the kernel."""

    def packets_s(length_s: float, transport: Transport) -> float:
        shorter, longer = (
            video(transport, network="ethernet", rule="720p", length_s=seconds)
            for seconds in (60, length_s)
        )
        return estimate.guest_seconds(make_plan(longer), longer) - estimate.guest_seconds(
            make_plan(shorter), shorter
        )

    assert packets_s(270, Transport.QUIC) > 2 * packets_s(270, Transport.HTTPS)


def test_a_browser_takes_longer() -> None:
    model, browser = video(), video(player=PlayerKind.CHROMIUM)
    plans = make_plan(model), make_plan(browser)
    assert estimate.guest_seconds(plans[1], browser) > 10 + estimate.guest_seconds(plans[0], model)


def test_estimates_learn() -> None:
    scenario = router()
    plan = make_plan(scenario)
    first = estimate.guest_seconds(plan, scenario)
    estimate.learn([(plan, scenario, 3 * first)] * 5)
    assert estimate.guest_seconds(plan, scenario) == pytest.approx(3 * first)
    estimate.learn([(plan, scenario, first)])
    assert estimate.guest_seconds(plan, scenario) == pytest.approx(2 * first)
    estimate.learn([])
    assert estimate.pace() == pytest.approx(2)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"guest": "fast"}'])
def test_a_damaged_history_is_no_history(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "tcp-testbed"
    folder.mkdir()
    (folder / "speed.json").write_text(text)
    assert estimate.pace() == 1
