"""ns-2's traces as numbers, and its flows as rows of ours."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pandas as pd
import pytest

from analysis.claims.samples import Reference
from benchmarks import ns2_dumbbell
from benchmarks.ns2_dumbbell import (
    TRACE_NAMES,
    OracleRun,
    load_runs,
    measured,
    pair_runs,
    phase_runs,
    queue_runs,
)
from benchmarks.simulators import has_ns2
from experiments.kapre_saxena_joshi_hattikar.phase_figures import ns2_rows
from experiments.kapre_saxena_joshi_hattikar.simulated import ORACLE, ns2_metrics
from tests.papers import answers


def run_of(measured_from_s: float = 0.0) -> OracleRun:
    """The first run of the table, as if it lasted a second."""
    first = next(load_runs(1))
    return dataclasses.replace(first, seconds=1.0, measured_from_s=measured_from_s)


def trace(*events: tuple[str, float, int, int, str, int]) -> pd.DataFrame:
    """A trace of one flow, whose packets have 1040 bytes."""
    rows = [
        (event, time, one, other, kind, 1040 if kind == "tcp" else 40, "1", number)
        for event, time, one, other, kind, number in events
    ]
    return pd.DataFrame(rows, columns=list(TRACE_NAMES))


LOSS = trace(
    *(("+", 0.1 + n / 100, 0, 1, "tcp", n) for n in range(3)),
    *(("+", 0.11 + n / 100, 1, 2, "tcp", n) for n in range(3)),
    ("d", 0.12, 1, 2, "tcp", 1),
    ("r", 0.14, 2, 3, "tcp", 0),
    ("r", 0.17, 1, 0, "ack", 0),
    ("r", 0.16, 2, 3, "tcp", 2),
    ("r", 0.19, 1, 0, "ack", 0),  # a duplicate
    ("+", 0.20, 0, 1, "tcp", 1),
    ("+", 0.21, 1, 2, "tcp", 1),
    ("r", 0.25, 2, 3, "tcp", 1),
    ("r", 0.28, 1, 0, "ack", 2),
)


def test_a_trace_with_a_loss() -> None:
    row = measured(LOSS, "1", run_of())
    assert row["throughput_mbps"] == pytest.approx(3 * 1040 * 8e-6)
    assert row["goodput_mbps"] == pytest.approx(3 * 1000 * 8e-6)
    assert row["drop_rate"] == pytest.approx(1 / 4)
    assert row["oneway_ms"] == pytest.approx(40)  # the repeated one has two sendings
    assert row["rtt_ms"] == pytest.approx(70)  # the last ACK covers a retransmission
    assert row["recovery_latency_ms"] == pytest.approx((70 + 170 + 160) / 3)


def test_what_was_before_the_measured_interval_is_left_out() -> None:
    row = measured(LOSS, "1", run_of(0.5))
    assert row["throughput_mbps"] == row["drop_rate"] == 0
    assert math.isnan(row["rtt_ms"])


def test_delays_are_drawn_and_phases_are_not() -> None:
    middles = {one.middle_ms for one in load_runs(20)}
    assert len(middles) == 20 and max(middles) - min(middles) > 0.7 * ns2_dumbbell.SERVICE_MS
    assert all(abs(each - 10) <= ns2_dumbbell.SERVICE_MS / 2 for each in middles)
    steps = {one.middle_ms for one in phase_runs(1)}
    assert 2 * (max(steps) - min(steps)) == pytest.approx(ns2_dumbbell.SERVICE_MS)


@pytest.mark.parametrize("table", ns2_dumbbell.ORACLE_TABLES)
def test_what_is_stored_is_what_the_command_runs(table: str) -> None:
    """With the further networks of the claims that twenty left open, and in their order."""
    file, _ = ns2_dumbbell.ORACLE_TABLES[table]
    runs = list(ns2_dumbbell.runs_of(table, 20))
    stored = pd.read_csv(ns2_dumbbell.ORACLE_FOLDER / file)
    places = stored[list(runs[0].place)].drop_duplicates()
    assert places.to_dict("records") == [dict(one.place) for one in runs]


@pytest.mark.skipif(not has_ns2(), reason="ns-2 is not installed")
def test_ns2_runs() -> None:
    short = dataclasses.replace(next(load_runs(1)), seconds=4.0, measured_from_s=3.0)
    tcp, cbr = ns2_dumbbell.flows_of(short)
    assert (tcp["flow"], cbr["flow"]) == ("tcp1", "cbr")
    assert tcp["throughput_mbps"] == pytest.approx(1.04 * tcp["goodput_mbps"])
    assert cbr["throughput_mbps"] == pytest.approx(1, abs=0.05) and 60 < tcp["rtt_ms"] < 70


def test_the_tables_become_flows_of_our_experiments(tmp_path: Path) -> None:
    """Those of the script's own columns, which the judges select by."""
    numbers = measured(LOSS, "1", run_of())
    for name, runs in (("load", load_runs), ("pairs", pair_runs), ("queues", queue_runs)):
        file, _ = ns2_dumbbell.ORACLE_TABLES[name]
        rows = [
            {**one.place, "flow": flow, **numbers}
            for one in runs(2)
            for flow in (*(f"tcp{n + 1}" for n in range(len(one.variants))), "cbr")
        ]
        pd.DataFrame(rows).to_csv(tmp_path / file, index=False)
    table = ns2_metrics(Reference(tmp_path))
    assert {name: len(rows) for name, rows in table.items()} == {
        "dumbbell-load": 2 * 2 * 4 * 10 * 2,
        "dumbbell-pairs": 2 * 2 * 4 * 10 * 3,
        "dumbbell-queues": 2 * 4 * 2,
    }  # fmt: skip
    profiles = {rows["axes"].str.contains("profile=in ns-2").all() for rows in table.values()}
    assert profiles == {True} and set(table["dumbbell-load"]["flow"]) == {"tcp", "cbr"}
    answered = {each.id for each in answers({}, reference=tmp_path) if each.profile}
    assert {"KS1.1", "KS2.4", "KS3.3", "JH1.5", "JH2.4", "JH3.2"} <= answered
    assert "KS3.1" not in answered  # of seconds, which the tables have not
    assert ns2_metrics(Reference()) == {}


def test_the_stored_phases_are_read() -> None:
    phases = ns2_rows(ORACLE)
    assert set(phases["variant"]) == {"vegas", "newreno"} and phases["more_ms"].min() == 0
