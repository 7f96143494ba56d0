"""Delivery in order, matching of packets across captures, rates: on packets made by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from analysis.captures.packet_matching import (
    drop_rate,
    lost_packets,
    match,
    numbering_drop_rate,
    one_way_delays_ms,
)
from analysis.captures.tcp import SYN
from analysis.metrics.metric import low_mean_high
from analysis.metrics.rates import goodput_mbps, jain, throughput_mbps
from analysis.trials.packets import Interval
from analysis.trials.tcp_stream import delivered_bytes, unwrap

WRAP = 2**32


def segments(*segments: tuple[int, int], syn: int | None = None) -> pd.DataFrame:
    """(seq, payload) in the order of arrival, after a SYN if its number is given."""
    rows = [*([(syn, 0, SYN)] if syn is not None else []), *((s, n, 0x10) for s, n in segments)]
    frame = pd.DataFrame(rows, columns=["seq", "payload", "flags"])
    return frame.assign(seq=frame["seq"] % WRAP)


def packets(*seen: tuple[int, int, int]) -> pd.DataFrame:
    """(time_ns, ip_id, seq) of packets with 100 bytes."""
    frame = pd.DataFrame(seen, columns=["time_ns", "ip_id", "seq"], dtype="int64")
    return frame.assign(src_port=1, payload=100, content=0)


@pytest.mark.parametrize(
    ("rows", "delivered"),
    [
        (segments((101, 10), (111, 10), syn=100), [0, 10, 20]),
        (segments((101, 10), (101, 10), syn=100), [0, 10, 10]),  # the same bytes again
        (segments((101, 10), (106, 10), syn=100), [0, 10, 15]),  # half of them new
        (segments((111, 10), (121, 10), (101, 10), syn=100), [0, 0, 0, 30]),  # a hole is filled
        (segments((121, 5), (111, 20), (101, 10), syn=100), [0, 0, 0, 30]),  # pieces overlap
        (segments((111, 10), (101, 5), syn=100), [0, 0, 5]),  # a hole remains
        (segments((WRAP - 5, 10), (5, 10), syn=WRAP - 6), [0, 10, 20]),
        (segments((101, 10), (111, 10)), [10, 20]),  # the capture began too late
        (segments((111, 10), (121, 0), (101, 10), syn=100), [0, 0, 0, 20]),
        (segments(), []),
    ],
)
def test_delivered_bytes(rows: pd.DataFrame, delivered: list[int]) -> None:
    assert delivered_bytes(rows).tolist() == delivered


def test_more_than_four_gigabytes() -> None:
    step = 2**30
    rows = segments(*((1 + i * step, step) for i in range(9)), syn=0)
    assert delivered_bytes(rows)[-1] == 9 * step


def test_unwrap_goes_back_too() -> None:
    numbers = np.array([WRAP - 10, 5, WRAP - 5, 20])
    assert unwrap(numbers).tolist() == [WRAP - 10, WRAP + 5, WRAP - 5, WRAP + 20]


def test_match_by_identity() -> None:
    before = packets((0, 1, 100), (10, 2, 200), (20, 3, 100))  # the third repeats the first
    after = packets((15, 2, 200), (25, 3, 100), (30, 9, 900))
    found = match(before, after)
    assert (found.time_ns.tolist(), found.before_row.tolist()) == ([15, 25], [1, 2])


def test_match_takes_the_last_before() -> None:
    """The identification comes round: a lost packet must not take its successor's arrival."""
    before = packets((0, 7, 0), (1_000_000_000, 7, 0))
    after = packets((1_000_000_050, 7, 0))
    assert match(before, after).before_ns.tolist() == [1_000_000_000]


def test_match_is_never_with_a_later_packet() -> None:
    before = packets((0, 7, 0), (101, 7, 0))
    assert match(before, packets((100, 7, 0))).before_ns.tolist() == [0]


def test_a_slow_original_is_not_its_repetition() -> None:
    before = packets((0, 1, 100), (20, 3, 100))
    assert match(before, packets((25, 1, 100))).before_ns.tolist() == [0]


def test_match_at_the_same_instant() -> None:
    assert match(packets((5, 1, 1)), packets((5, 1, 1))).before_ns.tolist() == [5]


def test_connections_are_not_mixed() -> None:
    before = pd.concat([packets((0, 1, 1)), packets((9, 1, 1)).assign(src_port=2)])
    assert match(before, packets((10, 1, 1))).before_ns.tolist() == [0]


def test_one_way_delays() -> None:
    before = packets((0, 1, 1), (1_000_000, 2, 101), (2_000_000, 3, 201))
    after = packets((5_000_000, 1, 1), (8_500_000, 3, 201))
    found = one_way_delays_ms(before, after)
    assert found["owd_ms"].tolist() == [5.0, 6.5]
    assert found["sent_ns"].tolist() == [0, 2_000_000]


