"""Every congestion control that `testbed check --variants` offers runs, and its trial is valid."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from testbed.guest.engine import GuestEngine
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.network import Queue
from testbed.scenario.variants import LINUX_CONTROLS, VARIANTS
from testbed.store.reading import Trial
from tests.lab import packets, run_trials
from tests.scenarios import router, with_network

BY_NAME = sorted(LINUX_CONTROLS - {each.control for each in VARIANTS.values()})
MARKING = Queue("codel", limit_packets=100, ecn=True)


def short(variant: str) -> Scenario:
    """Three seconds of it alone, through a queue that marks."""
    return router(variant=variant, rate_mbit=5, delay_ms=10, queue=MARKING, duration_s=3)


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trial]:
    """Every variant that test_variants.py does not run, and DCTCP; each trial valid."""
    names = [*BY_NAME, "dctcp"]
    found = run_trials([short(name) for name in names], tmp_path_factory.mktemp("by-name") / "out")
    return dict(zip(names, found, strict=True))


def test_the_kernel_offers_nothing_that_the_suite_does_not_run() -> None:
    controls = {each.control for each in VARIANTS.values() if not each.needs_accurate_ecn}
    assert GuestEngine().controls() == controls | set(BY_NAME)


@pytest.mark.parametrize("name", [*BY_NAME, "dctcp"])
def test_a_variant_runs_as_itself(trials: dict[str, Trial], name: str) -> None:
    assert trials[name].record.flows[0].variant_seen == name


def beside_cubic() -> Scenario:
    """DCTCP and Cubic with ECN, from two senders to one receiver."""
    scenario = short("dctcp")
    flows = (
        Flow("dctcp", FlowKind.TCP, "sender1", "receiver", variant="dctcp"),
        Flow("cubic", FlowKind.TCP, "sender2", "receiver", variant="cubic", start_s=1),
    )
    queue = Queue("fq_codel", limit_packets=100, ecn=True)
    return dataclasses.replace(with_network(scenario, hosts=2, queue=queue), flows=flows)


def test_one_receiver_answers_dctcp_and_cubic_each_in_its_way(tmp_path: Path) -> None:
    """DCTCP's receiver echoes the marks that arrive; a classic one echoes until it is heard."""
    (trial,) = run_trials([beside_cubic()], tmp_path)
    runs = {}
    for flow in trial.record.flows:
        (port,) = flow.src_ports
        came = f"tcp.srcport == {port} && tcp.len > 0 && ip.dsfield.ecn == 3"
        echo = f"tcp.dstport == {port} && tcp.flags.ece == 1 && tcp.flags.syn == 0"
        marked, echoes = (packets(trial, f"receiver:{flow.name}", each) for each in (came, echo))
        assert marked and echoes
        runs[flow.name] = len(echoes) / len(marked)
    assert runs["dctcp"] <= 1
    assert runs["cubic"] > 1
