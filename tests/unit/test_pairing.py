"""Packets of two captures, known again."""

from __future__ import annotations

import pandas as pd

from analysis.captures.packet_matching import NOWHERE, differences, overtakers, pair, pairs
from tests.trial_writer import CBR


def udp_rows(ids: list[int], times: list[int]) -> pd.DataFrame:
    columns = {"time_ns": times, "ip_id": ids, "protocol": "udp", "seq": 0, "ack": 0, "content": 0}
    return pd.DataFrame({**columns, "payload": 900, "src_port": CBR.src_port, "dst_port": 1})


def test_pairs_know_packets_again() -> None:
    before = udp_rows([1, 2, 3, 4], [0, 1, 2, 3])
    assert list(pair(before, before.iloc[[1, 3]])) == [1, 3]
    assert list(pair(before.iloc[[0, 2]], before)) == [0, NOWHERE, 1, NOWHERE]
    assert list(pair(before.iloc[:0], before)) == [NOWHERE] * 4 and not len(
        pair(before, before[:0])
    )


def test_identifications_that_come_round() -> None:
    """The first packet is lost: its twin, 65536 later, is another one."""
    ids = [(32700 + i) % 65536 for i in range(65600)]
    before = udp_rows(ids, list(range(len(ids))))
    found = pair(before, before.iloc[1:])
    assert list(found) == list(range(1, len(ids)))


def test_packets_that_look_alike_are_taken_in_turn() -> None:
    alike = udp_rows([5, 5, 5], [0, 1, 2]).assign(protocol="tcp")
    assert list(pair(alike, alike.iloc[:2])) == [0, 1]


def test_a_packet_that_was_lost_and_one_that_waited_look_alike() -> None:
    """The second SYN-ACK (5) leaves a full queue after the third was sent: its neighbours tell.
    Behind all of them, as in a queue with flows, it is the last that was sent by then."""
    before = udp_rows([5, 1, 5, 2, 5, 3], [0, 1, 10, 11, 20, 21]).assign(protocol="tcp")
    waited = before.iloc[[1, 2, 3, 5]].assign(time_ns=[29, 30, 31, 32])
    assert list(pair(before, waited)) == [1, 2, 3, 5]
    both = before.iloc[[1, 2, 3, 4, 5]].assign(time_ns=[28, 29, 30, 31, 32])
    assert list(pair(before, both)) == [1, 2, 3, 4, 5]
    overtook = before.iloc[[1, 3, 5, 2]].assign(time_ns=[30, 31, 33, 34])
    assert list(pair(before, overtook)) == [1, 3, 5, 4]


def test_which_of_packets_that_look_alike_were_lost_is_not_known() -> None:
    """Of four resets (5) behind packet 1, two passed: the first may be any of the first three."""
    before = udp_rows([1, 5, 5, 5, 5], [0, 10, 11, 12, 13]).assign(protocol="tcp")
    found = pairs(before, before.iloc[[0, 1, 4]].assign(time_ns=[5, 20, 25]))
    assert (list(found.earliest), list(found.latest)) == ([0, 1, 2], [0, 3, 4])
    assert list(found.is_guess) == [False, True, True] and found.may_have_passed.all()
    soon = pairs(before, before.iloc[[0, 1, 4]].assign(time_ns=[5, 10, 11]))
    assert list(soon.latest) == [0, 1, 2] and not soon.is_guess.any()
    assert list(soon.may_have_passed) == [True, True, True, False, False]


def test_what_only_one_of_two_captures_has_counts_while_both_run() -> None:
    """Captures end one after the other: the last packets may be in either alone."""
    before = udp_rows([1, 2, 3, 4], [0, 10, 20, 30])
    after = udp_rows([2, 9, 3, 8], [11, 15, 21, 31])
    assert differences(before, after) == (2, 2)  # 1 and 4, 9 and 8
    assert differences(before, after, until_ns=30) == (1, 1)
    assert differences(before, after, until_ns=0) == (0, 0)


def test_a_packet_that_is_on_its_way_when_captures_end_is_not_lost() -> None:
    before = udp_rows([1, 2, 3], [0, 10, 20])
    after = udp_rows([1], [5])
    assert differences(before, after, until_ns=26) == (2, 0)
    assert differences(before, after, until_ns=25) == (1, 0)  # the last would come at 25


def test_of_packets_that_look_alike_the_last_are_on_their_way() -> None:
    """Resets that take 20 ns, of which the capture's end leaves the last two on the link."""
    alone, behind_it = (udp_rows([1], [at]).assign(protocol="tcp") for at in (0, 20))
    sent = udp_rows([5] * 6, [0, 10, 20, 30, 40, 50]).assign(protocol="tcp")
    came = sent.iloc[:4].assign(time_ns=[20, 30, 40, 50])
    assert differences(sent, came, until_ns=55) == (0, 0)
    before = pd.concat((alone, sent))
    assert differences(before, pd.concat((behind_it, came)), until_ns=55) == (0, 0)
    first_lost = pd.concat((behind_it, came.iloc[1:]))
    assert differences(before, first_lost, until_ns=55) == (1, 0)
    assert differences(before, first_lost, until_ns=80) == (3, 0)


def test_who_comes_before_one_that_was_sent_earlier_has_overtaken_it() -> None:
    sent = udp_rows([1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
    assert overtakers(sent, sent) == 0
    assert overtakers(sent, sent.iloc[[2, 0, 1, 4, 3]]) == 2  # 3 and 5
    assert overtakers(sent, sent.iloc[[4, 1, 2]]) == 1  # others are lost
    assert overtakers(sent, sent.iloc[:0]) == 0
