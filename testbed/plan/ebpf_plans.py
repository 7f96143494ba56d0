"""The programs that a scenario needs on packets' way: for which connection, at which interface.

Exact losses (`drops`) happen where the flow enters its first router. Losses by chance (`loss`)
happen on the receiver's access link: at the egress of the last router, before that interface's
own queue if it is shaped, so that the captures up to there show the segment. What a misbehaving
receiver does (`receiver`) happens between its TCP and the capture at its interface.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from testbed.plan.commands import Command
from testbed.plan.flows import FlowPlan
from testbed.plan.network import Network
from testbed.scenario.losses import MAX_PACKETS, Loss
from testbed.scenario.model import Misbehaviour, Scenario
from testbed.scenario.network import FRAME_OVERHEAD_BYTES
from testbed.scenario.profiles import PROFILE_SETTINGS

TCP_IP_HEADERS = 40  # TCP's options are within the MSS
ETHERNET_MSS = 1460
FASTEST_MBIT = 40_000.0  # of a path without a shaped interface
PACKET_MARGIN = 1.1  # some segments are not full


@dataclass(frozen=True)
class AtInterface:
    """The packets of one connection at one interface: data, or acknowledgements the other way."""

    flow: str
    node: str
    interface: str
    src_address: str
    src_port: int
    dst_address: str
    dst_port: int

    @property
    def place(self) -> tuple[str, str]:
        """The node and the interface."""
        return self.node, self.interface


@dataclass(frozen=True)
class DropPlan(AtInterface):
    """Segments that are lost once, at the ingress of the first router."""

    segments: tuple[int, ...]


@dataclass(frozen=True)
class LossPlan(AtInterface):
    """Random losses at the egress of the last router.

    They have a model, its seed, and the number of packets to draw for, which is more than the flow
    can send at its path's rate.
    """

    loss: Loss
    dice: str
    packets: int


@dataclass(frozen=True)
class ReceiverPlan(AtInterface):
    """A receiver that misbehaves: what it does to packets between its TCP and its interface."""

    misbehaviour: Misbehaviour


def drop_plans(network: Network, flows: Iterable[FlowPlan]) -> Iterator[DropPlan]:
    """Yield a plan for each flow with `drops`."""
    for each in flows:
        if each.flow.drops:
            door = network.path(each.flow.src, each.flow.dst)[0].into
            yield DropPlan(*_connection(each, door.node, door.name), each.flow.drops)


def loss_plans(
    scenario: Scenario, network: Network, flows: Iterable[FlowPlan]
) -> Iterator[LossPlan]:
    """Yield a plan for each flow with `loss`."""
    for each in flows:
        if each.flow.loss is not None:
            door = network.path(each.flow.src, each.flow.dst)[-1].out
            yield LossPlan(
                *_connection(each, door.node, door.name),
                loss=each.flow.loss,
                dice=f"{scenario.seed} {each.flow.loss.dice or each.flow.name} loss",
                packets=_most_packets(scenario, network, each),
            )


def receiver_plans(network: Network, flows: Iterable[FlowPlan]) -> Iterator[ReceiverPlan]:
    """Yield a plan for each flow whose receiver misbehaves."""
    for each in flows:
        if each.flow.receiver is not None:
            end = network.path(each.flow.src, each.flow.dst)[-1].into
            yield ReceiverPlan(*_connection(each, end.node, end.name), each.flow.receiver)


def _connection(
    each: FlowPlan, node: str, interface: str
) -> tuple[str, str, str, str, int, str, int]:
    ends = (each.src_address, each.src_ports[0], each.dst_address, each.dst_port)
    return (each.flow.name, node, interface, *ends)


def _most_packets(scenario: Scenario, network: Network, each: FlowPlan) -> int:
    """Return the full segments at the path's slowest shaped rate, and a margin."""
    flow = each.flow
    hops = network.path(flow.src, flow.dst)
    rates = [hop.rate_mbit for hop in hops if hop.is_shaped]
    mss = flow.mss or PROFILE_SETTINGS[scenario.profile].mss or ETHERNET_MSS
    frame = mss + TCP_IP_HEADERS + FRAME_OVERHEAD_BYTES
    bits = min(rates, default=FASTEST_MBIT) * 1e6 * (each.stop_s - each.start_s)
    return min(MAX_PACKETS, math.ceil(PACKET_MARGIN * bits / (8 * frame)) + 1000)


def clsact_commands(places: Iterable[tuple[str, str]]) -> Iterator[Command]:
    """Yield the commands for what programs and filters are attached to, one per interface."""
    for node, interface in dict.fromkeys(places):
        yield Command(node, ("tc", "qdisc", "add", "dev", interface, "clsact"))
