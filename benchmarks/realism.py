"""A router's queue with each of the things that machines and radios do, one by one and together.

    .venv/bin/python -m benchmarks.realism [--variants bbr cubic linux-reno] [--seeds 3]

Prints the table of docs/realism.md. The bottleneck has 50 Mbit/s and a queue of 104,857 bytes, and
no link a delay: what is held or drawn is then all that a round trip has beside the queue. Whole
trials in the guest, of 15 s each.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from analysis.results.reduction import reduction_of
from testbed.guest.engine import GuestEngine
from testbed.plan.plan import tasks
from testbed.runs.engine_choice import Choice
from testbed.runs.sweep import run_all
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Direction, Link, Queue
from testbed.scenario.realism import AGGREGATION_FIELDS, RECEIPT_FIELDS, with_realism
from testbed.store import Status, open_trial

CASE_SECONDS = 15.0
REALISM_CASES: Mapping[str, tuple[tuple[str, ...], Mapping[str, float]]] = {  # fields, other values
    "none of them": ((), {}),
    "aggregation": (AGGREGATION_FIELDS, {}),
    "interrupts held for 50 µs": (("hold_us",), {}),
    "interrupts held for 250 µs": (("hold_us",), {"hold_us": 250.0}),
    "costs and wake-ups": (("cost_us", "wake_us"), {}),
    "hosts: all but aggregation": (RECEIPT_FIELDS, {}),
    "`realistic`": ((*AGGREGATION_FIELDS, *RECEIPT_FIELDS), {}),
    "wake-ups of up to 10 ms": (("wake_us",), {"wake_us": 5000.0}),
}
REALISM_COLUMNS = ("drop_rate", "queue_mean_ms", "queue_p95_ms", "duplicate_acks")


def case(name: str, variant: str, seed: int) -> Scenario:
    """Return a flow through the router, with the fields of a case where `realistic` sets them."""
    fields, values = REALISM_CASES[name]
    bottleneck = LinkSettings(50.0, queue=Queue("bfifo", limit_bytes=104_857))
    flow = Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant=variant)
    exact = Scenario("realism", router_bottleneck(bottleneck), (flow,), CASE_SECONDS, seed)
    made = with_realism(dataclasses.replace(exact, realistic=True))
    links = tuple(
        _mixed(link, full, fields, values)
        for link, full in zip(exact.network.links, made.network.links, strict=True)
    )
    network = dataclasses.replace(exact.network, links=links)
    return dataclasses.replace(exact, network=network, axes={"case": name, "variant": variant})


def _mixed(link: Link, full: Link, fields: Sequence[str], values: Mapping[str, float]) -> Link:
    """Return the link with these fields as the full one has them, or with their other values."""

    def direction(own: Direction, other: Direction) -> Direction:
        found = {name: getattr(other, name) for name in fields}
        found |= {name: value for name, value in values.items() if found[name]}
        return dataclasses.replace(own, **found)

    forward, reverse = map(direction, link.directions, full.directions)
    return dataclasses.replace(link, forward=forward, reverse=reverse)


def measured(scenarios: Sequence[Scenario]) -> pd.DataFrame:
    """Run the scenarios, and return a row for each."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="testbed-benchmark-", dir="/var/tmp") as name:
        choice = Choice(GuestEngine(), "benchmark")
        for each in run_all(tasks(scenarios), choice, Path(name) / "out", lambda _event: None):
            assert each.record.status is Status.OK, each.record.reason
            row = reduction_of(open_trial(each.path)).flows.iloc[0]
            rows.append({**each.scenario.axes, **row[[*REALISM_COLUMNS, "verdict"]]})
    return pd.DataFrame(rows)


def main() -> None:
    """Print a table for each variant."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--variants", nargs="+", default=["bbr", "cubic", "linux-reno"])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    found = measured(
        [
            case(name, variant, seed)
            for name in REALISM_CASES
            for variant in options.variants
            for seed in range(1, options.seeds + 1)
        ]
    )
    print("| variant | what is on | dropped | queue, ms | 95 % | duplicate ACKs | valid |")
    print("|---|---|---|---|---|---|---|")
    for (variant, name), rows in found.groupby(["variant", "case"], sort=False):
        dropped, mean, high, again = (
            rows[column].astype(float).mean() for column in REALISM_COLUMNS
        )
        valid = f"{(rows['verdict'] == 'valid').sum()} of {len(rows)}"
        print(
            f"| {variant} | {name} | {dropped:.2%} | {mean:.2f} | {high:.2f} | {again:.0f} "
            f"| {valid} |"
        )


if __name__ == "__main__":
    main()
