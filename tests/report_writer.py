"""Results folders as the five experiments leave them, with numbers made up instead of measured:
whole trials with their reduced tables, but without captures. Nothing in it is a finding."""

from __future__ import annotations

import base64
import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.figures import static_renderer
from analysis.figures.figure import Figure
from analysis.figures.general import presentation
from analysis.metrics.columns import TEXT_COLUMNS, identity_rows
from analysis.metrics.digest import (
    DELAY_QUANTILES,
    QUANTILE_FRACTIONS,
    RTT_QUANTILES,
    THROUGHPUT_SERIES,
    series_table,
)
from analysis.metrics.links import link_table
from analysis.results import reduction
from analysis.results.reduction import Reduction
from analysis.results.stored_tables import as_arrow
from analysis.transfers.transfer_rows import transfer_table
from analysis.verdict.checks import make_check, unknown
from analysis.verdict.verdict import worst_verdict
from experiments.catalogue import EXPERIMENTS
from testbed.machine.safe_files import make_folder
from testbed.scenario.model import Flow, FlowKind, Profile, Scenario
from testbed.scenario.named_networks import LinkSettings, NamedNetwork, NetworkName
from testbed.scenario.network import Queue
from testbed.store.names import CAPTURES_FOLDER, RECORD, SCENARIO, VERDICT_FILE
from testbed.store.reading import Trial, open_trial
from testbed.store.records import CaptureRecord, Record, Status
from tests.sealing import seal

VARIANTS = "tahoe reno newreno vegas sack veno cubic bbr".split()
STRENGTH = dict(zip(VARIANTS, (0.75, 0.85, 1.0, 0.6, 1.05, 0.95, 1.25, 1.6), strict=True))
STRENGTH["linux-reno"] = 1.0
QUEUES = "droptail red codel fq_codel pie cake".split()
AXES: Mapping[str, Mapping[str, Sequence[str | float]]] = {
    "router-bottleneck": {
        "variant": ("linux-reno", "cubic", "vegas", "bbr"),
        "queue": ("bfifo", "codel"),
        "path": ("receiver", "router"),
        "rate_mbit": (1.0,),
        "delay_ms": (0.0,),
        "duration_s": (60.0,),
    },
    "router-fairness": {
        "queue": ("bfifo", "codel"),
        "rate_mbit": (1.0,),
        "within_s": (0.1,),
        "duration_s": (60.0,),
    },
    "dumbbell-load": {
        "variant": VARIANTS,
        "cbr_mbit": tuple(map(float, range(1, 11))),
        "order": ("cbr-first", "tcp-first"),
        "window": ("small", "large"),
        "profile": ("ns2", "modern"),
        "duration_s": (60.0,),
    },
    "dumbbell-pairs": {
        "pair": tuple(f"{a}/{b}" for a, b in itertools.product(VARIANTS, VARIANTS)),
        "cbr_mbit": (1.0, 4.0, 7.0, 10.0),
        "window": ("large",),
        "profile": ("ns2",),
        "duration_s": (60.0,),
    },
    "dumbbell-queues": {
        "variant": ("reno", "sack"),
        "queue": QUEUES,
        "profile": ("ns2",),
        "duration_s": (80.0,),
    },
    "someones-own": {"variant": ("cubic", "bbr"), "target_ms": (1.0, 5.0, 20.0)},
}


def points(experiment: str, seeds: int) -> Iterator[tuple[dict[str, str | float], int]]:
    """Every combination of the experiment's axes, seed by seed."""
    axes = AXES[experiment]
    for seed in range(1, seeds + 1):
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values, strict=True)), seed


def scenario(experiment: str, point: Mapping[str, str | float], seed: int) -> Scenario:
    """A scenario like the experiment's."""
    dumbbell = experiment.startswith("dumbbell")
    flows = list(_flows(experiment, point))
    names = {k: v if isinstance(v, str) else f"{v:g}" for k, v in point.items()}
    queue = Queue(str(point.get("queue", "bfifo")), limit_packets=10 if dumbbell else 66)
    delay_ms = 10.0 if dumbbell else float(point.get("target_ms", 0.0))
    return Scenario(
        experiment=experiment,
        network=NamedNetwork(
            NetworkName.DUMBBELL if dumbbell else NetworkName.ROUTER_BOTTLENECK,
            LinkSettings(10.0 if dumbbell else 1.0, queue=queue, delay_ms=delay_ms),
            hosts=max(1, sum(flow.src.startswith("sender") for flow in flows)),
            access=LinkSettings(delay_ms=10.0, rate_mbit=10.0) if dumbbell else LinkSettings(),
        ).graph(),
        flows=tuple(flows),
        duration_s=float(point.get("duration_s", 20.0)),
        seed=seed,
        profile=Profile(str(point.get("profile", "modern"))),
        label="-".join(names[k] for k in names if k != "duration_s").replace("/", "-"),
        axes={**_first_values(experiment), **names},
    )


