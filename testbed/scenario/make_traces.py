"""The traces that come with the testbed, made by a program: the same numbers each time.

`python -m testbed.scenario.make_traces` writes them. They are models, not recordings: of a
cellular link in a moving car, of a satellite link that is handed over, of a link with two rates.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping

from testbed.scenario.network import FRAME_BYTES
from testbed.scenario.trace import TRACE_FOLDER, TRACE_SUFFIX

TUNNEL_S = (38, 40)  # without reception


def opportunities(rate_mbit: Callable[[int], float], duration_ms: int) -> Iterator[int]:
    """Yield the times at which a link can send whose rate may differ from ms to ms."""
    saved = 0.0
    for ms in range(1, duration_ms):
        saved += rate_mbit(ms - 1) * 1e3 / (8 * FRAME_BYTES)
        while saved >= 1:
            saved -= 1
            yield ms
    yield duration_ms  # where the trace starts over


def _driving() -> Iterator[int]:
    """Return a cellular link in a moving car, 60 s long.

    Its rate is 4 Mbit/s in the geometric mean, times a random walk of the logarithm that returns to
    it in about 5 s (fading as a car passes streets), in steps of 20 ms as a scheduler's, with a
    tunnel of two seconds.
    """
    dice = random.Random("driving")
    rates, level = [], 0.0
    for step in range(3000):
        level += -level / 250 + dice.gauss(0, 0.08)
        second = step / 50
        lost = TUNNEL_S[0] <= second < TUNNEL_S[1]
        rates.append(0.0 if lost else min(12.0, 4 * math.exp(level)))
    return opportunities(lambda ms: rates[ms // 20], 60_000)


def _satellite() -> Iterator[int]:
    """Return a satellite link, 30 s long.

    Every 15 s another satellite takes over, after 100 ms without any; its rate varies a little from
    second to second.
    """
    dice = random.Random("satellite")
    rates = [base * dice.uniform(0.85, 1.0) for base in (9.0, 5.0) for _ in range(15)]
    return opportunities(lambda ms: 0.0 if ms % 15_000 < 100 else rates[ms // 1000], 30_000)


def _step() -> Iterator[int]:
    """Return 10 s: 10 Mbit/s, and 2 Mbit/s in the second half."""
    return opportunities(lambda ms: 2.0 if ms >= 5_000 else 10.0, 10_000)


TRACES: Mapping[str, Callable[[], Iterator[int]]] = {
    "driving": _driving,
    "satellite": _satellite,
    "step": _step,
}


def text_of(name: str) -> str:
    """Return the text of a trace's file."""
    return "".join(f"{ms}\n" for ms in TRACES[name]())


if __name__ == "__main__":
    for each in TRACES:
        (TRACE_FOLDER / f"{each}{TRACE_SUFFIX}").write_text(text_of(each))
