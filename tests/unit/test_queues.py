"""Queues: limits in every unit, and tc's words."""

from __future__ import annotations

import pytest

from testbed.scenario.network import Queue
from testbed.scenario.queues import (
    DISCIPLINES,
    arguments,
    queue_faults,
    refusals,
    resolve,
    warnings,
)
from testbed.scenario.reading import field_faults


def faults(queue: Queue) -> list[str]:
    return list(map(str, field_faults(queue)[1] or queue_faults(queue)))


def words(queue: Queue, rate_mbit: float = 1, rtt_ms: float = 100) -> str:
    return " ".join(arguments(queue, resolve(queue, rate_mbit, rtt_ms), rate_mbit))


def test_a_limit_in_all_units() -> None:
    limit = resolve(Queue("bfifo", limit_bytes=100_000), rate_mbit=1, rtt_ms=100)
    assert (limit.bytes, limit.packets, limit.ms) == (100_000, 66, 800)
    assert limit.bdp == pytest.approx(8)  # 1 Mbit/s x 100 ms = 12500 B


def test_bdp_becomes_bytes_or_whole_packets() -> None:
    assert resolve(Queue("bfifo", limit_bdp=2), 10, 60).bytes == 150_000
    assert resolve(Queue("pfifo", limit_bdp=2), 10, 60).packets == 99  # 150000 // 1514


def test_a_tiny_bdp_still_holds_a_packet() -> None:
    assert resolve(Queue("pfifo", limit_bdp=0.01), 1, 1).packets == 1


def test_without_delay_there_is_no_bdp() -> None:
    assert resolve(Queue("pfifo", limit_packets=10), 1, 0).bdp is None


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (Queue("bfifo", limit_bytes=100_000), "bfifo limit 100000"),
        (Queue("pfifo", limit_packets=10), "pfifo limit 10"),
        (
            Queue("codel", limit_packets=100, ecn=True, options={"target_ms": 10}),
            "codel limit 100 target 10ms ecn",
        ),
        (Queue("fq_codel", limit_packets=100), "fq_codel limit 100 noecn"),
        (
            Queue("pie", limit_packets=100, ecn=True, options={"tupdate_ms": 15}),
            "pie limit 100 tupdate 15ms ecn",
        ),
        (Queue("dualpi2", limit_packets=10_000, ecn=True), "dualpi2"),
        (Queue("cake", limit_bytes=60_000), "cake memlimit 60000 unlimited besteffort flows"),
        (
            Queue("cake", limit_bytes=60_000, options={"diffserv": 0, "ack_filter": 0}),
            "cake memlimit 60000 unlimited besteffort flows",
        ),
        (
            Queue(
                "cake",
                limit_bytes=60_000,
                options={"rtt_ms": 40, "diffserv": 4, "triple_isolate": 1, "ack_filter": 2},
            ),
            "cake memlimit 60000 rtt 40ms unlimited diffserv4 triple-isolate ack-filter-aggressive",
        ),
        (
            Queue("red", limit_bytes=60_000),
            "red limit 60000 min 5000 max 15000 avpkt 1000 burst 9 probability 0.02 "
            "bandwidth 1000000bit",
        ),
        (
            Queue(
                "red", limit_bytes=60_000, ecn=True, options={"min_bytes": 9000, "probability": 0.1}
            ),
            "red limit 60000 min 9000 max 15000 avpkt 1000 burst 11 probability 0.1 "
            "bandwidth 1000000bit ecn",
        ),
    ],
)
def test_tc_words(queue: Queue, expected: str) -> None:
    assert words(queue) == expected


def test_every_discipline_with_its_defaults() -> None:
    assert {name: words(Queue(name, limit_bytes=60_000)) for name in DISCIPLINES} == {
        "bfifo": "bfifo limit 60000",
        "pfifo": "pfifo limit 39",
        "red": "red limit 60000 min 5000 max 15000 avpkt 1000 burst 9 probability 0.02 "
        "bandwidth 1000000bit",
        "codel": "codel limit 39",
        "fq_codel": "fq_codel limit 39 noecn",
        "pie": "pie limit 39",
        "cake": "cake memlimit 60000 unlimited besteffort flows",
        "police": "police rate 1000000bit burst 60000 conform-exceed drop/ok",
        "dualpi2": "dualpi2",
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, []),
        ({"max_bytes": 60_000}, ["upper threshold of 60000 B is not below its limit of 60000 B"]),
    ],
)
def test_red_thresholds_that_cannot_act(options: dict[str, float], said: list[str]) -> None:
    queue = Queue("red", limit_bytes=60_000, options=options)
    found = list(warnings(queue, resolve(queue, 10, 20)))
    assert len(found) == len(said)
    assert all(text in warning for text, warning in zip(said, found, strict=True))


