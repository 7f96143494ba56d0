"""Cached results are of exactly the same value, and never stale."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

import pytest

from testbed.machine.file_hashes import hash_of
from testbed.memo import cached_by_repr
from testbed.plan.network import build_network
from testbed.plan.plan import make_plan
from testbed.runs.source_meaning import meaning_of
from testbed.scenario.named_networks import LinkSettings, dumbbell
from testbed.scenario.network import Graph, Queue
from testbed.scenario.trace import read_trace
from tests.scenarios import router

Asked = list[object]


@dataclasses.dataclass(frozen=True)
class Value:
    number: float
    names: dict[str, int] = dataclasses.field(default_factory=dict)


@pytest.fixture
def asked() -> Asked:
    return []


def test_equal_values_of_another_text_are_computed_again(asked: Asked) -> None:
    @cached_by_repr(2)
    def text_of(value: Value) -> str:
        asked.append(value)
        return f"{value.number} {value.names}"

    values = Value(10), Value(10.0), Value(10), Value(10.0)
    assert [text_of(value) for value in values] == ["10 {}", "10.0 {}"] * 2
    assert len(asked) == 2
    assert text_of(Value(10, {"a": 1})) == "10 {'a': 1}"
    text_of(Value(10))  # no longer cached
    assert len(asked) == 4


def test_a_network_is_built_once_for_its_text() -> None:
    def network(rate_mbit: float, target_ms: float) -> Graph:
        queue = Queue("codel", limit_packets=10, options={"target_ms": target_ms})
        return dumbbell(LinkSettings(rate_mbit, queue=queue, delay_ms=1))

    first = build_network(network(10, 5))
    assert build_network(network(10, 5)) is first
    others = [build_network(network(*each)) for each in ((11, 5), (10, 6), (10.0, 5))]
    assert all(each is not first for each in others)
    assert [repr(each.hops[0][0].rate_mbit) for each in others] == ["11", "10", "10.0"]


def test_a_trace_is_read_again_once_its_file_is_another(tmp_path: Path) -> None:
    file = tmp_path / "own.trace"
    for times in ("1\n2\n", "1\n3\n"):
        file.write_text(times)
        assert read_trace("own.trace", tmp_path) == times.replace("\n", " ").strip()


def test_a_source_is_read_again_once_it_is_another(tmp_path: Path) -> None:
    """Of another content with the same length, and of an older file put in its place."""
    file, other = tmp_path / "a.c", tmp_path / "other"
    hashes = set()
    for content in ("one", "two"):
        file.write_text(content)
        hashes.add(meaning_of(file))
    other.write_text("six")
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.replace(file)
    hashes.add(meaning_of(file))
    assert len(hashes) == 3


def test_a_file_is_hashed_again_once_it_is_another(tmp_path: Path) -> None:
    """Of the same length and with the same time, in the same place."""
    file = tmp_path / "a.pcap"
    file.write_text("one")
    before = file.stat()
    assert hash_of(file) == hashlib.sha256(b"one").hexdigest()
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # a tick of the kernel's clock
        file.write_text("two")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert hash_of(file) == hashlib.sha256(b"two").hexdigest()


def test_two_plans_of_one_network_keep_their_own() -> None:
    one, other = (make_plan(router(seed=seed, cbr_mbit=0.5)) for seed in (1, 2))
    assert one.network is other.network
    assert one.flows != other.flows
