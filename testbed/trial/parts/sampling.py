"""Samples of the senders' sockets and of the queues that flows cross, at a fixed interval."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.machine.netlink import (
    DIAG_REQUEST,
    NETLINK_ROUTE,
    NETLINK_SOCK_DIAG,
    RTM_GETQDISC,
    SOCK_DIAG_BY_FAMILY,
    Netlink,
    request_message,
)
from testbed.machine.netlink_batch import BatchedRequests, Request
from testbed.machine.netns import inside
from testbed.plan.commands import LEAF
from testbed.plan.flows import ANY_PORT
from testbed.scenario.queues import DISCIPLINES
from testbed.store import QUEUE_SAMPLES, SOCKET_SAMPLES, Record, write_text
from testbed.trial.parts.part import Part, RunningTrial
from testbed.trial.parts.sample_rows import QueueRow, Rows, SocketState, TableKind
from testbed.trial.parts.scheduler import ActionQueue

INET_DIAG_INFO = 2
INET_DIAG_CONG = 4
INET_DIAG_NOCOOKIE = b"\xff" * 8
OPTION_BITS = {"timestamps": 1, "sack": 2}  # of TCP_INFO's options


class Sampling(Part):
    """Samples of the senders' sockets, and of the queues that flows cross."""

    _sampler: Sampler
    _timeline: ActionQueue

    def __init__(self, trial: RunningTrial) -> None:
        super().__init__(trial)
        self._opened = contextlib.ExitStack()

    def wait_until_ready(self) -> None:
        """Open the probes and rehearse, before the kernel's random generator is rekeyed."""
        self._sampler = Sampler(self._socket_probes(), self._queue_probes())
        self._opened.callback(self._sampler.close)
        self._sampler.rehearse()

    def _socket_probes(self) -> list[SocketProbe]:
        return [
            SocketProbe(
                each.flow.name,
                self._trial.places[each.flow.src].pid,
                SocketId(each.src_address, port, each.dst_address, each.dst_port),
            )
            for each in self._trial.plan.flows
            if each.flow.protocol == "tcp" and each.dst_port != ANY_PORT
            for port in each.src_ports
        ]

    def _queue_probes(self) -> list[QueueProbe]:
        return [
            QueueProbe(
                queue.node,
                queue.interface,
                queue.hop.queue.discipline,
                self._trial.places[queue.node].pid,
            )
            for queue in self._trial.plan.queues
            if queue.sampled
        ]

    def schedule(self, timeline: ActionQueue) -> None:
        """Sample at every interval."""
        if interval_ms := self._trial.scenario.sample_interval_ms:
            end_s = self._trial.plan.end_s
            timeline.every(interval_ms / 1e3, end_s, self._sampler.sample, self._sample_at)
        self._timeline = timeline

    def _sample_at(self, due_ns: Sequence[int]) -> int:
        return self._sampler.sample_at(due_ns, self._timeline.of_wall_clock_s)

    def schedule_end(self, timeline: ActionQueue, end_s: float) -> None:
        """Sample once more when the queues are empty."""
        timeline.at(end_s, self._sampler.sample)

    def flow_ends(self, time_s: float, *_processes: str) -> None:
        """Sample a flow's last state, even in trials without an interval."""
        self._sampler.sample(time_s)

    def write(self, folder: Path) -> None:
        """Write sockets.csv and queues.csv."""
        self._sampler.write(folder)
        self._trial.cookies.update(
            each.cookie for each in self._sampler.sampled_sockets() if each.cookie
        )

    def describe(self, record: Record) -> Record:
        """Add each flow's congestion control and negotiated options as sampled on its sockets."""
        sockets = self._sampler.sampled_sockets()
        ran, agreed = variants(sockets), options(sockets)
        return replace(
            record,
            flows=tuple(
                replace(
                    flow,
                    variant_seen=ran.get(flow.name, flow.variant_seen),
                    options_seen=tuple(sorted(agreed.get(flow.name, flow.options_seen))),
                )
                for flow in record.flows
            ),
        )

    def close(self) -> None:
        """Close the probes."""
        self._opened.close()


@dataclass(frozen=True)
class SocketId:
    """A TCP connection as its sender sees it."""

    src: str
    src_port: int
    dst: str
    dst_port: int

    def packed(self) -> bytes:
        """Return the id in inet_diag's binary form."""
        ports = struct.pack("!HH", self.src_port, self.dst_port)
        ends = socket.inet_aton(self.src) + bytes(12) + socket.inet_aton(self.dst) + bytes(12)
        return ports + ends + bytes(4) + INET_DIAG_NOCOOKIE


