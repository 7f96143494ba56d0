"""Loss events, recoveries and timeouts of connections made by hand.

A segment is 100 bytes and known by its number; a round trip takes 50 ms. The timer is 250 ms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.metrics.loss_events import (
    LossEvent,
    Responses,
    Stack,
    _repaired,
    busy_ns,
    loss_events,
    responses,
)
from analysis.trials.tcp_stream import Segments

MS = 1_000_000
SIZE = 100

Sent = tuple[float, int]  # ms and number
Heard = tuple[float, int]  # ms, and the number that the receiver waits for


@dataclasses.dataclass(frozen=True)
class Found:
    """What was made of a connection: times are in ms."""

    events: list[LossEvent]
    timeouts: list[float]
    first: list[bool]
    waits: list[float]
    recoveries: list[float]

    @property
    def losses(self) -> list[int]:
        """Of each event."""
        return [event.losses for event in self.events]


def connection(sent: Sequence[Sent], heard: Sequence[Heard]) -> Segments:
    """What a sender's capture shows of it."""
    begin = np.array([number * SIZE for _, number in sent])
    return Segments(
        row=np.arange(len(sent)),
        time_ns=np.array([round(at * MS) for at, _ in sent]),
        begin=begin,
        end=begin + SIZE,
        ack_ns=np.array([round(at * MS) for at, _ in heard], dtype=np.int64),
        acked=np.array([number * SIZE for _, number in heard], dtype=np.int64),
    )


def find(
    sent: Sequence[Sent],
    heard: Sequence[Heard],
    lost: Sequence[Sent],
    *,
    has_rack: bool = False,
    leaves_early: bool = False,
) -> Found:
    """Its events and responses; `lost` names sendings."""
    segments = connection(sent, heard)
    late_ns = np.full(len(sent), MS)
    seen: Responses = responses(segments, Stack(late_ns, has_rack, leaves_early))
    gone = np.array([each in lost for each in sent])
    assert gone.sum() == len(lost)
    return Found(
        loss_events(segments, gone, seen),
        timeouts=(segments.time_ns[seen.timeouts] / MS).tolist(),
        first=seen.first.tolist(),
        waits=(seen.wait_ns / MS).tolist(),
        recoveries=(segments.time_ns[seen.recoveries] / MS).tolist(),
    )


def flight(at: float, numbers: Sequence[int]) -> list[Sent]:
    """Segments a millisecond apart."""
    return [(at + k, number) for k, number in enumerate(numbers)]


WINDOW = flight(0, range(10))
# 0 and 1 arrive, 2 does not: acknowledgements a round trip later
DUPLICATES: list[Heard] = [(50, 1), (51, 2), (53, 2), (54, 2), (55, 2), (56, 2), (57, 2), (58, 2)]


def test_one_loss_is_an_event_and_a_recovery() -> None:
    found = find(
        [*WINDOW, (55, 2), *flight(106, range(10, 13))], [*DUPLICATES, (105, 10)], [(2, 2)]
    )
    assert found.events == [LossEvent(2 * MS, 55 * MS, by_timeout=False, losses=1)]
    assert (found.recoveries, found.timeouts) == ([55], [])


THREE_SENT: list[Sent] = [*WINDOW, (55, 2), (105, 4), (155, 6)]
THREE_HEARD: list[Heard] = [*DUPLICATES, (105, 4), (155, 6), (205, 10)]
THREE: list[Sent] = [(2, 2), (4, 4), (6, 6)]


def test_the_losses_of_a_window_are_one_event() -> None:
    """NewReno: a retransmission a round trip, all of them one recovery."""
    found = find(THREE_SENT, THREE_HEARD, THREE)
    assert found.losses == [3]
    assert (found.recoveries, found.timeouts) == ([55], [])


def test_several_recoveries_in_a_window_are_one_event() -> None:
    """Reno of 1990 has left its recovery when the next three duplicate ACKs come."""
    sent = [*WINDOW, (55, 2), *flight(106, (10, 11, 12)), (158, 4)]
    heard = [*DUPLICATES, (105, 4), (156, 4), (157, 4), (158, 4), (208, 13)]
    found = find(sent, heard, [(2, 2), (4, 4)], leaves_early=True)
    assert found.losses == [2]
    assert found.recoveries == [55, 158]


def test_silence_ends_with_the_timer() -> None:
    """It fires twice; what it sent first is lost too and belongs to the event."""
    sent = [*flight(0, range(4)), (301, 2), (801, 2), (852, 3)]
    heard = [(50, 1), (51, 2), (53, 2), (851, 3), (902, 4)]
    found = find(sent, heard, [(2, 2), (301, 2)])
    assert found.events == [LossEvent(2 * MS, 301 * MS, by_timeout=True, losses=2)]
    assert (found.timeouts, found.first, found.waits) == ([301, 801], [True, False], [250, 750])
    assert found.recoveries == []


