"""A graph with a loop of routers, a switch, and several observed queues, on real kernels."""

from __future__ import annotations

from pathlib import Path

from analysis.metrics.links import has_several
from analysis.results.reduction import reduction_of
from tests.lab import run_trials
from tests.unit.test_graph import RING, scenario


def test_every_observed_queue_of_a_ring_has_its_row(tmp_path: Path) -> None:
    """And the verdict, which pairs the packets on both sides of each queue, is sound."""
    (trial,) = run_trials([scenario(RING, "h1-r2", "h2-h3", duration_s=2)], tmp_path)
    assert has_several(trial)
    links = reduction_of(trial).links.set_index("link")
    assert list(links.index) == ["r1 → r2", "r3 → h3"]
    assert list(links["flows"]) == [1, 1]
    assert (links["utilisation"] > 0.8).all() and (links["utilisation"] <= 1.01).all()
    assert (links["queue_mean_ms"] > 1).all()
    assert (links["entered_packets"] > links["dropped_packets"]).all()
