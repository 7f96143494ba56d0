"""Pairs the packets of two captures by the fields that a router leaves unchanged."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

Integers = npt.NDArray[np.int64]

NOWHERE = -1
ID_HALF = 1 << 15  # of the identifications


def pair(before: pd.DataFrame, after: pd.DataFrame) -> Integers:
    """For each packet of `after` its place in `before`, NOWHERE if it is not there.

    Packets that look alike (resets, keep-alives) are paired in their order. Where some of them did
    not pass (a lost SYN-ACK is sent again a second later), each that did is the last that keeps its
    place among its neighbours; where none does, because the queue has bands or flows, the last
    that had been sent by then.
    """
    start = int(before["ip_id"].iloc[0]) if len(before) else 0
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
    found = np.full(len(second), NOWHERE, dtype=np.int64)
    mine = ~is_before & (rank < befores[group])
    found[order[mine] - len(first)] = order[(starts[group] + rank)[mine]]
    afters = np.diff(np.append(starts, len(ordered))) - befores
    unsure = np.flatnonzero((befores > 1) & (afters > 0) & (afters < befores))
    alike = [
        (here[: befores[place]], here[befores[place] :] - len(first))
        for place in unsure
        for here in [order[starts[place] :][: befores[place] + afters[place]]]
    ]
    times = (before["time_ns"].to_numpy(), after["time_ns"].to_numpy())
    _pair_alike(found, alike, times)
    return found


def _pair_alike(
    found: Integers, alike: list[tuple[Integers, Integers]], times: tuple[Integers, Integers]
) -> None:
    """Pair packets that look alike, of which some did not pass: the latest first."""
    for _, passed in alike:
        found[passed] = NOWHERE
    sure = np.flatnonzero(found != NOWHERE)
    around = np.concatenate(([NOWHERE], found[sure], [len(times[0])]))
    for sent, passed in alike:
        last = len(sent)
        for place in reversed(passed.tolist()):
            last = min(last, int(np.searchsorted(times[0][sent], times[1][place], side="right")))
            ahead, behind = around[int(np.searchsorted(sure, place)) :][:2]
            between = int(np.searchsorted(sent, behind))
            if between and sent[between - 1] > ahead:
                last = min(last, between)
            last -= 1
            found[place] = sent[last] if last >= 0 else NOWHERE


def differences(
    before: pd.DataFrame, after: pd.DataFrame, until_ns: float = math.inf
) -> tuple[int, int]:
    """The number of packets that are only in `before`, and of those only in `after`: of these those
    alone that came before `until_ns`, of those the ones that had the time to cross by then."""
    found = pair(before, after)
    crossed = found != NOWHERE
    lost = np.ones(len(before), dtype=bool)
    lost[found[crossed]] = False
    sent_ns, came_ns = (rows["time_ns"].to_numpy(dtype=np.int64) for rows in (before, after))
    longest_ns = (came_ns[crossed] - sent_ns[found[crossed]]).max(initial=0)
    in_time = sent_ns < until_ns - longest_ns
    return int((lost & in_time).sum()), int((~crossed & (came_ns < until_ns)).sum())


def overtakers(before: pd.DataFrame, after: pd.DataFrame) -> int:
    """The number of packets that came by before one that had been sent earlier."""
    found = pair(before, after)
    places = found[found != NOWHERE]
    if not len(places):
        return 0
    behind = np.minimum.accumulate(places[::-1])[::-1]  # the first sent of those from here on
    return int((places[:-1] > behind[1:]).sum())


def _place_in_stream(rows: pd.DataFrame, start: int) -> Integers:
    """The sequence number; for UDP the IP identification, which counts packets, unwrapped beyond
    65535 from near `start`."""
    if len(rows) and rows["protocol"].iloc[0] == "udp":
        steps = np.diff(rows["ip_id"].to_numpy(dtype=np.int64), prepend=start)
        return np.asarray(np.cumsum((steps + ID_HALF) % (2 * ID_HALF) - ID_HALF))
    return rows["seq"].to_numpy(dtype=np.int64)


def _identities(rows: pd.DataFrame, start: int) -> npt.NDArray[np.uint64]:
    """Ports, IP identification, sequence number and payload in 64 bits: a multiplicative hash keeps
    overlapping fields apart."""
    with np.errstate(over="ignore"):
        found = _place_in_stream(rows, start).astype(np.uint64)
        for name, factor in (
            ("ip_id", 0x9E3779B97F4A7C15),
            ("payload", 0xC2B2AE3D27D4EB4F),
            ("src_port", 0x165667B19E3779F9),
            ("dst_port", 0xD6E8FEB86659FD93),
            ("ack", 0xFF51AFD7ED558CCD),
        ):
            column = rows[name].to_numpy().astype(np.int64).astype(np.uint64)
            found = found * np.uint64(0x2545F4914F6CDD1D) + column * np.uint64(factor)
    return found
