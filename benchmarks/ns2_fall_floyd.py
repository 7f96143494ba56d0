"""The classic test of loss recovery in ns-2: what a real kernel's variants are held against.

python -m benchmarks.ns2_fall_floyd [--no-limited-transmit] [--beside RESULTS]

Fall and Floyd (1996), 'Simulation-based Comparisons of Tahoe, Reno, and SACK TCP': one FTP,
S1 --(8 Mbit/s, 0.1 ms)-- R1 --(0.8 Mbit/s, 100 ms)-- K1, and one to four packets that lose
their first transmission in slow start. Everything is deterministic. Debian's ns2 is ns-2.35.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from itertools import pairwise, product
from pathlib import Path

from analysis.statistics.text_tables import TextTable, as_markdown
from benchmarks.harness import errors_as_exit
from benchmarks.simulators import require_ns2
from testbed.errors import TestbedError
from testbed.machine.process import run

TCL_SCRIPT = Path(__file__).with_suffix(".tcl")
RUN_SECONDS = 8
DELIVERED_BY_S = 6
DROPPED_PACKETS = ((14,), (14, 28), (14, 26, 28), (14, 24, 26, 28))  # the first packet is 0

Settings = dict[str, str | int | float]

COMMON: Settings = {
    "packetSize_": 1000,  # and a header of 40
    "syn_": "false",  # else packet 0 were a SYN
    "delay_growth_": "false",  # goes with syn_
    "windowInit_": 1,
    "window_": 1000,
    "tcpTick_": 0.001,  # s; Linux measures in µs
    "minrto_": 0.2,  # s
    "rtxcur_init_": 1.0,  # s, RFC 6298 (2.1)
    "timestamps_": "false",
    "ecn_": 0,
}


@dataclass(frozen=True)
class Ns2Variant:
    """A congestion control by its class in ns-2, below Agent/TCP and Agent/TCPSink."""

    name: str
    agent: str
    settings: Settings
    sink: str = ""


# bugFix_ is RFC 6582's `recover` (step 1), which Tahoe and Reno of 1996 do without;
# with ns-2's default, true, Reno cannot halve twice in a window and times out instead
NS2_VARIANTS = (
    Ns2Variant("tahoe", "", {"bugFix_": "false"}),
    Ns2Variant("reno", "/Reno", {"bugFix_": "false"}),
    Ns2Variant("newreno", "/Newreno", {"bugFix_": "true", "newreno_changes1_": 0}),
    Ns2Variant("newreno-impatient", "/Newreno", {"bugFix_": "true", "newreno_changes1_": 1}),
    Ns2Variant("sack", "/Sack1", {"bugFix_": "true"}, sink="/Sack1"),
)


class TraceKind(Enum):
    """What happened to a packet; the values are ns-2's event, link (node to node) and type."""

    SENT = ("+", "0", "1", "tcp")
    LOST = ("d", "1", "2", "tcp")
    ACKED = ("r", "1", "0", "ack")  # the sender got an ACK


@dataclass(frozen=True)
class Ns2Event:
    """One line of ns-2's packet trace, in its order; an ACK's number is what it has."""

    time_s: float
    kind: TraceKind
    number: int


@dataclass(frozen=True)
class StateValue:
    """What one of the sender's variables was from a time on."""

    time_s: float
    name: str
    value: float


@dataclass(frozen=True)
class Ns2Outcome:
    """How one variant got over its drops."""

    variant: str
    drops: int
    retransmissions: int  # data packets whose number had been sent before
    needless: int  # of these, of packets that had not been dropped
    timeouts: int
    halvings: int  # how often ssthresh was lowered
    recovery_s: float | None  # first retransmission → all sent before it is ACKed
    delivered: int  # packets ACKed in order after 6 s
    rto_s: float | None  # in force at the first retransmission


def outcomes(limited_transmit: bool = True) -> list[Ns2Outcome]:
    """Every variant with one to four drops."""
    require_ns2()
    return [
        outcome(variant, drops, limited_transmit)
        for variant, drops in product(NS2_VARIANTS, DROPPED_PACKETS)
    ]


def outcome(variant: Ns2Variant, drops: Sequence[int], limited_transmit: bool) -> Ns2Outcome:
    """Run ns-2 once and read its two traces."""
    settings = COMMON | variant.settings | {"singledup_": int(limited_transmit)}
    with tempfile.TemporaryDirectory(prefix="ns2-") as folder:
        packets, state = Path(folder) / "packets", Path(folder) / "state"
        assignments = [f"{name} {value}" for name, value in settings.items()]
        run(
            [
                *("ns", str(TCL_SCRIPT), variant.agent, variant.sink),
                *(" ".join(assignments), " ".join(map(str, drops)), str(RUN_SECONDS)),
                *(str(packets), str(state)),
            ]
        )
        return judge(
            variant.name,
            drops,
            parse_packets(packets.read_text().splitlines()),
            parse_state(state.read_text().splitlines()),
        )


def parse_packets(lines: Iterable[str]) -> list[Ns2Event]:
    """Those events of ns-2's trace that matter here."""
    kinds = {kind.value: kind for kind in TraceKind}
    events = []
    for line in lines:
        happened, time, source, target, kind, *_size_flags_flow_ends, number, _uid = line.split()
        if event := kinds.get((happened, source, target, kind)):
            events.append(Ns2Event(float(time), event, int(number)))
    return events