def test_other_queues_have_no_thresholds() -> None:
    queue = Queue("codel", limit_packets=10)
    assert list(warnings(queue, resolve(queue, 10, 20))) == []


@pytest.mark.parametrize(
    ("name", "option", "value", "most"),
    [
        ("codel", "target_ms", 5_000_000, "2199000"),
        ("cake", "rtt_ms", 5_000_000, "4294967.295"),
        ("pie", "target_ms", 5000, "4294"),
        ("fq_codel", "flows", 65_537, "65536"),
        ("fq_codel", "quantum_bytes", 2**20 + 1, "1048576"),
        ("red", "probability", 1, "0.9999999998"),
    ],
)
def test_values_that_the_kernel_cannot_hold(
    name: str, option: str, value: float, most: str
) -> None:
    queue = Queue(name, limit_packets=10, options={option: value})
    said = f"options.{option}: {value:.12g} is above {most}, all that the kernel can hold"
    assert faults(queue) == [said]


@pytest.mark.parametrize(
    ("name", "option", "value", "said"),
    [
        ("codel", "target_ms", 0.001, "0.001 is below 0.02"),
        ("pie", "tupdate_ms", 1, "1 is below 4"),
        ("fq_codel", "flows", 1.5, "1.5 is not a whole number"),
        ("fq_codel", "flows", 0.5, "0.5 is below 1"),
        ("fq_codel", "quantum_bytes", 255, "255 is below 256"),
        ("red", "min_bytes", 1514.5, "1514.5 is not a whole number"),
        ("red", "probability", 1e-9, "1e-09 is below 1e-06"),
    ],
)
def test_values_that_tc_or_the_kernel_would_change(
    name: str, option: str, value: float, said: str
) -> None:
    (found,) = faults(Queue(name, limit_packets=10, options={option: value}))
    assert found.startswith(f"options.{option}: {said}")


@pytest.mark.parametrize(
    ("queue", "rate_mbit", "said"),
    [
        (Queue("bfifo", limit_bytes=2**32), 1, "all that the kernel can hold"),
        (Queue("bfifo", limit_bdp=1e6), 1000, "above 4294967295 bytes"),
        (Queue("pfifo", limit_packets=2**32), 1, "all that the kernel can hold"),
        (
            Queue("red", limit_bytes=60_000, options={"burst_packets": 4}),
            *(1, "burst_packets, 4, are below min_bytes, 5"),
        ),
        (Queue("dualpi2", limit_packets=100), 1, "its own limit: limit_packets=10000, not 100"),
        (Queue("red", limit_bytes=2000), 1, "min_bytes, 166, are below avpkt_bytes, 1000"),
        (Queue("red", limit_bytes=2**32 - 1), 1, "too large for an average"),
        (Queue("red", limit_bytes=60_000), 10_000, "cannot tell how long 1000 B"),
        (
            Queue("red", limit_bytes=60_000, options={"min_bytes": 9000, "max_bytes": 9000}),
            *(1, "lower threshold of 9000 B is not above 0 and below its upper one"),
        ),
    ],
)
def test_queues_that_the_kernel_refuses(queue: Queue, rate_mbit: float, said: str) -> None:
    found = faults(queue) or list(refusals(queue, resolve(queue, rate_mbit, 20), rate_mbit))
    assert len(found) == 1 and said in found[0]


def test_a_discipline_that_is_not_in_the_table_is_named() -> None:
    (said,) = faults(Queue("codle", limit_packets=10))
    assert "unknown queue 'codle': did you mean 'codel'" in said


def test_a_choice_is_one_of_few() -> None:
    queue = Queue("cake", limit_bytes=10_000, options={"diffserv": 5, "ack_filter": 1})
    assert faults(queue) == ["options.diffserv: 5 is not one of 0, 3, 4, 8"]
