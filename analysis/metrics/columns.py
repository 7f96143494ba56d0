"""The table of column groups, in the order of metrics.csv; every report prints the definitions.

A metric is a definition and its computation in the file of its group; a new group adds a line here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator

import pandas as pd

from analysis.captures.flow_tables import Metric
from analysis.metrics.datagrams import DATAGRAM_GROUP
from analysis.metrics.delays import DELAY_GROUP
from analysis.metrics.loss_columns import LOSS_GROUP
from analysis.metrics.metric import ColumnGroup, MeasuredFlow, Row
from analysis.metrics.metric_rows import write_axes
from analysis.metrics.packet_counts import (
    KERNEL_COUNT_GROUP,
    LIMIT_GROUP,
    PACKET_COUNT_GROUP,
    REORDERING_GROUP,
)
from analysis.metrics.rates import (
    COMPLETION_GROUP,
    FAIRNESS_GROUP,
    RATE_GROUP,
    STEADINESS_GROUP,
    add_fairness,
    unknown_fairness,
)
from analysis.metrics.video_columns import VIDEO_GROUP
from analysis.trials.labels import queue_label
from analysis.trials.packets import NAN
from testbed.scenario.model import Flow, Scenario, plain
from testbed.scenario.program_numbers import MEASURED_PREFIX
from testbed.scenario.variations import axes_of
from testbed.store.names import VERDICT_FILE
from testbed.store.reading import Trial

IDENTIFICATION_COLUMNS = (
    Metric("experiment", "", "name of the experiment"),
    Metric("trial", "", "the trial's directory"),
    Metric("engine", "", "where it ran: guest (own kernel, virtual time) or host"),
    Metric("status", "", "ok, failed or unsupported; only ok has numbers"),
    Metric(
        "verdict",
        "",
        "whether the numbers can be trusted: valid, suspect or invalid, the worst of the trial's "
        f"checks ({VERDICT_FILE}), or unknown if the trial cannot be judged; statistics leave out "
        "invalid trials",
    ),
    Metric("why", "", "what the worst check found; empty if all are valid"),
    Metric("topology", "", "the network"),
    Metric("queue", "", "the bottleneck's queue and its limit"),
    Metric("flow", "", "the flow's name in the scenario; parallel connections are one flow"),
    Metric(
        "kind",
        "",
        "tcp; cbr: UDP at a constant bit rate; video; workload: many transfers; command: programs "
        "of one's own; call: a codec's datagrams; or stack: a transport in user space",
    ),
    Metric("src", "", "the node that sends the data"),
    Metric("dst", "", "the node that receives the data"),
    Metric(
        "variant",
        "",
        "the TCP variant that the scenario asks for; of a stack its name and its control",
    ),
    Metric("variant_seen", "", "the congestion control that the sender's socket reported"),
    Metric("label", "", "a short text that tells the trial from the others of its experiment"),
    Metric("axes", "", "the trial's place on its experiment's axes: `name=value; …`"),
    Metric(
        "setting",
        "",
        "a hash of the scenario without its seed and this flow's own variant: rows with the same "
        "setting and variant are repeats",
    ),
    Metric("seed", "", "the scenario's seed", count=True),
)


def identity_rows(trial: Trial) -> Iterator[Row]:
    """Yield, for each flow, the columns that are known before it runs."""
    scenario = trial.scenario
    of_trial = {
        "experiment": scenario.experiment,
        "trial": trial.path.name,
        "engine": trial.record.engine,
        "status": str(trial.record.status),
        "verdict": "",
        "why": "",
        "topology": scenario.network.name,
        "queue": queue_label(scenario.network.bottleneck_queue),
        "variant_seen": "",
        "label": scenario.label,
        "axes": write_axes(axes_of(scenario)),
        "seed": scenario.seed,
    }
    for flow, setting in zip(scenario.flows, settings(scenario), strict=True):
        yield of_trial | {
            "flow": flow.name,
            "kind": str(flow.sort),
            "src": flow.src,
            "dst": flow.dst,
            "variant": flow.variant or (flow.command.stack if flow.command else ""),
            "setting": setting,
        }


def settings(scenario: Scenario) -> Iterator[str]:
    """Yield, for each flow, a hash of the scenario without the flow's variant.

    The seed and what only observes are not in it.
    """
    bare = dataclasses.replace(
        scenario,
        flows=(),
        seed=0,
        label="",
        axes={},
        captures=(),
        snaplen_bytes=0,
        sample_interval_ms=0,
    )
    flows = scenario.unplaced.flows
    whole = [_digest(flow) for flow in flows]
    for number, flow in enumerate(flows):
        digest = _digest(dataclasses.replace(flow, variant=None))
        parts = (bare.hash.encode(), *whole[:number], digest, *whole[number + 1 :])
        yield hashlib.sha256(b"".join(parts)).hexdigest()[:10]


def _digest(flow: Flow) -> bytes:
    return hashlib.sha256(json.dumps(plain(flow)).encode()).digest()


def _seen(flow: MeasuredFlow) -> Row:
    return {"variant_seen": flow.record.variant_seen}


IDENTIFICATION_GROUP = ColumnGroup(IDENTIFICATION_COLUMNS, _seen)


COLUMN_GROUPS = (
    IDENTIFICATION_GROUP,
    RATE_GROUP,
    PACKET_COUNT_GROUP,
    KERNEL_COUNT_GROUP,
    LIMIT_GROUP,
    LOSS_GROUP,
    REORDERING_GROUP,
    DELAY_GROUP,
    STEADINESS_GROUP,
    FAIRNESS_GROUP,
    VIDEO_GROUP,
    COMPLETION_GROUP,
    DATAGRAM_GROUP,
)

ALL_METRICS = tuple(metric for group in COLUMN_GROUPS for metric in group.columns)
METRIC_COLUMNS = tuple(metric.name for metric in ALL_METRICS)
COUNT_COLUMNS = tuple(metric.name for metric in ALL_METRICS if metric.count)
TEXT_COLUMNS = METRIC_COLUMNS[: METRIC_COLUMNS.index("seed")]
OPTION_COLUMNS = frozenset(metric.name for metric in ALL_METRICS if metric.reads_options)
NUMBER_COLUMNS = tuple(name for name in METRIC_COLUMNS if name not in TEXT_COLUMNS)

# Rows that agree in these are one cell: the same trial except for its seed.
CELL_COLUMNS = ("experiment", "topology", "queue", "engine", "variant", "flow", "setting")


def number_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a table of flows that have numbers, those of programs last."""
    return [*frame.columns.intersection(list(NUMBER_COLUMNS)), *measured_columns(frame.columns)]


