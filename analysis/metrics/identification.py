"""The columns that say which flow of which trial a row is."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator

from analysis.captures.flow_tables import Metric
from analysis.metrics.metric import ColumnGroup, MeasuredFlow, Row
from analysis.metrics.metric_rows import write_axes
from analysis.trials.labels import queue_label
from testbed.scenario.model import Flow, Scenario, plain
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
        "tcp; cbr: UDP at a constant bit rate; video; workload: many "
        "transfers; command: programs of one's own; or call: a codec's datagrams",
    ),
    Metric("src", "", "the node that sends the data"),
    Metric("dst", "", "the node that receives the data"),
    Metric("variant", "", "the TCP variant that the scenario asks for"),
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
            "kind": str(flow.kind),
            "src": flow.src,
            "dst": flow.dst,
            "variant": flow.variant or "",
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
        own = _digest(dataclasses.replace(flow, variant=None))
        parts = (bare.hash.encode(), *whole[:number], own, *whole[number + 1 :])
        yield hashlib.sha256(b"".join(parts)).hexdigest()[:10]


def _digest(flow: Flow) -> bytes:
    return hashlib.sha256(json.dumps(plain(flow)).encode()).digest()


def _seen(flow: MeasuredFlow) -> Row:
    return {"variant_seen": flow.record.variant_seen}


IDENTIFICATION_GROUP = ColumnGroup(IDENTIFICATION_COLUMNS, _seen)
