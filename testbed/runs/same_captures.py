"""Whether two kernels send the same packets: the same trials on both, and their captures compared.

In virtual time the same seed gives the same bytes, so that a difference is the kernel's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.engines.choice import choose
from testbed.plan.task import tasks
from testbed.runs.sweep import Finished, run_all
from testbed.scenario.kernel_axis import on_kernels
from testbed.scenario.model import Scenario
from testbed.store import Record, Status

SAME, ANOTHER, SKIP = 0, 1, 125  # what `git bisect run` takes them for: good, bad, not to be told


@dataclass(frozen=True)
class Answer:
    """An exit status for `git bisect run`, and why."""

    status: int
    lines: tuple[str, ...]


def compared(scenarios: Sequence[Scenario], good: str, other: str, out: Path) -> Answer:
    """Run each scenario on both kernels, unless its trial is there, and compare them."""
    choice = choose("guest", ())
    planned = tasks(on_kernels(scenarios, (good, other)))
    done = run_all(planned, choice, out, lambda _event: None)
    found = {each.scenario.name: each for each in done}
    both = [found[task.scenario.name] for task in planned]
    return answer(list(zip(both[::2], both[1::2], strict=True)), good)


def answer(pairs: Sequence[tuple[Finished, Finished]], good: str) -> Answer:
    """Trials that did not run tell nothing of the packets."""
    failed = [done for pair in pairs for done in pair if done.status is not Status.OK]
    if failed:
        return Answer(SKIP, tuple(f"{done.path.name}: {done.record.reason}" for done in failed))
    others = [b.path for a, b in pairs if captured(a.record) != captured(b.record)]
    if others:
        return Answer(ANOTHER, tuple(f"other packets than on {good}: {path}" for path in others))
    return Answer(SAME, (f"the same packets as on {good}, in all {len(pairs)} trials",))


def captured(record: Record) -> dict[tuple[str, str], str]:
    """Each capture's digest, by where it was made."""
    return {(each.node, each.interface): each.sha256 for each in record.captures}
