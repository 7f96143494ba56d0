"""What real machines and radios do that an exact network does not: a set of published figures.

The sources are in docs/realism.md.
"""

from __future__ import annotations

import dataclasses

from testbed.errors import UsageError
from testbed.scenario.model import Scenario
from testbed.scenario.network import Direction, Link, NodeKind
from testbed.scenario.queues import polices

AGGREGATE_PACKETS = 32
AGGREGATE_MS = 4.0
HOLD_US = 50.0
COST_US = 3.0
WAKE_US = 33.0
AGGREGATION_FIELDS = ("aggregate_packets", "aggregate_ms")
RECEIPT_FIELDS = ("hold_us", "cost_us", "wake_us")


def with_realism(scenario: Scenario) -> Scenario:
    """Return the scenario with the set of figures, if it asks for it.

    Links with a rate aggregate, and hosts take time to receive, each where the network says nothing
    about that itself.
    """
    if not scenario.realistic:
        return scenario
    graph = scenario.network
    hosts = set(graph.names(NodeKind.HOST))
    links = tuple(_of_link(link, hosts) for link in graph.links)
    return dataclasses.replace(scenario, network=dataclasses.replace(graph, links=links))


def _of_link(link: Link, hosts: set[str]) -> Link:
    forward, reverse = (
        _of_direction(direction, into_host=end in hosts)
        for direction, end in zip(link.directions, reversed(link.ends), strict=True)
    )
    return dataclasses.replace(link, forward=forward, reverse=reverse)


def _of_direction(direction: Direction, *, into_host: bool) -> Direction:
    if direction.radio is not None:
        return direction  # the kernel's 802.11 aggregates, or does not, by itself
    policed = direction.queue and polices(direction.queue.discipline)
    if direction.is_exact and not policed and not _says(direction, AGGREGATION_FIELDS):
        direction = dataclasses.replace(
            direction, aggregate_packets=AGGREGATE_PACKETS, aggregate_ms=AGGREGATE_MS
        )
    if into_host and not _says(direction, RECEIPT_FIELDS):
        direction = dataclasses.replace(
            direction, hold_us=HOLD_US, cost_us=COST_US, wake_us=WAKE_US
        )
    return direction


def _says(direction: Direction, fields: tuple[str, ...]) -> bool:
    """Return whether a direction has something else than the default in one of the fields."""
    return any(getattr(direction, name) != getattr(Direction(), name) for name in fields)


def refuse_in_real_time(scenario: Scenario) -> None:
    """Raise if a scenario asks a real machine to behave like one, or to change while flows run."""
    if any(True for _ in scenario.host_changes):
        raise UsageError(
            "schedule of a node or a flow: not on the host engine, which changes links alone",
            "leave it out, or take --engine guest",
        )
    every = [one for link in scenario.network.links for one in link.directions]
    if scenario.realistic or any(e.aggregates or e.takes_time_to_receive for e in every):
        raise real_time_refusal()


def real_time_refusal() -> UsageError:
    """Return the error that says why a real machine is not asked to behave like one."""
    fields = ", ".join(("aggregate_packets", *RECEIPT_FIELDS))
    return UsageError(
        f"realistic, {fields}: not on the host engine: this machine's own interrupts and costs "
        "are real",
        "leave them out, or take --engine guest",
    )
