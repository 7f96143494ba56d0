"""Kernel events of a trial's flows, where tracing is available.

Samples see a socket every few milliseconds; tracepoints report every ACK that its sender
receives, every retransmission, every change of state, and every packet that a queue drops.
The guest's kernel has no tracing. Without tracing nothing is written.

The kernel filters by the flows' ports and by the reasons of drops. Other programs' sockets with
the same ports are told apart by the socket's cookie, which socket samples record too. A drop's
event names neither the queue nor the flow: it counts as the trial's if the sampled queues' counters
moved at that time, and is assigned to a flow only if there is just one. `qdisc:*` events are not
used: they do not report drops, and captures say more about packets that pass.

A probe shows the socket before it processes the ACK. Its ssthresh is the kernel's current one:
while the state is open, at least 3/4 of the window. Repeated states are not events.

Events stay in the kernel's buffers until the trial ends, and are read once nothing runs any more.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.machine.journal import JOURNAL
from testbed.machine.tracefs import Instance
from testbed.plan.flows import ANY_PORT, FlowPlan
from testbed.plan.plan import Plan
from testbed.scenario.network import FRAME_OVERHEAD_BYTES
from testbed.store.names import QUEUE_SAMPLES, TCP_EVENTS
from testbed.store.writing import write_table

SOCKET_EVENTS = ("tcp/tcp_probe", "tcp/tcp_retransmit_skb", "tcp/tcp_cong_state_set")
CA_STATES = ("open", "disorder", "cwr", "recovery", "loss")
INFINITE_SSTHRESH = 0x7FFFFFFF
FREED = "skb/kfree_skb"
# dropped by a queue, not on arrival
DROP_REASONS = re.compile(r"\{ (\d+), \"((?:QDISC_|FQ_|CAKE_|DUALPI2_)\w+)\" \}")

FULL_PACKET_BYTES = 1500
PROBE_BYTES = 160  # size of one tcp_probe event in the buffer; others are smaller and fewer
SHARE_OF_MEMORY = 8  # the buffers take at most 1/8 of what is free

_TRACE_LINE = re.compile(r"\] \S+ +(\d+)\.(\d{6}): (\w+): (.*)")
_FIELD = re.compile(r"(\w+)=(\S+)")
SLACK_S = 0.002  # a sample's counter is read a little after the time in its row

Clock = Callable[[int], float]  # CLOCK_MONOTONIC in nanoseconds → the trial's seconds


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One row of events.csv, with the cookie of the socket it is about, if any."""

    time_s: float
    flow: str
    kind: str
    values: tuple[object, ...] = ("", "", "")  # cwnd, ssthresh, srtt_ms
    detail: str = ""
    socket: str = ""
    cookie: int | None = None

    def row(self) -> tuple[object, ...]:
        """Return the row of events.csv."""
        return (f"{self.time_s:.6f}", self.flow, self.kind, *self.values, self.detail)


class Recorder:
    """Records events from its creation until `stop`."""

    def __init__(self, plan: Plan, mark: str) -> None:
        self._plan = plan
        self._instance = Instance(mark)
        try:
            self._set_up()
        except OSError:
            self.close()
            raise

    def _set_up(self) -> None:
        set_ = self._instance.set
        set_("trace_clock", "mono")
        set_("buffer_size_kb", str(buffer_kib(self._plan)))
        for event, condition in self._conditions().items():
            set_(f"events/{event}/filter", condition)
            set_(f"events/{event}/enable", "1")

    def _conditions(self) -> dict[str, str]:
        """Map the events that this kernel has to their filters."""
        filters = {}
        if sockets := socket_filter(_tcp_flows(self._plan)):
            filters = {event: sockets for event in SOCKET_EVENTS if self._instance.format(event)}
        drops = drop_filter(self._instance.format(FREED))
        return filters | ({FREED: drops} if drops else {})

    def stop(self) -> None:
        """Record nothing any more."""
        self._instance.set("tracing_on", "0")

    def write(self, folder: Path, clock: Clock, cookies: frozenset[int]) -> Iterator[str]:
        """Write the events, after the queue samples; `cookies` are those of the trial's sockets.

        Yields warnings.
        """
        events = ours(list(read(self._instance.lines(), self._plan, clock)), cookies)
        counted = drops_counted(folder / QUEUE_SAMPLES.file)
        kept = list(changes(confirmed(list(events), counted)))
        write_table(folder, TCP_EVENTS, (event.row() for event in kept))
        if lost := self._instance.lost():
            yield f"{TCP_EVENTS.file}: {lost} events were lost: no room in the kernel's buffers"
        drops = sum(event.kind == "drop" for event in kept)
        if drops > counted[-1][1]:
            yield (
                f"{TCP_EVENTS.file}: {drops} drops, but the queues dropped {counted[-1][1]}: "
                "another trial's are among them"
            )

    def close(self) -> None:
        """Remove the trace instance."""
        self._instance.close()


def record(plan: Plan) -> Recorder | None:
    """Start a recorder; None without tracing."""
    with contextlib.suppress(OSError):
        return Recorder(plan, JOURNAL.mark)
    return None


def _tcp_flows(plan: Plan) -> list[FlowPlan]:
    """Return the TCP flows whose ports are known before the trial."""
    tcp_plans = (each for each in plan.flows if each.flow.protocol == "tcp")
    return [each for each in tcp_plans if each.src_ports and each.dst_port != ANY_PORT]


