"""Links with a delay: two interfaces tied together by mirred, each with a netem of its own.

So a delay never shares an interface with a queue that is measured, nor sits on a sender's egress.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.commands import Command
from testbed.layout import Network

WIRES = "wires"
NETEM_LIMIT = 10_000_000  # packets: a delay must never drop


def wire_ends(network: Network) -> Iterator[tuple[str, str]]:
    """The ends of all wires: (node, interface)."""
    for number, link in enumerate(network.links):
        if link.delay_ms:
            yield WIRES, f"w{number}a"
            yield WIRES, f"w{number}b"


def wire_commands(network: Network) -> Iterator[Command]:
    """Each wire's two ends up, tied together, each with a netem of the delay."""
    wires = [
        (f"w{number}a", f"w{number}b", f"{link.delay_ms * 1000:.3f}us")
        for number, link in enumerate(network.links)
        if link.delay_ms
    ]
    for one, other, _ in wires:
        yield Command(WIRES, ("ip", "link", "set", one, "up"))
        yield Command(WIRES, ("ip", "link", "set", other, "up"))
    for one, other, delay in wires:
        for end, peer in ((one, other), (other, one)):
            yield Command(WIRES, ("tc", "qdisc", "add", "dev", end, "clsact"))
            yield Command(
                WIRES,
                ("tc", "filter", "add", "dev", end, "ingress", "matchall")
                + ("action", "mirred", "egress", "redirect", "dev", peer),
            )
            yield Command(
                WIRES,
                ("tc", "qdisc", "add", "dev", end, "root", "handle", "2:", "netem")
                + ("delay", delay, "limit", str(NETEM_LIMIT)),
            )
