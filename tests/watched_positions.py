"""Where packets are on the page of `testbed watch`, found a second time from the captures' bytes.

It shares no code with the testbed: it parses pcap and pcapng, matches packets by their bytes, and
reads the nodes' places from the drawing in the page. `python -m tests.watched_positions TRIAL PAGE`
prints how many of 1,000 drawn positions agree.
"""

from __future__ import annotations

import itertools
import json
import re
import struct
import sys
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

from tests.browser import Tab, browser

HALF_WIDTH, HALF_HEIGHT, LANE = 46, 15, 4  # of a box, and of a wire from its middle
DRAWN = """watching.then((page) => %s.map(([i, t]) => {
  const at = page.position(i, t);
  return at && [at.x, at.y, at.queue ?? "", at.dropped];
}))"""
PACKETS = """watching.then((page) => Array.from({ length: page.N }, (_, i) => [
  page.number(i), page.captureOf(i), page.first[i], page.until[i], page.lost(i)]))"""


def frames(path: Path) -> list[tuple[int, bytes]]:
    """Return the time in nanoseconds and the bytes of each frame."""
    content = path.read_bytes()
    found = []
    if content[:4] == b"\x0a\x0d\x0d\x0a":
        at = 0
        while at < len(content):
            kind, length = struct.unpack_from("<II", content, at)
            if kind == 6:  # enhanced packet block
                _, high, low, kept, _ = struct.unpack_from("<5I", content, at + 8)
                found.append(((high << 32) + low, content[at + 28 : at + 28 + kept]))
            at += length
        return found
    scale = 1 if struct.unpack_from("<I", content)[0] == 0xA1B23C4D else 1000
    at = 24
    while at < len(content):
        seconds, part, kept, _ = struct.unpack_from("<4I", content, at)
        found.append((seconds * 10**9 + part * scale, content[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return found


def identity(frame: bytes) -> bytes:
    """Return what no router changes: all but Ethernet, ECN, time to live and IPv4's checksum."""
    ip = bytearray(frame[14:])
    ip[1] = ip[8] = ip[10] = ip[11] = 0
    return bytes(ip)


def drawing(page: Path) -> dict[str, tuple[float, float]]:
    """Return the middle of each node's box."""
    text = page.read_text()
    svg = text[text.index('<svg class="network"') :]
    svg = svg[: svg.index("</svg>")]
    box = r'<rect class="(?:host|router)" x="([-\d.]+)" y="([-\d.]+)"[^>]*/><text[^>]*>([^<]*)<'
    return {name: (float(x) + 46, float(y) + 15) for x, y, name in re.findall(box, svg)}


def wire(one: tuple[float, float], other: tuple[float, float], part: float) -> tuple[float, float]:
    """Return a place on the wire between two boxes, to the right of its middle."""
    dx, dy = other[0] - one[0], other[1] - one[1]
    length = (dx * dx + dy * dy) ** 0.5
    ux, uy = dx / length, dy / length
    cut = min(HALF_WIDTH / max(abs(ux), 1e-9), HALF_HEIGHT / max(abs(uy), 1e-9), length / 2.2)
    along = cut + part * (length - 2 * cut)
    return one[0] + ux * along - uy * LANE, one[1] + uy * along + ux * LANE


class Trial:
    """The captures of a trial, and the way that packets take."""

    def __init__(self, folder: Path) -> None:
        record = json.loads((folder / "trial.json").read_text())
        network = json.loads((folder / "scenario.json").read_text())["network"]
        self.zero = round(record["epoch_s"] * 1e6) * 1000
        self.frames = {
            each["interface"]: frames(folder / each["file"]) for each in record["captures"]
        }
        self.seen = {name: defaultdict[bytes, list[int]](list) for name in self.frames}
        for name, each in self.frames.items():
            for time_ns, frame in each:
                self.seen[name][identity(frame)].append(time_ns)
        self.ends: dict[str, tuple[str, str, float]] = {}  # interface → node, the other, delay
        used: dict[str, int] = defaultdict(int)
        for link in network["links"]:
            ports = link.get("ports") or [{}, {}]
            names = []
            for node, port in zip(link["ends"], ports, strict=True):
                number = port.get("number")
                names.append(f"{node}-eth{used[node] if number is None else number}")
                used[node] += 1
            ways = (link["forward"], link.get("reverse") or link["forward"])
            for at, way in enumerate(ways):
                here, there = link["ends"][at], link["ends"][1 - at]
                self.ends[names[at]] = (here, there, way["delay_ms"])
        self.other = {}
        for name, (here, there, _) in self.ends.items():
            self.other[name] = next(
                each for each, (a, b, _) in self.ends.items() if (a, b) == (there, here)
            )

    def passed(self, interface: str, number: int) -> list[tuple[int, str]]:
        """Return when and where a frame was seen; of those alike, the one in turn."""
        time_ns, content = self.frames[interface][number - 1]
        frame = identity(content)
        turn = self.seen[interface][frame].index(time_ns)
        found = [(each[frame][turn], name) for name, each in self.seen.items() if frame in each]
        hops = self.hops(self.ends[interface][0])

        def on_way(seen: tuple[int, str]) -> tuple[int, int, int]:
            """Order one nanosecond's captures by the way: a node, and what leaves it, is later."""
            here, there, _ = self.ends[seen[1]]
            return seen[0], hops[here], hops[there]

        return [(each - self.zero, name) for each, name in sorted(found, key=on_way)]

    def hops(self, node: str) -> dict[str, int]:
        """Return how many links away from a node each node is."""
        found, reached = {node: 0}, [node]
        for here in reached:
            for one, there, _ in self.ends.values():
                if one == here and there not in found:
                    found[there] = found[here] + 1
                    reached.append(there)
        return found


def expected(
    trial: Trial, nodes: dict[str, tuple[float, float]], passed: list[tuple[int, str]], t: float
) -> tuple[float, float] | str | None:
    """Return where a packet is: on a wire, or in the queue of an interface."""
    for (before, one), (after, other) in itertools.pairwise(passed):
        if before <= t < after:
            if trial.ends[one][0] == trial.ends[other][0]:
                return other
            return on_way(trial, nodes, one, other, (t - before) / (after - before))
    return None


def on_way(
    trial: Trial, nodes: dict[str, tuple[float, float]], one: str, other: str, part: float
) -> tuple[float, float]:
    """Return a place on the links between two captures, each with its share of the delay."""
    leaving = shortest(trial, one, other)
    delays = [trial.ends[name][2] or 1e-6 for name in leaving]
    done = 0.0
    for name, delay in zip(leaving, delays, strict=True):
        share = delay / sum(delays)
        if part <= done + share or name == leaving[-1]:
            here, there, _ = trial.ends[name]
            return wire(nodes[here], nodes[there], (part - done) / share)
        done += share
    raise AssertionError(one)


def shortest(trial: Trial, one: str, other: str) -> list[str]:
    """Return the interfaces by which packets leave nodes on the way from one to another."""
    ways = [[one]]
    while True:
        way = ways.pop(0)
        if trial.other[way[-1]] == other:
            return way
        node = trial.ends[way[-1]][1]
        ways += [[*way, name] for name, end in trial.ends.items() if end[0] == node]


def compare(tab: Tab, folder: Path, page: Path, count: int, seed: int = 1) -> list[Any]:
    """Draw packets and instants, and return those whose place on the page is another one."""
    trial, nodes, dice = Trial(folder), drawing(page), Random(seed)
    tab.open(page, 1400)
    packets = tab.run(PACKETS)
    drawn = list[tuple[int, float, str, int]]()
    while len(drawn) < count:
        i = dice.randrange(len(packets))
        number, interface, first, until, lost = packets[i]
        if until > first and not lost:
            drawn.append((i, first + dice.random() * (until - first), interface, number))
    places = tab.run(DRAWN % json.dumps([each[:2] for each in drawn]))
    wrong = []
    for (i, t, interface, number), place in zip(drawn, places, strict=True):
        passed = trial.passed(interface, number)
        wanted = expected(trial, nodes, passed, t)
        if isinstance(wanted, str) or wanted is None:
            agrees = ((place and place[2]) or None) == wanted
        else:
            agrees = (
                bool(place) and max(abs(a - b) for a, b in zip(wanted, place, strict=False)) < 0.11
            )
        if not agrees:
            wrong.append((i, t, wanted, place, passed))
    return wrong


if __name__ == "__main__":
    with browser() as opened:
        others = compare(opened, Path(sys.argv[1]), Path(sys.argv[2]), 1000)
    print(*others[:5], sep="\n")
    print(f"{1000 - len(others)} of 1000 positions agree")
