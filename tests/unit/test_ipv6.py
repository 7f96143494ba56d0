"""IPv6 in plans: addresses of both versions, what goes over which, and what is refused."""

from __future__ import annotations

import dataclasses
import socket
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.plan.check import validate
from testbed.plan.plan import Plan, make_plan
from testbed.runs.sources import parts_of
from testbed.scenario.call import Call
from testbed.scenario.losses import Loss, LossEvents
from testbed.scenario.model import Flow, FlowKind, Scenario, plain
from testbed.scenario.named_networks import LinkSettings, NamedNetwork, NetworkName
from testbed.scenario.network import Direction, Graph, Link, Node, NodeKind, Port, Queue
from testbed.scenario.reading import read_document
from testbed.trial.parts.losses import listing, rules_of
from testbed.trial.parts.sampling import SocketProbe
from tests.scenarios import router

NECK = Direction(rate_mbit=5, delay_ms=10, queue=Queue("pfifo", limit_packets=30))
PORTS = (Port(address="10.9.0.1/24", ipv6_address="2001:0db8:00ff::1/64"), Port())


def network(ip: int = 6, ports: tuple[Port, ...] = ()) -> Graph:
    return Graph(
        nodes=(Node("h1"), Node("r", NodeKind.ROUTER), Node("s", NodeKind.SWITCH), Node("h2")),
        links=(
            Link(("h1", "r"), Direction(delay_ms=1), ports=ports),
            Link(("r", "s"), NECK),
            Link(("s", "h2"), Direction()),
        ),
        ip=ip,
    )


def tcp(name: str = "tcp", **fields: Any) -> Flow:
    return Flow(name, FlowKind.TCP, "h1", "h2", variant="cubic", **fields)


def scenario(*flows: Flow, graph: Graph | None = None) -> Scenario:
    return Scenario("test", graph or network(), flows or (tcp(),), duration_s=3)


def commands(plan: Plan, node: str) -> list[str]:
    return [" ".join(each.argv) for each in plan.setup if each.node == node]


def test_nodes_have_addresses_of_both_versions() -> None:
    of_h1 = commands(make_plan(scenario()), "h1")
    for line in (
        "ip address add 10.0.0.1/24 dev h1-eth0",
        "ip address add 2001:db8:1::1/64 dev h1-eth0 nodad",
        "ip route add default via 10.0.0.2",
        "ip route add ::/0 via 2001:db8:1::2",
    ):
        assert line in of_h1
    assert not any("2001:" in line for line in commands(make_plan(scenario()), "s"))
    four = make_plan(scenario(graph=network(ip=4)))
    assert not any("2001:" in line for node in four.nodes for line in commands(four, node))


def test_nodes_send_nothing_of_their_own() -> None:
    """No router solicitations, no duplicate address detection, no link-local addresses."""
    sysctls = {node: dict(values) for node, values in make_plan(scenario()).sysctls}
    for name, value in (("router_solicitations", "0"), ("accept_dad", "0"), ("addr_gen_mode", "1")):
        assert sysctls["h1"][f"net.ipv6.conf.h1-eth0.{name}"] == value
    assert sysctls["r"]["net.ipv6.conf.all.forwarding"] == "1"
    assert sysctls["control"]["net.ipv6.conf.all.disable_ipv6"] == "1"
    assert "net.ipv6.conf.all.forwarding" not in sysctls["h1"]


def test_data_go_over_ipv6_and_the_control_connection_over_ipv4() -> None:
    plan = make_plan(scenario(tcp(), tcp("old", ip=4)))
    six, four = plan.flows
    assert (six.src_address, six.dst_address) == ("2001:db8:1::1", "2001:db8:2::2")
    assert dict(six.client_env)["CONTROL_ADDRESS"] == four.dst_address == "10.0.1.2"
    assert "CONTROL_ADDRESS" not in dict(four.client_env)
    assert "testbed-control.so" in parts_of(plan)
    assert "testbed-control.so" not in parts_of(make_plan(router()))
    assert any("route replace 10.0.1.2 dev h1-ctl" in line for line in commands(plan, "h1"))
    assert not any("2001:" in line for line in commands(plan, "control"))


