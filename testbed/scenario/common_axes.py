"""Axes by what a person varies, whatever the network is: `--set rtt_ms=20,40,80`.

Each is a change of a whole scenario; `file_sweep.py` has the fields of a file by their places.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from testbed.errors import UsageError
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, NamedNetwork
from testbed.scenario.network import PLAIN_QUEUE, Direction, Graph, Link
from testbed.scenario.setting_units import number_hint

DELAY_DIGITS = 3  # tc is told whole microseconds
_Direction = TypeVar("_Direction", bound=Direction)
NetworkForm = NamedNetwork | Graph
Setter = Callable[[Scenario, NetworkForm, Any], tuple[Scenario, NetworkForm]]


@dataclass(frozen=True)
class CommonAxis:
    """Something that people vary, in all flows or at the bottleneck."""

    about: str
    set: Setter
    is_number: bool = True

    def value(self, name: str, text: str) -> Any:
        """Return what a text stands for."""
        if not self.is_number:
            return text
        try:
            return float(text)
        except ValueError:
            raise UsageError(f"{name}={text}: not a number", number_hint(name, text)) from None


def _at_bottleneck(change: Callable[[Any, Any], Any], *, one_way: bool = False) -> Setter:
    """Return what changes the bottleneck, of a network by name all bottlenecks, which are alike.

    A link that is the same in both directions stays so, unless the change is for one way.
    """

    def set_(scenario: Scenario, network: NetworkForm, value: Any) -> tuple[Scenario, NetworkForm]:
        if isinstance(network, NamedNetwork):
            link = network.bottleneck
            reverse = link.both[0] if one_way and link.reverse is None else link.reverse
            changed = dataclasses.replace(change(link, value), reverse=reverse)
            return scenario, dataclasses.replace(network, bottleneck=changed)
        links, slowest = list(network.links), network.bottleneck_link
        reverse = slowest.directions[1] if one_way else slowest.reverse
        forward = change(slowest.forward, value)
        links[links.index(slowest)] = dataclasses.replace(slowest, forward=forward, reverse=reverse)
        return scenario, dataclasses.replace(network, links=tuple(links))

    return set_


def _with_rate(direction: _Direction, rate_mbit: float) -> _Direction:
    return dataclasses.replace(direction, rate_mbit=rate_mbit)


def _with_discipline(direction: _Direction, name: str) -> _Direction:
    queue = dataclasses.replace(direction.queue or PLAIN_QUEUE, discipline=name)
    return dataclasses.replace(direction, queue=queue)


def _with_buffer(unit: str) -> Callable[[Direction, float], Direction]:
    """Return what gives a queue a limit in that unit, and in no other."""
    nothing: dict[str, Any] = dict.fromkeys(("limit_bytes", "limit_packets", "limit_bdp"))

    def change(direction: Direction, limit: float) -> Direction:
        queue = direction.queue or PLAIN_QUEUE
        limits = nothing | {f"limit_{unit}": _whole(limit)}
        return dataclasses.replace(direction, queue=dataclasses.replace(queue, **limits))

    return change


def _with_loss(direction: _Direction, percent: float) -> _Direction:
    if not 0 <= percent < 100:
        raise UsageError(f"loss_percent={percent:g}: not a percentage", "from 0 to below 100")
    chance = percent / 100
    loss = GilbertElliott(to_bad=chance, to_good=1 - chance) if chance else None
    return dataclasses.replace(direction, loss=loss)


def _with_rtt(
    scenario: Scenario, network: NetworkForm, rtt_ms: float
) -> tuple[Scenario, NetworkForm]:
    """Scale all delays, so that the longest path takes that long; without any, it is the link's."""
    graph = network.graph() if isinstance(network, NamedNetwork) else network
    if any(c.delay_ms is not None for e in graph.links for d in e.directions for c in d.schedule):
        raise UsageError("rtt_ms: a schedule has delays, too", "set delay_ms of single links")
    longest_ms = dataclasses.replace(graph, rtt_ms=None).longest_rtt_ms
    if not longest_ms:
        half = _at_bottleneck(lambda e, ms: dataclasses.replace(e, delay_ms=ms))
        return half(scenario, network, round(rtt_ms / 2, DELAY_DIGITS))
    return scenario, _scaled(network, rtt_ms / longest_ms)