def test_three_duplicates_after_a_long_while_are_no_timeout() -> None:
    """A window of few segments over a long round trip."""
    heard: list[Heard] = [(50, 1), (51, 2), (250, 2), (350, 2), (450, 2)]
    found = find([*flight(0, range(6)), (450.5, 2)], heard, [(2, 2)])
    assert (found.recoveries, found.timeouts) == ([450.5], [])


IMPATIENT_SENT: list[Sent] = [
    *WINDOW,
    (55, 2),
    *flight(106, (10, 11)),
    (105, 4),
    (155, 6),
    (160, 6),
    (211, 8),
]


def impatient(has_rack: bool) -> Found:
    """The timer has not been set anew: it fires between two ACKs of new data, soon after both."""
    sent = sorted(IMPATIENT_SENT)
    heard: list[Heard] = [*DUPLICATES, (105, 4), (155, 6), (157, 6), (210, 8)]
    lost: list[Sent] = [(2, 2), (4, 4), (6, 6), (8, 8), (107, 11)]
    return find(sent, heard, lost, has_rack=has_rack)


def test_a_timer_that_recovery_does_not_restart() -> None:
    """It fires; what is lost of what had been sent by then belongs to the event."""
    found = impatient(has_rack=False)
    assert found.losses == [5]
    assert not found.events[0].by_timeout
    assert (found.recoveries, found.timeouts, found.waits) == ([55], [160], [5])


def test_rack_sends_a_segment_a_third_time_without_the_timer() -> None:
    """What was lost of new data in the recovery is then an event to come, if it is answered."""
    found = impatient(has_rack=True)
    assert (found.recoveries, found.timeouts) == ([55], [])
    assert found.losses == [4]


def test_a_lost_retransmission_belongs_to_its_event() -> None:
    sent = [*WINDOW, (55, 2), (305, 2), *flight(356, (10, 11))]
    found = find(sent, [*DUPLICATES, (355, 10)], [(2, 2), (55, 2)])
    assert found.losses == [2]
    assert (found.recoveries, found.timeouts) == ([55], [305])


def test_a_needless_retransmission_is_no_event() -> None:
    """Reordering: three duplicate ACKs, and nothing is lost."""
    found = find([*WINDOW, (55, 2)], [*DUPLICATES, (59, 10)], [])
    assert found.events == [] and found.recoveries == [55]


def test_new_data_lost_in_recovery_begins_the_next_event() -> None:
    sent = [*WINDOW, (55, 2), *flight(56, (10, 11, 12, 13)), (110, 10), *flight(161, (14, 15))]
    heard = [*DUPLICATES, (105, 10), (107, 10), (108, 10), (109, 10), (160, 14)]
    found = find(sent, heard, [(2, 2), (56, 10)])
    assert found.losses == [1, 1]
    assert [event.answered_ns // MS for event in found.events] == [55, 110]
    assert found.recoveries == [55, 110]


def test_what_is_never_sent_again_is_no_event() -> None:
    """The flow was over before; and a needless copy that is lost leads to nothing."""
    sent = [*WINDOW, (55, 2), *flight(70, (10, 11))]
    found = find(sent, [*DUPLICATES, (59, 10)], [(55, 2), (71, 11)])
    assert found.events == []


def test_a_connection_without_losses_or_acknowledgements() -> None:
    assert find(WINDOW, [(50 + k, k + 1) for k in range(10)], []).events == []
    assert find(WINDOW, [], []) == Found([], [], [], [], [])


def test_what_had_to_be_sent_again_was_lost_before() -> None:
    """Without the receiver's capture: twice the same, and one that had been acknowledged."""
    sent = [*WINDOW, (55, 2), (305, 2), (400, 9)]
    segments = connection(sent, [*DUPLICATES, (355, 10)])
    rows = pd.DataFrame({"payload": SIZE, "spurious_retransmission": [False] * 12 + [True]})
    packets: Any = rows  # which has the columns that are asked for
    assert np.flatnonzero(_repaired(segments, packets)).tolist() == [2, 10]


def test_a_link_is_busy_until_a_packet_comes_late() -> None:
    """10 Mbit/s: 1250 bytes take a millisecond, the short one behind them a tenth of it."""
    left_ns = np.array([0, 1, 2, 5, 6, 9]) * MS
    sizes = np.array([1250, 1250, 1250, 1250, 125, 1250])
    assert (busy_ns(left_ns, sizes, 10) / MS).tolist() == [1, 2, 3, 1, 1.1, 1]
