"""The recipes: what each variant asks of its hosts, and what a profile changes of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.plan.check import validate
from testbed.plan.plan import Plan, make_plan
from testbed.plan.requirements import control_need
from testbed.scenario.model import Profile, Scenario
from testbed.scenario.network import Queue
from testbed.scenario.variants import LINUX_CONTROLS, PERIOD, VARIANTS, Variant, variant
from tests.scenarios import dumbbell, router


def settings(plan: Plan, node: str) -> dict[str, str]:
    return dict(next(values for name, values in plan.sysctls if name == node))


def parameters(plan: Plan) -> dict[str, int]:
    return {parameter.file: parameter.value for parameter in plan.parameters}


def ns2(name: str, **flow: object) -> Scenario:
    scenario = dataclasses.replace(router(variant=name), profile=Profile.NS2)
    changed = dataclasses.replace(scenario.flows[0], **flow)  # type: ignore[arg-type]
    return dataclasses.replace(scenario, flows=(changed,))


@pytest.mark.parametrize("name", VARIANTS)
def test_every_setting_of_a_recipe_reaches_its_host(name: str) -> None:
    recipe = VARIANTS[name]
    plan = make_plan(router(variant=name))
    sender, receiver = settings(plan, "sender1"), settings(plan, "receiver")
    assert sender["net.ipv4.tcp_congestion_control"] == recipe.control
    assert {key: sender[f"net.ipv4.{key}"] for key in recipe.sender} == dict(recipe.sender)
    assert {key: receiver[f"net.ipv4.{key}"] for key in recipe.receiver} == dict(recipe.receiver)
    written = {parameter.name: parameter.value for parameter in plan.parameters}
    assert written == dict(recipe.parameters)
    assert {parameter.control for parameter in plan.parameters} <= {recipe.control}
    back = {key: value for each in plan.routes for key, value in each.attributes}
    assert back == dict(recipe.receiver_route)
    assert {each.node for each in plan.routes} <= {"receiver"}


def test_the_classics_have_nothing_that_came_after_them() -> None:
    for name in ("tahoe", "reno", "newreno", "newreno-impatient", "vegas1995"):
        assert VARIANTS[name].sender == PERIOD
    assert VARIANTS["sack"].sender == {**PERIOD, "tcp_sack": "1"}


CONTROL = "net.ipv4.tcp_congestion_control"
SACK_ITSELF = {"net.ipv4.tcp_sack", "net.ipv4.tcp_dsack"}


def differing(one: Plan, other: Plan, node: str) -> set[str]:
    """The names of the settings that are not the same in both."""
    here, there = settings(one, node), settings(other, node)
    return {name for name in here | there if here.get(name) != there.get(name)}


def routes_without(recipe: Variant, plan: Plan) -> set[tuple[str, str, str, int | str]]:
    """Every attribute of a route but the variant's own."""
    return {
        (route.node, route.peer, name, value)
        for route in plan.routes
        for name, value in route.attributes
        if name not in recipe.receiver_route
    }


@pytest.mark.parametrize("name", VARIANTS)
def test_within_ns2_a_variant_differs_in_what_it_is_and_in_nothing_else(name: str) -> None:
    plan, newreno = make_plan(ns2(name)), make_plan(ns2("newreno"))
    by_marks = {"net.ipv4.tcp_ecn"} if VARIANTS[name].by_marks else set()
    own = SACK_ITSELF if name == "sack" else by_marks
    assert differing(plan, newreno, "sender1") <= {CONTROL} | own
    assert differing(plan, newreno, "receiver") <= own
    assert routes_without(VARIANTS[name], plan) == routes_without(VARIANTS[name], newreno)
    assert {name for name in SACK_ITSELF if settings(plan, "sender1").get(name) == "1"} <= own


