"""Networks and flows at the edge of what is sensible: right numbers, empty cells, or reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import Direction, Graph, Link, Node, NodeKind, Queue
from tests.lab import run_trials


def asymmetric(
    label: str, *flows: Flow, up: Direction, down_mbit: float = 20, ip: int = 4
) -> Scenario:
    """Flows whose acknowledgements cross a slow queue behind the router that their data enter."""
    down = Direction(down_mbit, delay_ms=10, queue=Queue("pfifo", limit_packets=100))
    ways = (Link(("h1", "r"), Direction(delay_ms=10), up), Link(("r", "h2"), down, Direction()))
    nodes = (Node("h1"), Node("r", NodeKind.ROUTER), Node("h2"))
    network = Graph(nodes, ways, name="asymmetric", ip=ip)
    return Scenario("corners", network, flows, duration_s=10, label=label)


def upload(kbit: float, packets: int, discipline: str = "pfifo") -> Direction:
    return Direction(kbit / 1e3, delay_ms=10, queue=Queue(discipline, limit_packets=packets))


def flow(name: str, **settings: object) -> Flow:
    return Flow(name, FlowKind.TCP, "h1", "h2", variant="cubic", **settings)  # type: ignore[arg-type]


ENDING = (flow("short", duration_s=4), flow("long"))


@pytest.mark.parametrize(
    "scenario",
    [
        asymmetric("shallow", flow("tcp"), up=upload(400, 10)),
        asymmetric("deep", flow("tcp"), up=upload(200, 100)),
        asymmetric("hardly-any", flow("tcp"), up=upload(10, 20)),
        asymmetric("one-ends", *ENDING, up=upload(200, 20)),
        asymmetric("ipv6", *ENDING, up=upload(200, 20), ip=6),
        asymmetric("codel", *ENDING, up=upload(200, 50, "codel")),
    ],
    ids=lambda scenario: scenario.label,
)
def test_a_congested_path_of_acknowledgements_is_no_fault(
    scenario: Scenario, tmp_path: Path
) -> None:
    """After its stop a receiver answers late data with resets that are all alike, of which the
    queue drops some."""
    run_trials([scenario], tmp_path)
