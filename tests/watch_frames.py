"""How often a page of `testbed watch` is drawn, by Chromium's own trace.

python -m tests.watch_frames PAGE.html FRAGMENT [--slower 4] [--seconds 5]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.browser import Tab, browser

CATEGORIES = ("devtools.timeline", "disabled-by-default-devtools.timeline.frame")
WIDTH = 1400
IN_SIGHT = "watching.then((page) => page.active(page.state.t).length)"


def traced(tab: Tab, seconds: float) -> list[dict[str, Any]]:
    """Return the events of Chromium's trace while the page plays."""
    tab.call("Tracing.start", transferMode="ReturnAsStream", categories=",".join(CATEGORIES))
    tab.run("watching.then((page) => page.play(true))")
    tab.run(f"new Promise((done) => setTimeout(done, {seconds * 1e3}))")
    tab.call("Tracing.end")
    stream = tab.wait_for("Tracing.tracingComplete")["stream"]
    parts, ended = [], False
    while not ended:
        part = tab.call("IO.read", handle=stream)
        parts.append(part["data"])
        ended = part["eof"]
    events: list[dict[str, Any]] = json.loads("".join(parts))["traceEvents"]
    return events


def main() -> None:
    """Print how many frames were drawn in a second, and how long the page's script took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("fragment", help="the moment, as in the page's address: #t=3.2&speed=0.001")
    parser.add_argument("--slower", type=float, default=4)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    with browser() as tab:
        begun = time.monotonic()
        tab.visit(options.page.resolve().as_uri() + options.fragment, WIDTH)
        tab.run("watching.then(() => 0)")
        loaded_s = time.monotonic() - begun
        tab.call("Emulation.setCPUThrottlingRate", rate=options.slower)
        first = tab.run(IN_SIGHT)
        events = traced(tab, options.seconds)
        last = tab.run(IN_SIGHT)
    drawn = sorted(e["ts"] for e in events if e["name"] == "DrawFrame")
    script_ms = [e["dur"] / 1e3 for e in events if e["name"] == "FireAnimationFrame"]
    gaps_ms = np.diff(drawn) / 1e3
    load = os.getloadavg()[0]
    size_kb = options.page.stat().st_size / 1e3
    print(f"{options.page}: {size_kb:.0f} kB, there after {loaded_s:.2f} s")
    print(f"{first} to {last} packets under way; {options.slower:g} times slower; load {load:.2f}")
    rate = 1e6 * (len(drawn) - 1) / (drawn[-1] - drawn[0])
    print(f"{rate:.1f} frames a second; from one to the next: {spread(gaps_ms)} ms")
    print(f"the page's script in a frame: {spread(script_ms)} ms")


def spread(values: Any) -> str:
    """Return the median, the 95th percentile and the greatest."""
    middle, high, most = np.percentile(values, (50, 95, 100))
    return f"{middle:.1f} median, {high:.1f} 95 %, {most:.1f} at most"


if __name__ == "__main__":
    main()