def socket_filter(flows: Sequence[FlowPlan]) -> str:
    """Return a trace filter for the senders' sockets; the ports of one flow are consecutive."""
    return " || ".join(
        f"(dport=={f.dst_port} && sport>={f.src_ports[0]} && sport<={f.src_ports[-1]})"
        for f in flows
    )


def drop_filter(described: str) -> str:
    """Return a trace filter for IPv4 packets that queues drop; empty if the kernel has none."""
    numbers = [int(number) for number, _ in DROP_REASONS.findall(described)]
    if not numbers:
        return ""
    return "protocol==2048 && (" + " || ".join(f"reason=={n}" for n in numbers) + ")"


def buffer_kib(plan: Plan) -> int:
    """Buffer size per processor: room for the whole trial on any one, if memory allows."""
    sizes = [f.flow.packet_bytes or f.flow.mss or FULL_PACKET_BYTES for f in plan.flows]
    packet_bits = 8 * (min(sizes) + FRAME_OVERHEAD_BYTES)
    mbit = sum(queue.hop.rate_mbit for queue in plan.queues)
    packets = mbit * 1e6 / packet_bits * plan.end_s
    wanted = packets * PROBE_BYTES
    cpus = os.cpu_count() or 1
    return int(min(1e6 + wanted, _available_bytes() / SHARE_OF_MEMORY / cpus) / 1024)


def _available_bytes() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def read(lines: Iterable[str], plan: Plan, clock: Clock) -> Iterator[TraceEvent]:
    """Parse the trace's lines: events of this plan's flows, and all drops."""
    ports = {(port, f.dst_port): f for f in _tcp_flows(plan) for port in f.src_ports}
    alone = plan.flows[0].flow.name if len(plan.flows) == 1 else ""
    for line in lines:
        match = _TRACE_LINE.search(line)
        if not match:
            continue
        seconds, micros, name, rest = match.groups()
        time_s = clock(int(seconds) * 10**9 + int(micros) * 1000)
        if name == "kfree_skb":
            yield TraceEvent(time_s, alone, "drop", detail=rest.rpartition("reason: ")[2])
        elif event := _socket_event(time_s, name, dict(_FIELD.findall(rest)), ports):
            yield event


def _socket_event(
    time_s: float, name: str, fields: Mapping[str, str], ports: Mapping[tuple[int, int], FlowPlan]
) -> TraceEvent | None:
    src, sport = _end(fields, "src", "saddr", "sport")
    dst, dport = _end(fields, "dest", "daddr", "dport")
    flow = ports.get((sport, dport))
    if flow is None or (src, dst) != (flow.src_address, flow.dst_address):
        return None
    label, socket = flow.flow.name, fields.get("skaddr", "")
    if name == "tcp_probe":
        ssthresh = int(fields["ssthresh"])
        values = (
            int(fields["snd_cwnd"]),
            "" if ssthresh >= INFINITE_SSTHRESH else ssthresh,
            int(fields["srtt"]) / 1e3,
        )
        detail = f"una={int(fields['snd_una'], 16)} nxt={int(fields['snd_nxt'], 16)}"
        cookie = int(fields["sock_cookie"], 16) if "sock_cookie" in fields else None
        return TraceEvent(time_s, label, "probe", values, detail, socket, cookie)
    if name == "tcp_cong_state_set":
        state = CA_STATES[int(fields["cong_state"])]
        return TraceEvent(time_s, label, "state", detail=state, socket=socket)
    if fields.get("err", "0") != "0":  # it did not leave the host
        return None
    return TraceEvent(time_s, label, "retransmit", socket=socket)


def _end(fields: Mapping[str, str], both: str, address: str, port: str) -> tuple[str, int]:
    """Split one end of a connection: tcp_probe prints address and port in one field."""
    if both in fields:
        host, _, number = fields[both].rpartition(":")
        return host, int(number)
    return fields[address], int(fields[port])


def ours(events: Sequence[TraceEvent], cookies: frozenset[int]) -> Iterator[TraceEvent]:
    """Drop events of other trials' sockets with equal addresses and ports, where cookies tell."""
    probes = [event for event in events if event.kind == "probe"]
    known = {event.socket for event in probes if event.cookie in cookies}
    foreign = {event.socket for event in probes} - known if known else set()
    return (event for event in events if not event.socket or event.socket not in foreign)


def drops_counted(queues: Path) -> list[tuple[float, int]]:
    """Total drops of all sampled queues by sample time: (time, drops so far)."""
    totals: dict[float, int] = {}
    with queues.open() as file:
        for row in csv.DictReader(file):
            time_s = float(row["time_s"])
            totals[time_s] = totals.get(time_s, 0) + int(row["drops"])
    return [(0.0, 0), *totals.items()]


def confirmed(
    events: Sequence[TraceEvent], counted: Sequence[tuple[float, int]]
) -> Iterator[TraceEvent]:
    """Remove drops at times when the trial's queues counted none: they are not the trial's."""
    drops = [event.time_s for event in events if event.kind == "drop"]
    if len(drops) == counted[-1][1]:
        return iter(events)
    moved = [
        (before, after + SLACK_S)
        for (before, fewer), (after, more) in itertools.pairwise(counted)
        if more > fewer
    ]
    foreign = {t for t in drops if not any(a <= t <= b for a, b in moved)}
    return (event for event in events if event.kind != "drop" or event.time_s not in foreign)


def changes(events: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    """Remove events that set a state to its present value."""
    before: dict[tuple[str, str], str] = {}
    for event in events:
        if event.kind == "state":
            key = (event.flow, event.socket)
            if before.get(key, "open") == event.detail:
                continue
            before[key] = event.detail
        yield event
