"""Why a packet was sent, and why a window changed: rules over captures and the kernel's samples.

Each rule names what it goes by. Where none applies, the sentence says so.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from analysis.captures.tcp import SYN
from analysis.trials.accurate_ecn import ECE
from analysis.watch.journeys import UNSEEN, FlowPath, Integers, Journeys
from testbed.errors import number_of

AT_ONCE_NS = 1_000_000  # an ACK and what is sent because of it are no further apart
MIN_TIMEOUT_NS = 200_000_000  # Linux's shortest
MAX_BLOCKS = 1000  # of what a receiver has beyond holes
MIN_DUPLICATES = 3  # RFC 5681: the third duplicate ACK
MAX_CHANGES_TOLD = 2000  # of a flow's window
BBR = "bbr"
MODELS = {  # controls that lower the window without a loss or a mark, and why
    BBR: "BBR's model asks for less",
    **dict.fromkeys(("vegas", "vegas1995"), "Vegas lets fewer segments wait in the queue"),
}
REDUCED_STATES = ("recovery", "loss", "cwr")  # congestion states
NOT_KNOWN = "The rules do not know why"


@dataclass(frozen=True)
class WindowChange:
    """A change of a sender's window between two samples."""

    time_s: float
    kind: str  # slow-start-end, recovery, timeout, cwr, idle or other
    sentence: str


@dataclass
class Sender:
    """What a connection's sender had sent and heard so far."""

    acked: int = 0
    highest: int = 0  # the end of what was sent
    sent_ns: int = UNSEEN  # the last data, new or sent again
    heard_ns: int = UNSEEN  # the last ACK
    duplicates: int = 0
    advanced: bool = False  # whether the last ACK acknowledged something new
    sacked: list[tuple[int, int]] = field(default_factory=list)  # ascending, apart
    recovering: int = UNSEEN  # up to there
    after_timeout: bool = False
    timeout_ns: int = UNSEEN
    repaired: dict[int, int] = field(default_factory=dict)  # segment's begin → when sent again

    def hear(self, time_ns: int, ack: int, blocks: list[tuple[int, int]], pure: bool) -> None:
        """Take an acknowledgement in."""
        self.heard_ns, self.advanced = time_ns, ack > self.acked
        if ack > self.acked:
            self.acked, self.duplicates = ack, 0
            if self.recovering != UNSEEN and ack >= self.recovering:
                self.recovering, self.after_timeout = UNSEEN, False
        elif ack == self.acked and pure and self.highest > ack:
            self.duplicates += 1
        self.sacked = _merged([*self.sacked, *blocks], self.acked)[-MAX_BLOCKS:]

    def time_out(self, time_ns: int) -> None:
        """Note that the retransmission timer fired."""
        self.recovering, self.after_timeout = self.highest, True
        self.timeout_ns, self.duplicates = time_ns, 0

    def above(self, end: int) -> int:
        """Return how many bytes at and above this place are SACKed."""
        return sum(right - max(left, end) for left, right in self.sacked if right > end)


