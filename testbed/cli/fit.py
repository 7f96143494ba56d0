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
    if fitted.rate_varied:
        line = f"{out}: its rate is constant, the capture's was not: it will not reproduce the flow"
        console.print(line, soft_wrap=True)
    console.print(f"try it: testbed run {name}", soft_wrap=True)
    return 0


def _lines(fitted: FittedNetwork) -> Iterator[str]:
    sent = f"{_number(fitted.sent_bytes / 1e6)} MB in {_number(fitted.duration_s)} s"
    yield f"{fitted.capture}: {fitted.flow}, {sent}"
    waiting = f"while packets wait, {100 * fitted.waiting:.0f} % of the time"
    yield f"rate        {_interval(fitted.rate_mbit)} Mbit/s, {waiting}"
    yield f"round trip  {_interval(fitted.rtt_ms)} ms, when nothing waits"
    full = (
        f"by {fitted.full_losses} losses when it was full" if fitted.full_losses else "never full"
    )
    if math.isnan(fitted.buffer_kb.low):
        full = "rate times round trip, in the scenario alone: packets did not wait"
    elif fitted.rate_varied:
        full = "the most that waited: the rate changed, so neither buffer nor loss can be told"
    yield f"buffer      {_interval(fitted.buffer_kb)} kB, {full}"
    if fitted.rate_varied:
        why = f"{fitted.chance_losses} losses, which may be the buffer's"
        most = _number(fitted.loss_percent.high)
        yield f"loss        not known, at most {most} %: {why}; none in the scenario"
    else:
        yield f"loss        {_interval(fitted.loss_percent)} %, {fitted.chance_losses} by chance"
    yield from (f"note: {each}" for each in fitted.notes)


def _number(value: float) -> str:
    """Return three digits or all before the point, never a power of ten for a large number."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _interval(estimate: FittedNumber) -> str:
    if math.isnan(estimate.low):
        return f"not known; {_number(estimate.value)}"
    if math.isnan(estimate.high):
        return f"at least {_number(estimate.value)}"
    return f"{_number(estimate.value)} ({_number(estimate.low)} to {_number(estimate.high)})"