@pytest.mark.parametrize("name", VARIANTS)
def test_within_modern_a_variant_differs_in_its_recipe_alone(name: str) -> None:
    plan, shipped = make_plan(router(variant=name)), make_plan(router(variant="linux-reno"))
    recipe = VARIANTS[name]
    own = {f"net.ipv4.{each}" for each in recipe.sender}
    theirs = {f"net.ipv4.{each}" for each in recipe.receiver}
    assert differing(plan, shipped, "sender1") <= {CONTROL} | own
    assert differing(plan, shipped, "receiver") <= theirs
    assert routes_without(recipe, plan) == routes_without(recipe, shipped)


def test_two_forms_of_newreno_differ_in_the_control_alone() -> None:
    one, other = VARIANTS["newreno"], VARIANTS["newreno-impatient"]
    assert (one.sender, one.receiver, one.parameters) == (
        other.sender,
        other.receiver,
        other.parameters,
    )
    assert one.control != other.control


@pytest.mark.parametrize("name", ["linux-reno", "cubic", "vegas", "veno", "bbr"])
def test_modern_variants_leave_the_stack_as_it_ships(name: str) -> None:
    assert VARIANTS[name].sender == VARIANTS[name].receiver == {}


def test_both_hosts_must_offer_an_option_for_it_to_be_used() -> None:
    options = {
        name: make_plan(router(variant=name)).flow("tcp").options
        for name in ("newreno", "sack", "cubic")
    }
    assert options == {
        "newreno": set(),
        "sack": {"sack"},
        "cubic": {"sack", "timestamps"},
    }
    assert make_plan(ns2("cubic")).flow("tcp").options == set()
    assert make_plan(ns2("sack")).flow("tcp").options == {"sack"}


def test_a_variant_by_the_kernels_name() -> None:
    assert variant("westwood").control == "westwood"
    assert variant("westwood").sender == {}


def test_symbols_of_the_controls() -> None:
    assert control_need("tahoe").symbol == "CONFIG_TCP_CONG_TAHOE"
    assert control_need("highspeed").symbol == "CONFIG_TCP_CONG_HSTCP"
    assert "reno" in LINUX_CONTROLS


def test_ecn_is_the_queues_wish_and_the_variants_ability() -> None:
    marking = Queue("codel", limit_packets=100, ecn=True)
    wishes = {
        name: settings(make_plan(router(variant=name, queue=marking)), "sender1")
        for name in ("reno", "linux-reno")
    }
    assert wishes["reno"]["net.ipv4.tcp_ecn"] == "0"
    assert wishes["linux-reno"]["net.ipv4.tcp_ecn"] == "1"
    shy = dataclasses.replace(router(variant="linux-reno", queue=marking), asks_ecn=False)
    assert settings(make_plan(shy), "sender1")["net.ipv4.tcp_ecn"] == "2"  # as Linux ships
    assert any("ecn" in command.argv for command in make_plan(shy).setup)  # the queue marks


def test_ns2_sets_every_host_that_has_flows_and_their_routes() -> None:
    plan = make_plan(ns2("newreno"))
    for node in ("sender1", "receiver"):
        assert settings(plan, node)["net.ipv4.tcp_timestamps"] == "0"
        assert settings(plan, node)["net.ipv4.tcp_moderate_rcvbuf"] == "0"
    routes = {(route.node, route.peer): dict(route.attributes) for route in plan.routes}
    assert routes == {
        ("sender1", "10.0.0.2"): {"initcwnd": 1},
        ("receiver", "10.0.1.2"): {"quickack": 1},
    }
    words = " ".join(plan.flow("tcp").client.argv)
    assert "--set-mss 1000" in words


def test_the_flows_own_wishes_go_before_the_profiles() -> None:
    plan = make_plan(ns2("newreno", mss=500, window_bytes=20_000, rto_min_ms=130))
    assert "--set-mss 500" in " ".join(plan.flow("tcp").client.argv)
    routes = {route.node: dict(route.attributes) for route in plan.routes}
    assert routes["receiver"] == {"quickack": 1, "window": 20_000}
    assert routes["sender1"] == {"initcwnd": 1, "rto_min": 130}
    (command,) = (each.argv for each in plan.setup if "rto_min" in each.argv)
    assert command[-2:] == ("rto_min", "130ms")


