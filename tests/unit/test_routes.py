"""Routes of a network: paths that are not the shortest, and ways back that are others."""

from __future__ import annotations

import dataclasses

import pytest

from testbed.errors import UsageError
from testbed.plan.check import validate
from testbed.plan.network import build_network
from testbed.plan.plan import make_plan
from testbed.scenario.model import Flow, FlowKind, Scenario, plain
from testbed.scenario.network import Direction, Graph, Link, Node, NodeKind, Queue

FAST = Direction(rate_mbit=10, delay_ms=5, queue=Queue("pfifo", limit_packets=100))


def network(*routes: tuple[str, ...]) -> Graph:
    """Two routers with a link of 5 ms, and a satellite with a way down of 100 and up of 250 ms."""
    return Graph(
        nodes=(
            *(Node("h1"), Node("h2")),
            *(Node(name, NodeKind.ROUTER) for name in ("a", "b", "sat")),
        ),
        links=(
            Link(("h1", "a"), Direction(delay_ms=1)),
            Link(("a", "b"), FAST),
            Link(("a", "sat"), dataclasses.replace(FAST, delay_ms=100), Direction(delay_ms=250)),
            Link(("sat", "b"), Direction()),
            Link(("b", "h2"), Direction(delay_ms=1)),
        ),
        routes=routes,
    )


def scenario(*routes: tuple[str, ...]) -> Scenario:
    flow = Flow("down", FlowKind.TCP, "h1", "h2", variant="cubic")
    return Scenario("test", network(*routes), (flow,), 5)


DOWN = ("h1", "a", "sat", "b", "h2")


def nodes_on_way(graph: Graph, src: str, dst: str) -> list[str]:
    return [hop.into.node for hop in build_network(graph).path(src, dst)]


def test_a_route_holds_for_one_direction() -> None:
    graph = network(DOWN)
    assert nodes_on_way(graph, "h1", "h2") == ["a", "sat", "b", "h2"]
    assert nodes_on_way(graph, "h2", "h1") == ["b", "a", "h1"]
    # 1 + 100 + 0 + 1 there, 1 + 5 + 1 back
    assert graph.path("h1", "h2").rtt_ms == graph.path("h2", "h1").rtt_ms == 109
    assert network().path("h1", "h2").rtt_ms == 14
    assert graph.longest_rtt_ms == 109


def test_all_packets_to_a_node_follow_its_routes() -> None:
    """From the middle of the way, and from a node beside it."""
    graph = network(("a", "sat", "b", "h2"))
    assert nodes_on_way(graph, "h1", "h2") == ["a", "sat", "b", "h2"]
    assert nodes_on_way(graph, "sat", "h2") == ["b", "h2"]
    assert nodes_on_way(graph, "h1", "b") == ["a", "b"]


def test_routers_get_these_routes_and_filter_no_addresses() -> None:
    plan = make_plan(scenario(DOWN))
    commands = [each.argv for each in plan.setup if each.node == "a"]
    assert ("ip", "route", "add", "default", "via", "10.0.2.2") in commands
    sysctls = {node: dict(values) for node, values in plan.sysctls}
    assert sysctls["b"]["net.ipv4.conf.b-eth0.rp_filter"] == "0"
    assert not any("b-eth0" in name for name in dict(make_plan(scenario()).sysctls)["b"])


def test_a_network_without_routes_is_written_as_before() -> None:
    assert "routes" not in plain(network())
    assert repr(network()).endswith("rtt_ms=None)")
    assert repr(network(DOWN)).endswith(f"rtt_ms=None, routes={(DOWN,)})")


@pytest.mark.parametrize(
    ("routes", "said"),
    [
        ([("h1",)], "routes[0]: the names of all nodes on the way"),
        ([("h1", "a", "bb", "h2")], "routes[0]: unknown node 'bb'"),
        ([("h1", "a", "h2")], "routes[0]: there is no link from a to h2"),
        ([("a", "h1", "a")], "routes[0]: the names of all nodes on the way"),
        (
            [("a", "sat", "b", "h2"), ("h1", "a", "b", "h2")],
            "routes[1]: to h2, a sends by b, and by routes[0] by sat",
        ),
        ([("b", "sat", "a", "h1"), ("a", "sat", "b", "h1")], "there is no link from b to h1"),
        ([("a", "sat", "b", "h2"), ("sat", "a", "b", "h2")], "routes[1]: to h2, a sends by b"),
        ([("a", "sat"), ("sat", "a", "h1")], None),
    ],
)
def test_routes_that_cannot_be_are_refused(routes: list[tuple[str, ...]], said: str | None) -> None:
    if said is None:
        validate(scenario(*routes))
        return
    with pytest.raises(UsageError) as caught:
        validate(scenario(*routes))
    assert said in caught.value.message


def test_a_host_of_two_links_sends_and_receives_over_one() -> None:
    more = (*network().links, Link(("h1", "sat"), Direction(delay_ms=200)))
    way = ("h2", "b", "sat", "h1")
    both = dataclasses.replace(network(("h1", "a", "b", "h2"), way), links=more)
    with pytest.raises(UsageError, match="h1 sends over h1-a and receives over h1-sat"):
        validate(dataclasses.replace(scenario(), network=both))
