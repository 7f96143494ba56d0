"""All probes of a trial, asked together; their rows are kept as text until the trial ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.machine.netlink_batch import BatchedRequests
from testbed.store import QUEUES, SOCKETS, write_text
from testbed.trial.parts.sampling.queue_probe import QueueProbe
from testbed.trial.parts.sampling.rows import Rows, Seen, Which
from testbed.trial.parts.sampling.socket_probe import SocketProbe

OPTIONS = {"timestamps": 1, "sack": 2}  # bits of TCP_INFO's options


@dataclass(frozen=True)
class SeenSocket:
    """What its samples showed of a flow's socket."""

    flow: str
    variant: str  # as the kernel names it; empty: it was not seen
    options: frozenset[str] | None  # that the connection has agreed on; None: it was not seen
    cookie: int  # the kernel's unique number of the socket; 0: it was not seen


class Sampler:
    """All probes of a trial; rows are kept in memory and written when it ends."""

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
        """Look up a socket in vain: the first look-up draws the random keys of the hash tables."""
        self._rounds.ask()
        self._rows.begin(self._rounds.answers)

    def sample(self, time_s: float) -> None:
        """Read every probe once, at most once per instant."""
        if f"{time_s:.6f}" != self._latest:
            self._rounds.ask()
            self._keep(0, time_s)

    def sample_at(self, due_ns: Sequence[int], time_s: Callable[[int], float]) -> int:
        """Read every probe at the first of these instants of the monotonic clock: at how many.

        `time_s` converts the wall clock.
        """
        done = self._rounds.ask_at(due_ns)
        for number in range(done):
            self._keep(number, time_s(self._rounds.real_ns(number)))
        return done

    def _keep(self, number: int, time_s: float) -> None:
        """Turn the answers of a round into rows."""
        self._latest = f"{time_s:.6f}"
        self._rows.keep(self._rounds.answers, self._rounds.place(number), self._latest)

    def seen(self) -> list[SeenSocket]:
        """What was seen of each socket."""
        found = enumerate(self._sockets)
        return [_socket(probe.flow, self._rows.seen(number)) for number, probe in found]

    def write(self, folder: Path) -> None:
        """Write both tables of samples."""
        write_text(folder, SOCKETS, self._rows.text(Which.SOCKETS))
        write_text(folder, QUEUES, self._rows.text(Which.QUEUES))

    def close(self) -> None:
        """Close all probes."""
        for socket_probe in self._sockets:
            socket_probe.close()
        for queue_probe in self._queues:
            queue_probe.close()
        self._rounds.close()
        self._rows.close()


def _socket(flow: str, seen: Seen) -> SeenSocket:
    agreed = None
    if seen.options >= 0:
        agreed = frozenset(name for name, bit in OPTIONS.items() if seen.options & bit)
    return SeenSocket(flow, seen.variant.decode(), agreed, seen.cookie)


def variants(sockets: Iterable[SeenSocket]) -> dict[str, str]:
    """The congestion control of each flow's sockets, as the kernel names it."""
    found: dict[str, set[str]] = {}
    for each in sockets:
        if each.variant:
            found.setdefault(each.flow, set()).add(each.variant)
    return {flow: "+".join(sorted(names)) for flow, names in found.items()}


def options(sockets: Iterable[SeenSocket]) -> dict[str, frozenset[str]]:
    """The TCP options that all sockets of a flow have negotiated, by flow."""
    found: dict[str, frozenset[str]] = {}
    for each in sockets:
        if each.options is not None:
            found[each.flow] = each.options & found.get(each.flow, each.options)
    return found
