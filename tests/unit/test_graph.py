"""Networks as graphs: paths, routes, builders, faults, and what is captured of several queues."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest

from analysis.report.network_drawing import drawing
from experiments.parvez_mahanti_williamson import newreno_background
from testbed.errors import UsageError
from testbed.own_files.scenario_file import Document, in_document
from testbed.plan.check import validate
from testbed.plan.network import Network, build_network
from testbed.plan.plan import make_plan
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import (
    LinkSettings,
    access_link,
    chain,
    dumbbell,
    parking_lot,
    router_bottleneck,
    star,
)
from testbed.scenario.network import (
    Direction,
    Graph,
    Link,
    Node,
    NodeKind,
    Port,
    Queue,
    shortest_paths,
)
from testbed.scenario.reading import read_document, read_scenario
from topologies.access_link import AccessLink
from topologies.dumbbell import Dumbbell
from topologies.router_bottleneck import RouterBottleneck

QUEUE = Queue("pfifo", limit_packets=20)
SLOW, SLOWER = Direction(4, 5, QUEUE), Direction(2, 5, QUEUE)
NECK = LinkSettings(4, queue=QUEUE, delay_ms=5)


def graph(kinds: str, *links: tuple[str, Direction] | str, rtt_ms: float | None = None) -> Graph:
    """`a b=router`, then links: `a-b`, or with how they are."""
    nodes = []
    for text in kinds.split():
        name, _, kind = text.partition("=")
        nodes.append(Node(name, NodeKind(kind or "host")))
    made = [
        Link(tuple((each if isinstance(each, str) else each[0]).split("-")), *how)
        for each in links
        for how in [() if isinstance(each, str) else (each[1],)]
    ]
    return Graph(tuple(nodes), tuple(made), rtt_ms=rtt_ms)


def scenario(network: Graph, *ends: str, duration_s: float = 5) -> Scenario:
    """A flow for each `a-b`."""
    flows = (each.split("-") for each in ends)
    return Scenario(
        experiment="test",
        network=network,
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
        links = [Link((one, other), Direction(delay_ms=ms)) for one, other, ms in edges]
        return [number for number, _ in shortest_paths(links, {"x", "y", "z"}, "a")["b"]]

    round_about = ("a", "x", 1), ("x", "y", 1), ("y", "b", 1)
    assert found(*round_about, ("a", "z", 9), ("z", "b", 9)) == [3, 4]
    assert found(("a", "x", 3), ("x", "b", 3), ("a", "y", 1), ("y", "b", 4)) == [2, 3]
    assert found(("a", "x", 1), ("a", "y", 1), ("y", "b", 1), ("x", "b", 1)) == [0, 3]


def test_hosts_pass_nothing_on() -> None:
    links = [Link(("a", "b")), Link(("b", "c"))]
    assert "c" not in shortest_paths(links, set(), "a")
    assert "c" in shortest_paths(links, {"b"}, "a")


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
    ends = [hop.out for both in network.hops for hop in both]
    owners = {end.ip: end.node for end in ends if end.address}
    own = {end.ip.rpartition(".")[0] for end in network.interfaces(node)}
    routes = {route.destination: route.gateway for route in network.routes[node]}
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
    ("network", "topo"),
    [
        (router_bottleneck(NECK, 3), RouterBottleneck(senders=3)),
        (dumbbell(NECK, 3), Dumbbell(pairs=3)),
        (access_link(NECK), AccessLink()),
    ],
    ids=["router-bottleneck", "dumbbell", "access-link"],
)
def test_the_papers_networks_have_the_names_and_addresses_of_their_topos(
    network: Graph, topo: Any
) -> None:
    built = build_network(network)
    assert set(built.nodes) == set(topo.nodes())
    interfaces = {}
    for one, other, details in topo.links(withInfo=True):
        for end, node in enumerate((one, other), start=1):
            own = details.get(f"params{end}", {}).get("ip")
            address = own or topo.nodeInfo(node)["ip"]
            interfaces[f"{node}-eth{details[f'port{end}']}"] = address
    assert {h.out.name: h.out.address for both in built.hops for h in both} == interfaces
    for node in topo.nodes():
        info = topo.nodeInfo(node)
        routes = list(info.get("routes", ()))
        if default := info.get("defaultRoute"):
            routes.append(("default", default.removeprefix("via ")))
        assert [(route.destination, route.gateway) for route in built.routes[node]] == routes


def test_the_builders_graphs() -> None:
    lot = build_network(parking_lot(NECK, 3, LinkSettings(delay_ms=1)))
    assert names(lot, "sender1", "receiver1") == (
        "sender1 router1 router2 router3 router4 receiver1"
    )
    assert names(lot, "sender3", "receiver3") == "sender3 router2 router3 receiver3"
    assert sum(link.is_observed for link in lot.graph.links) == 3
    assert lot.graph.longest_rtt_ms == 34
    row = build_network(chain(NECK, 2, LinkSettings(delay_ms=1)))
    assert names(row, "sender1", "receiver1") == "sender1 router1 router2 router3 receiver1"
    spokes = build_network(star(NECK, 3, LinkSettings(delay_ms=1)))
    (up, down) = spokes.path("host1", "host3")
    assert not up.is_shaped and down.rate_mbit == 4
    assert spokes.path_rtt_ms("host1", "host3") == 12  # 1 up and 5 down, twice


def test_a_dumbbells_pairs_have_round_trips_of_their_own() -> None:
    network = build_network(dumbbell(NECK, 3, rtts_ms=(20, 50)))
    ways = [network.path_rtt_ms(f"sender{n}", f"receiver{n}") for n in (1, 2, 3)]
    assert ways == [20, 50, 20]
    with pytest.raises(UsageError, match="rtts_ms: 4 is less than the bottleneck's own, 10"):
        dumbbell(NECK, 3, rtts_ms=(4,))


def test_each_direction_has_its_own_delay_and_losses() -> None:
    link = Link(("r1", "h2"), SLOW, Direction(delay_ms=9))
    made = Graph(
        (Node("h1"), Node("r1", NodeKind.ROUTER), Node("h2")),
        (Link(("h1", "r1")), link),
    )
    plan = make_plan(scenario(made, "h1-h2"))
    words = {c.argv[4]: " ".join(c.argv) for c in plan.setup if "netem" in c.argv}
    assert "delay 9000.000us" in words["w1a"]  # towards r1
    assert "delay 5000.000us" in words["w1b"]  # towards h2
    assert plan.network.path_rtt_ms("h1", "h2") == 14


def test_every_observed_queue_is_captured_on_both_sides_and_sampled() -> None:
    topology = parking_lot(NECK, 2)
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


def test_networks_travel_as_json() -> None:
    for made in (scenario(RING, "h1-h3"), scenario(dumbbell(NECK), "sender1-receiver1")):
        assert read_scenario(made.to_json()) == made
        with pytest.raises(UsageError, match=r"network\.nodes: missing"):
            read_scenario(made.to_json().replace('"nodes"', '"knots"'))


NAMED = {
    "kind": "dumbbell",
    "hosts": 2,
    "bottleneck": {"rate_mbit": 4, "delay_ms": 5, "queue": {"discipline": "pfifo"}},
}


def with_named(**changes: Any) -> dict[str, Any]:
    data = json.loads(scenario(dumbbell(NECK, 2), "sender1-receiver1").to_json())
    del data["network"]
    named: dict[str, Any] = json.loads(json.dumps(NAMED))
    named["bottleneck"]["queue"]["limit_packets"] = 20
    return {**data, "topology": {**named, **changes}}


def test_a_file_may_name_its_network() -> None:
    assert read_document(with_named()).scenario == scenario(dumbbell(NECK, 2), "sender1-receiver1")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hosts": 0}, "topology.hosts: 0 is not between 1 and 99"),
        ({"hosts": 100}, "topology.hosts: 100 is not between 1 and 99"),
        ({"hosts": "two"}, "topology.hosts: expected a valid integer, got 'two'"),
        ({"kind": "chain", "rtts_ms": [20]}, "topology.rtts_ms: a dumbbell's"),
        ({"kind": "access-link"}, "topology.hosts: 2: an access link has one station"),
        ({"links": {"left-right": {}}}, "topology.links: unknown link 'left-right'"),
        ({"links": {"x" * 5000: {}}}, "topology.links: unknown link 'xxxx"),
        ({"access": {"delay_ms": -1}}, "topology.access.delay_ms: -1 is not between"),
        ({"access": {"reverse": {"jitter_ms": 1}}}, "topology.access.reverse.jitter_ms: 1 is not"),
        ({"links": {"sender2-left": {"rate_mbit": 0}}}, "topology.links.sender2-left.rate_mbit: 0"),
    ],
)
def test_faults_of_a_named_network_have_the_files_fields(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        in_document(Document(with_named(**changes)), "file")
    assert caught.value.message.startswith(f"file: {said}")


def test_a_network_has_one_form() -> None:
    data = json.loads(scenario(RING, "h1-h3").to_json())
    with pytest.raises(UsageError, match="topology: there is a network, too"):
        read_document({**data, "topology": NAMED})
    with pytest.raises(UsageError, match="nodes and links stand under `network`"):
        read_document({**data, "topology": data.pop("network")})


A_B = ("a-r", ("r-b", SLOW))
FAULTS = {
    "not connected: no links lead from a to c, d": graph("a r=router b c d", *A_B, "c-d"),
    "flows[0]: b cannot be reached from a: only routers": graph("a r b", *A_B),
    "network.links[4]: s3-s1 closes a loop of switches": graph(
        "a b s1=switch s2=switch s3=switch", ("a-s1", SLOW), "b-s2", "s1-s2", "s2-s3", "s3-s1"
    ),
    "the name 'a' is used 2 times": graph("a a r=router b", *A_B),
    "links[1].ends: unknown node 'x'": graph("a r=router b", "a-r", ("r-x", SLOW)),
    "r and a have a link already": graph("a r=router b", "a-r", "r-a", ("r-b", SLOW)),
    "no observed link has a rate_mbit": graph("a r=router b", "a-r", "r-b"),
    "'wires' is a name that the testbed uses itself": graph("a wires b", *A_B),
    "'longername_1': a letter": graph("a longername_1 b", *A_B),
    "links[0].ends: 'a-a': two different nodes": graph("a r=router b", "a-a", *A_B),
    "queue.limit_bdp: no path has a delay": graph(
        "a r=router b", "a-r", ("r-b", Direction(4, 0, Queue("pfifo", limit_bdp=1)))
    ),
    "links[1].forward.rate_mbit: 0 is not between": graph(
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
    drawn = drawing([scenario(parking_lot(NECK, 3), "sender1-receiver1")])
    heights = re.findall(r'class="neck" x1="\d+" y1="([\d.]+)" x2="\d+" y2="([\d.]+)"', drawn)
    assert len(heights) == 3 and len({each for pair in heights for each in pair}) == 1


def test_networks_on_both_sides_of_a_router_do_not_overlap() -> None:
    """One may lie within the other, in either order."""
    wide = (Port(address="10.9.0.1/16"), Port(address="10.9.0.2/16"))
    narrow = (Port(address="10.9.7.1/24"), Port(address="10.9.7.2/24"))
    for first, second in ((wide, narrow), (narrow, wide)):
        links = (Link(("a", "r"), Direction(), ports=first), Link(("r", "b"), NECK, ports=second))
        graph = Graph((Node("a"), Node("r", NodeKind.ROUTER), Node("b")), links)
        flow = Flow("tcp", FlowKind.TCP, "a", "b", variant="cubic")
        with pytest.raises(UsageError, match="have a router between them, and are in one network"):
            validate(Scenario("test", graph, (flow,), duration_s=3))