def test_only_data_has_a_one_way_delay() -> None:
    empty = packets((0, 1, 1)).assign(payload=0)
    assert one_way_delays_ms(empty, empty).empty


def through(count: int, stay_ns: int, lost: set[int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Packets 10 ns apart into a queue, and those that come out."""
    entered = [(10 * i, i, i) for i in range(count)]
    left = [(t + stay_ns, i, s) for t, i, s in entered if i not in lost]
    return packets(*entered), packets(*left)


def test_drop_rate_counts_what_did_not_leave() -> None:
    assert drop_rate(*through(10, 5, {2, 3, 7}), end_ns=10_000) == 3 / 10


def test_dropped_at_the_end_counts_when_the_queue_had_time_to_empty() -> None:
    assert drop_rate(*through(10, 5, {9}), end_ns=10_000) == 1 / 10


def test_what_is_still_inside_does_not_count() -> None:
    entered, left = through(10, 35, {2})
    seen = left[left["time_ns"] <= 90]  # the captures end at 90: packets 6 to 9 are inside
    assert len(seen) == 5
    assert drop_rate(entered, seen, end_ns=90) == 1 / 6


def test_drop_rate_of_nothing_and_of_everything() -> None:
    entered, _ = through(4, 5, set())
    assert math.isnan(drop_rate(entered[:0], entered[:0], end_ns=100))
    assert drop_rate(entered, entered[:0], end_ns=100) == 1


def test_lost_packets_are_those_that_never_came_by() -> None:
    entered, left = through(10, 5, {2, 3, 9})
    assert lost_packets(entered, left)["time_ns"].tolist() == [20, 30]  # the last is under way
    later = pd.concat([entered, packets((500, 99, 99))])
    assert lost_packets(later, left)["time_ns"].tolist() == [20, 30, 90]
    assert lost_packets(entered, left[:0])["time_ns"].tolist() == entered["time_ns"].tolist()
    assert lost_packets(entered[:0], left).empty


def arrivals(*rows: tuple[float, int, int, int]) -> pd.DataFrame:
    """(time_s, length, seq, payload) of one connection without its SYN."""
    frame = pd.DataFrame(rows, columns=["time_s", "length", "seq", "payload"])
    times = (frame["time_s"] * 1e9).astype("int64")
    return frame.assign(time_ns=times, flags=0x10, src_port=1, dst_port=2)


def test_rates_count_the_interval_alone() -> None:
    data = arrivals((1, 60, 0, 10), (2, 150, 10, 100), (4, 150, 110, 100), (5, 150, 210, 100))
    interval = Interval(2_000_000_000, 4_000_000_000)  # both ends belong to it
    assert throughput_mbps(data, interval) == pytest.approx(300 * 8 / 2 / 1e6)
    assert goodput_mbps(data, interval, "tcp") == pytest.approx(200 * 8 / 2 / 1e6)
    assert goodput_mbps(data, interval, "udp") == pytest.approx(200 * 8 / 2 / 1e6)


def test_goodput_counts_no_byte_twice_and_throughput_every_frame() -> None:
    data = arrivals((1, 150, 0, 100), (2, 150, 0, 100))
    interval = Interval(0, 4_000_000_000)
    assert goodput_mbps(data, interval, "tcp") == pytest.approx(100 * 8 / 4 / 1e6)
    assert throughput_mbps(data, interval) == pytest.approx(300 * 8 / 4 / 1e6)


def test_an_interval_of_no_length_has_no_rate() -> None:
    assert math.isnan(throughput_mbps(arrivals((1, 60, 0, 10)), Interval(5, 5)))


def test_low_mean_high() -> None:
    assert low_mean_high(range(101)) == (0, 50, 95)
    assert all(math.isnan(value) for value in low_mean_high([]))


@pytest.mark.parametrize(
    ("rates", "index"), [([1, 1, 1, 1], 1), ([1, 0, 0, 0], 0.25), ([3, 1], 0.8), ([5], 1)]
)
def test_jain(rates: list[float], index: float) -> None:
    assert jain(rates) == pytest.approx(index)


def test_jain_of_silence_and_of_the_unknown() -> None:
    assert math.isnan(jain([0, 0])) and math.isnan(jain([1, math.nan]))


def test_a_connection_s_numbers_tell_what_its_own_queue_dropped() -> None:
    """Numbers run on past 65535; what is missing between the first and the last was dropped."""
    left = packets((10, 65533, 0), (20, 65534, 1), (40, 0, 2), (50, 1, 3), (90, 5, 4))
    assert numbering_drop_rate(left) == 4 / 9
    assert numbering_drop_rate(left[:2]) == 0
    assert math.isnan(numbering_drop_rate(left[:0]))
    two = pd.concat([left, left.assign(src_port=2)])
    assert math.isnan(numbering_drop_rate(two))
