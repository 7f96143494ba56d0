"""The round trips of sessions: the link on which their packets wait, and for how long.

A session is identified by its port at the sending host. `trial/parts/session_delays.py` gives each
session's packets the delay that is planned here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testbed.plan.delay_links import end_names
from testbed.plan.flows import session_port
from testbed.plan.network import Hop, Network
from testbed.scenario.links.schedule import of_wire
from testbed.scenario.model import Flow, Scenario
from testbed.scenario.workload.drawing import draw_sessions
from testbed.scenario.workload.workload import Sessions

NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class SessionDelays:
    """The link to a flow's receiver, on which each session's packets wait both ways."""

    link: str
    ends: tuple[str, str]  # its interfaces in the node `wires`
    link_delay_ns: int
    first_port: int
    extra_ns: tuple[int, ...]  # of each session, each way, beyond the link's own delay


def session_delays(scenario: Scenario, network: Network) -> Iterator[SessionDelays]:
    """Plan the delays of every flow whose sessions have their own round trips."""
    for index, flow, sessions in _with_round_trips(scenario):
        hop = _last_hop(network, flow)
        path_ms = network.path_rtt_ms(flow.src, flow.dst)
        drawn = draw_sessions(sessions, f"{scenario.seed} {flow.name}")
        yield SessionDelays(
            link=hop.link.name,
            ends=end_names(hop.number),
            link_delay_ns=round(hop.direction.delay_ms * NS_PER_MS),
            first_port=session_port(scenario, index),
            extra_ns=tuple(
                max(0, round(((each.rtt_ms or 0) - path_ms) * NS_PER_MS / 2)) for each in drawn
            ),
        )


def session_rtt_faults(scenario: Scenario, network: Network) -> Iterator[str]:
    """Find round trips shorter than the path's, and links that cannot add to them."""
    links: dict[str, str] = {}
    for index, flow, sessions in _with_round_trips(scenario):
        where = f"flows[{index}].workload.arrivals.sessions"
        link = _last_hop(network, flow).link
        one, other = link.directions
        if one.delay_ms != other.delay_ms or any(
            each.jitter_ms or each.loss or each.reorder or of_wire(each.schedule)
            for each in (one, other)
        ):
            yield (
                f"{where}.rtt_min_ms: {link.name} has jitter, losses, reordering, a schedule or "
                "another delay back: sessions need a plain link to their receiver"
            )
        if (first := links.setdefault(link.name, flow.name)) != flow.name:
            yield f"{where}.rtt_min_ms: {link.name} delays the sessions of {first} already"
        least_ms = network.path_rtt_ms(flow.src, flow.dst)
        if sessions.rtt_min_ms is not None and sessions.rtt_min_ms < least_ms:
            yield f"{where}.rtt_min_ms: {sessions.rtt_min_ms:g}: its path has {least_ms:g} ms"


def has_session_delays(scenario: Scenario) -> bool:
    """Whether a flow has sessions with their own round trips."""
    return any(True for _ in _with_round_trips(scenario))


def _with_round_trips(scenario: Scenario) -> Iterator[tuple[int, Flow, Sessions]]:
    for index, flow in enumerate(scenario.flows):
        sessions = flow.workload.arrivals.sessions if flow.workload else None
        if sessions is not None and sessions.rtt_min_ms is not None:
            yield index, flow, sessions


def _last_hop(network: Network, flow: Flow) -> Hop:
    return network.path(flow.src, flow.dst)[-1]