def measured_columns(names: Iterable[str]) -> list[str]:
    """Return the columns that have numbers which programs printed."""
    return sorted({name for name in names if name.startswith(MEASURED_PREFIX)})


def is_number_column(name: str) -> bool:
    """Return whether a column of this name, if there is one, has numbers."""
    return name in NUMBER_COLUMNS or name.startswith(MEASURED_PREFIX)


def flow_table(trial: Trial, measured: Iterable[MeasuredFlow]) -> pd.DataFrame:
    """Return a row for each flow of the scenario; those that were not measured have no numbers."""
    flows = {flow.record.name: flow for flow in measured}
    rows = [
        row | (_measured_row(flows[row["flow"]]) if row["flow"] in flows else {})
        for row in identity_rows(trial)
    ]
    frame = pd.DataFrame(rows, columns=list(METRIC_COLUMNS))
    if flows:
        add_fairness(frame, flows)
        frame[unknown_fairness(trial.scenario)] = NAN
    return frame


def _measured_row(flow: MeasuredFlow) -> Row:
    """Return a flow's columns, except for those that all flows of the trial decide."""
    row = {name: value for group in COLUMN_GROUPS for name, value in group.measure(flow).items()}
    unknown = OPTION_COLUMNS if flow.has_cut_headers else ()
    return {name: value for name, value in row.items() if name not in unknown}
