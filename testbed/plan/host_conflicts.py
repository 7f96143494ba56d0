"""Flows that cannot share a host: what is a setting of the host or of a route has one value."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from testbed.errors import UsageError
from testbed.scenario import variants
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.video import Player


def host_conflicts(scenario: Scenario) -> Iterator[str]:
    """Every pair of flows whose hosts would need two values of one setting."""
    yield from _one_variant_per_host(scenario)
    yield from _one_browser_per_host(scenario)
    yield from _one_recipe_per_receiver(scenario)
    yield from _one_route_per_pair(scenario)
    yield from _one_control_per_route(scenario)


def _one_variant_per_host(scenario: Scenario) -> Iterator[str]:
    """The congestion control is a host's setting (sysctl), so a host has one."""
    seen: dict[str, str | None] = {}
    for flow in scenario.flows:
        wishes = [(flow.src, flow.variant)] if flow.protocol == "tcp" else []
        if flow.video and flow.video.viewer_variant is not None:
            wishes.append((flow.dst, flow.video.viewer_variant))
        for host, wish in wishes:
            if seen.setdefault(host, wish) != wish:
                yield f"flows: {host} sends {seen[host]} and {wish}: one variant per host"


def _one_browser_per_host(scenario: Scenario) -> Iterator[str]:
    """The port of a browser's connection is a setting of the host."""
    viewers = [f.dst for f in scenario.flows if f.video and f.video.player is Player.CHROMIUM]
    for host in {host for host in viewers if viewers.count(host) > 1}:
        yield f"flows: {host} has several browsers: one per host"


def _one_recipe_per_receiver(scenario: Scenario) -> Iterator[str]:
    """A variant's settings of the receiver apply to all flows to that host."""
    wishes: dict[tuple[str, str], tuple[str, str]] = {}
    found = _recipes(scenario)
    for flow, recipe in found:
        for name, value in recipe.receiver.items():
            for other, theirs in found:
                sacks = theirs.sender.get("tcp_sack", "1") == "1"
                if other.dst == flow.dst and sacks and theirs.receiver.get(name) != value:
                    wishes[(flow.dst, name)] = (flow.name, other.name)
    for (host, name), (one, another) in wishes.items():
        yield (
            f"flows: {one} needs another {name} at {host} than {another}: "
            "give them receivers of their own"
        )


def _recipes(scenario: Scenario) -> list[tuple[Flow, variants.Variant]]:
    found = []
    for flow in scenario.flows:
        with contextlib.suppress(UsageError):  # already reported as a fault of the flow
            if flow.protocol == "tcp" and flow.variant is not None:
                found.append((flow, variants.variant(flow.variant)))
    return found


def _one_route_per_pair(scenario: Scenario) -> Iterator[str]:
    """A window and a minimum timer are attributes of the route between two hosts."""
    firsts: dict[tuple[str, str], Flow] = {}
    for flow in scenario.flows:
        if flow.protocol == "tcp":
            first = firsts.setdefault((flow.src, flow.dst), flow)
            for name in ("window_bytes", "rto_min_ms"):
                if getattr(first, name) != getattr(flow, name):
                    yield f"flows: {first.name} and {flow.name}: one {name} per pair of hosts"


def _one_control_per_route(scenario: Scenario) -> Iterator[str]:
    """A route's congestion control holds for both ends of its host's connections."""
    for flow, recipe in _recipes(scenario):
        answer = recipe.receiver_route.get("congctl")
        back = [f for f in scenario.flows if (f.src, f.dst) == (flow.dst, flow.src)]
        wishes = [(other.name, other.variant) for other in back if other.protocol == "tcp"]
        if flow.video is not None:
            wishes.append((f"{flow.name}'s viewer", flow.video.viewer_variant))
        for name, wish in wishes:
            if answer and wish not in (None, answer):
                yield (
                    f"flows: {flow.dst} answers {flow.name} with {answer}, and {name} sends "
                    f"{wish} the same way: give them hosts of their own"
                )
