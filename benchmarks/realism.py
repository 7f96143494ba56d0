"""A router's queue with each of the things that machines and radios do, one by one and together.

    .venv/bin/python -m benchmarks.realism [--variants bbr cubic linux-reno] [--seeds 3]
    sudo .venv/bin/python -m benchmarks.realism --engine host

Prints the tables of docs/realism.md. The bottleneck has 50 Mbit/s and a queue of 104,857 bytes, and
no link a delay: what is held or drawn is then all that a round trip has beside the queue. Whole
trials of 15 s each. On the host engine, whose machine holds and delays by itself, there is one
case: none of these settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pandas as pd

from benchmarks.harness import first_flows, markdown_lines, parser_of
from testbed.engine import Engine
from testbed.guest.engine import GuestEngine
from testbed.runs.engine_choice import ENGINES
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Direction, Link, Queue
from testbed.scenario.realism import AGGREGATION_FIELDS, RECEIPT_FIELDS, with_realism

CASE_SECONDS = 15.0
NO_REALISM = "none of them"
REALISM_CASES: Mapping[str, tuple[tuple[str, ...], Mapping[str, float]]] = {  # fields, other values
    NO_REALISM: ((), {}),
    "aggregation": (AGGREGATION_FIELDS, {}),
    "interrupts held for 50 µs": (("hold_us",), {}),
    "interrupts held for 250 µs": (("hold_us",), {"hold_us": 250.0}),
    "costs and wake-ups": (("cost_us", "wake_us"), {}),
    "hosts: all but aggregation": (RECEIPT_FIELDS, {}),
    "hosts, interrupts held for 250 µs": (RECEIPT_FIELDS, {"hold_us": 250.0}),
    "`realistic`": ((*AGGREGATION_FIELDS, *RECEIPT_FIELDS), {}),
    "wake-ups of up to 10 ms": (("wake_us",), {"wake_us": 5000.0}),
}
REALISM_COLUMNS = ("drop_rate", "queue_mean_ms", "queue_p95_ms")


def case(name: str, variant: str, seed: int) -> Scenario:
    """Return a flow through the router, with a case's settings where `realistic` has some."""
    fields, values = REALISM_CASES[name]
    bottleneck = LinkSettings(50.0, queue=Queue("bfifo", limit_bytes=104_857))
    flow = Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant=variant)
    exact = Scenario("realism", router_bottleneck(bottleneck), (flow,), CASE_SECONDS, seed)
    realistic = with_realism(dataclasses.replace(exact, realistic=True))
    links = tuple(
        _with_fields(link, other, fields, values)
        for link, other in zip(exact.network.links, realistic.network.links, strict=True)
    )
    network = dataclasses.replace(exact.network, links=links)
    return dataclasses.replace(exact, network=network, axes={"case": name, "variant": variant})


def _with_fields(
    link: Link, other: Link, fields: Sequence[str], values: Mapping[str, float]
) -> Link:
    """Return the link with another's fields; those that it sets have these values, where given."""

    def direction(exact: Direction, realistic: Direction) -> Direction:
        settings = {name: getattr(realistic, name) for name in fields}
        settings |= {name: value for name, value in values.items() if settings[name]}
        return dataclasses.replace(exact, **settings)

    forward, reverse = map(direction, link.directions, other.directions)
    return dataclasses.replace(link, forward=forward, reverse=reverse)


def measured(scenarios: Sequence[Scenario], engine: Engine) -> pd.DataFrame:
    """Run the scenarios, and return a row for each."""
    return pd.DataFrame(
        [
            {**scenario.axes, **row[[*REALISM_COLUMNS, "verdict"]]}
            for scenario, row in first_flows(scenarios, engine)
        ]
    )


def table(measured_rows: pd.DataFrame) -> str:
    """Return the table of docs/realism.md: a line for each case, three columns for each variant."""
    variants = list(measured_rows["variant"].unique())
    heads = [head for name in variants for head in (f"{name}: dropped", "queue, ms", "95 %")]
    lines = []
    for name, rows in measured_rows.groupby("case", sort=False):
        cells = [str(name)]
        for variant in variants:
            averages = rows.loc[rows["variant"] == variant, [*REALISM_COLUMNS]].astype(float).mean()
            cells += "{:.2%}|{:.2f}|{:.2f}".format(*averages).split("|")
        lines.append(cells)
    return "\n".join(markdown_lines(["what is on", *heads], lines))


def main() -> None:
    """Print the table, and how many of its trials are valid."""
    parser = parser_of(__doc__)
    parser.add_argument("--variants", nargs="+", default=["bbr", "cubic", "linux-reno"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--engine", choices=ENGINES, default=GuestEngine.name)
    options = parser.parse_args()
    engine = ENGINES[options.engine]()
    cases = list(REALISM_CASES) if engine.virtual_time else [NO_REALISM]
    rows = measured(
        [
            case(name, variant, seed)
            for name in cases
            for variant in options.variants
            for seed in range(1, options.seeds + 1)
        ],
        engine,
    )
    print(table(rows))
    print(f"{(rows['verdict'] == 'valid').sum()} of {len(rows)} trials are valid")


if __name__ == "__main__":
    main()