class SocketProbe:
    """The request for TCP_INFO of one connection, as `ss -i` shows it."""

    def __init__(self, flow: str, pid: int | None, connection: SocketId) -> None:
        self.flow = flow
        self._netlink = Netlink(NETLINK_SOCK_DIAG, pid)
        wanted = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
        head = DIAG_REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, wanted, 0, 0xFFFFFFFF)
        request = request_message(SOCK_DIAG_BY_FAMILY, head + connection.packed())
        self.request = Request(self._netlink, request)

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()


class QueueProbe:
    """The request for the statistics of the queue below an interface's htb."""

    def __init__(self, node: str, interface: str, discipline: str, pid: int | None) -> None:
        marking = DISCIPLINES[discipline].marking
        places = (marking.counted_at, marking.step_counted_at) if marking else ()
        self.row = QueueRow(node, interface, tuple(at for at in places if at is not None))
        self._netlink = Netlink(NETLINK_ROUTE, pid)
        with inside(pid):
            index = socket.if_nametoindex(interface)
        request = struct.pack("=B3xiIII", 0, index, LEAF.number, 0, 0)
        self.request = Request(self._netlink, request_message(RTM_GETQDISC, request))

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()


@dataclass(frozen=True)
class SampledSocket:
    """A flow's socket as its samples showed it."""

    flow: str
    variant: str  # as the kernel names it; empty: it was never sampled
    options: frozenset[str] | None  # that the connection has agreed on; None: it was never sampled
    cookie: int  # the kernel's unique number of the socket; 0: it was never sampled


class Sampler:
    """All probes of a trial, read together; rows stay in memory until the trial ends."""

    def __init__(self, sockets: Iterable[SocketProbe], queues: Iterable[QueueProbe]) -> None:
        self._sockets = list(sockets)
        self._queues = list(queues)
        questions = [probe.request for probe in self._sockets]
        self._rounds = BatchedRequests(questions + [probe.request for probe in self._queues])
        self._rows = Rows(
            [probe.flow for probe in self._sockets], [probe.row for probe in self._queues]
        )
        self._latest = ""  # time of the last sample, as written

    def rehearse(self) -> None:
        """Make all requests once: the first look-up of a socket draws hash tables' random keys."""
        self._rounds.ask()
        self._rows.begin(self._rounds.answers)

    def sample(self, time_s: float) -> None:
        """Read every probe once, at most once per instant."""
        if f"{time_s:.6f}" != self._latest:
            self._rounds.ask()
            self._add(0, time_s)

    def sample_at(self, due_ns: Sequence[int], time_s: Callable[[int], float]) -> int:
        """Read every probe at the first of these instants of the monotonic clock.

        `time_s` converts the wall clock. Returns the number of instants.
        """
        done = self._rounds.ask_at(due_ns)
        for number in range(done):
            self._add(number, time_s(self._rounds.real_ns(number)))
        return done

    def _add(self, number: int, time_s: float) -> None:
        """Add rows for the answers of a round."""
        self._latest = f"{time_s:.6f}"
        self._rows.add(self._rounds.answers, self._rounds.place(number), self._latest)

    def sampled_sockets(self) -> list[SampledSocket]:
        """Return what the samples showed of each socket."""
        probes = enumerate(self._sockets)
        return [_socket(probe.flow, self._rows.socket_state(number)) for number, probe in probes]

    def write(self, folder: Path) -> None:
        """Write both tables of samples."""
        write_text(folder, SOCKET_SAMPLES, self._rows.text(TableKind.SOCKETS))
        write_text(folder, QUEUE_SAMPLES, self._rows.text(TableKind.QUEUES))

    def close(self) -> None:
        """Close all probes."""
        for socket_probe in self._sockets:
            socket_probe.close()
        for queue_probe in self._queues:
            queue_probe.close()
        self._rounds.close()
        self._rows.close()


def _socket(flow: str, state: SocketState) -> SampledSocket:
    agreed = None
    if state.options >= 0:
        agreed = frozenset(name for name, bit in OPTION_BITS.items() if state.options & bit)
    return SampledSocket(flow, state.variant.decode(), agreed, state.cookie)


def variants(sockets: Iterable[SampledSocket]) -> dict[str, str]:
    """Return the congestion control of each flow's sockets, as the kernel names it."""
    found: dict[str, set[str]] = {}
    for each in sockets:
        if each.variant:
            found.setdefault(each.flow, set()).add(each.variant)
    return {flow: "+".join(sorted(names)) for flow, names in found.items()}


def options(sockets: Iterable[SampledSocket]) -> dict[str, frozenset[str]]:
    """Return, by flow, the TCP options that all of its sockets have negotiated."""
    found: dict[str, frozenset[str]] = {}
    for each in sockets:
        if each.options is not None:
            found[each.flow] = each.options & found.get(each.flow, each.options)
    return found
