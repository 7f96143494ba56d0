"""The same packet at two captures on one clock: one-way delays, and what got lost between."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd


def match(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """For each packet of `after`, in the order of time: its `time_ns`, and where it was seen
    before: `before_ns` and `before_row` (its place in `before` by time), NaN where nowhere.

    A packet's earlier self is the last one with its identity that was seen no later than
    it: the identification comes round every 65536 packets, and none takes that long.
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
    before_ns, missing = time_ns[rows], rows < 0
    if missing.any():
        before_ns, rows = (np.where(missing, np.nan, each) for each in (before_ns, rows))
    return pd.DataFrame({"time_ns": later[0], "before_ns": before_ns, "before_row": rows})


def _by_time(rows: pd.DataFrame) -> tuple[npt.NDArray[np.int64], ...]:
    """The times, and what a router leaves alone: IP's identification counts up a connection's
    packets, so that a retransmission differs from the original."""
    names = ("time_ns", "src_port", "ip_id", "seq", "payload")
    columns = [rows[name].to_numpy().astype(np.int64) for name in names]
    order = np.argsort(columns[0], kind="stable")
    time_ns, src_port, ip_id, seq, payload = (column[order] for column in columns)
    return time_ns, seq << 16 | src_port, payload << 32 | ip_id & 0xFFFFFFFF


def one_way_delays_ms(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Delays of the data packets (`owd_ms`) by the time when they were sent (`sent_ns`)."""
    pairs = match(_data(before), _data(after)).dropna()
    return pd.DataFrame(
        {
            "sent_ns": pairs["before_ns"].astype("int64"),
            "owd_ms": (pairs["time_ns"] - pairs["before_ns"]) / 1e6,
        }
    )


def lost_packets(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """The data packets of `before` that never came by at `after`, in the order of time.

    What may still be on its way when the captures end is not lost: what follows the last
    packet that came by, within the longest way that any took.
    """
    sent = _data(before).sort_values("time_ns", kind="stable")
    pairs = match(sent, _data(after)).dropna()
    if sent.empty or pairs.empty:
        return sent
    came = pairs["before_row"].astype("int64")
    longest_ns = int((pairs["time_ns"] - pairs["before_ns"]).max())
    lost = np.ones(len(sent), dtype=bool)
    lost[came] = False
    end_ns = max(int(before["time_ns"].max()), int(after["time_ns"].max()))
    late = sent["time_ns"].to_numpy() + longest_ns >= end_ns
    return sent[lost & ~(late & (np.arange(len(sent)) > came.max()))]


def _data(rows: pd.DataFrame) -> pd.DataFrame:
    """Data packets that have an identification to know them by."""
    return rows[(rows["payload"] > 0) & (rows["ip_id"] >= 0)]


def drop_rate(entered: pd.DataFrame, left: pd.DataFrame, end_ns: int, begin_ns: int = 0) -> float:
    """The part of the packets that entered a queue and did not leave it; NaN if none entered.
    Those that entered before `begin_ns` don't count.

    Packets that may still have been inside when the captures ended (`end_ns`) don't count:
    those behind the last that left, if they entered within the longest stay seen.
    """
    if entered.empty:
        return float("nan")
    pairs = match(entered, left).dropna()
    inside = 0
    if len(pairs):
        last_row = int(pairs["before_row"].max())
        stay_ns = int((pairs["time_ns"] - pairs["before_ns"]).max())
        behind = entered["time_ns"].sort_values().iloc[last_row + 1 :]
        inside = int((behind + stay_ns >= end_ns).sum())
    known = int((entered["time_ns"] >= begin_ns).sum()) - inside
    gone = known - len(left) + int((pairs["before_ns"] < begin_ns).sum())
    return gone / known if known > 0 else float("nan")


def numbering_drop_rate(left: pd.DataFrame) -> float:
    """The part of a connection's packets that their own node's queue dropped; NaN if unknown.

    A capture there sees what left the queue alone. But the kernel numbered them before, one
    by one (IP's identification), so that each number missing between the first packet and
    the last is a drop. Fewer than 65536 in a row, and none behind the last, can be seen.
    """
    rows = left[left["ip_id"] >= 0].sort_values("time_ns", kind="stable")
    if rows.empty or rows["src_port"].nunique() > 1:  # each connection counts for itself
        return float("nan")
    steps = np.diff(rows["ip_id"].to_numpy()) % 65536
    numbered = int(steps.sum()) + 1
    return (numbered - len(rows)) / numbered