def _merged(blocks: list[tuple[int, int]], acked: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for left, right in sorted(blocks):
        if right <= acked:
            continue
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


@dataclass(frozen=True)
class SocketHistory:
    """A flow's samples, on the captures' clock."""

    time_ns: Integers
    rows: pd.DataFrame

    def after(self, time_ns: int) -> pd.Series[Any] | None:
        """Return the first sample from an instant on."""
        at = int(np.searchsorted(self.time_ns, time_ns))
        return self.rows.iloc[at] if at < len(self.rows) else None

    def rto_ms(self, time_ns: int) -> float:
        """Return the retransmission timeout before an instant; NaN if it is not known."""
        at = int(np.searchsorted(self.time_ns, time_ns)) - 1
        return float(self.rows["rto_ms"].iloc[at]) if at >= 0 else float("nan")


@dataclass(frozen=True)
class _SentAgain:
    """A segment as it leaves."""

    time_ns: int
    begin: int
    end: int
    is_syn: bool

    @property
    def what(self) -> str:
        return f"{self.begin}:{self.end}"


def reasons(journeys: Journeys, kernel: dict[str, SocketHistory]) -> Iterator[tuple[int, str]]:
    """Yield the packets that were sent again or after an idle time, each with its reason."""
    for number in range(len(journeys.connections)):
        mine = np.flatnonzero(journeys.columns["connection"] == number)
        paths = {journeys.paths[at] for at in np.unique(journeys.columns["path"][mine])}
        data = next((path for path in paths if path.is_data), None)
        if data is None or data.flow.protocol != "tcp" or not data.begins_at_its_host:
            continue
        state = kernel.get(data.flow.name) if len(data.flow.src_ports) == 1 else None
        yield from _of_connection(journeys, mine, state)


def _of_connection(
    journeys: Journeys, mine: Integers, kernel: SocketHistory | None
) -> Iterator[tuple[int, str]]:
    columns, sender = journeys.columns, Sender()
    blocks = _blocks(journeys)
    taken = ("path", "seq", "payload", "ack", "flags")
    values = {name: columns[name].tolist() for name in taken}
    last = [len(path.captured) - 1 for path in journeys.paths]
    for time_ns, _, row in heapq.merge(*_events(journeys, mine, last)):
        path, flags = journeys.paths[values["path"][row]], values["flags"][row]
        if not path.is_data:
            pure = not values["payload"][row]
            sender.hear(time_ns, values["ack"][row], blocks.get(row, []), pure)
            continue
        begin, size = values["seq"][row], values["payload"][row]
        end = begin + size + (flags & SYN > 0)
        if end == begin:
            continue
        if begin < sender.highest:
            yield row, _again(sender, _SentAgain(time_ns, begin, end, bool(flags & SYN)), kernel)
            sender.repaired[begin] = time_ns
        elif idle := _idle(sender, time_ns, kernel):
            yield row, idle
        sender.sent_ns = time_ns
        sender.highest = max(sender.highest, end)


_Event = tuple[int, bool, int]  # when, whether it was sent (after what was heard then), packet


def _events(
    journeys: Journeys, mine: Integers, last: list[int]
) -> tuple[list[_Event], list[_Event]]:
    """Return when data left the sender, and when acknowledgements reached it."""
    sent, heard = list[_Event](), list[_Event]()
    ways = journeys.columns["path"][mine].tolist()
    for row, way in zip(mine.tolist(), ways, strict=True):
        path = journeys.paths[way]
        at = int(journeys.times_ns[row, 0 if path.is_data else last[way]])
        if at != UNSEEN and (path.is_data or path.ends_at_its_host):
            (sent if path.is_data else heard).append((at, path.is_data, row))
    return sorted(sent), sorted(heard)


def _blocks(journeys: Journeys) -> dict[int, list[tuple[int, int]]]:
    blocks: dict[int, list[tuple[int, int]]] = {}
    for row, left, right in journeys.sacks.tolist():
        blocks.setdefault(row, []).append((left, right))
    return blocks


def _again(sender: Sender, sent: _SentAgain, kernel: SocketHistory | None) -> str:
    """Say why data is sent again, and note what that means for its sender."""
    since_any = sent.time_ns - max(sender.heard_ns, sender.sent_ns)
    since_ack = sent.time_ns - sender.heard_ns
    prompt = sender.heard_ns != UNSEEN and since_ack <= AT_ONCE_NS
    above = sender.above(sent.end)
    if sent.is_syn:
        return f"Nothing answered the SYN for {_ms(since_any)}: its timer sends it again."
    fired = not prompt and sent.begin <= sender.acked
    if fired and _timer_fired(kernel, sent.time_ns, since_any):
        sender.time_out(sent.time_ns)
        return (
            f"Timeout: nothing was sent or acknowledged for {_ms(since_any)}"
            f"{_rto(kernel, sent.time_ns)}; {sent.what} is the first that is not acknowledged."
        )
    if sender.after_timeout and sent.begin < sender.recovering:
        return (
            f"The timer fired {_ms(sent.time_ns - sender.timeout_ns)} ago: what was outstanding "
            f"then, up to {sender.recovering}, is sent again as far as the window lets it."
        )
    last = sent.end == sender.highest and not above and sender.recovering == UNSEEN
    if last and not prompt:
        return (
            f"Tail loss probe: nothing was acknowledged for {_ms(since_any)}; the last segment, "
            f"{sent.what}, is sent again so that something answers."
        )
    late = f" It leaves {_ms(since_ack)} after the last ACK: paced, or by RACK's timer."
    return _by_acknowledgements(sender, sent, above, since_any) + ("" if prompt else late)


def _by_acknowledgements(sender: Sender, sent: _SentAgain, above: int, since_any: int) -> str:
    """Say why data is sent again that no timer sends."""
    if sent.begin in sender.repaired and above:
        return (
            f"{sent.what} was sent again {_ms(sent.time_ns - sender.repaired[sent.begin])} ago, "
            f"and {above} bytes above it are SACKed: that one is lost, too."
        )
    if sender.recovering == UNSEEN and (above or sender.duplicates):
        sender.recovering = sender.highest
        until = f"recovery lasts until {sender.recovering} is acknowledged."
        if above:
            number = sender.duplicates
            which = f"Duplicate ACK {number}" if number else "The last ACK's blocks"
            return (
                f"{which}: {above} bytes above {sent.what} are SACKed, "
                f"so that it counts as lost: fast retransmission; {until}"
            )
        place = "Third" if sender.duplicates == MIN_DUPLICATES else f"{sender.duplicates}."
        return f"{place} duplicate ACK: fast retransmission of {sent.what}; {until}"
    if sender.recovering != UNSEEN and above:
        when = " and it was sent in this recovery" if sent.begin >= sender.recovering else ""
        return (
            f"A hole: {above} bytes above {sent.what} are SACKed{when} "
            f"(recovery until {sender.recovering})."
        )
    if sent.begin < sender.recovering:
        until = f"(recovery until {sender.recovering})"
        if sender.advanced and sent.begin <= sender.acked:
            return f"A partial ACK, up to {sender.acked} {until}: the next segment is missing, too."
        if not sender.sacked:
            return f"No SACK tells what arrived: what was outstanding is sent again {until}."
    return (
        f"{NOT_KNOWN} {sent.what} is sent again: "
        f"{number_of(sender.duplicates, 'duplicate ACK')}, {above} bytes above it SACKed, "
        f"{_ms(since_any)} after anything else."
    )


def _timer_fired(kernel: SocketHistory | None, time_ns: int, quiet_ns: int) -> bool:
    """Say whether the sample after a retransmission shows that the timer sent it."""
    after = kernel.after(time_ns) if kernel else None
    if after is None:
        return quiet_ns >= MIN_TIMEOUT_NS
    return bool(after["ca_state"] == "loss" or after["backoff"] > 0)


def _rto(kernel: SocketHistory | None, time_ns: int) -> str:
    rto_ms = kernel.rto_ms(time_ns) if kernel else math.nan
    return "" if math.isnan(rto_ms) else f" (RTO {rto_ms:.0f} ms in the sample before)"


def _idle(sender: Sender, time_ns: int, kernel: SocketHistory | None) -> str:
    """Say that this is the first data after nothing was outstanding for long; empty: it is not."""
    quiet_ns = time_ns - max(sender.sent_ns, sender.heard_ns)
    if sender.sent_ns == UNSEEN or sender.acked < sender.highest or quiet_ns < MIN_TIMEOUT_NS:
        return ""
    longer = kernel is not None and quiet_ns > kernel.rto_ms(time_ns) * 1e6
    restart = " That is longer than the RTO: the window begins again." if longer else ""
    return (
        f"First data after {_ms(quiet_ns)} in which nothing was outstanding: the application had "
        f"nothing to send.{restart}"
    )


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e6:.3g} ms" if time_ns < 1e9 else f"{time_ns / 1e9:.3g} s"


