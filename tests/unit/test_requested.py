"""What a trial shows beside what its scenario asks: delays of captures, bytes, paces, links."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.trials.samples import Disciplines
from analysis.verdict import requested
from analysis.verdict.checks import Check, Grade
from analysis.verdict.iperf3 import COOKIE_BYTES
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.model import Scenario
from testbed.scenario.network import FRAME_OVERHEAD_BYTES, Queue
from testbed.store.names import DELAY_NODE, LEAF_HANDLE
from tests.scenarios import access, router, with_link
from tests.trial_writer import CBR, TCP, flow_record

MS = 1_000_000


def bounds(scenario: Scenario, first: str, second: str) -> tuple[float, float] | None:
    """The least and the most that a full frame, sent at second 1, may take between captures."""
    pair: Any = SimpleNamespace(flow=scenario.flows[0], is_data=True, first=first, second=second)
    stretch = np.array([1.0]), np.array([1.1])
    found = requested._bounds_ms(scenario, pair, stretch, np.array([1500.0]))
    return None if found is None else (float(found[0][0]), float(found[1][0]))


def test_the_time_between_two_captures() -> None:
    scenario = with_link(router(delay_ms=10), "router-receiver", delay_ms=5.0)
    assert bounds(scenario, "sender1-eth0", "router-eth1") == (10, 10)
    assert bounds(scenario, "router-eth0", "receiver-eth0") == (5, 5)  # behind its queue
    assert bounds(scenario, "router-eth1", "router-eth0") == (0, 0)
    # past the queue: at least its frame's 12 ms at 1 Mbit/s
    assert bounds(scenario, "sender1-eth0", "receiver-eth0") == (27, np.inf)
    jittered = with_link(scenario, "router-receiver", jitter_ms=2.0)
    assert bounds(jittered, "router-eth0", "receiver-eth0") == (3, 7)
    assert bounds(access(), "station-wlan0", "ap-wlan1") is None  # a radio's are no link's


def paced(gap_ms: float, packets: int = 200, **own_queue: int) -> Check:
    """The check of a CBR flow of 1 Mbit/s and 1000 bytes, whose gap is 8.144 ms."""
    scenario = router(cbr_mbit=1)
    record = flow_record("cbr", CBR, "udp")
    flow = dataclasses.replace(scenario.flow("cbr"), jitter=0.0)
    data = np.zeros(packets, dtype=[("length", "i8"), ("time_ns", "i8")])
    data["length"] = 1000 + FRAME_OVERHEAD_BYTES
    data["time_ns"] = np.arange(packets) * round(gap_ms * MS)
    evidence: Any = SimpleNamespace(
        virtual_time=True,
        trial=None,
        disciplines=SimpleNamespace(drops=lambda: own_queue),
    )
    *_, found = requested._datagrams(evidence, record, flow, data)  # type: ignore[arg-type]
    return found


def test_gaps_are_those_of_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    even_ms = (1000 + FRAME_OVERHEAD_BYTES) * 8e-3
    monkeypatch.setattr(requested, "sender_queue", lambda *_: None)
    monkeypatch.setattr(requested, "own_queue_ns", lambda *_: 0)
    assert paced(even_ms).verdict is Grade.VALID
    assert paced(1.1 * even_ms).verdict is Grade.INVALID


def test_gaps_are_longer_where_the_own_queue_dropped_packets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    even_ms = (1000 + FRAME_OVERHEAD_BYTES) * 8e-3
    own = SimpleNamespace(interface="left-eth0")
    monkeypatch.setattr(requested, "sender_queue", lambda *_: own)
    monkeypatch.setattr(requested, "own_queue_ns", lambda *_: 0)
    assert paced(1.1 * even_ms, **{"left-eth0": 20}).verdict is Grade.VALID
    assert paced(1.1 * even_ms, **{"left-eth0": 10}).verdict is Grade.INVALID


@pytest.mark.parametrize(
    ("sent", "stopped_s", "grade"),
    [
        (100_000, 3.0, Grade.VALID),
        (131_072, 3.0, Grade.VALID),  # a whole block
        (90_000, 3.0, Grade.INVALID),
        (90_000, 11.0, Grade.VALID),  # it was stopped
        (240_000, 3.0, Grade.INVALID),
    ],
)
def test_a_flow_sends_its_bytes(sent: int, stopped_s: float, grade: Grade) -> None:
    connection = SimpleNamespace(end=np.array([1, 1 + COOKIE_BYTES + sent]))
    evidence: Any = SimpleNamespace(
        virtual_time=True, packets=SimpleNamespace(connections=lambda _flow: (connection,))
    )
    record = dataclasses.replace(flow_record("tcp", TCP, "tcp"), stopped_s=stopped_s)
    assert requested._amount(evidence, record, 100_000).verdict is grade


CHANNEL = GilbertElliott(to_bad=0.01, to_good=0.5)
SHOWN = {
    "delay": {"delay": 0.01, "jitter": 0},
    "loss-gemodel": {"p": 0.01, "r": 0.5, "1-h": 1, "1-k": 0},
}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (SHOWN, 0),
        (SHOWN | {"delay": {"delay": 0.009_999_1, "jitter": 0}}, 0),  # rounded
        (SHOWN | {"delay": {"delay": 0.011, "jitter": 0}}, 1),
        (SHOWN | {"loss-gemodel": {"p": 0.02, "r": 0.5, "1-h": 1, "1-k": 0}}, 1),
        (SHOWN | {"reorder": {"reorder": 0.02}}, 1),
        ({"delay": SHOWN["delay"]}, 1),
        ({"delay": "x", "loss-gemodel": None}, 1),
        (None, 1),  # no netem, where the scenario lets the link lose packets
    ],
)
def test_a_link_is_shown_as_the_scenario_has_it(options: Any, found: int) -> None:
    scenario = with_link(router(delay_ms=10), "sender1-router", loss=CHANNEL)
    scenario = with_link(scenario, "router-receiver", queue=Queue("pfifo", limit_packets=9))
    # what comes in by the end `a` leaves by `b`
    wire = {"kind": "netem", "dev": "w0b", "handle": "2:", "options": options}
    leaf = {"kind": "pfifo", "dev": "router-eth0", "handle": LEAF_HANDLE}
    disciplines = Disciplines(SimpleNamespace(scenario=scenario))  # type: ignore[arg-type]
    disciplines.__dict__["_by_node"] = {DELAY_NODE: [wire] if options else [], "router": [leaf]}
    evidence: Any = SimpleNamespace(disciplines=disciplines)
    checks = list(requested._wires(evidence, scenario.network))
    assert [each.verdict for each in checks] == [Grade.INVALID] * found