def _scaled(network: NetworkForm, factor: float) -> NetworkForm:
    def ms(value: float) -> float:
        return round(value * factor, DELAY_DIGITS)

    def maybe_ms(value: float | None) -> float | None:
        return None if value is None else ms(value)

    def one(direction: _Direction) -> _Direction:
        return dataclasses.replace(direction, delay_ms=ms(direction.delay_ms))

    def both(link: Link | LinkSettings) -> Any:
        reverse = None if link.reverse is None else one(link.reverse)
        if isinstance(link, LinkSettings):
            return dataclasses.replace(one(link), reverse=reverse)
        forward, rtt_ms = one(link.forward), maybe_ms(link.rtt_ms)
        return dataclasses.replace(link, forward=forward, reverse=reverse, rtt_ms=rtt_ms)

    if isinstance(network, Graph):
        links = tuple(map(both, network.links))
        return dataclasses.replace(network, links=links, rtt_ms=maybe_ms(network.rtt_ms))
    return dataclasses.replace(
        network,
        bottleneck=both(network.bottleneck),
        access=both(network.access),
        links={name: both(each) for name, each in network.links.items()},
        rtts_ms=tuple(map(ms, network.rtts_ms)),
    )


KERNELS_TCP = (FlowKind.TCP, FlowKind.WORKLOAD)


def _of_flows(name: str) -> Setter:
    """Return what sets a field of all flows that the kernel's TCP sends."""

    def set_(scenario: Scenario, network: NetworkForm, value: Any) -> tuple[Scenario, NetworkForm]:
        chosen = [flow.kind in KERNELS_TCP for flow in scenario.flows]
        if name == "variant" and not any(chosen):  # programs alone
            chosen = [flow.variant is not None and not flow.stack for flow in scenario.flows]
        if not any(chosen):
            message = f"no flow is of kind {' or '.join(KERNELS_TCP)}"
            raise UsageError(f"{name}: {message}", f"name the flow: --set flows.0.{name}=…")
        change: dict[str, Any] = {name: _whole(value)}
        flows = tuple(
            dataclasses.replace(flow, **change) if is_chosen else flow
            for flow, is_chosen in zip(scenario.flows, chosen, strict=True)
        )
        return dataclasses.replace(scenario, flows=flows), network

    return set_


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


COMMON_AXES: Mapping[str, CommonAxis] = {
    "variant": CommonAxis(
        "the congestion control of all TCP flows",
        _of_flows("variant"),
        is_number=False,
    ),
    "initcwnd": CommonAxis("the initial window of all TCP flows", _of_flows("initcwnd")),
    "initrwnd": CommonAxis("the window that their receivers offer first", _of_flows("initrwnd")),
    "window_bytes": CommonAxis("the most that may be in flight", _of_flows("window_bytes")),
    "rate_mbit": CommonAxis("the bottleneck's rate", _at_bottleneck(_with_rate)),
    "rtt_ms": CommonAxis("the longest round trip, all delays in proportion", _with_rtt),
    "loss_percent": CommonAxis(
        "losses by chance at the bottleneck, of data", _at_bottleneck(_with_loss, one_way=True)
    ),
    "queue": CommonAxis(
        "the bottleneck's queue discipline", _at_bottleneck(_with_discipline), is_number=False
    ),
    "buffer_bdp": CommonAxis("the bottleneck's buffer", _at_bottleneck(_with_buffer("bdp"))),
    "buffer_packets": CommonAxis("the same", _at_bottleneck(_with_buffer("packets"))),
    "buffer_bytes": CommonAxis("the same", _at_bottleneck(_with_buffer("bytes"))),
}
