"""Networks as graphs: paths, routes, builders, faults, and what is captured of several queues."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

import pytest

from analysis.report.network_drawing import drawing
from experiments.parvez_mahanti_williamson import newreno_background
from testbed.errors import UsageError
from testbed.plan.addresses import topo_of
from testbed.plan.network import Network, build_network
from testbed.plan.plan import make_plan
from testbed.plan.validate import validate
from testbed.scenario.builders import graph_of
from testbed.scenario.model import (
    Bottleneck,
    Direction,
    Flow,
    FlowKind,
    Graph,
    GraphLink,
    GraphNode,
    NodeKind,
    Path,
    Queue,
    Scenario,
    Topology,
    TopologyKind,
)
from testbed.scenario.shortest import Edge, paths

QUEUE = Queue("pfifo", limit_packets=20)
SLOW, SLOWER = Direction(4, 5, QUEUE), Direction(2, 5, QUEUE)
NECK = Bottleneck(4, QUEUE, delay_ms=5)


def graph(kinds: str, *links: tuple[str, Direction] | str, rtt_ms: float | None = None) -> Graph:
    """`a b=router`, then links: `a-b`, or with how they are."""
    nodes = []
    for text in kinds.split():
        name, _, kind = text.partition("=")
        nodes.append(GraphNode(name, NodeKind(kind or "host")))
    made = [
        GraphLink(tuple((each if isinstance(each, str) else each[0]).split("-")), *how)
        for each in links
        for how in [() if isinstance(each, str) else (each[1],)]
    ]
    return Graph(tuple(nodes), tuple(made), rtt_ms)


def scenario(topology: Topology | Graph, *ends: str, duration_s: float = 5) -> Scenario:
    """A flow for each `a-b`."""
    flows = (each.split("-") for each in ends)
    return Scenario(
        experiment="test",
        topology=topology,
        flows=tuple(
            Flow(f"f{number}", FlowKind.TCP, src, dst, variant="cubic")
            for number, (src, dst) in enumerate(flows)
        ),
        duration_s=duration_s,
    )


RING = graph(
    "h1 h2 h3 s1=switch r1=router r2=router r3=router",
    "h1-s1",
    "h2-s1",
    ("s1-r1", Direction(delay_ms=1)),
    ("r1-r2", SLOW),
    ("r1-r3", Direction(delay_ms=1)),
    ("r3-r2", Direction(delay_ms=1)),
    ("r3-h3", SLOWER),
)


def names(network: Network, src: str, dst: str) -> str:
    return " ".join([src, *(hop.into.node for hop in network.path(src, dst))])


def test_paths_have_few_hops_then_little_delay_then_the_first_links() -> None:
    def found(*edges: tuple[str, str, float]) -> list[int]:
        known = [Edge((one, other), delay_ms) for one, other, delay_ms in edges]
        return [number for number, _ in paths(known, {"x", "y", "z"}, "a")["b"]]

    round_about = ("a", "x", 1), ("x", "y", 1), ("y", "b", 1)
    assert found(*round_about, ("a", "z", 9), ("z", "b", 9)) == [3, 4]
    assert found(("a", "x", 3), ("x", "b", 3), ("a", "y", 1), ("y", "b", 4)) == [2, 3]
    assert found(("a", "x", 1), ("a", "y", 1), ("y", "b", 1), ("x", "b", 1)) == [0, 3]


def test_hosts_pass_nothing_on() -> None:
    known = [Edge(("a", "b"), 0), Edge(("b", "c"), 0)]
    assert "c" not in paths(known, set(), "a")
    assert "c" in paths(known, {"b"}, "a")


@pytest.mark.parametrize("ends", [("h1", "h3"), ("h2", "r2"), ("r2", "h3"), ("h1", "h2")])
def test_routes_lead_along_the_path_and_back(ends: tuple[str, str]) -> None:
    """In a network with a loop of routers and a switch."""
    network = build_network(RING)
    for src, dst in (ends, ends[::-1]):
        path = network.path(src, dst)
        assert [hop.link for hop in path] == [hop.link for hop in network.path(dst, src)][::-1]
        target, here, met = path[-1].into.ip, src, [src]
        while here != dst:
            here = _next(network, here, target)
            met.append(here)
        assert met == [src, *(h.into.node for h in path if h.into.node not in network.switches)]


def _next(network: Network, node: str, target: str) -> str:
    """The node that a packet goes to: a neighbour, or the gateway of the route."""
    owners = {end.ip: end.node for link in network.links for end in link.ends if end.address}
    own = {end.ip.rpartition(".")[0] for end in network.interfaces(node)}
    routes: Mapping[str, str] = dict(network.routes[node])
    if target.rpartition(".")[0] in own:
        return owners[target]
    return owners[routes.get(target) or routes["default"]]


def test_a_loop_is_crossed_by_the_shorter_way() -> None:
    network = build_network(RING)
    assert names(network, "h1", "r2") == "h1 s1 r1 r2"
    assert names(network, "r2", "h3") == "r2 r3 h3"


def test_a_switch_is_a_bridge_without_addresses() -> None:
    plan = make_plan(scenario(RING, "h1-h3"))
    setup = [" ".join(command.argv) for command in plan.setup if command.node == "s1"]
    assert "ip link set s1-eth2 master bridge" in setup
    assert not any("address add" in line for line in setup)
    neighbours = [" ".join(c.argv) for c in plan.setup if c.node == "h1" and "neigh" in c.argv]
    assert sum("dev h1-eth0" in line for line in neighbours) == 2  # the other host, the router


@pytest.mark.parametrize(
    "kind", [TopologyKind.ROUTER_BOTTLENECK, TopologyKind.DUMBBELL, TopologyKind.ACCESS_LINK]
)
def test_the_papers_graphs_are_their_topos(kind: TopologyKind) -> None:
    """Nodes and links in Mininet's order: addresses and interfaces' names are the Topo's."""
    hosts = 1 if kind is TopologyKind.ACCESS_LINK else 3
    topology = Topology(kind, NECK, hosts)
    topo = topo_of(topology)
    assert topo is not None
    made = graph_of(topology)
    assert [node.name for node in made.nodes] == list(topo.nodes(sort=False))
    assert [link.ends for link in made.links] == [tuple(each) for each in topo.links(sort=False)]