def test_what_the_receiver_offers_first_and_answers_at_once_are_its_routes() -> None:
    plan = make_plan(ns2("newreno", initrwnd=4))
    assert {r.node: dict(r.attributes) for r in plan.routes}["receiver"] == {
        "initrwnd": 4,
        "quickack": 1,
    }
    scenario = router(variant="cubic")
    flows = tuple(dataclasses.replace(flow, quickack=True) for flow in scenario.flows)
    (route,) = make_plan(dataclasses.replace(scenario, flows=flows)).routes
    assert (route.node, route.attributes) == ("receiver", (("quickack", 1),))


def test_ns2_vegas_and_cubic() -> None:
    folder = "/sys/module/tcp_{}/parameters/{}"
    assert parameters(make_plan(ns2("vegas"))) == {
        folder.format("vegas", "alpha"): 1,
        folder.format("vegas", "beta"): 3,
        folder.format("vegas", "gamma"): 1,
    }
    assert parameters(make_plan(ns2("cubic"))) == {folder.format("cubic", "hystart"): 0}


def test_modern_needs_no_routes_of_its_own() -> None:
    assert make_plan(router()).routes == ()


def to_one_receiver(one: str, other: str) -> Scenario:
    scenario = dumbbell()
    flows = [
        dataclasses.replace(flow, variant=name, dst="receiver1")
        for flow, name in zip(scenario.flows, (one, other), strict=False)
    ]
    return dataclasses.replace(scenario, flows=tuple(flows))


def test_variants_that_ask_different_things_of_one_receiver() -> None:
    validate(to_one_receiver("sack", "sack"))
    validate(to_one_receiver("sack", "newreno"))  # no SACK, so no D-SACK either
    with pytest.raises(UsageError) as caught:
        validate(to_one_receiver("sack", "cubic"))
    assert "one needs another tcp_dsack at receiver1 than two" in caught.value.message


def both_ways(there: str, back: str) -> Scenario:
    """A flow each way between two hosts."""
    scenario = router(variant=there)
    (flow,) = scenario.flows
    other = dataclasses.replace(flow, name="back", src=flow.dst, dst=flow.src, variant=back)
    return dataclasses.replace(scenario, flows=(flow, other))


def test_a_receiver_that_answers_as_dctcp_sends_nothing_else_the_same_way() -> None:
    validate(both_ways("dctcp", "dctcp"))
    validate(both_ways("cubic", "vegas"))
    with pytest.raises(UsageError, match="answers tcp with dctcp, and back sends cubic"):
        validate(both_ways("dctcp", "cubic"))


def test_dctcp_without_marks_is_warned_about() -> None:
    marking = Queue("codel", limit_packets=100, ecn=True)
    (warning,) = make_plan(router(variant="dctcp", delay_ms=5)).warnings
    assert "dctcp goes by marks" in warning
    assert make_plan(router(variant="dctcp", delay_ms=5, queue=marking)).warnings == ()


@pytest.mark.parametrize("wish", ["window_bytes", "rto_min_ms"])
def test_one_window_and_one_least_timer_a_pair_of_hosts(wish: str) -> None:
    scenario = router()
    flow = scenario.flows[0]
    changes: dict[str, Any] = {wish: 900}
    second = dataclasses.replace(flow, name="two", **changes)
    with pytest.raises(UsageError, match=f"one {wish} per pair"):
        validate(dataclasses.replace(scenario, flows=(flow, second)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"drops": (3, 2)}, "rising order"),
        ({"drops": (2, 2)}, "rising order"),
        ({"drops": (0,)}, "0 is not between 1 and 536870912"),
        ({"drops": (1,), "parallel": 2}, "which of 2 parallel"),
        ({"drops": tuple(range(1, 1002))}, "at most 1000"),
        ({"window_bytes": 0}, "window_bytes"),
        ({"rto_min_ms": 0}, "rto_min_ms: 0 is not between"),
    ],
)
def test_faults(changes: dict[str, object], said: str) -> None:
    scenario = router()
    flow = dataclasses.replace(scenario.flows[0], **changes)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=said):
        validate(dataclasses.replace(scenario, flows=(flow,)))
