"""The filters that make ECT(1) of a host's ECT(0): how its packets ask for L4S (RFC 9331, 4.1).

Linux's DCTCP sends ECT(0). Its SYNs are left alone: the peer of accurate ECN answers which bits it
saw there, and an answer that differs turns ECN off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from testbed.plan.commands import Command
from testbed.plan.network import Network
from testbed.scenario.model import Flow
from testbed.scenario.variants import variant

ECT0_BITS, ECT1_BITS, ECN_BITS = "2", "1", "3"  # of IP's traffic class
TCP_FLAGS_AT, SYN_FLAG = "33", "2"  # behind an IP header without options
_IS_TCP = ("match", "ip", "protocol", "6", "0xff")
_IS_ECT0 = ("match", "ip", "tos", ECT0_BITS, ECN_BITS)
_IS_NO_SYN = ("match", "u8", "0", SYN_FLAG, "at", TCP_FLAGS_AT)
_MAKE_ECT1 = ("action", "pedit", "ex", "munge", "ip", "tos", "set", ECT1_BITS, "retain", ECN_BITS)


def relabelled_flows(flows: Iterable[Flow]) -> Iterator[Flow]:
    """Yield the flows whose packets get ECT(1)."""
    for flow in flows:
        if flow.variant is not None and variant(flow.variant).ect1:
            yield flow


def relabelling_places(network: Network, flows: Iterable[Flow]) -> list[tuple[str, str]]:
    """Return the nodes and interfaces at which packets get ECT(1), each once."""
    hops = (network.path(flow.src, flow.dst)[0] for flow in relabelled_flows(flows))
    return list(dict.fromkeys(hop.out.place for hop in hops))


def relabelling_commands(places: Iterable[tuple[str, str]]) -> Iterator[Command]:
    """Yield the commands for the filters, which need an interface's clsact."""
    matches = (*_IS_TCP, *_IS_ECT0, *_IS_NO_SYN)
    for node, interface in places:
        add = ("tc", "filter", "add", "dev", interface, "egress", "protocol", "ip", "u32")
        yield Command(node, (*add, *matches, *_MAKE_ECT1, "pipe", "action", "csum", "ip4h"))