def test_addresses_are_as_captures_write_them() -> None:
    ports = (PORTS[0], Port(address="10.9.0.2/24", ipv6_address="2001:db8:ff:0::2/64"))
    (flow,) = make_plan(scenario(graph=network(ports=ports))).flows
    assert flow.src_address == "2001:db8:ff::1"


def test_a_sockets_probe_is_of_its_version() -> None:
    ends = ("2001:db8::1", 40001, "2001:db8::2", 5201)
    request = SocketProbe("tcp", "h1", *ends).request
    assert socket.inet_pton(socket.AF_INET6, ends[0]) in request
    assert request[16] == socket.AF_INET6  # behind the head of a netlink message


def test_a_dropper_knows_its_connection_by_the_whole_address() -> None:
    loss = Loss(events=LossEvents(0.01))
    (dropper,) = make_plan(scenario(tcp(loss=loss))).losses
    code = listing(dropper, rules_of(dropper), 0, 0)
    assert sum(getattr(line, "constant", 0) == 0x20010DB8 for line in code) == 2
    assert any(getattr(line, "constant", 0) == 0x86DD for line in code)


@pytest.mark.parametrize("kind", NetworkName)
def test_every_named_network_speaks_ipv6(kind: NetworkName) -> None:
    neck = LinkSettings(rate_mbit=5, delay_ms=10, queue=Queue("pfifo", limit_packets=30))
    hosts = 1 if kind is NetworkName.ACCESS_LINK else 2
    graph = NamedNetwork(kind, neck, hosts, ip=6).graph()
    first, *_, last = (node.name for node in graph.nodes if node.kind is NodeKind.HOST)
    flow = Flow("tcp", FlowKind.TCP, first, last, variant="cubic")
    plan = make_plan(scenario(flow, graph=graph))
    assert plan.flows[0].dst_address.startswith("2001:db8:")
    routers = [node.name for node in graph.nodes if node.kind is NodeKind.ROUTER]
    for node in (first, last, *routers[1:]):  # the first knows all its neighbours
        assert any("route add" in line and "2001:db8:" in line for line in commands(plan, node))
    four = NamedNetwork(kind, neck, hosts)
    assert "ip" not in plain(four) and "ip" not in plain(four.graph())


def test_a_named_networks_version_is_called_as_it_was_typed() -> None:
    document = {
        "experiment": "test",
        "topology": {"kind": "dumbbell", "bottleneck": plain(NECK), "ip": 5},
        "flows": [{"name": "t", "kind": "tcp", "src": "sender1", "dst": "receiver1",
                   "variant": "cubic"}],
        "duration_s": 3,
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"^scenario: topology\.ip: 5: 4 or 6$"):
        read_document(document)


def test_a_network_of_ipv4_is_written_as_before() -> None:
    written = plain(network(ip=4))
    assert "ip" not in written and "ipv6_address" not in str(written)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (scenario(graph=network(ip=5)), "network.ip: 5: 4 or 6"),
        (scenario(tcp(ip=6), graph=network(ip=4)), "flows[0].ip: 6: give the network `ip: 6`"),
        (scenario(tcp(ip=7)), "flows[0].ip: 7: 4 or 6"),
        (
            scenario(Flow("cbr", FlowKind.CBR, "h1", "h2", rate_mbit=1, packet_bytes=500)),
            "flows[0]: a flow of kind cbr is over IPv4: give it `ip: 4`",
        ),
        (scenario(graph=network(ip=4, ports=PORTS)), "give the network `ip: 6`"),
        (
            scenario(graph=network(ports=(Port(ipv6_address="fe80::1/64"), Port()))),
            "'fe80::1/64': not a host's address",
        ),
        (scenario(graph=network(ports=PORTS)), "have no router between them"),
    ],
)
def test_what_cannot_be_is_refused(broken: Scenario, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(broken)
    assert said in caught.value.message


def test_calls_and_programs_go_over_both() -> None:
    call = Flow("call", FlowKind.CALL, "h1", "h2", call=Call())
    for ip in (None, 4):
        validate(scenario(dataclasses.replace(call, ip=ip)))