def _first_values(experiment: str) -> dict[str, str]:
    """Return a value for every axis of an experiment of the testbed's."""
    axes = EXPERIMENTS[experiment].axes if experiment in EXPERIMENTS else {}
    return {name: str(values[0]) for name, values in axes.items()}


def _flows(experiment: str, point: Mapping[str, str | float]) -> Iterator[Flow]:
    if experiment == "router-fairness":
        for number, name in enumerate(("linux-reno", "cubic", "vegas", "bbr"), start=1):
            yield Flow(name, FlowKind.TCP, f"sender{number}", "receiver", variant=name)
    elif "pair" in point:
        for number, name in enumerate(str(point["pair"]).split("/"), start=1):
            ends = f"sender{number}", f"receiver{number}"
            yield Flow(f"tcp{number}", FlowKind.TCP, *ends, variant=name)
    else:
        end = "receiver1" if experiment.startswith("dumbbell") else "receiver"
        yield Flow("tcp", FlowKind.TCP, "sender1", end, variant=str(point["variant"]))
    if experiment == "dumbbell-queues":
        yield Flow("cbr", FlowKind.CBR, "left", "right", 40.0, 20.0, rate_mbit=7.0)
    elif "cbr_mbit" in point:
        load = float(point["cbr_mbit"])
        yield Flow("cbr", FlowKind.CBR, "left", "right", rate_mbit=load)


def numbers(made: Scenario, dice: np.random.Generator) -> list[dict[str, float]]:
    """Metrics of a trial, a row a flow."""
    rate = made.network.bottleneck_mbit
    tcp = [flow for flow in made.flows if flow.kind is FlowKind.TCP]
    load = sum(flow.rate_mbit or 0 for flow in made.flows)
    left = max(0.03 * rate, rate - load) * 0.97
    if made.experiment == "dumbbell-queues":
        left = 0.8 * rate
    weights = {flow.name: STRENGTH[str(flow.variant)] * dice.normal(1, 0.03) for flow in tcp}
    rows = []
    for flow in made.flows:
        cbr = flow.kind is FlowKind.CBR
        strong = STRENGTH.get(flow.variant or "", 1.0)
        part = weights.get(flow.name, 0) / sum(weights.values())
        alone = 0.9 + 0.08 * min(strong, 1.2) / 1.2 if len(tcp) == 1 else 1.0
        got = min(flow.rate_mbit or 0, rate) if cbr else left * part * alone
        delay = (31 if rate == 10 else 5) + 6 * strong * (1 + load / 10) + dice.normal(0, 0.2)
        delay *= {"codel": 0.6, "fq_codel": 0.5, "cake": 0.5, "red": 0.8}.get(
            made.network.bottleneck_queue.discipline, 1.0
        )
        rows.append(
            {
                "throughput_mbps": got,
                "goodput_mbps": got * 0.95,
                "drop_rate": max(0.0, 0.002 * strong * (1 + load) + dice.normal(0, 0.0003)),
                "retransmitted": float(dice.poisson(20 * strong)),
                "rtt_min_ms": delay * 0.9,
                "rtt_mean_ms": delay * 2,
                "rtt_p95_ms": delay * 2.6,
                "owd_mean_ms": delay,
                "owd_p95_ms": delay * 1.4,
                "start_s": flow.start_s,
                "duration_s": made.stop_s(flow) - flow.start_s,
            }
        )
    return rows


def write(folder: Path, made: Scenario, **settings: str) -> Path:
    """One trial's directory; `verdict`, `why` and `status` as given."""
    status = Status(settings.get("status", "ok"))
    path = folder / f"{made.name}-guest"
    (path / CAPTURES_FOLDER).mkdir(parents=True)
    (path / SCENARIO).write_text(made.to_json())
    captures = tuple(
        CaptureRecord(f"captures/{node}.pcapng", node, node, (), 144, 1, 0)
        for node in ("sender1-eth0", "receiver1-eth0")
    )
    record = Record(
        status,
        "not in this kernel" if status is not Status.OK else "",
        engine="guest",
        virtual_time=True,
        seed=made.seed,
        kernel="Linux 6.1.1-testbed",
        versions={"iperf3": "3.12"},
        captures=captures,
    )
    (path / RECORD).write_text(record.to_json())
    seal(path)
    dice = np.random.default_rng(int(made.hash, 16))
    rows = _metrics(path, made, status, dice)
    if "verdict" in settings:
        rows["verdict"], rows["why"] = settings["verdict"], settings.get("why", "")
    checks = (make_check("rate", "left-eth0", True, 9.7, 10), unknown("gaps", "left-eth0", "-"))
    (path / VERDICT_FILE).write_text(worst_verdict(checks).to_json())
    series = _digest(made, rows, dice) if status is Status.OK else series_table([])
    store_tables(open_trial(path), rows, series)
    return path


