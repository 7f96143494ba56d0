"""Mininet's Topo classes as graphs: Mininet's own, its examples, and those that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cli.entry import main
from testbed.errors import UsageError
from testbed.own_files.scenario_file import document_from_options, with_topo_graph
from testbed.own_files.topo_graph import topo_graph
from testbed.plan.check import validate
from testbed.plan.network import build_network
from testbed.plan.plan import make_plan
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import Scenario
from testbed.scenario.network import Direction, NodeKind, Queue
from testbed.scenario.reading import read_document, read_scenario

EXAMPLES = "/usr/share/doc/mininet/examples"
LINK = "bw=10,delay=5ms"


def planned(topo: str, link: str, *flows: str) -> Scenario:
    scenario = read_document(document_from_options(topo, link, flows, 5.0).data).scenario
    make_plan(scenario)
    return scenario


RUNS = {  # a Topo, and how many hosts it has
    "minimal": 2,
    "single,3": 3,
    "reversed,3": 3,
    "linear,4": 4,
    "linear,k=2,n=2": 4,
    "tree,depth=2,fanout=2": 4,
    "tree,1,64": 64,
    "mininet.topolib:TreeTopo,2,3": 9,
    f"{EXAMPLES}/linuxrouter.py:NetworkTopo": 3,
    f"{EXAMPLES}/simpleperf.py:SingleSwitchTopo,n=4": 4,
    f"{EXAMPLES}/linearbandwidth.py,N=4": 4,
}
REFUSED = {  # and why
    "torus,3,3": "s1x3-s1x1 closes a loop of switches (and 9 more do)",
    "tree,2,2147483648": "more than 10000 nodes",
    "torus,2,2": "Exception: Please use 3x3 or greater",
    "tree,2,32": "network.nodes: 1057 nodes; between 1 and 250 can be emulated, because a guest",
    f"{EXAMPLES}/multilink.py,n=2": "h1 have a link already",
    f"{EXAMPLES}/natnet.py": "nat1: what its class NAT does when it starts is not emulated",
    f"{EXAMPLES}/vlanhost.py": "what its class VLANHost does",
    f"{EXAMPLES}/controlnet.py,n=2": "what its class DataController does",
    f"{EXAMPLES}/controlnet.py": "missing 1 required positional argument: 'n'",
    f"{EXAMPLES}/nat.py": "defines no Topo",
    "trea,2,2": "no Topo is called 'trea'",
    "nowhere.py:Topo": "no such file",
    "no_module:Topo": "No module named 'no_module'",
    "mininet.topolib:Tree": "has no Topo 'Tree'",
}


@pytest.mark.parametrize("topo", RUNS)
def test_topos_are_planned_with_all_their_hosts(topo: str) -> None:
    graph = topo_graph(topo, LINK).graph
    hosts = [node.name for node in graph.nodes if node.kind is NodeKind.HOST]
    assert len(hosts) == RUNS[topo]
    planned(topo, LINK, f"{hosts[0]},{hosts[-1]}")


@pytest.mark.parametrize("topo", REFUSED)
def test_topos_that_cannot_be_emulated_are_refused_in_a_line(topo: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(planned(topo, LINK, "h1,h2"))
    assert REFUSED[topo] in caught.value.message
    assert "\n" not in caught.value.message


def addresses(topo: str) -> dict[str, str]:
    network = build_network(topo_graph(topo, LINK).graph)
    return {
        hop.out.name: hop.out.address for both in network.hops for hop in both if hop.out.address
    }


def test_hosts_keep_their_names_and_addresses_and_interfaces_theirs() -> None:
    assert addresses("linear,2") == {"h1-eth0": "10.0.0.1/8", "h2-eth0": "10.0.0.2/8"}
    assert addresses(f"{EXAMPLES}/linuxrouter.py") == {
        "h1-eth0": "192.168.1.100/24",
        "h2-eth0": "172.16.0.100/12",
        "h3-eth0": "10.0.0.100/8",
        "r0-eth1": "192.168.1.1/24",
        "r0-eth2": "172.16.0.1/12",
        "r0-eth3": "10.0.0.1/8",
    }
    network = build_network(topo_graph("reversed,3", LINK).graph)
    assert [each.name for each in network.interfaces("s1")] == ["s1-eth3", "s1-eth2", "s1-eth1"]


TOPO = """
from mininet.topo import Topo