def changes(path: FlowPath, kernel: SocketHistory, journeys: Journeys) -> Iterator[WindowChange]:
    """Yield the ends of slow start, and each fall of a flow's window with its cause."""
    rows = kernel.rows
    cwnd, threshold = (rows[name].to_numpy(dtype=np.float64) for name in ("cwnd", "ssthresh"))
    states, times = rows["ca_state"].to_numpy(), rows["time_s"].to_numpy()
    echoes, control = _echoes(journeys, path), path.flow.variant_seen
    heard = rows["bytes_acked"].to_numpy() > 0 if "bytes_acked" in rows else np.ones(len(rows))
    known = np.flatnonzero(np.isfinite(threshold))
    if len(known) and control != BBR:  # whose Startup has no ssthresh
        at = int(known[0])
        how = f"the congestion state is {states[at]}"
        if states[at] == "open":
            how = "without a loss or a mark: HyStart, or a limit of the congestion control"
        sentence = (
            f"Slow start ends at a window of {cwnd[max(0, at - 1)]:g}: "
            f"ssthresh is {threshold[at]:g}, {how}."
        )
        yield WindowChange(float(times[at]), "slow-start-end", sentence)
    falls = np.flatnonzero((cwnd[1:] < cwnd[:-1]) | (states[1:] != states[:-1])) + 1
    for at in falls[:MAX_CHANGES_TOLD]:
        before, after = cwnd[at - 1], cwnd[at]
        entered = states[at] != states[at - 1] and states[at] not in ("open", "disorder")
        if not entered and (after >= before or states[at] in REDUCED_STATES or not heard[at - 1]):
            continue  # within a state the window follows that state's rules
        marked = bool(((echoes > kernel.time_ns[at - 1]) & (echoes <= kernel.time_ns[at])).any())
        if entered:
            kind, cause = _entered(str(states[at]), marked)
        else:
            ended = "A reduction ends" if threshold[at] == after else ""
            kind, cause = "other", ended or MODELS.get(control) or NOT_KNOWN
        window = f"goes from {before:g} to {after:g}" if after != before else f"stays at {after:g}"
        limit = f", ssthresh is {threshold[at]:g}" if np.isfinite(threshold[at]) else ""
        ratio = f", {threshold[at] / before:.2g} of the window" if threshold[at] < before else ""
        yield WindowChange(float(times[at]), kind, f"{cause}: the window {window}{limit}{ratio}.")


def _entered(state: str, marked: bool) -> tuple[str, str]:
    """Return the kind and the cause of a change into a congestion state."""
    if state == "loss":
        return "timeout", "The retransmission timer fired"
    if state == "recovery":
        return "recovery", "A loss was detected and recovery begins"
    echo = "An ACK brought ECE" if marked else f"{NOT_KNOWN}: state CWR without ECE in the captures"
    return "cwr", echo


def _echoes(journeys: Journeys, path: FlowPath) -> Integers:
    """Return when ACKs with ECE reached a flow's sender."""
    ways = [
        at for at, each in enumerate(journeys.paths) if each.flow is path.flow and not each.is_data
    ]
    flags = journeys.columns["flags"]
    mine = np.isin(journeys.columns["path"], ways) & (flags & ECE > 0) & (flags & SYN == 0)
    return np.asarray(journeys.times_ns[mine].max(axis=1, initial=UNSEEN))
