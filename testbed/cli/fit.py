"""`testbed fit`: the network that a capture's flow crossed, as a scenario to run."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import UsageError
from testbed.machine.atomic import replace
from testbed.runs.console import console

if TYPE_CHECKING:
    from analysis.statistics.fitting import FittedNetwork, FittedNumber


def fit_capture(options: argparse.Namespace) -> int:
    """Run `testbed fit`: print the estimates, and write the scenario."""
    from analysis.statistics.fitting import fit

    out: Path = options.out
    if out.exists():
        raise UsageError(f"{out}: it exists already", "name another with --out, or remove it")
    fitted = fit(options.capture, options.flow, tunnels=options.tunnels)
    scenario = fitted.scenario().to_json()
    for line in _lines(fitted):
        console.print(line, soft_wrap=True, highlight=False)
    replace(out, lambda aside: aside.write_text(scenario))
    name = out if out.is_absolute() else f"./{out}"
    console.print(f"{out}: the flow's congestion control is not known, cubic stands for it")
    console.print(f"try it: testbed run {name}", soft_wrap=True)
    return 0


def _lines(fitted: FittedNetwork) -> Iterator[str]:
    megabytes = fitted.sent_bytes / 1e6
    yield f"{fitted.capture}: {fitted.flow}, {megabytes:.3g} MB in {fitted.duration_s:.3g} s"
    waiting = f"while packets wait, {100 * fitted.waiting:.0f} % of the time"
    yield f"rate        {_interval(fitted.rate_mbit)} Mbit/s, {waiting}"
    yield f"round trip  {_interval(fitted.rtt_ms)} ms, when nothing waits"
    full = (
        f"by {fitted.full_losses} losses when it was full" if fitted.full_losses else "never full"
    )
    if math.isnan(fitted.buffer_kb.low):
        full = "rate times round trip, in the scenario alone: packets did not wait"
    yield f"buffer      {_interval(fitted.buffer_kb)} kB, {full}"
    yield f"loss        {_interval(fitted.loss_percent)} %, {fitted.chance_losses} by chance"
    yield from (f"note: {each}" for each in fitted.notes)


def _interval(estimate: FittedNumber) -> str:
    if math.isnan(estimate.low):
        return f"not known; {estimate.value:.3g}"
    if math.isnan(estimate.high):
        return f"at least {estimate.value:.3g}"
    return f"{estimate.value:.3g} ({estimate.low:.3g} to {estimate.high:.3g})"
