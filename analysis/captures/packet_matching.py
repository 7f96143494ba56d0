"""The same packet at two captures: one-way delays, losses between them, and overtaking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.captures.tcp import CONTENT, Rows, rows_at

Integers = npt.NDArray[np.int64]
LATEST_NS = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Matches:
    """Packets of a later capture that are in an earlier one too, in the order of time."""

    time_ns: Integers
    before_ns: npt.NDArray[Any]  # numbers of 53 bits if any packet was only in the later capture
    before_row: Integers  # place in the earlier capture by time

    @property
    def delay_ns(self) -> npt.NDArray[Any]:
        """The time that each packet took, in nanoseconds."""
        return np.asarray(self.time_ns - self.before_ns)


def match(before: Rows, after: Rows) -> Matches:
    """Find the packets of `after` in `before`.

    Of several packets with one identity it is the last that was captured no later: the
    identification comes round every 65536 packets, and none takes that long.
    """
    earlier, later = _by_time(before), _by_time(after)
    time_ns, *identity = map(np.concatenate, zip(earlier, later, strict=True))
    of_later = np.arange(len(time_ns)) >= len(before)
    # those with one identity together, by time, and of one time the earlier ones first
    order = np.lexsort((of_later, time_ns, *identity))
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = np.any([np.diff(each[order]) != 0 for each in identity], axis=0)
    places = np.arange(len(order))
    begin = np.maximum.accumulate(np.where(is_first, places, 0))
    last = np.maximum.accumulate(np.where(of_later[order], -1, places))
    rows = np.full(len(order), -1)
    rows[order] = np.where(last >= begin, order[last], -1)
    rows = rows[len(before) :]
    before_ns, known = time_ns[rows], rows >= 0
    if not known.all():
        before_ns = before_ns.astype(np.float64)
    return Matches(later[0][known], before_ns[known], rows[known])


def _by_time(rows: Rows) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the times in order, and the fields that a router leaves unchanged.

    IP's identification counts a connection's packets, so that a retransmission differs from the
    original. IPv6 has none, but there TCP's timestamp differs, with the content.
    """
    names = ("time_ns", "src_port", "ip_id", "seq", "payload", CONTENT)
    columns = [np.asarray(rows[name]).astype(np.int64) for name in names]
    order = np.argsort(columns[0], kind="stable")
    time_ns, src_port, ip_id, seq, payload, content = (column[order] for column in columns)
    return time_ns, content, seq << 16 | src_port, payload << 32 | ip_id & 0xFFFFFFFF


def match_data(before: Rows, after: Rows) -> Matches:
    """Find the data packets of `after` in `before`."""
    return match(_data(before), _data(after))


def one_way_delays_ms(before: Rows, after: Rows) -> pd.DataFrame:
    """Delays of the data packets (`owd_ms`) by the time when they were sent (`sent_ns`)."""
    matched = match_data(before, after)
    return pd.DataFrame(
        {"sent_ns": matched.before_ns.astype(np.int64), "owd_ms": matched.delay_ns / 1e6}
    )


def lost_packets(before: Rows, after: Rows, end_ns: int = 0) -> Rows:
    """Return the data packets of `before` that never arrived at `after`, in the order of time.

    Packets that may still be on their way when the captures end, with their last packets or at
    `end_ns`, are not lost: those behind the last packet that arrived, within the longest delay of
    any.
    """
    sent = _data(before)
    sent = rows_at(sent, np.argsort(np.asarray(sent["time_ns"]), kind="stable"))
    matched = match(sent, _data(after))
    if not len(matched.time_ns):
        return sent
    lost: npt.NDArray[np.bool_] = np.ones(len(sent), dtype=np.bool_)
    lost[matched.before_row] = False
    end_ns = max(end_ns, int(before["time_ns"].max()), int(after["time_ns"].max()))
    late = np.asarray(sent["time_ns"]) + int(matched.delay_ns.max()) >= end_ns
    lost &= ~(late & (np.arange(len(sent)) > matched.before_row.max()))
    return sent[lost]


def _data(rows: Rows) -> Rows:
    """Select the data packets that can be told apart."""
    known = np.asarray(rows["ip_id"] >= 0) | (np.asarray(rows[CONTENT]) != 0)
    selected: npt.NDArray[np.bool_] = np.asarray(rows["payload"] > 0) & known
    return rows[selected]


