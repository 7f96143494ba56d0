"""`testbed exec --explore`: a suite on machines that are slow in other ways, until a test fails.

A perturbation says how late packets of the loopback are and how many are lost, and which processes
rest for how long (`perturbed.py`). It follows from a seed. One with which a test fails is made
smaller: parts are left out, sizes are halved, and of the rests those are kept that it takes. As a
run is a function of its perturbation, each is tried once.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.machine import json_files
from testbed.programs import perturbed
from testbed.runs.suite_results import TEST_FAILED, SuiteRun
from testbed.scenario.reading import checked

MAX_LATE_MS, MAX_LOST_PERCENT, MAX_REST_MS = 20.0, 2.0, 50.0
EVERY_MS = (10.0, 1000.0)  # between two rests, on average
MAX_HALVINGS = 3
MAX_SMALLER_RUNS = 80


DrawnRest = tuple[float, float, float]  # when (s), for how long (s), which process (0 to 1)


@dataclass(frozen=True)
class Perturbation:
    """What is slow about a machine; of zeros: nothing."""

    seed: int
    delay_ms: float = 0.0  # of packets on the loopback
    jitter_ms: float = 0.0
    loss_percent: float = 0.0
    rest_ms: float = 0.0  # how long a process rests, at most
    every_ms: float = 100.0  # between two rests, on average
    rests: tuple[DrawnRest, ...] | None = None  # these alone; None: all that the seed draws

    def __str__(self) -> str:
        """Say what is slow in a few words."""
        parts = []
        if self.delay_ms:
            parts.append(f"packets are {self.delay_ms:g} ± {self.jitter_ms:g} ms late")
        if self.loss_percent:
            parts.append(f"{self.loss_percent:g} % of packets are lost")
        if self.rests:
            often = "once" if len(self.rests) == 1 else f"{len(self.rests)} times"
            parts.append(f"a process rests {often}")
        elif self.rest_ms:
            parts.append(
                f"every {self.every_ms:g} ms a process rests for up to {self.rest_ms:g} ms"
            )
        return ", ".join(parts) or "nothing is slow"

    @property
    def is_slow(self) -> bool:
        """Whether it says anything."""
        return bool(self.delay_ms or self.loss_percent or self.rest_ms)

    def words(self, command: Sequence[str]) -> list[str]:
        """Return the words that run a command so."""
        program = [sys.executable, "-ISB", str(Path(perturbed.__file__))]
        return [*program, json.dumps(dataclasses.asdict(self)), *command]


def drawn(seed: int) -> Perturbation:
    """Return the perturbation of a seed: each of its parts is there in one of two."""
    draw = random.Random(seed)

    def up_to(most: float) -> float:
        return float(f"{most * 10 ** draw.uniform(-2, 0):.2g}")

    delay_ms, jitter = up_to(MAX_LATE_MS), draw.random()
    loss, rest_ms = up_to(MAX_LOST_PERCENT), up_to(MAX_REST_MS)
    every_ms = float(f"{EVERY_MS[0] * (EVERY_MS[1] / EVERY_MS[0]) ** draw.random():.2g}")
    late, lossy, rests = (draw.random() < 0.5 for _ in range(3))
    rests = rests or not (late or lossy)
    return Perturbation(
        seed,
        delay_ms if late else 0.0,
        float(f"{jitter * delay_ms:.2g}") if late else 0.0,
        loss if lossy else 0.0,
        rest_ms if rests else 0.0,
        every_ms,
    )


def perturbation_text(perturbation: Perturbation) -> str:
    """Return what `read_perturbation` reads."""
    return json.dumps(dataclasses.asdict(perturbation), indent=1) + "\n"


def read_perturbation(path: Path) -> Perturbation:
    """Read one that an exploration has written."""
    try:
        data = json_files.read_record(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}", "the perturbation.json of --explore") from error
    read, faults = checked(Perturbation, data, str(path))
    if faults:
        raise UsageError(f"{path}: {faults[0].words}", "the perturbation.json of --explore")
    perturbation: Perturbation = read
    return perturbation


@dataclass(frozen=True)
class Rest:
    """A process that rested."""

    drawn: DrawnRest
    name: str

    def __str__(self) -> str:
        """Say which process rested when."""
        return f"{self.name} rests for {1e3 * self.drawn[1]:.3g} ms at {self.drawn[0]:.6f} s"


@dataclass(frozen=True)
class PerturbedRun:
    """A run with a perturbation."""

    perturbation: Perturbation
    suite: SuiteRun
    rests: tuple[Rest, ...]

    @property
    def failures(self) -> list[str]:
        """What failed: the tests, or if none is named the exit status."""
        tests = [name for name, outcome in self.suite.outcomes.items() if outcome == TEST_FAILED]
        return tests or ([f"exit status {self.suite.status}"] if self.suite.status else [])

    @property
    def failure(self) -> str:
        """The first failure; empty if nothing failed."""
        return next(iter(self.failures), "")


def read_rests(path: Path) -> tuple[Rest, ...]:
    """Read which processes rested, as the guest has written it."""
    try:
        rows = json_files.read_record(path)
        return tuple(Rest((float(a), float(b), float(c)), str(name)) for a, b, c, name in rows)
    except (OSError, ValueError, TypeError):
        return ()


def smallest(failed: PerturbedRun, run: Callable[[Perturbation], PerturbedRun]) -> PerturbedRun:
    """Make a perturbation smaller as long as the same fails, in some tens of runs."""
    left = MAX_SMALLER_RUNS
    for smaller_ones in (_without_parts, _halved, _fewer_rests, _shorter_rest):
        tried = set[Perturbation]()
        while left:
            others = (each for each in smaller_ones(failed) if each not in tried)
            smaller = next(others, None)
            if smaller is None:
                break
            tried.add(smaller)
            left -= 1
            again = run(smaller)
            if failed.failure in again.failures:
                failed = again
    return failed


def _without_parts(failed: PerturbedRun) -> Iterator[Perturbation]:
    now = failed.perturbation
    if now.rest_ms:
        yield dataclasses.replace(now, rest_ms=0.0, rests=None)
    if now.loss_percent:
        yield dataclasses.replace(now, loss_percent=0.0)
    if now.delay_ms:
        yield dataclasses.replace(now, delay_ms=0.0, jitter_ms=0.0)
    if now.jitter_ms:
        yield dataclasses.replace(now, jitter_ms=0.0)


def _halved(failed: PerturbedRun) -> Iterator[Perturbation]:
    now = failed.perturbation
    start = drawn(now.seed)
    for name in ("delay_ms", "loss_percent", "rest_ms"):
        value = getattr(now, name)
        if value * 2**MAX_HALVINGS > getattr(start, name):
            changes: dict[str, Any] = {name: float(f"{value / 2:.2g}")}
            if name == "delay_ms":
                changes["jitter_ms"] = min(now.jitter_ms, changes[name])
            yield dataclasses.replace(now, **changes)


def _fewer_rests(failed: PerturbedRun) -> Iterator[Perturbation]:
    """Yield parts of the rests: halves, quarters, …, and all but one of these parts."""
    rests = tuple(rest.drawn for rest in failed.rests)
    if failed.perturbation.rests is None and rests:
        yield dataclasses.replace(failed.perturbation, rests=rests)
    size = len(rests)
    while size > 1:
        size = (size + 1) // 2
        parts = [rests[at : at + size] for at in range(0, len(rests), size)]
        for part in parts:
            yield dataclasses.replace(failed.perturbation, rests=part)
        for part in parts if len(parts) > 2 else ():
            others = tuple(rest for rest in rests if rest not in part)
            yield dataclasses.replace(failed.perturbation, rests=others)


def _shorter_rest(failed: PerturbedRun) -> Iterator[Perturbation]:
    """Yield a single rest that is shorter by a fifth."""
    if len(failed.perturbation.rests or ()) == 1:
        ((at_s, for_s, which),) = failed.perturbation.rests or ()
        rest = (at_s, float(f"{0.8 * for_s:.3g}"), which)
        yield dataclasses.replace(failed.perturbation, rests=(rest,))