def test_the_builders_graphs() -> None:
    lot = build_network(Topology(TopologyKind.PARKING_LOT, NECK, 3, Path(delay_ms=1)))
    assert names(lot, "sender1", "receiver1") == (
        "sender1 router1 router2 router3 router4 receiver1"
    )
    assert names(lot, "sender3", "receiver3") == "sender3 router2 router3 receiver3"
    assert len(lot.observed) == 3 and lot.rtt_ms == 34
    chain = build_network(Topology(TopologyKind.CHAIN, NECK, 2, Path(delay_ms=1)))
    assert names(chain, "sender1", "receiver1") == "sender1 router1 router2 router3 receiver1"
    star = build_network(Topology(TopologyKind.STAR, NECK, 3, Path(delay_ms=1)))
    (up, down) = star.path("host1", "host3")
    assert up.shaper is None and down.shaper is not None and down.shaper.rate_mbit == 4
    assert star.path_rtt_ms("host1", "host3") == 12  # 1 up and 5 down, twice


def test_a_dumbbells_pairs_have_round_trips_of_their_own() -> None:
    topology = Topology(TopologyKind.DUMBBELL, NECK, 3, rtts_ms=(20, 50))
    network = build_network(topology)
    ways = [network.path_rtt_ms(f"sender{n}", f"receiver{n}") for n in (1, 2, 3)]
    assert ways == [20, 50, 20]
    short = dataclasses.replace(topology, rtts_ms=(4,))
    with pytest.raises(UsageError, match="rtts_ms: 4 is not between the bottleneck's own, 10"):
        validate(scenario(short, "sender1-receiver1"))


def test_each_direction_has_its_own_delay_and_losses() -> None:
    link = GraphLink(("r1", "h2"), SLOW, Direction(delay_ms=9))
    made = Graph(
        (GraphNode("h1"), GraphNode("r1", NodeKind.ROUTER), GraphNode("h2")),
        (GraphLink(("h1", "r1")), link),
    )
    plan = make_plan(scenario(made, "h1-h2"))
    words = {c.argv[4]: " ".join(c.argv) for c in plan.setup if "netem" in c.argv}
    assert "delay 9000.000us" in words["w1a"]  # towards r1
    assert "delay 5000.000us" in words["w1b"]  # towards h2
    assert plan.network.path_rtt_ms("h1", "h2") == 14