def drop_rate(
    entered: Rows, left: Rows, end_ns: int, begin_ns: int = 0, stop_ns: int = LATEST_NS
) -> float:
    """Return the share of packets that entered a queue and did not leave it; NaN if none entered.

    Only packets count that entered from `begin_ns` to `stop_ns`, without those that may still have
    been inside when the captures ended (`end_ns`): those behind the last that left, if they entered
    within the longest stay.
    """
    if not len(entered):
        return float("nan")
    matched = match(entered, left)
    inside = 0
    if len(matched.time_ns):
        behind = np.sort(np.asarray(entered["time_ns"]))[int(matched.before_row.max()) + 1 :]
        behind = behind[(behind >= begin_ns) & (behind <= stop_ns)]
        inside = int((behind + int(matched.delay_ns.max()) >= end_ns).sum())
    counting = (entered["time_ns"] >= begin_ns) & (entered["time_ns"] <= stop_ns)
    known = int(counting.sum()) - inside
    gone = known - int(((matched.before_ns >= begin_ns) & (matched.before_ns <= stop_ns)).sum())
    return gone / known if known > 0 else float("nan")


def numbering_drop_rate(left: Rows) -> float:
    """Return the share of a connection's packets that their sender's own queue dropped.

    NaN if unknown. A capture there has only what left the queue, but the kernel numbered the
    packets before, one by one (IP's identification): each number missing between the first packet
    and the last is a drop. Fewer than 65536 in a row, and none before the first or behind the last,
    can be seen.
    """
    rows = left[left["ip_id"] >= 0]
    if len(np.unique(rows["src_port"])) != 1:  # each connection counts for itself
        return float("nan")
    order = np.argsort(np.asarray(rows["time_ns"]), kind="stable")
    steps = np.mod(np.diff(np.asarray(rows["ip_id"], dtype=np.int64)[order]), 65536)
    numbered = int(steps.sum()) + 1
    return (numbered - len(rows)) / numbered


NOWHERE = -1
ID_HALF = 1 << 15  # of the identifications


@dataclass(frozen=True)
class Pairs:
    """For each packet of a later capture its place in an earlier one, NOWHERE if it is not there.

    Of packets that look alike (resets, keep-alives) and did not all pass, one that did may be any
    that was sent from `earliest` to `latest`.
    """

    latest: Integers
    earliest: Integers
    may_have_passed: npt.NDArray[np.bool_]  # of the earlier capture

    @property
    def is_guess(self) -> npt.NDArray[np.bool_]:
        """Whether it is not known which of several that look alike a packet is."""
        return np.asarray(self.latest != self.earliest)


def pair(before: Rows, after: Rows) -> Integers:
    """Return the place in `before` of each packet of `after`; NOWHERE if it is not there.

    Packets that look alike are paired in their order. Where some of them did not pass (a lost
    SYN-ACK is sent again a second later), each that did is the last that keeps its place among its
    neighbours; where none does, because the queue has bands or flows, the last that had been sent
    by then.
    """
    return pairs(before, after).latest


def pairs(before: Rows, after: Rows) -> Pairs:
    """Pair the packets of two captures, with what is not known of those that look alike."""
    start = int(np.asarray(before["ip_id"])[0]) if len(before) else 0
    first, second = _identities(before, start), _identities(after, start)
    keys = np.concatenate((first, second))
    order = np.argsort(keys, kind="stable")  # packets of `before` come first among equals
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    group = np.cumsum(np.bincount(starts, minlength=len(ordered))[: len(ordered)]) - 1
    is_before = order < len(first)
    ahead = np.concatenate(([0], np.cumsum(is_before)))  # packets of `before` ahead of each place
    befores = np.diff(np.append(ahead[starts], ahead[-1]))  # in each group
    rank = np.arange(len(ordered)) - starts[group] - befores[group]  # of `after` in its group
    matches = np.full(len(second), NOWHERE, dtype=np.int64)
    mine = ~is_before & (rank < befores[group])
    matches[order[mine] - len(first)] = order[(starts[group] + rank)[mine]]
    afters = np.diff(np.append(starts, len(ordered))) - befores
    unsure = np.flatnonzero((befores > 1) & (afters > 0) & (afters < befores))
    alike = [
        (here[: befores[place]], here[befores[place] :] - len(first))
        for place in unsure
        for here in [order[starts[place] :][: befores[place] + afters[place]]]
    ]
    times = (np.asarray(before["time_ns"]), np.asarray(after["time_ns"]))
    return _pair_alike(matches, alike, times)


