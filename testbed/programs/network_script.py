"""A scenario's network for whole programs: a shell script that makes it and starts commands.

Nodes are network namespaces with their names, which /etc/hosts has, too.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import UsageError, nearest, quoted
from testbed.faults import usage_error
from testbed.machine.safe_files import read_bytes
from testbed.own_files.scenario_file import with_topo_graph
from testbed.plan.check import combined_faults
from testbed.plan.network import Interface
from testbed.plan.plan import NetworkPlan, plan_network
from testbed.scenario.model import Flow, FlowKind, plain
from testbed.scenario.network import NodeKind
from testbed.scenario.reading import MAX_SCENARIO_BYTES, parsed, read_document
from testbed.store.names import capture_file
from testbed.trial.parts.capture import GUEST_KERNEL
from testbed.trial.parts.pcapng import Source, beginning

ANY_FLOW = Flow("any", FlowKind.TCP, "a", "b")  # a scenario has one
NETWORK_FAILED = 125  # the script's status if the network could not be made
START = re.compile(r"(?P<node>[\w.-]+)(?:@(?P<at_s>\d+(?:\.\d+)?))?:\s+(?P<command>\S.*)")
SNAPLEN_BYTES = 65535  # whole packets
START_EXAMPLE = "'receiver: iperf3 -s &' 'sender@1: iperf3 -c receiver'"


@dataclass(frozen=True)
class StartedCommand:
    """A command that starts on a node some time after the network is up."""

    node: str
    at_s: str
    command: str
    is_server: bool  # the end does not wait for it


def read_network(path: Path) -> NetworkPlan:
    """Return what makes the network of a scenario's file, which need not have flows."""
    try:
        text = read_bytes(path, MAX_SCENARIO_BYTES)
        data = with_topo_graph(parsed(text, str(path)), path.parent).data
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file", "name the file of a scenario") from error
    if isinstance(data, dict):
        data = {"experiment": path.stem, "duration_s": 1.0, **data, "flows": [plain(ANY_FLOW)]}
    document = read_document(data, str(path))
    without_flows = dataclasses.replace(document.scenario, flows=())
    if wrong := document.in_its_words(combined_faults(without_flows, ())):
        raise usage_error(wrong, str(path))
    return plan_network(without_flows)


def started_commands(arguments: Sequence[str], nodes: Sequence[str]) -> list[StartedCommand]:
    """Return the commands of lines `NODE@SECONDS: COMMAND`; none if the words are one command."""
    lines = [line.strip() for word in arguments for line in word.splitlines() if line.strip()]
    if not lines or not START.fullmatch(lines[0]):
        return []
    return [_started(line, nodes) for line in lines]


def _started(line: str, nodes: Sequence[str]) -> StartedCommand:
    match = START.fullmatch(line)
    if match is None:
        raise UsageError(f"{quoted(line)}: expected NODE: COMMAND", START_EXAMPLE)
    node, at_s, command = match.group("node", "at_s", "command")
    if node not in nodes:
        raise UsageError(f"the network has no node {quoted(node)}", nearest(node, nodes))
    is_server = command.endswith("&")
    return StartedCommand(node, at_s or "0", command.removesuffix("&").strip(), is_server)


def network_script(
    plan: NetworkPlan, arguments: Sequence[str], captured: Sequence[str] = ()
) -> str:
    """Return a script for bash that makes the network and runs the words in or beside it.

    Captures are of nodes (`client`), their ports (`router:1`), interfaces, or `all`.
    """
    started = started_commands(arguments, plan.network.graph.names(*NodeKind))
    interfaces = captured_interfaces(captured, plan)
    captures = [line for i in interfaces for line in capture_lines(i.node, i.name, i.name)]
    command = shlex.join(arguments)
    # a capture lasts as long as the shell: the command might close what it inherits
    alone = f"{command}; exit" if captures else f"exec {command}"
    last = start_lines(started, _in) if started else [alone]
    return "\n".join((*_set_up(plan), *captures, "trap - ERR", *last))


def captured_interfaces(captured: Sequence[str], plan: NetworkPlan) -> list[Interface]:
    """Return the interfaces of the network that are named; an unknown name is an error."""
    named: dict[str, list[Interface]] = {"all": []}
    for node in plan.network.nodes:
        named[node] = plan.network.interfaces(node)
        for port, interface in enumerate(named[node]):
            named[f"{node}:{port}"] = named[interface.name] = [interface]
        named["all"] += named[node]
    for name in captured:
        if name not in named:
            raise UsageError(
                f"--capture {quoted(name)}: the network has no such interface",
                nearest(name, list(named)),
            )
    return list(dict.fromkeys(each for name in captured for each in named[name]))


def capture_lines(node: str, interface: str, shown: str) -> Iterator[str]:
    """Yield lines that have the guest's kernel write an interface's packets, under a name.

    It does so as long as the shell has /proc/capture open. The node writes there, by one call,
    the interface and the beginning of the capture.
    """
    text = f"{interface} {SNAPLEN_BYTES} {capture_file(shown)}\n".encode()
    text += beginning(Source(shown, node, GUEST_KERNEL), SNAPLEN_BYTES)
    octal = "".join(f"\\{byte:03o}" for byte in text)
    yield "exec {capture}<>/proc/capture"
    yield f"{_in(node, ['printf', octal])} >&$capture"


def _set_up(plan: NetworkPlan) -> Iterator[str]:
    yield f"trap 'echo \"testbed: failed: $BASH_COMMAND\" >&2; exit {NETWORK_FAILED}' ERR"
    for node in plan.nodes:
        yield f"ip netns add {shlex.quote(node)}"
    for veth in plan.veths:
        one = f"name {veth.name1} address {veth.mac1} netns {veth.node1}"
        other = f"name {veth.name2} address {veth.mac2} netns {veth.node2}"
        yield f"ip link add {one} type veth peer {other}"
    for node, settings in plan.sysctls:
        yield _in(node, ["sysctl", "-qw", *(f"{name}={value}" for name, value in settings)])
    for command in plan.setup:
        yield _in(command.node, command.argv)
    for node in plan.network.nodes:
        for interface in plan.network.interfaces(node)[:1]:
            if interface.ip:
                yield f"echo {interface.ip} {node} >>/etc/hosts"


def _in(node: str, argv: Sequence[str]) -> str:
    return shlex.join(["ip", "netns", "exec", node, *argv])


def start_lines(
    started: Sequence[StartedCommand], inside: Callable[[str, Sequence[str]], str]
) -> Iterator[str]:
    """Yield lines that start commands in the background; the first status but 0 is the script's."""
    for each in started:
        command = inside(each.node, ["sh", "-c", each.command])
        wait = f"sleep {each.at_s}; " if float(each.at_s) else ""
        yield f"({wait}exec {command}) &"
        if not each.is_server:
            yield "waited+=($!)"
    yield 'for each in "${waited[@]}"; do wait "$each" || status=${status:-$?}; done'
    yield 'exit "${status:-0}"'
