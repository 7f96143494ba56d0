"""Parts of a scenario in a few words, as tables and figures show them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from testbed.errors import number_of
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.named_networks import described
from testbed.scenario.network import Graph, Link, Queue
from testbed.store.reading import Trial

# The customary order; others follow alphabetically.
VARIANT_ORDER = (
    "tahoe",
    "reno",
    "newreno",
    "newreno-impatient",
    "sack",
    "vegas",
    "vegas1995",
    "veno",
    "cubic",
    "bbr",
    "linux-reno",
    "dctcp",
)


BETWEEN = " · "
MIN_ROUTE = 2  # nodes: of more, it leads by others


def queue_label(queue: Queue) -> str:
    """Describe the queue: `bfifo 100000 B`, `codel 100 packets ecn`."""
    if queue.limit_bytes is not None:
        size = f"{queue.limit_bytes} B"
    elif queue.limit_packets is not None:
        size = f"{queue.limit_packets} packets"
    else:
        size = f"{queue.limit_bdp:g} BDP"
    options = [f"{name}={value:g}" for name, value in sorted(queue.options.items())]
    return " ".join([queue.discipline, size, *(["ecn"] if queue.ecn else []), *options])


def variant_key(name: str) -> tuple[object, ...]:
    """Return a key that sorts variants in their customary order, other names by their numbers."""
    known = VARIANT_ORDER.index(name) if name in VARIANT_ORDER else len(VARIANT_ORDER)
    return known, by_number(name)


def by_number(text: str) -> tuple[tuple[float, str], ...]:
    """Return a key that sorts texts by the numbers in them: `240p` before `1080p`."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return tuple((float(part), "") if part[:1].isdigit() else (-1.0, part) for part in parts)


def path_rtt_ms(scenario: Scenario, flow: str = "") -> float:
    """Return the round-trip propagation delay of a flow's path, or of the longest."""
    if not flow:
        return scenario.network.longest_rtt_ms
    ends = scenario.flow(flow)
    return scenario.network.path(ends.src, ends.dst).rtt_ms


def rate_label(link: Link) -> str:
    """Describe a link's rate: `1.024/0.512 Mbit/s` if the directions differ.

    Of a radio it is the signal; it is empty for a link without a rate.
    """
    forward, reverse = link.directions
    if forward.radio is not None:
        return f"{forward.radio.signal_dbm} dBm"
    if forward.rate_mbit is None:
        return ""
    is_other = reverse.rate_mbit not in (None, forward.rate_mbit)
    other = f"/{reverse.rate_mbit:g}" if is_other else ""
    return f"{forward.rate_mbit:g}{other} Mbit/s"


def variation_label(link: Link) -> str:
    """Describe a link that does not stay as it is: `by a trace`, `rate 40 to 160 Mbit/s`.

    Empty for one that does.
    """
    if link.forward.trace:
        return "by a trace"
    changes = link.forward.schedule
    parts = [
        f"{what} {_ends([getattr(link.forward, name) or 0.0, *values])} {unit}"
        for what, name, unit in (("rate", "rate_mbit", "Mbit/s"), ("delay", "delay_ms", "ms"))
        if (values := [v for each in changes if (v := getattr(each, name)) is not None])
    ]
    outages = sum(each.up is False for each in changes)
    if outages:
        parts.append("an outage" if outages == 1 else f"{outages} outages")
    if any(each.loss is not None for each in changes):
        parts.append("losses change")
    return ", ".join(parts)


def _ends(values: Iterable[float]) -> str:
    known = sorted(values)
    return f"{known[0]:g} to {known[-1]:g}" if known[0] != known[-1] else f"{known[0]:g}"


def conditions(scenario: Scenario) -> list[str]:
    """Name what decides a result beside the bottleneck's rate, delay and queue."""
    network = scenario.network
    stated = [_of_link(link, network) for link in network.links if variation_label(link)]
    losses = losses_label(network)
    overtaking = {one.reorder for link in network.links for one in link.directions if one.reorder}
    stated += [losses] if losses else []
    stated += losses_of_flows(scenario.flows)
    stated += [f"{100 * share:.2g} % overtake" for share in sorted(overtaking)]
    stated += ["by " + " – ".join(route[1:-1]) + ", back by another way" for route in network.routes
              if len(route) > MIN_ROUTE and route[::-1] not in network.routes]  # fmt: skip
    link = network.bottleneck_link
    back = link.directions[1].rate_mbit
    return (
        [*stated, f"{back:g} Mbit/s back"] if back not in (None, link.forward.rate_mbit) else stated
    )


def losses_of_flows(flows: Iterable[Flow]) -> list[str]:
    """Describe the losses of flows, which the receiver's access link has."""
    stated = []
    for flow in flows:
        if flow.loss and flow.loss.gilbert_elliott:
            stated.append(f"{100 * flow.loss.gilbert_elliott.loss_rate:.2g} % of the data lost")
        elif flow.loss and (events := flow.loss.events):
            segments = 1 / events.rate
            many = f"{segments:.0f}" if segments >= 1000 else f"{segments:.3g}"
            stated.append(f"{events.losses} lost in {many} segments")
        elif flow.drops:
            stated.append(f"{number_of(len(flow.drops), 'segment')} dropped")
    return list(dict.fromkeys(stated))


def _of_link(link: Link, network: Graph) -> str:
    label = "rate by a trace" if link.forward.trace else variation_label(link)
    if link is network.bottleneck_link:
        return label
    return f"{label} from {link.ends[0]} to {link.ends[1]}"


def losses_label(network: Graph) -> str:
    """Describe the losses of links, as `1 % lost from router to receiver`; empty without any."""
    parts = [
        f"{100 * one.loss.loss_rate:.2g} % lost from {begin} to {end}"
        for link in network.links
        for one, (begin, end) in zip(link.directions, (link.ends, link.ends[::-1]), strict=True)
        if one.loss
    ]
    return ", ".join(dict.fromkeys(parts))


def in_lines(parts: Iterable[str], letters: int) -> str:
    """Join the parts by dots, in lines of at most this many letters."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}{BETWEEN}{part}" if lines[-1] else part
        if not lines[-1] or len(longer) <= letters:
            lines[-1] = longer
        else:
            lines.append(part)
    return "\n".join(lines)


def setting_label(
    trial: Trial, link: Link | None = None, queue: Queue | None = None, flow: str = ""
) -> str:
    """Describe the network, the stacks' profile and the machine, for the footers of figures.

    `link` and `queue` are the bottleneck of the flow that the figure is about: the network's
    unless given.
    """
    scenario, record = trial.scenario, trial.record
    network = scenario.network
    link, queue = link or network.bottleneck_link, queue or network.bottleneck_queue
    is_shaped = any(link.directions[1].rate_mbit for link in network.links)
    ways = "both ways" if is_shaped else "one way"
    scheduled = (end.schedule for link in network.links for end in link.directions)
    delays = (change.delay_ms for changes in scheduled for change in changes)
    at_first = " at first" if any(delay is not None for delay in delays) else ""
    kernel = " ".join(record.kernel.split()[:2])  # without the build's date
    return BETWEEN.join(
        [
            described(network),
            f"{rate_label(link)} {ways}",
            queue_label(queue),
            f"path RTT {path_rtt_ms(scenario, flow):g} ms{at_first} and serialisation",
            f"{scenario.duration_s:g} s",
            f"profile {scenario.profile}",
            f"engine {record.engine}" + (f" ({kernel})" if kernel else ""),
        ]
    )
