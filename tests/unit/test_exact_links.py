"""Links that send packets one after the other: their plan, and what the analysis makes of them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.trials.capacity import sending_ns
from analysis.verdict import queues
from analysis.verdict.evidence import Evidence
from testbed.errors import UsageError
from testbed.plan.plan import make_plan
from testbed.runner.recorded_netlink import netlink_of
from testbed.scenario.network import Queue, Shaping
from testbed.scenario.reading import read_scenario
from testbed.store.records import QueueRecord
from tests.scenarios import router, with_network
from tests.sealing import file_in
from tests.transits import sure_transit

MS = 1_000_000
FULL_US = 1514 * 8 / 10  # at 10 Mbit/s


def shapers(**settings: Any) -> set[str]:
    plan = make_plan(with_network(router(), **settings.pop("network", {})), **settings)
    return {each.kind for each in plan.tc_objects} - {"bfifo"}


def test_what_keeps_a_link_to_its_rate() -> None:
    assert shapers() == {"link"}
    assert shapers(network={"shaping": Shaping.HTB}) == {"htb"}
    assert shapers(virtual_time=False) == {"htb"}
    assert shapers(network={"trace": "5"}, virtual_time=False) == {"trace"}


def test_tc_is_not_told_the_rate_and_the_kernel_is() -> None:
    plain, rated = (
        netlink_of("tc", (f"qdisc add dev a root handle 1: link{words}",))[0]
        for words in ("", " rate 100000000000bit")
    )
    rate = b"\x0c\0\x01\0" + (10**11).to_bytes(8, "little")
    assert rated.content == plain.content + b"\x10\0\x02\0" + rate
    assert rated.indexes == plain.indexes


def test_an_unknown_shaping_is_refused() -> None:
    data = json.loads(router().to_json())
    data["network"]["links"][1]["forward"]["shaping"] = "tbf"
    with pytest.raises(UsageError, match=r"forward.shaping: expected 'link' or 'htb', got 'tbf'"):
        read_scenario(json.dumps(data))


class Link:
    """What left a queue of 10 Mbit/s, and the verdict's checks of it."""

    def __init__(self, tmp_path: Any, **record: Any) -> None:
        self.queue = QueueRecord(
            **{
                "node": "router",
                "interface": "e",
                "rate_mbit": 10.0,
                "burst_bytes": 0,
                "discipline": "pfifo",
                "limit": 10,
                "unit": "packets",
                "ecn": False,
                "sampled": True,
                **record,
            }
        )
        self.trial = SimpleNamespace(
            file=file_in(tmp_path),
            record=SimpleNamespace(epoch_s=0.0, queues=(self.queue,)),
            scenario=with_network(router(rate_mbit=10), access={"delay_ms": 10}),
        )

    def bad(self, left: list[float], arrived: list[float], sizes: list[int]) -> set[str]:
        """Return the checks that are not valid; times in µs."""
        left_ns, came_ns = (np.round(np.array(e) * 1000).astype(np.int64) for e in (left, arrived))
        transit = sure_transit(left_ns, came_ns, sizes)
        evidence = cast(
            Evidence, SimpleNamespace(trial=self.trial, virtual_time=True, judged_ns=1e18)
        )
        found = (
            *queues.windows(evidence, self.queue, transit),
            *queues.bucket(evidence, self.queue, transit),
        )
        return {each.name for each in found if each.verdict != "valid"}


def test_a_packet_leaves_when_its_last_bit_does(tmp_path: Any) -> None:
    link, sizes = Link(tmp_path), [1514, 1514, 100]
    due = [FULL_US, 2 * FULL_US, 2 * FULL_US + 80]
    assert link.bad(due, [0, 0, 0], sizes) == set()
    assert link.bad([0, FULL_US, FULL_US + 80], [0, 0, 0], sizes) == {"sending"}
    # a small one leaves with the large one before it, as a token bucket lets it
    assert link.bad([due[0], due[1], due[1] + 1], [0, 0, 0], sizes) == {"windows"}
    assert link.bad([due[0], due[1] - 100, due[2] - 100], [0, 0, 0], sizes) == {"windows"}


def test_a_bucket_lets_its_bytes_go_at_once(tmp_path: Any) -> None:
    link = Link(tmp_path, burst_bytes=1514)
    assert link.bad([0, FULL_US, 2 * FULL_US], [0, 0, 0], [1514] * 3) == set()
    assert link.bad([0, 0, 0, 0, 0], [0] * 5, [1514] * 5) == {"windows"}


def test_a_bucket_grows_with_the_rate(tmp_path: Any) -> None:
    link = Link(tmp_path, burst_bytes=1514)
    (tmp_path / "samples").mkdir()
    for rates, bad in (("[[0, 10], [1, 8]]", "windows"), ("[[0, 10], [1, 250]]", "bucket")):
        (tmp_path / "samples" / "capacity.json").write_text(f'{{"e": {{"rates": {rates}}}}}')
        assert link.bad([0] * 5, [0] * 5, [1514] * 5) == {bad}


@pytest.mark.parametrize(
    ("bucket", "limit", "bad"),
    [(1514, 1, set()), (3000, 10, set()), (3100, 10, {"bucket"}), (4100, 100, {"bucket"})],
)
def test_a_large_bucket_is_told(tmp_path: Any, bucket: int, limit: int, bad: set[str]) -> None:
    """Beside 10 packets, and beside the 25 kB of 20 ms at 10 Mbit/s if those are less."""
    link = Link(tmp_path, burst_bytes=bucket, limit=limit)
    assert link.bad([0, 2 * FULL_US], [0, 0], [1514] * 2) == bad


def test_the_time_that_a_link_takes_is_at_the_rate_when_it_began(tmp_path: Any) -> None:
    link = Link(tmp_path)
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "capacity.json").write_text('{"e": {"rates": [[0, 10], [1, 1]]}}')
    left = np.array([999, 1001, 1050]) * MS  # the second began before second 1
    found = sending_ns(cast(Any, link.trial), link.queue, left, np.array([1514, 12_500, 1514]))
    assert list(found // 1000) == [1211, 10_000, 12_112]


def test_waiting_ends_when_sending_begins(tmp_path: Any) -> None:
    htb, exact = (Link(tmp_path, burst_bytes=size) for size in (1514, 0))
    left, size = np.array([5 * MS]), np.array([1514])
    assert list(sending_ns(cast(Any, htb.trial), htb.queue, left, size)) == [0]
    assert list(sending_ns(cast(Any, exact.trial), exact.queue, left, size)) == [1_211_200]


def test_a_queue_of_the_scenario_says_what_shapes_it() -> None:
    text = with_network(
        router(), shaping=Shaping.HTB, queue=Queue("pfifo", limit_packets=9)
    ).to_json()
    assert '"shaping": "htb"' in text and read_scenario(text).to_json() == text
