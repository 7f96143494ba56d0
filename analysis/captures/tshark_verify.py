"""Verification of the project's reader against tshark: every field of every packet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.captures import tshark
from analysis.captures.tcp import COLUMNS, Array, read_capture

MAX_SACK_BLOCKS = 4  # as core.h has it
UNTOLD = np.iinfo(np.int64).min  # tshark does not say it
Sacks = tuple[int, list[tuple[int, int]] | None]
MISSING = {"ip_id": -1}  # our value where tshark prints nothing; 0 elsewhere
# What a packet's own headers say. All else is judged from the packets before it, and Wireshark's
# rules for that, even for where a connection begins, change from version to version.
OWN = (
    "frame time_ns length protocol src dst src_port dst_port ip_id seq ack payload flags ecn"
).split()


@dataclass(frozen=True)
class Difference:
    """A field of a packet that we and tshark tell differently."""

    frame: int
    field: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"frame {self.frame}: {self.field}: ours {self.ours}, tshark's {self.theirs}"


@dataclass
class Verdict:
    """The result of a verification: what was compared, and what differs."""

    packets: int = 0
    differences: list[Difference] = field(default_factory=list)
    other_rules: Counter[str] = field(default_factory=Counter)  # differing fields → how often

    @property
    def fields(self) -> int:
        """The number of compared values."""
        return self.packets * len(COLUMNS)

    def __iadd__(self, other: Verdict) -> Verdict:
        self.packets += other.packets
        self.differences += other.differences
        self.other_rules += other.other_rules
        return self

    def set_aside(self) -> None:
        """Count apart what another Wireshark than the followed one may judge otherwise."""
        aside = [each for each in self.differences if each.field not in OWN]
        self.other_rules += Counter(each.field for each in aside)
        self.differences = [each for each in self.differences if each.field in OWN]

    def __str__(self) -> str:
        return (
            f"{self.packets} packets, {self.fields} fields compared, "
            f"{len(self.differences)} differences"
        )


def verify(path: Path, *, tunnels: bool = False) -> Verdict:
    """Read a capture twice, by ourselves and with tshark, and compare."""
    packets = read_capture(path, tunnels=tunnels)
    ours = packets.rows
    verdict = Verdict()
    done, blocks = 0, not packets.sacks.empty
    for theirs in tshark.read_fields(path, tunnels=tunnels):
        if theirs.empty:
            continue
        frames = theirs["frame.number"].astype("int64").to_numpy()
        until = int(np.searchsorted(ours["frame"], frames[-1], side="right"))
        _compare(ours.iloc[done:until], theirs, frames, verdict)
        done = until
        blocks |= bool(theirs[tshark.SACK[0]].notna().any())
    verdict.differences += _alone(ours["frame"].iloc[done:], "a packet", "none")
    if blocks:  # a packet may have several, which takes tshark another reading
        verdict.differences += _compare_sacks(
            packets.sacks, tshark.read_sacks(path, tunnels=tunnels)
        )
    if not tshark.version().startswith(f"{tshark.FOLLOWED}."):
        verdict.set_aside()
    return verdict


def _compare_sacks(sacks: pd.DataFrame, read: Iterator[Sacks]) -> Iterator[Difference]:
    ours: dict[int, list[tuple[int, int]]] = {}
    for frame, left, right in sacks.itertuples(index=False):
        ours.setdefault(int(frame), []).append((int(left), int(right)))
    for frame, theirs in read:
        mine = ours.pop(frame, [])
        if theirs is not None and mine != theirs[:MAX_SACK_BLOCKS]:
            yield Difference(frame, "sacks", str(mine), str(theirs))
    yield from (Difference(frame, "sacks", str(mine), "none") for frame, mine in ours.items())


def _compare(ours: pd.DataFrame, theirs: pd.DataFrame, frames: Array, verdict: Verdict) -> None:
    own = ours["frame"].to_numpy()
    common = np.intersect1d(own, frames)
    verdict.differences += _alone(np.setdiff1d(own, common), "a packet", "none")
    verdict.differences += _alone(np.setdiff1d(frames, common), "none", "a packet")
    ours, theirs = ours[np.isin(own, common)], theirs[np.isin(frames, common)]
    verdict.packets += len(common)
    six = ours["src"].astype("str").str.contains(":").to_numpy()
    for name in COLUMNS:
        mine, other = _mine(ours, name), _theirs(theirs, name, six)
        for place in np.flatnonzero((mine != other) & (other != UNTOLD)):
            frame = int(common[place])
            verdict.differences.append(Difference(frame, name, str(mine[place]), str(other[place])))


def _alone(frames: Iterable[int], ours: str, theirs: str) -> Iterator[Difference]:
    return (Difference(int(frame), "frame", ours, theirs) for frame in frames)


def _mine(rows: pd.DataFrame, name: str) -> Array:
    if name in ("protocol", "src", "dst"):
        return rows[name].astype("object").to_numpy()
    if name.endswith("_ms"):  # as nanoseconds: both sides have no more
        return np.rint(rows[name].fillna(0).to_numpy() * 1e6).astype(np.int64)
    return rows[name].to_numpy().astype(np.int64)


def _theirs(rows: pd.DataFrame, name: str, six: Array) -> Array:
    """tshark's texts in our form. `six`: whose innermost header is IPv6's."""
    tcp = rows["tcp.stream"].notna().to_numpy()
    if name == "protocol":
        return np.where(tcp, "tcp", "udp").astype(object)
    if name in tshark.MARKS:
        return rows[tshark.MARKS[name]].notna().to_numpy().astype(np.int64)
    if name in tshark.TIMES:
        codes, unique = pd.factorize(rows[tshark.TIMES[name]])
        return np.array([*map(_nanoseconds, unique), 0], dtype=np.int64)[codes]
    if name in tshark.HEXADECIMAL:
        found = _numbers(rows[tshark.HEXADECIMAL[name]], 16, MISSING.get(name, 0))
        return _either(~six, found, np.full(len(found), -1)) if name == "ip_id" else found
    if name == "ecn":
        four, other = (_numbers(rows[each], 10, 0) for each in tshark.ECN)
        return _either(six, other, four)
    if name in tshark.ADDRESSES:
        four, other = (rows[each].astype("object").to_numpy() for each in tshark.ADDRESSES[name])
        return _either(six, other, four)
    first, *others = (_numbers(rows[each], 10, 0) for each in tshark.NUMBERS[name])
    if not others:
        return first
    if name == "payload":  # a jumbogram's length is not in UDP's header
        others[0] = _either(others[0] == 0, np.full(len(first), UNTOLD), others[0] - 8)
    return _either(tcp, first, others[0])


def _either(which: Array, one: Array, other: Array) -> Array:
    chosen: Array = np.where(which, one, other)
    return chosen


def _nanoseconds(text: str) -> int:
    """Seconds with at least nine digits behind the point, which may be more than a second;
    beyond 64 bits it wraps around, as ours do."""
    seconds, _, rest = text.removeprefix("-").partition(".")
    value = int(seconds) * 10**9 + int(rest or 0)
    value = -value if text.startswith("-") else value
    return (value + 2**63) % 2**64 - 2**63


def _numbers(texts: pd.Series[str], base: int, missing: int) -> Array:
    """Each different text is read once."""
    codes, unique = pd.factorize(texts)
    values = [int(text, base) for text in unique]
    return np.array([*values, missing], dtype=np.int64)[codes]
