"""All probes of a trial, asked together; their rows are kept as text until the trial ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from testbed.machine.netlink_batch import Rounds
from testbed.store import QUEUES, SOCKETS, write_lines
from testbed.trial.parts.sampling.queue_probe import QueueProbe
from testbed.trial.parts.sampling.socket_probe import SocketProbe


class Sampler:
    """All probes of a trial; rows are kept in memory and written when it ends."""

    def __init__(self, sockets: Iterable[SocketProbe], queues: Iterable[QueueProbe]) -> None:
        self.sockets = list(sockets)
        self.queues = list(queues)
        questions = [probe.question for probe in self.sockets]
        self._rounds = Rounds(questions + [probe.question for probe in self.queues])
        self._socket_rows: list[str] = []
        self._queue_rows: list[str] = []
        self._latest = ""  # time of the last sample, as written

    def rehearse(self) -> None:
        """Look up a socket in vain: the first look-up draws the random keys of the hash tables."""
        self._rounds.ask()
        places = self._rounds.places(0)[len(self.sockets) :]
        for queue_probe, place in zip(self.queues, places, strict=True):
            queue_probe.begin(self._rounds.answers, place)

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
        self._latest = time = f"{time_s:.6f}"
        answers, places = self._rounds.answers, iter(self._rounds.places(number))
        for socket_probe in self.sockets:
            if row := socket_probe.row(answers, next(places)):
                self._socket_rows.append(f"{time},{row}")
        for queue_probe in self.queues:
            if row := queue_probe.row(answers, next(places)):
                self._queue_rows.append(f"{time},{row}")

    def variants_seen(self) -> dict[str, str]:
        """The congestion control of each flow's sockets, as the kernel names it."""
        seen: dict[str, set[str]] = {}
        for probe in self.sockets:
            if probe.variant:
                seen.setdefault(probe.flow, set()).add(probe.variant)
        return {flow: "+".join(sorted(names)) for flow, names in seen.items()}

    def options_seen(self) -> dict[str, frozenset[str]]:
        """The TCP options that all sockets of a flow have negotiated, by flow."""
        seen: dict[str, frozenset[str]] = {}
        for probe in self.sockets:
            if probe.options is not None:
                seen[probe.flow] = probe.options & seen.get(probe.flow, probe.options)
        return seen

    def write(self, folder: Path) -> None:
        """Write both tables of samples."""
        write_lines(folder, SOCKETS, self._socket_rows)
        write_lines(folder, QUEUES, self._queue_rows)

    def close(self) -> None:
        """Close all probes."""
        for socket_probe in self.sockets:
            socket_probe.close()
        for queue_probe in self.queues:
            queue_probe.close()
        self._rounds.close()