class Mine(Topo):
    def build(self, {arguments}):
        self.addHost("h1"); self.addHost("h2", **{host})
        self.addSwitch("s1", **{switch})
        self.addLink("h1", "s1", bw=10)
        self.addLink("h2", "s1", **{link})
"""


def written(folder: Path, link: str = "{}", host: str = "{}", switch: str = "{}") -> str:
    path = folder / "mine.py"
    text = TOPO.format(arguments="n=1", link=link, host=host, switch=switch)
    path.write_text(text)
    return str(path)


def test_a_links_options_are_ours_and_its_ends_may_differ(tmp_path: Path) -> None:
    link = (
        "dict(bw=8, delay='2.5ms', jitter='500us', loss=2, max_queue_size=50, use_htb=True, "
        "params2={'bw': 4, 'delay': '0.001s', 'loss': 0})"
    )
    (_, other) = topo_graph(written(tmp_path, link)).graph.links
    lossy = GilbertElliott(to_bad=0.02, to_good=0.98)
    assert other.forward == Direction(8, 2.5, Queue("pfifo", limit_packets=50), 0.5, lossy)
    assert other.reverse == Direction(4, 1, Queue("pfifo", limit_packets=50), 0.5, None)


GATEWAY = """
from mininet.topo import Topo

class Mine(Topo):
    def build(self):
        self.addHost("near", ip="10.0.1.2/24", defaultRoute="via 10.0.1.1")
        self.addHost("far", ip="10.0.2.2/24", defaultRoute="via 10.0.2.1")
        self.addHost("between", ip=OWN)
        self.addLink("near", "between", bw=10)
        self.addLink("far", "between", bw=10, params2={"ip": LINK})
