"""What machines and radios do: aggregation, held interrupts, costs; and the set `realistic`."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from experiments.command import main
from testbed.errors import UsageError
from testbed.plan.check import faults
from testbed.plan.plan import make_plan
from testbed.runner.recorded_netlink import netlink_of
from testbed.runs.sources import parts_of
from testbed.scenario import realism
from testbed.scenario.model import Scenario
from testbed.scenario.network import Direction, Shaping
from testbed.scenario.reading import read_scenario
from testbed.scenario.realism import with_realism
from testbed.scenario.variations import all_realistic, axes_of
from tests.scenarios import router, with_network
from tests.transits import sure_transit


def disciplines(scenario: Scenario) -> list[str]:
    commands = (" ".join(each.argv) for each in make_plan(scenario).setup)
    ours = ("link", "receive")
    return [each for each in commands if each.startswith("tc") and set(ours) & set(each.split())]


def to_the_receiver(scenario: Scenario) -> Direction:
    return scenario.network.links[-1].forward


def test_all_of_it_is_off_by_default() -> None:
    plain = make_plan(router())
    assert not any("packets" in each or " receive " in each for each in disciplines(router()))
    assert "wires" not in plain.nodes
    assert with_realism(router()) == router()


def test_a_receiver_is_behind_the_link_and_not_in_its_queue() -> None:
    held = with_network(router(), hold_us=50, cost_us=1.5, wake_us=10)
    words = "handle 3: receive hold 50000ns cost 1500ns wake 10000ns"
    assert any(each.endswith(f"parent 2:1 {words}") for each in disciplines(held))
    (planned,) = {each.settings for each in make_plan(held).tc_objects if each.kind == "receive"}
    assert [each.value for each in planned] == [50, 1.5, 10]
    record_of = {each.hop.out.name: each.hop.is_exact for each in make_plan(held).queues}
    assert all(record_of.values())


def test_an_aggregating_link_is_told_how_much() -> None:
    burst = with_network(router(), aggregate_packets=32, aggregate_ms=4)
    assert any(
        each.endswith("link rate 1000000bit packets 32 time 4000000ns")
        for each in disciplines(burst)
    )


def test_the_kernel_is_told_what_tc_does_not_know() -> None:
    plain, told = (
        netlink_of("tc", (f"qdisc add dev a parent 2:1 handle 3: receive{words}",))[0]
        for words in ("", " hold 50000ns cost 1500ns wake 0ns")
    )
    numbers = b"".join(
        b"\x08\0" + kind.to_bytes(2, "little") + value.to_bytes(4, "little")
        for kind, value in ((1, 50_000), (2, 1_500), (3, 0))
    )
    assert told.content == plain.content + b"\x1c\0\x02\0" + numbers


def test_the_set_is_for_links_with_a_rate_and_for_hosts() -> None:
    made = with_realism(dataclasses.replace(router(), realistic=True))
    access, bottleneck = made.network.links
    assert bottleneck.forward.aggregate_packets == realism.AGGREGATE_PACKETS
    assert (bottleneck.forward.hold_us, bottleneck.forward.wake_us) == (
        realism.HOLD_US,
        realism.WAKE_US,
    )
    assert not access.forward.takes_time_to_receive  # a router's
    assert access.directions[1].takes_time_to_receive  # the sender's, of its ACKs
    assert make_plan(made).network.graph == made.network


def test_what_the_scenario_says_itself_stays() -> None:
    own = dataclasses.replace(with_network(router(), hold_us=10), realistic=True)
    made = to_the_receiver(with_realism(own))
    assert (made.hold_us, made.cost_us, made.wake_us) == (10, 0, 0)
    assert made.aggregates
    by_htb = dataclasses.replace(with_network(router(), shaping=Shaping.HTB), realistic=True)
    assert not to_the_receiver(with_realism(by_htb)).aggregates


def test_a_realistic_trial_is_told_from_an_exact_one() -> None:
    (made,) = all_realistic([router()])
    assert made.label == "linux-reno-realistic"
    assert axes_of(made)["realistic"] == "true" and "realistic" not in axes_of(router())
    assert made.hash != router().hash


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"aggregate_packets": 0}, "aggregate_packets: 0 is not between 1 and 1024"),
        ({"aggregate_packets": 2000}, "aggregate_packets: 2000 is not between 1 and 1024"),
        (
            {"aggregate_packets": 4, "aggregate_ms": -1.0},
            "aggregate_ms: -1 is not between 0 and 100",
        ),
        ({"aggregate_ms": 2.0}, "aggregate_ms: 2: needs aggregate_packets above 1"),
        (
            {"aggregate_packets": 4, "shaping": Shaping.HTB},
            "aggregate_packets: needs a rate_mbit, and neither a trace nor htb",
        ),
        ({"hold_us": -1.0}, "hold_us: -1 is not between 0 and 10000"),
        ({"cost_us": 20_000.0}, "cost_us: 20000 is not between 0 and 10000"),
        (
            {"wake_us": float("inf")},
            "wake_us: expected a finite number, got a number beyond all bounds",
        ),
    ],
)
def test_what_is_out_of_range_is_refused(settings: dict[str, Any], fault: str) -> None:
    directions = ("links[0].reverse", "links[1].forward")  # of the bottleneck: both have a queue
    if fault.startswith(("hold_us", "cost_us", "wake_us")):
        directions = ("links[1].forward", "links[1].reverse")
    found = list(map(str, faults(with_network(router(), **settings))))
    assert found == [f"network.{each}.{fault}" for each in directions]


def test_a_link_without_a_rate_cannot_aggregate() -> None:
    base = json.loads(router().to_json())
    base["network"]["links"][0]["forward"]["aggregate_packets"] = 4
    (found,) = faults(read_scenario(json.dumps(base)))
    assert "links[0].forward.aggregate_packets: needs a rate_mbit" in str(found)


@pytest.mark.parametrize("settings", [{"hold_us": 5.0}, {"aggregate_packets": 2}])
def test_a_real_machine_is_not_made_realistic(settings: dict[str, Any]) -> None:
    refused = "this machine's own interrupts and costs are real"
    for scenario in (
        with_network(router(), **settings),
        dataclasses.replace(router(), realistic=True),
    ):
        with pytest.raises(UsageError, match=refused):
            make_plan(scenario, virtual_time=False)


def test_an_evaluation_both_ways_needs_the_guest(capsys: pytest.CaptureFixture[str]) -> None:
    """Before a trial of either way has run."""
    arguments = ["evaluate", "bbr", "--quick", "--realistic", "--engine", "host"]
    assert main(arguments) == 2
    assert "this machine's own interrupts and costs are real" in capsys.readouterr().err


def test_a_trial_has_the_sources_of_what_it_uses() -> None:
    made = make_plan(dataclasses.replace(router(), realistic=True))
    used = {path for path in parts_of(made) if path.startswith("kernel/queues")}
    assert used == {"kernel/queues/sch_link.c", "kernel/queues/sch_receive.c"}


def test_packets_that_leave_together_are_judged_as_one() -> None:
    transit = sure_transit([10, 30, 30, 40], [1, 5, 9, 35], [100, 60, 40, 100])
    bursts = transit.bursts
    assert [list(each) for each in (bursts.left_ns, bursts.arrived_ns, bursts.length)] == [
        [10, 30, 40],
        [1, 9, 35],
        [100, 100, 100],
    ]
