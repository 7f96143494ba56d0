"""What all benchmarks share: cases that take turns, what each costs, and how that is printed.

Wall time counts beside the processor time of all processes, which says more on a machine that is
busy with other work. Ratios are to named cases of the same run.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TypeVar

import pandas as pd

from analysis.results.reduction import reduction_of
from testbed.engine import Engine
from testbed.errors import TestbedError
from testbed.guest.engine import GuestEngine
from testbed.plan.plan import tasks
from testbed.runs.engine_choice import Choice
from testbed.runs.sweep import SweepEvent, TrialFinished, Watcher, run_all
from testbed.scenario.model import Scenario
from testbed.store.reading import open_trial
from testbed.store.records import Record, Status

TABLES_END = "<!-- end -->"

T = TypeVar("T")
Pick = Callable[[list[float]], float]  # from the repeats: `min`, or a median


@dataclass(frozen=True)
class Cost:
    """The wall time of a run, the processor time of its processes, and their memory if known."""

    wall_s: float
    own_s: float = 0.0  # processor time of this process
    children_s: float = 0.0  # and of its children that ended
    memory_mb: float = 0.0

    @property
    def processor_s(self) -> float:
        """The processor time of all processes."""
        return self.own_s + self.children_s

    def ratio_to(self, other: Cost) -> str:
        """Return the ratio to another cost, as text."""
        processors = self.processor_s / other.processor_s
        return f"{self.wall_s / other.wall_s:.3g} ({processors:.3g} of the processor time)"


# ---------------------------------------------------------------- measuring


def measured(act: Callable[[], T]) -> tuple[T, Cost]:
    """Return a call's result and cost; a result that is a Cost says wall time and memory."""
    begun, before = time.monotonic(), _used_s()
    done = act()
    wall_s, after = time.monotonic() - begun, _used_s()
    told = done if isinstance(done, Cost) else Cost(wall_s)
    own_s, children_s = (now - then for now, then in zip(after, before, strict=True))
    return done, Cost(told.wall_s, own_s, children_s, told.memory_mb)


def processor_s() -> float:
    """Return the processor time of this process and its ended children."""
    return sum(_used_s())


def _used_s() -> tuple[float, float]:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own_s, children_s = (each.ru_utime + each.ru_stime for each in used)
    return own_s, children_s


def one_more(few: Cost, many: Cost, count: float) -> Cost:
    """Return what each of `count` more takes, by the difference of two runs."""
    pairs = zip(astuple(few), astuple(many), strict=True)
    return Cost(*((more - less) / count for less, more in pairs))


def in_turns(
    cases: Mapping[str, Callable[[], object]], repeats: int, pick: Pick = min
) -> dict[str, Cost]:
    """Measure cases in turns, so that other work of the machine meets all of them.

    Each of a case's numbers is picked from those of its repeats.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, act in cases.items():
            costs[name].append(measured(act)[1])
    return {
        name: Cost(*(pick(list(numbers)) for numbers in zip(*map(astuple, each), strict=True)))
        for name, each in costs.items()
    }


def print_costs(
    costs: Mapping[str, Cost],
    to: Sequence[str] = (),
    at_most: Mapping[tuple[str, str], float] | None = None,
    speed: Callable[[str, Cost], str] = lambda _name, _cost: "",
) -> None:
    """Print a line per case, with its ratios to the cases `to` and their limits.

    `speed` returns what else there is to say of a case.
    """
    for name, spent in costs.items():
        line = f"  {name:20} {spent.wall_s:8.3f} s, {spent.processor_s:8.3f} s of processor time"
        line += f", {spent.memory_mb:.0f} MB" if spent.memory_mb else ""
        line += f", {extra}" if (extra := speed(name, spent)) else ""
        for other in to if name not in to else ():
            limit = (at_most or {}).get((name, other))
            line += f"; to {other}: {spent.ratio_to(costs[other])}"
            line += f", at most {limit:.3g}" if limit else ""
        print(line, flush=True)


# ---------------------------------------------------------------- trials


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder on the disk, because captures may be larger than /tmp."""
    return tempfile.TemporaryDirectory(prefix="testbed-benchmark-", dir="/var/tmp")


def no_watcher(_event: SweepEvent) -> None:
    """Ignore what a sweep reports."""


def run_trials(
    scenarios: Sequence[Scenario],
    folder: str,
    engine: Engine | None = None,
    jobs: int | None = None,
    watch: Watcher = no_watcher,
) -> list[TrialFinished]:
    """Run trials as `testbed run` does, in the guest unless told; all of them must end well."""
    choice = Choice(engine or GuestEngine(), "benchmark")
    done = run_all(tasks(scenarios), choice, Path(folder) / "out", watch, jobs)
    for each in done:
        assert each.status is Status.OK, each.record.reason
    return done


def first_flows(
    scenarios: Sequence[Scenario], engine: Engine | None = None
) -> Iterator[tuple[Scenario, pd.Series]]:
    """Run trials, and yield each scenario with its first flow's row of metrics."""
    with scratch_folder() as folder:
        for each in run_trials(scenarios, folder, engine):
            yield each.scenario, reduction_of(open_trial(each.path)).flows.iloc[0]


def record_of(scenario: Scenario, engine: Engine | None = None) -> Record:
    """Run a trial by one worker, its captures converted and all, and return its record."""
    with scratch_folder() as folder:
        record = run_trials([scenario], folder, engine, jobs=1)[0].record
    assert not any(capture.dropped for capture in record.captures)
    return record


def trial(scenario: Scenario) -> Cost:
    """Run a trial in the guest, and return its wall time and the guest's memory."""
    record = record_of(scenario)
    return Cost(record.wall_s, memory_mb=record.peak_memory_mb)


# ---------------------------------------------------------------- commands and pages


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's command, described by the first line of its text."""
    return argparse.ArgumentParser(description=(doc or "").partition("\n")[0])


def require_guest() -> None:
    """End the command if no guest can run here."""
    if problem := GuestEngine().ready():
        raise SystemExit(problem)


@contextlib.contextmanager
def errors_as_exit() -> Iterator[None]:
    """End the command with an error's message and hint in place of a traceback."""
    try:
        yield
    except TestbedError as error:
        hint = f" (hint: {error.hint})" if error.hint else ""
        raise SystemExit(f"{error.message}{hint}") from error


def markdown_lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown, whose cells may hold marks of Markdown's."""
    first, *rest = (f"| {' | '.join(row)} |".replace("\n", " ") for row in (header, *rows))
    return [first, "|---" * len(header) + "|", *rest]


def with_tables(page: str, benchmark: str, tables: str) -> str:
    """Return the page with these tables in place of the benchmark's last ones."""
    before, begin, rest = page.partition(f"<!-- tables: {benchmark} -->\n")
    _, end, after = rest.partition(TABLES_END)
    return f"{before}{begin}\n{tables}\n\n{end}{after}"
