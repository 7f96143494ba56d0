"""The verdict on a trial: all checks, and the worst of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.trials.damage import damage
from analysis.trials.packets import TrialPackets
from analysis.trials.queue_transit import QueueTransit
from analysis.trials.samples import Samples
from analysis.verdict import (
    changing_links,
    configuration,
    iperf3,
    kernel_tcp,
    links,
    queues,
    recording,
    requested,
    traffic,
    transfers,
)
from analysis.verdict.checks import Check, Grade
from analysis.verdict.evidence import Evidence
from analysis.verdict.rules import CHECK_RULES
from testbed.indented import indented
from testbed.store.reading import Trial
from testbed.store.records import QueueRecord, Status

# Checks of each observed queue that packets cross.
QUEUE_CHECKS: tuple[Callable[[Evidence, QueueRecord, QueueTransit], Iterator[Check]], ...] = (
    queues.bucket,
    queues.shaping,
    queues.windows,
    changing_links.followed,
    changing_links.down,
    queues.buffer,
    queues.policed,
    queues.phase,
    queues.conservation,
    queues.marks,
)


def observed_queues(evidence: Evidence) -> Iterator[Check]:
    """Run the checks of every observed queue."""
    for queue in evidence.bottlenecks:
        transit = evidence.transits[queue.interface]
        if len(transit.left_ns):
            for check in QUEUE_CHECKS:
                yield from check(evidence, queue, transit)


# In the order in which verdict.json lists their results. Each yields nothing if the scenario does
# not use the feature.
CHECKS: tuple[Callable[[Evidence], Iterator[Check]], ...] = (
    recording.no_damage,
    recording.captures,
    configuration.kernel,
    requested.records,
    configuration.sockets,
    configuration.settings,
    configuration.offloads,
    recording.machine,
    recording.times,
    recording.sampling,
    changing_links.changes,
    links.idle,
    requested.delays,
    requested.sizes,
    links.radio,
    links.loss,
    links.damage,
    links.overtaking,
    links.losses_by_chance,
    observed_queues,
    queues.senders,
    kernel_tcp.sockets,
    kernel_tcp.hosts,
    kernel_tcp.receivers,
    kernel_tcp.offered_windows,
    kernel_tcp.what_limited,
    iperf3.tcp,
    iperf3.udp,
    traffic.calls,
    queues.marks_received,
    traffic.videos,
    transfers.transfers,
    traffic.programs,
    traffic.other_connections,
    traffic.pauses,
    traffic.few_packets,
)

_BAD = (Grade.INVALID, Grade.SUSPECT)
_WORST_FIRST = (Grade.INVALID, Grade.SUSPECT, Grade.VALID, Grade.UNKNOWN)
_ORDER = {name: place for place, name in enumerate(CHECK_RULES)}


@dataclass(frozen=True)
class Verdict:
    """The verdict on a trial that ran: that of its worst check, whose reason is `why`.

    It is `unknown`, without checks, if the trial cannot be judged.
    """

    verdict: Grade
    why: str
    checks: tuple[Check, ...]

    def by_check(self) -> dict[str, Grade]:
        """Return the worst grade of each check; every known one outranks `unknown`."""
        worst: dict[str, Grade] = {}
        for check in self.checks:
            known = worst.setdefault(check.name, check.verdict)
            worst[check.name] = min(known, check.verdict, key=_WORST_FIRST.index)
        return worst

    def to_json(self) -> str:
        """Return the verdict as JSON."""
        checks = [
            {name: _written(value) for name, value in vars(check).items()} for check in self.checks
        ]
        data = {"verdict": self.verdict, "why": self.why, "checks": checks}
        return indented(data, 1) + "\n"

    @staticmethod
    def from_json(data: Any) -> Verdict:
        """Read what `to_json` wrote; raise one of DAMAGED if it did not."""
        checks = tuple(_read(check) for check in data["checks"])
        if not isinstance(data["why"], str):
            raise TypeError(data["why"])
        return Verdict(Grade(data["verdict"]), data["why"], checks)


def _written(value: Any) -> Any:
    """Return a value that JSON can hold: it has no infinity."""
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _read(data: dict[str, Any]) -> Check:
    for key in ("measured", "expected", "tolerance"):
        if data[key] in ("inf", "-inf"):
            data[key] = float(data[key])
    data["verdict"] = Grade(data["verdict"])
    check = Check(**data)
    if check.name not in CHECK_RULES:
        raise ValueError(f"no check of ours: {check.name!r}")
    if not type(check.subject) is type(check.unit) is type(check.why) is str:
        raise TypeError(check.subject, check.unit, check.why)
    if type(check.tolerance) not in (int, float):
        raise TypeError(check.tolerance)
    if not (_can_be_compared(check.measured) and _can_be_compared(check.expected)):
        raise TypeError(check.measured, check.expected)
    return check


def _can_be_compared(value: object) -> bool:
    return value is None or type(value) in (int, float, str)


def judge(
    trial: Trial,
    packets: TrialPackets | None = None,
    samples: Samples | None = None,
    faults: Sequence[str] | None = None,
) -> Verdict | None:
    """Judge a trial; None if it did not run. One with a damaged file is invalid, and not read.

    `packets` and `samples` are its own, if they are read for something else, too; `faults` are
    those of its files, if they are known.
    """
    if trial.record.status is not Status.OK:
        return None
    if faults := [*damage(trial)] if faults is None else faults:
        return worst_verdict((recording.files(trial.record, faults),))
    evidence = Evidence(
        trial, packets or TrialPackets(trial), samples or Samples(trial), trial.record.virtual_time
    )
    return worst_verdict(tuple(check for find in CHECKS for check in find(evidence)))


def worst_verdict(checks: tuple[Check, ...]) -> Verdict:
    """Return the verdict of the worst check.

    Of equally bad ones the first in the table of rules decides, and of that name the one furthest
    off.
    """
    bad = [check for check in checks if check.verdict in _BAD]
    if not bad:
        return Verdict(Grade.VALID, "", checks)
    worst = min(bad, key=_rank)
    return Verdict(worst.verdict, worst.why, checks)


def _rank(check: Check) -> tuple[int, int, float]:
    off = 0.0
    if isinstance(check.measured, int | float) and isinstance(check.expected, int | float):
        off = abs(check.measured - check.expected)
    return _BAD.index(check.verdict), _ORDER[check.name], -off