"""


@pytest.mark.parametrize(
    ("own", "link", "kind"),
    [
        ("10.0.1.1/24", "10.0.2.9/24", NodeKind.ROUTER),
        ("10.0.1.9/24", "10.0.2.1/24", NodeKind.ROUTER),
        ("10.0.1.9/24", "10.0.2.9/24", NodeKind.HOST),
    ],
)
def test_a_host_that_a_default_route_leads_to_is_a_router(
    tmp_path: Path, own: str, link: str, kind: NodeKind
) -> None:
    """By its own address, or by that of one of its links."""
    path = tmp_path / "mine.py"
    path.write_text(GATEWAY.replace("OWN", repr(own)).replace("LINK", repr(link)))
    kinds = {node.name: node.kind for node in topo_graph(str(path)).graph.nodes}
    assert kinds == {"between": kind, "far": NodeKind.HOST, "near": NodeKind.HOST}


@pytest.mark.parametrize(
    ("part", "text", "why"),
    [
        (
            "link",
            "dict(bw=8, use_hfsc=True)",
            "link h2-s1: use_hfsc=True: a link keeps to its rate itself",
        ),
        ("link", "dict(bandwidth=8)", "link h2-s1: unknown option 'bandwidth'"),
        ("link", "dict(delay=5)", "delay=5 is not a time"),
        ("link", "dict(bw='8')", "bw='8' is not a number"),
        ("link", "dict(loss=100)", "loss=100 is not a percentage below 100"),
        ("link", "dict(max_queue_size=9)", "max_queue_size without bw"),
        ("link", "dict(bw=8, enable_red=True)", "of which tc makes 0"),
        ("link", "dict(cls=int)", "links of class 'int'"),
        ("host", "dict(ip='11.0.0.2/8')", "and are in two networks"),
        ("host", "dict(ip='10.0.0.1/8')", "the address 10.0.0.1 is used 2 times"),
        ("host", "dict(ip='10.0.0.0/8')", "'10.0.0.0/8': not a host's address"),
        ("host", "dict(inNamespace=False)", "h2 would be in the machine's own network"),
        ("switch", "dict(cls=type('OVSSwitch', (), {}))", "a switch of class 'OVSSwitch'"),
    ],
)
def test_what_cannot_be_emulated_is_named(tmp_path: Path, part: str, text: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(planned(written(tmp_path, **{part: text}), "", "h1,h2"))
    assert why in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("1 / 0", "line 6: ZeroDivisionError: division by zero"),
        ("raise SystemExit('no root')", "line 6: SystemExit: no root"),
        ("def", "line 6: SyntaxError"),
    ],
)
def test_a_file_or_a_constructor_that_fails_is_one_line(
    tmp_path: Path, line: str, why: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        TOPO.format(arguments="n=1", link={}, host={}, switch={}).replace(
            'self.addHost("h1");', f"{line};"
        )
    )
    with pytest.raises(UsageError) as caught:
        topo_graph(f"{path}:Mine", LINK)
    assert why in caught.value.message


def test_a_limit_of_processor_time_is_left_out_and_said(tmp_path: Path) -> None:
    found = topo_graph(written(tmp_path, host="dict(cpu=.5)"))
    assert found.left_out == ("cpu of h2 is left out: Mininet's own Host has no limit either",)


def test_in_json_a_topo_stands_for_its_graph(tmp_path: Path) -> None:
    written(tmp_path)
    data = {
        "experiment": "mine",
        "topology": {"topo": "mine.py:Mine,n=2", "link": "delay=1ms", "rtt_ms": 40},
        "flows": [{"name": "f", "kind": "tcp", "src": "h1", "dst": "h2", "variant": "cubic"}],
        "duration_s": 5,
    }
    scenario = read_document(with_topo_graph(data, tmp_path).data).scenario
    assert scenario.network.rtt_ms == 40
    assert read_scenario(scenario.to_json()) == scenario
    assert '"topo"' not in scenario.to_json()


def test_flows_of_the_command_line_have_names_and_any_field() -> None:
    flows = (
        "h1,h4",
        "h1,h4,start_s=1.5",
        "h2,h3,kind=cbr,rate_mbit=2,packet_bytes=500",
    )
    scenario = planned("tree,2,2", LINK, *flows)
    assert [flow.name for flow in scenario.flows] == ["h1-h4", "h1-h4-2", "h2-h3"]
    assert [flow.variant for flow in scenario.flows] == ["cubic", "cubic", None]
    assert scenario.flows[1].start_s == 1.5


def test_all_faults_of_a_topo_its_links_and_its_flows_are_named_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = "plan --topo single,2 --link rate=10 --flow h1,h9,varient=bbr --flow h3"
    assert main(words.split(), {}) == 2
    assert capsys.readouterr().err.splitlines() == [
        "testbed: --topo single,2: network.links: not options of a TCLink: --link rate=10",
        "    flows: not SRC,DST[,FIELD=VALUE…]: --flow 'h3'",
        "    flows[0].varient: unknown field: did you mean 'variant'?",
        "    flows[0].dst: unknown node 'h9': known: h1, h2",
        "    hint: --link bw=10,delay=5ms",
    ]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("", "nothing to run"),
        ("dumbbell-load --topo tree,2,2", "dumbbell-load has a network already"),
        ("dumbbell-load --flow h1,h2", "--link and --flow belong to --topo"),
        ("dumbbell-load --duration 5", "--duration belongs to --topo"),
        ("--topo tree,2,2 --flow h1,h2", "no link has a bw: nothing would ever queue"),
        ("--topo tree,2,2 --link bw=1", "there is no flow"),
        ("--topo tree,2,2 --link bw=1 --flow h1", "not SRC,DST[,FIELD=VALUE…]"),
        ("--topo tree,2,2 --link bw=1 --flow h1,h9", "flows[0].dst: unknown node 'h9'"),
        ("--topo tree,2,2 --link 1mbit --flow h1,h2", "not options of a TCLink"),
        ("--topo tree,2,2 --link bw=1 --flow h1,h2,varient=bbr", "varient: unknown field"),
    ],
)
def test_command_lines_that_make_no_sense_are_one_line(
    words: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *words.split()], {}) == 2
    said = capsys.readouterr().err
    assert why in said and "Traceback" not in said
