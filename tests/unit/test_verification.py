"""What the kernel says is held against the plan; what differs ends the trial, by name."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.machine import ethtool
from testbed.machine.process import Place
from testbed.plan.plan import Plan, make_plan
from testbed.scenario.model import Queue
from testbed.trial import verify as verification
from tests.scenarios import router

RATE = 10_000_000
Leaf = dict[str, Any]


@pytest.fixture
def plan() -> Plan:
    """Its queues and plain interfaces alone: RED with ECN below an htb, on the router."""
    red = Queue("red", limit_bytes=100_000, ecn=True)
    made = make_plan(router(rate_mbit=10, queue=red, delay_ms=10))
    return dataclasses.replace(made, sysctls=(), parameters=(), routes=())


@pytest.fixture
def kernel(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A kernel that has what was asked for; tests bend one answer."""
    leaves: list[Leaf] = [
        {
            "dev": queue.interface,
            "handle": "30:",
            "kind": "red",
            "options": {"limit": "100000b", "ecn": True},
        }
        for queue in plan.queues
    ]
    rates = {queue.interface: RATE for queue in plan.queues}
    segments = dict.fromkeys(rates, 1)
    found = SimpleNamespace(leaves=leaves, rates=rates, segments=segments, on=[])
    monkeypatch.setattr(
        verification, "run", lambda *_, **__: SimpleNamespace(stdout=json.dumps(found.leaves))
    )
    monkeypatch.setattr(verification, "htb_rates", lambda _pid: found.rates)
    monkeypatch.setattr(verification, "segments_at_once", lambda _pid: found.segments)
    monkeypatch.setattr(verification, "offloads_on", lambda _interface: found.on)
    return found


def verify(plan: Plan) -> None:
    verification.verify(plan, {node: Place(node) for node in plan.nodes})


def test_what_is_as_asked_is_let_through(plan: Plan, kernel: SimpleNamespace) -> None:
    verify(plan)
    kernel.rates = dict.fromkeys(kernel.rates, RATE - 7)  # htb counts bytes
    verify(plan)


@pytest.mark.parametrize(
    ("bend", "said"),
    [
        (lambda k: k.leaves.pop(), "no red below the htb"),
        (lambda k: k.leaves[0].update(kind="pfifo"), "no red below the htb"),
        (lambda k: k.leaves[0]["options"].update(limit="99999b"), "limit is 99999b, not 100000"),
        (lambda k: k.leaves[0]["options"].update(ecn=False), "ecn is False, not True"),
        (lambda k: k.rates.clear(), "htb's rate is 0 bit/s, not 1e.07"),
        (lambda k: k.rates.update(dict.fromkeys(k.rates, RATE - 16)), "rate is .*, not 1e.07"),
        (lambda k: k.segments.update(dict.fromkeys(k.segments, 44)), "44 segments as one packet"),
        (lambda k: k.on.extend(("tso", "gso")), "still has tso, gso on"),
    ],
)
def test_what_differs_is_named(
    plan: Plan, kernel: SimpleNamespace, bend: Callable[[Any], object], said: str
) -> None:
    bend(kernel)
    with pytest.raises(TestbedError, match=said):
        verify(plan)


def test_only_offloads_that_are_on_are_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A radio has none, and refuses even to switch them off."""
    on, told = {ethtool._GET["tso"], ethtool._GET["gro"]}, []

    def call(_control: object, interface: str, command: int) -> bool:
        told.append((interface, command))
        return command in on

    monkeypatch.setattr(ethtool, "_call", call)
    ethtool.switch_offloads_off("eth9")
    asked = [("eth9", command) for command in ethtool._GET.values()]
    assert [each for each in told if each not in asked] == [("eth9", 0x1F), ("eth9", 0x2C)]
