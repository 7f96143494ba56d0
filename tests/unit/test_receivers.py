"""Misbehaving receivers: which flows may have one, and what their programs are."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas as pd
import pytest

from analysis.captures.tcp import SYN
from analysis.trials.tcp_stream import delivered_bytes
from testbed.errors import TestbedError
from testbed.plan.check import validate
from testbed.plan.ebpf_plans import ReceiverPlan
from testbed.plan.plan import make_plan
from testbed.runner import bpf
from testbed.scenario.model import Misbehaviour, Scenario
from testbed.trial.parts.receivers import listings
from tests.scenarios import router


def with_receiver(scenario: Scenario, flow: int = 0, **more: Any) -> Scenario:
    flows = list(scenario.flows)
    flows[flow] = dataclasses.replace(flows[flow], receiver=Misbehaviour.ACK_DIVISION, **more)
    return dataclasses.replace(scenario, flows=tuple(flows))


def test_an_honest_receiver_is_not_written() -> None:
    assert "receiver" not in {
        line.strip().split('"')[1] for line in router().to_json().splitlines() if '":' in line
    }
    assert '"receiver": "ack-division"' in with_receiver(router()).to_json()


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (with_receiver(router(), parallel=2), "receiver: which of 2 parallel connections"),
        (with_receiver(router(cbr_mbit=0.5), 1), "receiver: of flows of kind tcp; this is cbr"),
    ],
)
def test_a_receiver_is_of_one_tcp_connection(scenario: Scenario, said: str) -> None:
    with pytest.raises(TestbedError, match=said):
        validate(scenario)


def test_a_kernel_needs_classifiers_for_it() -> None:
    kinds = {each.kind for each in make_plan(with_receiver(router())).needs}
    assert "classifier" in kinds - {each.kind for each in make_plan(router()).needs}


@pytest.mark.parametrize("how", Misbehaviour)
def test_programs_see_the_connection_from_both_sides(how: Misbehaviour) -> None:
    ends: tuple[str, int, str, int] = ("10.0.0.1", 40001, "10.0.0.2", 5201)
    plan = ReceiverPlan("tcp", "receiver", "receiver-eth0", *ends, misbehaviour=how)
    programs = listings(plan, 0)
    assert bpf.INGRESS in programs or how is Misbehaviour.ACK_DIVISION
    for side, lines in programs.items():
        assert len(bpf.assemble(lines)) // 8 < 4096  # all that the kernel takes
        first_port = next(
            each.constant
            for each in lines
            if isinstance(each, bpf.Instruction) and each.constant in (40001, 5201)
        )
        assert first_port == (40001 if side == bpf.INGRESS else 5201)


def test_bytes_behind_gaps_count_once() -> None:
    rows = pd.DataFrame(
        {
            "seq": [1000, 1001, 1021, 1011, 1026],
            "payload": [0, 10, 10, 10, 10],
            "flags": [SYN, 0, 0, 0, 0],
        }
    )
    assert list(delivered_bytes(rows, over_gaps=True)) == [0, 10, 20, 20, 25]
    assert list(delivered_bytes(rows)) == [0, 10, 10, 30, 35]