def store_tables(trial: Trial, flows: pd.DataFrame, series: pd.DataFrame) -> None:
    """Write a reduction with these tables of flows and series."""
    reduction.store(Reduction(trial, {**tables_of(trial, flows), "series": as_arrow(series)}))


def tables_of(trial: Trial, flows: pd.DataFrame) -> dict[str, pa.Table]:
    """Return the tables of a reduction with this one of flows, but for its series."""
    frames = {"flows": flows, "links": link_table(trial, None)}
    frames["transfers"] = transfer_table(trial, None)
    return {name: as_arrow(frame) for name, frame in frames.items()}


def _metrics(path: Path, made: Scenario, status: Status, dice: np.random.Generator) -> pd.DataFrame:
    trial = open_trial(path)
    rows = [dict.fromkeys(TEXT_COLUMNS, "") | row for row in identity_rows(trial)]
    if status is Status.OK:
        known = numbers(made, dice)
        total = sum(each["goodput_mbps"] for each in known)
        for row, own in zip(rows, known, strict=True):
            row.update(own, share=own["goodput_mbps"] / total)
    return reduction.typed_flows(pd.DataFrame(rows)).fillna(dict.fromkeys(TEXT_COLUMNS, ""))


def _digest(made: Scenario, rows: pd.DataFrame, dice: np.random.Generator) -> pd.DataFrame:
    parts = []
    for _, row in rows.iterrows():
        times = np.arange(0.5, made.duration_s)
        own = (times > row["start_s"]) & (times < row["start_s"] + row["duration_s"])
        wave = 1 + 0.12 * np.sin(times / 3 + made.seed) + dice.normal(0, 0.04, len(times))
        got = row["throughput_mbps"] * wave
        if made.experiment == "dumbbell-queues" and row["kind"] == "tcp":
            got = np.where((times > 40) & (times < 60), 0.35 * got, 1.15 * got)
        spread = np.quantile(dice.gamma(9, 1 / 9, 2000), QUANTILE_FRACTIONS)
        parts.append(_part(row, THROUGHPUT_SERIES, times[own], got[own]))
        parts.append(_part(row, DELAY_QUANTILES, QUANTILE_FRACTIONS, row["owd_mean_ms"] * spread))
        if row["kind"] == "tcp":
            parts.append(_part(row, RTT_QUANTILES, QUANTILE_FRACTIONS, row["rtt_mean_ms"] * spread))
    return pd.concat(parts, ignore_index=True)


def _part(row: pd.Series, what: str, x: np.ndarray, value: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"flow": row["flow"], "what": what, "x": x, "value": value})


def write_experiment(folder: Path, experiment: str, seeds: int, most: int = 10**9) -> list[Path]:
    """All its trials, or the first ones."""
    made = (scenario(experiment, point, seed) for point, seed in points(experiment, seeds))
    return [write(folder, each) for each in itertools.islice(made, most)]


SKETCH_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAGqBsAAAAAElFTkSuQmCC"
)
SKETCH_SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'


def sketch(figure: Figure, folder: Path) -> list[Path]:
    """Write a figure's files, its data as they are, and in place of pictures a white point."""
    make_folder(folder)
    png, svg, data = paths = [folder / f"{figure.stem}.{end}" for end in ("png", "svg", "csv")]
    png.write_bytes(SKETCH_PNG)
    svg.write_text(SKETCH_SVG)
    static_renderer._write_data(figure.data, data, figure.number_format)
    return paths


@contextlib.contextmanager
def sketched() -> Iterator[None]:
    """Figures are sketched: for tests of what stands beside them, as drawing is what a report takes
    time for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(static_renderer, "save", sketch)
        yield


@contextlib.contextmanager
def first_figures(count: int = 1, *, drawn: bool = False) -> Iterator[None]:
    """Reports have only the first figures of each experiment, sketched unless they are `drawn`."""
    every = presentation.figures
    with contextlib.nullcontext() if drawn else sketched(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(presentation, "figures", lambda made: itertools.islice(every(made), count))
        yield
