"""Links with a delay: two interfaces tied together by mirred, each with a netem of its own.

So a delay never shares an interface with a queue that is measured, nor sits on a sender's egress.
One link may have many delays, one a session of the background traffic: a program writes on each
packet when it may leave (delays.py), and fq in netem's place holds it until then. A radio link's
jitter and losses are netem's too, each way with dice of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed.plan.commands import Command
from testbed.plan.network import Link, Network
from testbed.scenario.losses import GilbertElliott
from testbed.store import WIRES

NETEM_LIMIT = 10_000_000  # packets: a delay must never drop
# With a rate netem lets no packet overtake another, whatever delay was drawn for it: a radio's
# receiver puts frames in order too. At this one a full frame takes 1.2 µs.
IN_ORDER_RATE = "10gbit"


def is_wire(link: Link, many: str = "") -> bool:
    """Whether a link goes through here: it has a delay, or losses, or many delays."""
    return bool(link.delay_ms) or link.loss is not None or link.name == many


def wire_ends(network: Network, many: str = "") -> Iterator[tuple[str, str]]:
    """The ends of all wires: (node, interface)."""
    for number, link in enumerate(network.links):
        if is_wire(link, many):
            yield WIRES, f"w{number}a"
            yield WIRES, f"w{number}b"


def lossy_ends(network: Network) -> Iterator[tuple[str, GilbertElliott]]:
    """The interfaces here that lose by a channel, each what goes out of it."""
    for number, link in enumerate(network.links):
        if link.loss is not None:
            yield f"w{number}a", link.loss
            yield f"w{number}b", link.loss


def _holder(link: Link, many: str) -> tuple[str, ...]:
    """The discipline that lets packets wait."""
    if link.name != many:
        return (
            *("netem", "delay", f"{link.delay_ms * 1000:.3f}us", *_jitter(link.jitter_ms)),
            *(loss_words(link.loss) if link.loss else ()),
            *("limit", str(NETEM_LIMIT)),
        )
    limits = ("limit", str(NETEM_LIMIT), "flow_limit", str(NETEM_LIMIT))
    return ("fq", *limits, "nopacing", "timer_slack", "0")


def _jitter(jitter_ms: float) -> tuple[str, ...]:
    return (f"{jitter_ms * 1000:.3f}us", "rate", IN_ORDER_RATE) if jitter_ms else ()


def loss_words(channel: GilbertElliott) -> tuple[str, ...]:
    """The channel as netem wants it: into the bad state, out of it, lost in it, and in the good."""
    chances = (channel.to_bad, channel.to_good, channel.loss_in_bad, channel.loss_in_good)
    return ("loss", "gemodel", *(f"{100 * chance:.6f}%" for chance in chances))


def wire_commands(network: Network, many: str = "") -> Iterator[Command]:
    """Each wire's two ends up, tied together, each with what makes packets wait."""
    wires = [
        (f"w{number}a", f"w{number}b", _holder(link, many))
        for number, link in enumerate(network.links)
        if is_wire(link, many)
    ]
    for one, other, _ in wires:
        yield Command(WIRES, ("ip", "link", "set", one, "up"))
        yield Command(WIRES, ("ip", "link", "set", other, "up"))
    for one, other, holder in wires:
        for end, peer in ((one, other), (other, one)):
            yield Command(WIRES, ("tc", "qdisc", "add", "dev", end, "clsact"))
            yield Command(
                WIRES,
                ("tc", "filter", "add", "dev", end, "ingress", "matchall")
                + ("action", "mirred", "egress", "redirect", "dev", peer),
            )
            yield Command(
                WIRES,
                ("tc", "qdisc", "add", "dev", end, "root", "handle", "2:", *holder),
            )
