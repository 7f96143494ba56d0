"""How many packets flows are expected to send, and what their captures take."""

from __future__ import annotations

import dataclasses

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.parvez_mahanti_williamson.newreno_models import EXPERIMENT
from testbed.guest.engine import GuestEngine
from testbed.plan.plan import make_plan
from testbed.runs import orchestration
from testbed.runs.engine_choice import Choice
from testbed.runs.estimate import data_packets, disk_mb
from testbed.runs.selection import select
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Change
from tests.scenarios import router, with_link

FRAMES_PER_MBIT = 1e6 / (8 * 1514)


def senders(count: int, **settings: object) -> Scenario:
    """That many flows of ten seconds through one link of 10 Mbit/s."""
    return Scenario(
        experiment="test",
        network=router_bottleneck(LinkSettings(10), senders=count),
        flows=tuple(
            Flow(f"s{i}", FlowKind.TCP, f"sender{i}", "receiver", variant="cubic", **settings)  # type: ignore[arg-type]
            for i in range(1, count + 1)
        ),
        duration_s=10,
    )


def estimated(scenario: Scenario) -> tuple[list[float], float]:
    """The data packets of each flow, and the MB of all captures."""
    plan = make_plan(scenario)
    return data_packets(plan, scenario), disk_mb(plan, scenario)


def test_a_packet_is_counted_where_it_is_captured_only() -> None:
    """At its own sender, not at the others, although all of them are captured."""
    _, of_one = estimated(senders(1))
    packets, of_forty = estimated(senders(40))
    assert packets == pytest.approx([packets[0]] * 40)
    samples_mb = 40 * 11 * 100 * 130 / 1e6
    assert of_forty == pytest.approx(of_one + samples_mb, rel=0.1)


def test_a_flow_sends_no_more_than_its_bytes() -> None:
    packets, size_mb = estimated(senders(40, bytes=144_800))
    assert packets == [100.0] * 40
    assert 40 * 100 * 3 * 176 / 1e6 < size_mb < 4


def test_what_one_flow_leaves_goes_to_the_others() -> None:
    scenario = senders(2)
    first, second = scenario.flows
    short = dataclasses.replace(scenario, flows=(dataclasses.replace(first, bytes=144_800), second))
    (little, much), _ = estimated(short)
    assert little == 100
    assert much == pytest.approx(10 * 10 * FRAMES_PER_MBIT, rel=0.02)


def test_a_constant_rate_and_a_short_flow_send_that_much() -> None:
    (_, cbr), _ = estimated(router(rate_mbit=10, cbr_mbit=2, duration_s=10))
    assert cbr == pytest.approx(10 * 2e6 / (8 * 1014))
    scenario = senders(1, duration_s=2.5)
    assert estimated(scenario)[0] == pytest.approx([2.5 * 10 * FRAMES_PER_MBIT])


def test_a_schedule_counts_for_as_long_as_it_holds() -> None:
    scenario = router(rate_mbit=1, duration_s=10)
    steps = (Change(2, rate_mbit=10), Change(4, rate_mbit=1))
    (packets,), _ = estimated(with_link(scenario, "router-receiver", schedule=steps))
    assert packets == pytest.approx((8 * 1 + 2 * 10) * FRAMES_PER_MBIT)


def test_losses_keep_a_link_empty() -> None:
    rare, frequent = (
        EXPERIMENT.build(
            p_percent=percent,
            m=1.0,
            dropper="even",
            profile="ns2",
            duration_s=100.0,
            seed=1,
        )
        for percent in (0.05, 0.2)
    )
    (many, *_), (few, *_) = (estimated(each)[0] for each in (rare, frequent))
    assert many == pytest.approx(2 * few)


def test_a_run_says_what_large_captures_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orchestration, "choose_engine", lambda *_: Choice(GuestEngine(), "a test"))
    monkeypatch.setattr(orchestration, "with_ready_kernels", lambda _, planned, *__, **___: planned)

    def said(variant: str, captures: str) -> list[str]:
        listener = Noting()
        values = {"variant": [variant]}
        orchestration.plan_run(
            select("variants", values, EXPERIMENTS),
            orchestration.RunOptions(seeds=30, captures=captures),
            listener,
        )
        return [line for line in listener.lines if "disk" in line]

    (line,) = said("cubic", "keep")
    assert line.startswith("captures of all trials: about 1.4 GB of disk; --captures zstd")
    assert said("cubic", "drop") == []


class Noting(orchestration.RunListener):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)
