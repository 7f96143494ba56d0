"""The verdict on a trial: the worst of its checks, kept with the trial."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

from analysis.trials.packets import TrialPackets
from analysis.verdict.all_checks import CHECKS
from analysis.verdict.checks import Check, Grade
from analysis.verdict.evidence import Evidence
from analysis.verdict.rules import RULES
from testbed.errors import TestbedError
from testbed.machine.atomic import replace
from testbed.store import RECORD, VERDICT_FILE, Status, Trial

REVISION = 13  # raise it when a change here gives other verdicts under the same tolerances
NO_TIME = f"{RECORD} does not say whether time was virtual: run the trial again"

_BAD = (Grade.INVALID, Grade.SUSPECT)
_ORDER = {name: place for place, name in enumerate(RULES)}


@dataclass(frozen=True)
class Verdict:
    """The verdict on a trial that ran: that of its worst check, whose reason is `why`.

    It is `unknown`, without checks, if the trial cannot be judged.
    """

    verdict: Grade
    why: str
    checks: tuple[Check, ...]
    revision: str  # of the checks and their tolerances

    def to_json(self) -> str:
        """The text of verdict.json."""
        data = dataclasses.asdict(self)
        for check in data["checks"]:
            check.update({key: _written(value) for key, value in check.items()})
        return json.dumps(data, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Verdict:
        """The inverse of `to_json`."""
        data = json.loads(text)
        checks = tuple(_read(each) for each in data["checks"])
        return Verdict(Grade(data["verdict"]), data["why"], checks, data["revision"])


def _written(value: Any) -> Any:
    """The value as JSON can hold it: JSON has no infinity."""
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _read(data: dict[str, Any]) -> Check:
    for key in ("measured", "expected", "tolerance"):
        if data[key] in ("inf", "-inf"):
            data[key] = float(data[key])
    return Check(**{**data, "verdict": Grade(data["verdict"])})


def revision() -> str:
    """A hash of REVISION and the tolerances: verdicts under others are not to be mixed in."""
    tolerances = [rule.decides for rule in RULES.values() if not rule.later]
    return hashlib.sha256(f"{REVISION} {tolerances}".encode()).hexdigest()[:12]


def judge(trial: Trial, packets: TrialPackets | None = None) -> Verdict | None:
    """The verdict on a trial; None if it did not run.

    `packets` are its captures, if they are read for something else too.
    """
    if trial.record.status is not Status.OK:
        return None
    virtual_time = trial.record.virtual_time
    if virtual_time is None:
        return Verdict(Grade.UNKNOWN, NO_TIME, (), revision())
    evidence = Evidence(trial, packets or TrialPackets(trial), virtual_time)
    return conclude(tuple(check for find in CHECKS for check in find(evidence)))


def conclude(checks: tuple[Check, ...]) -> Verdict:
    """The worst check decides; of equally bad ones the first in the table of rules, and of that
    name the one furthest off."""
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


def kept_verdict(trial: Trial) -> Verdict | None:
    """The verdict kept in the trial's directory, whatever its revision; None if there is none."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # damaged: judge again
        return Verdict.from_json((trial.path / VERDICT_FILE).read_text())
    return None


def cached_verdict(trial: Trial, packets: TrialPackets | None = None) -> Verdict | None:
    """The verdict kept in the trial's directory if it is of this revision, else a new one.

    A kept verdict of another revision stays if the trial cannot be judged anew: captures were
    dropped, or trial.json, of an earlier version, does not say whether time was virtual.
    """
    kept = kept_verdict(trial)
    gone = any(not capture.file for capture in trial.record.captures)
    final = gone or trial.record.virtual_time is None
    if kept and (final or kept.revision == revision()):
        return kept
    verdict = judge(trial, packets)
    if verdict is not None:
        text = verdict.to_json()
        with contextlib.suppress(TestbedError):  # another user's results: do without
            replace(trial.path / VERDICT_FILE, lambda path: path.write_text(text))
    return verdict