def parse_state(lines: Iterable[str]) -> list[StateValue]:
    """Parse the sender's variables; ns-2's lines have addresses between time and name."""
    rows = [line.split() for line in lines]
    return [StateValue(float(row[0]), row[-2], float(row[-1])) for row in rows]


def judge(
    variant: str, drops: Sequence[int], events: Sequence[Ns2Event], state: Sequence[StateValue]
) -> Ns2Outcome:
    """Return what the traces show, once they agree with the script and ns-2's counters."""
    lost = [event.number for event in events if event.kind is TraceKind.LOST]
    if lost != list(drops):
        raise TestbedError(f"ns-2, {variant}: lost {lost}, not {list(drops)}")
    again = retransmissions(events)
    if len(again) != last(state, "nrexmitpack_"):
        raise TestbedError(f"ns-2, {variant}: its count of retransmissions is not the trace's")
    first = next((event for event in again if event.number == lost[0]), None)
    return Ns2Outcome(
        variant=variant,
        drops=len(drops),
        retransmissions=len(again),
        needless=sum(event.number not in drops for event in again),
        timeouts=int(last(state, "nrexmit_") or 0),
        halvings=lowerings(state),
        recovery_s=recovery_s(events, first) if first else None,
        delivered=delivered(events),
        rto_s=last(state, "rto", first.time_s) if first else None,
    )


def retransmissions(events: Iterable[Ns2Event]) -> list[Ns2Event]:
    """Return the data packets that were not the first with their number."""
    highest = -1
    again = []
    for event in events:
        if event.kind is TraceKind.SENT:
            if event.number <= highest:
                again.append(event)
            highest = max(highest, event.number)
    return again


def recovery_s(events: Sequence[Ns2Event], first: Ns2Event) -> float | None:
    """From this retransmission until all that had been sent before it is ACKed."""
    begun = events.index(first)
    highest = max(event.number for event in events[:begun] if event.kind is TraceKind.SENT)
    for event in events[begun:]:
        if event.kind is TraceKind.ACKED and event.number >= highest:
            return event.time_s - first.time_s
    return None


def delivered(events: Iterable[Ns2Event]) -> int:
    """How many packets, in order, the sender knew at the receiver; numbers begin at 0."""
    acked = (
        event.number
        for event in events
        if event.kind is TraceKind.ACKED and event.time_s <= DELIVERED_BY_S
    )
    return 1 + max(acked, default=-1)


def lowerings(state: Iterable[StateValue]) -> int:
    """How often ssthresh was lowered; of several values at a time the last counts."""
    # slowdown() halves first and then sees to the minimum of 2: two changes at one time
    settled = {value.time_s: value.value for value in state if value.name == "ssthresh_"}
    return sum(after < before for before, after in pairwise(settled.values()))


def last(state: Iterable[StateValue], name: str, until_s: float = RUN_SECONDS) -> float | None:
    """Return a variable's value at a time."""
    values = [value.value for value in state if value.name == name and value.time_s <= until_s]
    return values[-1] if values else None


def kernel_outcomes(results: Path) -> list[Ns2Outcome]:
    """Return the outcomes of the trials of the experiment fall-floyd."""
    from experiments.fall_floyd.outcomes import outcomes as found
    from testbed.store.reading import trials_in

    return [
        Ns2Outcome(
            variant=trial.scenario.flows[0].variant or "",
            drops=len(seen.lost),
            retransmissions=len(seen.sent_again),
            needless=seen.needless,
            timeouts=seen.timeouts,
            halvings=seen.halvings,
            recovery_s=seen.recovery_s,
            delivered=seen.acked,
            rto_s=seen.rto_ms / 1e3,
        )
        for trial, seen in found(trials_in(results))
    ]


def side_by_side(theirs: Sequence[Ns2Outcome], ours: Sequence[Ns2Outcome]) -> str:
    """Return a table in Markdown: ns-2's values, and beside them the kernel's, if there are any."""
    kernel = {(row.variant, row.drops): row for row in ours}
    names = [field.name for field in fields(Ns2Outcome)]
    rows = []
    for row in theirs:
        cells = [shown(getattr(row, name)) for name in names]
        if ours:
            other = kernel.get((row.variant, row.drops))
            beside = [shown(getattr(other, name, None)) for name in names]
            cells[2:] = [" / ".join(pair) for pair in zip(cells[2:], beside[2:], strict=True)]
        rows.append(tuple(cells))
    return as_markdown(TextTable(tuple(names), tuple(rows), ""))


def shown(value: str | float | None) -> str:
    """Format a cell: times to the millisecond, a dash for nothing."""
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


@errors_as_exit()
def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description="Fall and Floyd's test of 1996 in ns-2.")
    parser.add_argument("--no-limited-transmit", action="store_true", help="without RFC 3042")
    parser.add_argument(
        "--beside", type=Path, metavar="RESULTS", help="also what `testbed run fall-floyd` saw"
    )
    options = parser.parse_args()
    rows = outcomes(limited_transmit=not options.no_limited_transmit)
    print(side_by_side(rows, kernel_outcomes(options.beside) if options.beside else ()), end="")


if __name__ == "__main__":
    main()
