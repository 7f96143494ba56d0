"""The verdict on a trial: the worst of its checks, kept with the trial."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analysis.captures.atomic_write import replace
from analysis.trials.evidence import Evidence
from analysis.trials.packets import TrialPackets
from analysis.verdict import (
    background,
    configuration,
    emulation,
    injected_losses,
    iperf3,
    kernel_tcp,
    queue_counters,
    recording,
)
from analysis.verdict.checks import Check, Grade
from analysis.verdict.radio import radio
from analysis.verdict.rules import RULES
from analysis.verdict.shaping import Passage, passage
from analysis.verdict.video import videos
from testbed.errors import TestbedError
from testbed.store import QueueRecord, Status, Trial

CACHE = "verdict.json"  # in the trial's directory
REVISION = 8  # raise it when a change here gives other verdicts under the same tolerances

_BAD = (Grade.INVALID, Grade.SUSPECT)
_ORDER = {name: place for place, name in enumerate(RULES)}


@dataclass(frozen=True)
class Verdict:
    """Of a trial that ran: the worst of its checks decides, and `why` is that one's."""

    verdict: Grade
    why: str
    checks: tuple[Check, ...]
    revision: str  # of the checks and their tolerances

    def to_json(self) -> str:
        """As verdict.json."""
        data = dataclasses.asdict(self)
        for check in data["checks"]:
            check.update({key: _written(value) for key, value in check.items()})
        return json.dumps(data, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Verdict:
        """Read one."""
        data = json.loads(text)
        checks = tuple(_read(each) for each in data["checks"])
        return Verdict(Grade(data["verdict"]), data["why"], checks, data["revision"])


def _written(value: Any) -> Any:
    """JSON has no infinity."""
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _read(data: dict[str, Any]) -> Check:
    for key in ("measured", "expected", "tolerance"):
        if data[key] in ("inf", "-inf"):
            data[key] = float(data[key])
    return Check(**{**data, "verdict": Grade(data["verdict"])})


def revision() -> str:
    """Changes with the tolerances: verdicts of other ones are not to be mixed with ours."""
    return hashlib.sha256(f"{REVISION} {RULES}".encode()).hexdigest()[:12]


def judge(trial: Trial, packets: TrialPackets | None = None) -> Verdict | None:
    """The verdict on a trial; None if it did not run. `packets` are its captures, if read."""
    if trial.record.status is not Status.OK:
        return None
    return conclude(tuple(_checks(Evidence(trial, packets or TrialPackets(trial)))))


def conclude(checks: tuple[Check, ...]) -> Verdict:
    """The worst decides; of equals the first in the table of tolerances, and the furthest off."""
    bad = [check for check in checks if check.verdict in _BAD]
    if not bad:
        return Verdict(Grade.VALID, "", checks, revision())
    worst = min(bad, key=_rank)
    return Verdict(worst.verdict, worst.why, checks, revision())


def _rank(check: Check) -> tuple[int, int, float]:
    off = 0.0
    if isinstance(check.measured, int | float) and isinstance(check.expected, int | float):
        off = abs(check.measured - check.expected)
    return _BAD.index(check.verdict), _ORDER[check.name], -off


def _checks(evidence: Evidence) -> Iterator[Check]:
    yield from recording.captures(evidence)
    yield from configuration.sockets(evidence)
    yield from configuration.settings(evidence)
    yield from configuration.offloads(evidence)
    yield from recording.machine(evidence)
    yield from recording.times(evidence)
    yield from recording.sampling(evidence)
    yield from emulation.idle(evidence)
    yield from radio(evidence)
    queues = {each.interface: each for each in evidence.bottlenecks}
    passages = {name: passage(evidence.crossings(queue)) for name, queue in queues.items()}
    yield from emulation.loss(evidence, passages)
    yield from injected_losses.by_chance(evidence)
    for name, found in passages.items():
        if len(found.left_ns):
            yield from _queue(evidence, queues[name], found)
    yield from emulation.senders(evidence)
    yield from kernel_tcp.sockets(evidence)
    yield from kernel_tcp.hosts(evidence)
    yield from iperf3.tcp(evidence)
    yield from iperf3.udp(evidence)
    yield from queue_counters.receivers(evidence)
    yield from background.background(evidence)
    yield from videos(evidence)


def _queue(evidence: Evidence, queue: QueueRecord, found: Passage) -> Iterator[Check]:
    """What is asked of a queue of the bottleneck's that something crosses."""
    yield from emulation.shaping(evidence, queue, found)
    yield from emulation.buffer(evidence, queue, found)
    yield from queue_counters.conservation(evidence, queue, found)
    if queue.sampled:
        yield from queue_counters.marks(evidence, queue)


def kept_verdict(trial: Trial) -> Verdict | None:
    """The verdict that the trial keeps, whatever its revision; None if there is none to be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # damaged: only slow
        return Verdict.from_json((trial.path / CACHE).read_text())
    return None


def cached_verdict(trial: Trial, packets: TrialPackets | None = None) -> Verdict | None:
    """The verdict that the trial keeps, if it is of this revision, or a new one.

    Where captures are gone that a new one could come from, an older one stays.
    """
    kept = kept_verdict(trial)
    gone = any(not capture.file for capture in trial.record.captures)
    if kept and (gone or kept.revision == revision()):
        return kept
    verdict = judge(trial, packets)
    if verdict is not None:
        text = verdict.to_json()
        with contextlib.suppress(TestbedError):  # someone else's results: do without
            replace(trial.path / CACHE, lambda path: path.write_text(text))
    return verdict