def test_every_observed_queue_is_captured_on_both_sides_and_sampled() -> None:
    topology = Topology(TopologyKind.PARKING_LOT, NECK, 2)
    plan = make_plan(scenario(topology, "sender1-receiver1", "sender2-receiver2"))
    roles = {each.interface: set(each.roles) for each in plan.captures}
    assert {queue.interface for queue in plan.queues if queue.sampled} == {
        "router1-eth0",
        "router2-eth1",
    }
    # of two alike, the first is the long flow's bottleneck
    assert {"queue1-out:f0", "bottleneck-out:f0", "bottleneck-out:f1"} <= roles["router1-eth0"]
    assert "queue2-in:f0" in roles["router2-eth0"]
    assert "queue2-out:f0" in roles["router2-eth1"]
    assert not any("queue" in role and "f1" in role for each in roles.values() for role in each)


def test_the_slowest_queue_is_the_flows_bottleneck() -> None:
    made = graph("a b=router c=router d", "a-b", ("b-c", SLOW), ("c-d", SLOWER))
    roles = {each.interface: each.roles for each in make_plan(scenario(made, "a-d")).captures}
    assert "bottleneck-out:f0" in roles["c-eth1"]
    assert "bottleneck-out:f0" not in roles["b-eth1"]
    assert made.bottleneck.rate_mbit == 2


def test_a_graph_travels_as_json_and_named_networks_as_ever() -> None:
    made = scenario(RING, "h1-h3")
    assert Scenario.from_json(made.to_json()) == made
    named = scenario(Topology(TopologyKind.DUMBBELL, NECK), "sender1-receiver1")
    assert Scenario.from_json(named.to_json()) == named
    assert "rtts_ms" not in named.to_json()  # which is younger than the papers' trials
    with pytest.raises(UsageError, match=r"topology\.nodes: missing"):
        Scenario.from_json(made.to_json().replace('"nodes"', '"knots"'))


A_B = ("a-r", ("r-b", SLOW))
FAULTS = {
    "not connected: no links lead from a to c, d": graph("a r=router b c d", *A_B, "c-d"),
    "flows[0]: b cannot be reached from a: only routers": graph("a r b", *A_B),
    "topology.links[4]: s3-s1 closes a loop of switches": graph(
        "a b s1=switch s2=switch s3=switch", ("a-s1", SLOW), "b-s2", "s1-s2", "s2-s3", "s3-s1"
    ),
    "the name 'a' is used 2 times": graph("a a r=router b", *A_B),
    "links[1].ends: unknown node 'x'": graph("a r=router b", "a-r", ("r-x", SLOW)),
    "r and a have a link already": graph("a r=router b", "a-r", "r-a", ("r-b", SLOW)),
    "no observed link has a rate_mbit": graph("a r=router b", "a-r", "r-b"),
    "'wires' is the name of a node of the testbed's own": graph("a wires b", *A_B),
    "'longername_1': a letter": graph("a longername_1 b", *A_B),
    "links[0].ends: 'a-a': two different nodes": graph("a r=router b", "a-a", *A_B),
    "queue.limit_bdp: no path has a delay": graph(
        "a r=router b", "a-r", ("r-b", Direction(4, 0, Queue("pfifo", limit_bdp=1)))
    ),
    "links[1].there.rate_mbit: 0 is not between": graph(
        "a r=router b", "a-r", ("r-b", Direction(0)), ("b-a", SLOW)
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_graphs_are_refused_in_one_line(fault: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(scenario(FAULTS[fault], "a-b"))
    assert fault in caught.value.message
    assert "\n" not in caught.value.message


def test_flows_cannot_end_at_switches_or_lose_what_no_queue_sees() -> None:
    with pytest.raises(UsageError, match="unknown node 's1'"):
        validate(scenario(RING, "h1-s1"))
    made = scenario(RING, "h1-h3")
    dropping = dataclasses.replace(made.flows[0], drops=(3,))
    with pytest.raises(UsageError, match=r"flows\[0\].drops: the first router"):
        validate(dataclasses.replace(made, flows=(dropping,)))


def test_sessions_wait_on_the_link_to_their_receiver() -> None:
    lot = graph("a r=router b c d", "a-r", "c-r", ("r-b", SLOW), ("r-d", Direction(delay_ms=1)))
    made = scenario(lot, "a-b")
    flows = (*made.flows, newreno_background.background(4, "c", "d"))
    (delays,) = make_plan(dataclasses.replace(made, flows=flows)).session_delays
    assert delays.link == "r-d"


def test_routers_of_a_drawing_stand_in_a_line() -> None:
    drawn = drawing([scenario(Topology(TopologyKind.PARKING_LOT, NECK, 3), "sender1-receiver1")])
    heights = re.findall(r'class="neck" x1="\d+" y1="([\d.]+)" x2="\d+" y2="([\d.]+)"', drawn)
    assert len(heights) == 3 and len({each for pair in heights for each in pair}) == 1
