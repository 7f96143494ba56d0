"""Shortest paths: by hops, then by delay, then along the links that are listed first.

The last makes them unique, so a path's parts are shortest paths too, and the way back is the way
there: every router agrees with every other.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Step = tuple[int, int]  # a link's place in the list, and the end that it is left from


@dataclass(frozen=True)
class Edge:
    """A link as paths see it; its delay is that of both directions together."""

    ends: tuple[str, str]
    delay_ms: float


def paths(
    edges: Sequence[Edge], transit: Collection[str], src: str
) -> Mapping[str, tuple[Step, ...]]:
    """The path from a node to every other that it reaches; only `transit` nodes pass packets on."""
    at: dict[str, list[tuple[int, int, str]]] = {}
    for number, edge in enumerate(edges):
        for end in (0, 1):
            at.setdefault(edge.ends[end], []).append((number, end, edge.ends[1 - end]))
    first = 1 << len(edges)  # what a path gains by the first link, which outweighs all others
    found: dict[str, tuple[Step, ...]] = {}
    waiting: list[tuple[int, int, int, str, tuple[Step, ...]]] = [(0, 0, 0, src, ())]
    while waiting:
        hops, delay_us, links, node, steps = heapq.heappop(waiting)
        if node in found:
            continue
        found[node] = steps
        if node != src and node not in transit:
            continue
        for number, end, other in at.get(node, ()):
            if other not in found:
                further_us = delay_us + round(1000 * edges[number].delay_ms)
                longer = (*steps, (number, end))
                heapq.heappush(
                    waiting, (hops + 1, further_us, links - (first >> number), other, longer)
                )
    return found
