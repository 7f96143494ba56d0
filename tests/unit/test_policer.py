"""Policers: what a direction with one may have, and what the verdict computes of its bucket."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.trials.queue_transit import QueueTransit
from analysis.verdict import queues
from analysis.verdict.checks import Grade
from testbed.plan.check_network import direction_faults
from testbed.plan.plan import make_plan
from testbed.scenario.network import Change, Direction, Queue, Shaping
from testbed.scenario.queues import refusals, resolve
from tests.scenarios import router
from tests.transits import sure_transit

POLICER = Queue("police", limit_bytes=3000)
MS = 1_000_000
BEGUN_NS = 1_700_000_000 * 10**9  # a time of this century, which a float has no ns of
LIMIT_BYTES = 2000  # of packets of 1000 bytes, which take 1 ms


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("trace", {"trace": "5"}),
        ("schedule", {"schedule": (Change(1, rate_mbit=2),)}),
        ("aggregate_packets", {"aggregate_packets": 4}),
        ("shaping", {"shaping": Shaping.HTB}),
    ],
)
def test_a_policer_has_one_rate_and_sends_nothing(field: str, more: dict[str, Any]) -> None:
    policed = Direction(rate_mbit=8, queue=POLICER, **more)
    assert any(
        str(fault).startswith(f"{field}: not with a policer")
        for fault in direction_faults(policed, 10)
    )
    waiting = dataclasses.replace(policed, queue=Queue("bfifo", limit_bytes=3000))
    assert not list(direction_faults(waiting, 10))


def test_a_policer_neither_marks_nor_has_a_bucket_beyond_the_kernels() -> None:
    marking = dataclasses.replace(POLICER, ecn=True)
    assert any(
        "can't mark" in each.words for each in direction_faults(Direction(8, queue=marking), 1)
    )
    slow = Queue("police", limit_bytes=60_000)
    assert not list(refusals(slow, resolve(slow, 0.01, 0), 0.01))
    (said,) = refusals(slow, resolve(slow, 0.001, 0), 0.001)
    assert "274000 ms" in said


def test_real_machines_aggregate_before_queues_alone() -> None:
    plan = make_plan(router(rate_mbit=8, queue=POLICER, realistic=True))
    (hop,) = (each.hop for each in plan.queues if each.sampled)
    assert hop.direction.aggregate_packets == 1


def transit(passed_ms: list[float], lost_ms: list[float]) -> QueueTransit:
    passed, lost = (
        BEGUN_NS + (np.array(each) * MS).astype(np.int64) for each in (passed_ms, lost_ms)
    )
    sizes = np.full(len(passed), 1000)
    return sure_transit(passed, passed, sizes, lost, sizes[: len(lost)])


@pytest.mark.parametrize(
    ("passed_ms", "lost_ms", "wrong"),
    [
        ([0, 0, 1, 2.5], [0, 1.2, 1.999], []),
        ([0, 0, 0.9], [], ["buffer"]),  # a tenth of a ms too early
        ([0, 0, 5], [1.5, 5.0], ["tail drop"]),  # at 5 ms the bucket holds one more
        ([0, 0, 5], [1.1], ["tail drop"]),  # what it takes came a tenth of a ms ago
    ],
)
def test_a_bucket_follows_from_the_captures(
    passed_ms: list[float], lost_ms: list[float], wrong: list[str]
) -> None:
    queue = SimpleNamespace(
        interface="r-eth0", discipline="police", limit=LIMIT_BYTES, rate_mbit=8.0
    )
    evidence = SimpleNamespace(
        injected=SimpleNamespace(at_queue=lambda _queue: 0),
        sure_ns=BEGUN_NS + 10 * MS,
        virtual_time=True,
    )
    found = queues.policed(cast(Any, evidence), cast(Any, queue), transit(passed_ms, lost_ms))
    assert [each.name for each in found if each.verdict is not Grade.VALID] == wrong
