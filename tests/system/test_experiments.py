"""Flows that begin or end at a router, as the papers have them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from analysis.results.reduction import reduce_trial
from experiments.catalogue import EXPERIMENTS
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import Queue
from tests.lab import packets, rate_mbit, run_trials
from tests.scenarios import with_network


def of(name: str, duration_s: float, **settings: str) -> Scenario:
    texts = {key: [text] for key, text in settings.items()} | {"duration_s": [str(duration_s)]}
    return EXPERIMENTS[name].scenarios(texts, 1, quick=False)[0]


def test_a_flow_to_the_router_is_held_by_its_acks_alone(tmp_path: Path) -> None:
    """The router's own address answers; data are not shaped, 1 Mbit/s of ACKs are."""
    trial = run_trials([of("router-bottleneck", 2, path="router", variant="vegas")], tmp_path)[0]
    data = packets(trial, "receiver:tcp", "tcp.len > 0")
    assert rate_mbit(data, 0.5, 2) > 10
    acks = packets(trial, "receiver:tcp", "tcp.len == 0 && tcp.srcport == 5201")
    assert 0.5 < rate_mbit(acks, 0.5, 2) < 1.05


def test_a_cbr_that_starts_at_the_bottleneck_has_the_drops_that_its_queue_counts(
    tmp_path: Path,
) -> None:
    scenario = of("dumbbell-load", 4, cbr_mbit="12", order="cbr-first", variant="reno")
    alone = dataclasses.replace(scenario, flows=scenario.flows[1:], measure_from_s=0)
    trial = run_trials([alone], tmp_path)[0]
    totals = json.loads((trial.path / "samples" / "qdiscs.json").read_text())["left"]
    leaf = next(q for q in totals if q["dev"] == "left-eth0" and q["kind"] == "pfifo")
    row = reduce_trial(trial).flows.iloc[0]
    counted = leaf["drops"] / (leaf["drops"] + leaf["packets"])
    # those behind the last packet that left have no number that is seen
    assert row["drop_rate"] == pytest.approx(counted, abs=1e-3)
    assert row["drop_rate"] == pytest.approx(1 - 10 / 12, abs=0.02)


def test_a_flow_that_never_connects_is_a_result(tmp_path: Path) -> None:
    """Of thirty packets that want to leave together one does, and it is not the SYN."""
    scenario = of("dumbbell-load", 4, cbr_mbit="12", order="cbr-first", variant="reno")
    tcp, cbr = scenario.flows
    flows = (dataclasses.replace(tcp, start_s=0.5), dataclasses.replace(cbr, rate_mbit=300))
    starved = dataclasses.replace(scenario, flows=flows, duration_s=1.4, measure_from_s=0)
    trial = run_trials([starved], tmp_path)[0]
    rows = reduce_trial(trial).flows.set_index("flow")
    assert rows.loc[tcp.name, "throughput_mbps"] == 0
    assert rows.loc[cbr.name, "throughput_mbps"] == pytest.approx(10, rel=0.05)


def test_a_sender_that_is_locked_out_is_a_result(tmp_path: Path) -> None:
    """Its SYNs reach the bottleneck's queue, which has no room for one of them."""
    scenario = of("router-fairness", 3, queue="bfifo")
    tcp = dataclasses.replace(scenario.flows[0], start_s=1)
    flood = Flow("cbr", FlowKind.CBR, "sender2", tcp.dst, rate_mbit=30, packet_bytes=972)
    queue = Queue("pfifo", limit_packets=10)  # in bytes there would be room for a SYN
    network = with_network(scenario, hosts=2, queue=queue).network
    locked = dataclasses.replace(
        scenario, flows=(tcp, flood), network=network, duration_s=1.9, measure_from_s=0
    )
    trial = run_trials([locked], tmp_path)[0]
    rows = reduce_trial(trial).flows.set_index("flow")
    assert rows.loc[tcp.name, "throughput_mbps"] == 0
    assert packets(trial, f"sender:{tcp.name}", "tcp.flags.syn == 1")