def _pair_alike(
    matches: Integers, alike: list[tuple[Integers, Integers]], times: tuple[Integers, Integers]
) -> Pairs:
    """Pair packets that look alike, of which some did not pass: the latest first."""
    for _, passed in alike:
        matches[passed] = NOWHERE
    sure = np.flatnonzero(matches != NOWHERE)
    around = np.concatenate(([NOWHERE], matches[sure], [len(times[0])]))
    earliest = matches.copy()
    may_have_passed = np.zeros(len(times[0]), dtype=np.bool_)
    may_have_passed[matches[sure]] = True
    for sent, passed in alike:
        last = len(sent)
        for rank, place in reversed([*enumerate(passed.tolist())]):
            last = min(last, int(np.searchsorted(times[0][sent], times[1][place], side="right")))
            ahead, behind = around[int(np.searchsorted(sure, place)) :][:2]
            between = int(np.searchsorted(sent, behind))
            first = rank
            if between and sent[between - 1] > ahead:
                last = min(last, between)
                first = max(first, int(np.searchsorted(sent, ahead)))
            last -= 1
            if last >= 0:
                first = min(first, last)
                matches[place], earliest[place] = sent[last], sent[first]
                may_have_passed[sent[first : last + 1]] = True
    return Pairs(matches, earliest, may_have_passed)


def differences(before: Rows, after: Rows, until_ns: float = math.inf) -> tuple[int, int]:
    """Count the packets that are only in `before`, and those that are only in `after`.

    Of `before`, those that had the time to cross by `until_ns`; of `after`, those before it. Of
    packets that look alike, some are still on their way when a capture ends: those that arrived
    may be the first ones, not the last.
    """
    matches = pairs(before, after)
    crossed = matches.latest != NOWHERE
    earliest, latest = matches.earliest[crossed], matches.latest[crossed]
    lost = np.ones(len(before), dtype=bool)
    lost[latest] = False
    sent_ns, came_ns = (np.asarray(rows["time_ns"], dtype=np.int64) for rows in (before, after))
    taken_ns = came_ns[crossed] - sent_ns[earliest]
    sure = earliest == latest
    longest_ns = taken_ns[sure if sure.any() else ...].max(initial=0)
    in_time = sent_ns < until_ns - longest_ns
    lost &= in_time
    alike = int((lost & matches.may_have_passed).sum())
    first = int((in_time[earliest] & ~in_time[latest]).sum())
    gone = int((lost & ~matches.may_have_passed).sum()) + max(0, alike - first)
    return gone, int((~crossed & (came_ns < until_ns)).sum())


def overtakers(before: Rows, after: Rows) -> int:
    """Count the packets that arrived before one that had been sent earlier."""
    matches = pair(before, after)
    places = matches[matches != NOWHERE]
    if not len(places):
        return 0
    behind = np.minimum.accumulate(places[::-1])[::-1]  # the first sent of those from here on
    return int((places[:-1] > behind[1:]).sum())


def _place_in_stream(rows: Rows, start: int) -> Integers:
    """Return TCP's sequence numbers; for UDP the IP identification, unwrapped from near `start`."""
    if len(rows) and np.asarray(rows["protocol"][:1])[0] == "udp":
        ids: Integers = np.asarray(rows["ip_id"], dtype=np.int64)
        steps: Integers = np.diff(ids, prepend=start)
        return np.asarray(np.cumsum((steps + ID_HALF) % (2 * ID_HALF) - ID_HALF))
    return np.asarray(rows["seq"], dtype=np.int64)


def _identities(rows: Rows, start: int) -> npt.NDArray[np.uint64]:
    """Return ports, IP identification, sequence number, payload and content as 64 bits.

    A multiplicative hash keeps overlapping fields apart.
    """
    with np.errstate(over="ignore"):
        identities = _place_in_stream(rows, start).astype(np.uint64)
        for name, factor in (
            ("ip_id", 0x9E3779B97F4A7C15),
            ("payload", 0xC2B2AE3D27D4EB4F),
            ("src_port", 0x165667B19E3779F9),
            ("dst_port", 0xD6E8FEB86659FD93),
            ("ack", 0xFF51AFD7ED558CCD),
            (CONTENT, 0xD6C9A1B5F3E7029B),
        ):
            column = np.asarray(rows[name]).astype(np.uint64)
            identities = identities * np.uint64(0x2545F4914F6CDD1D) + column * np.uint64(factor)
    return identities
