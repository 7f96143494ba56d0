"""Which lines of Linux's TCP the experiments run, as a page, and whether its kernel reports errors.

    .venv/bin/python -m benchmarks.coverage [EXPERIMENT …] [--kernel 6.1-debug] [--out DIR]

Runs the quickest trial of each experiment, or of those that are named, that no earlier call has
run, on a kernel that looks for its own errors (docs/kernels.md), and writes the tables of
docs/coverage.md. The exit status is 1 if a trial failed; its reason is the kernel's first report.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import errors_as_exit, markdown_lines, parser_of, with_tables
from experiments.catalogue import EXPERIMENTS
from testbed.errors import number_of
from testbed.guest import kernels
from testbed.machine.atomic import workplace
from testbed.machine.process import run
from testbed.plan.plan import Task, tasks
from testbed.runs import estimate
from testbed.runs.engine_choice import choose
from testbed.runs.selection import select
from testbed.runs.sweep import SweepEvent, TrialFinished, run_all
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.scenario.variations import on_kernels
from testbed.store.names import COVERAGE_FOLDER
from testbed.store.records import Status

COVERAGE = Path(__file__).resolve().parents[1] / "docs" / "coverage.md"
COVERAGE_BENCHMARK = "benchmarks.coverage"  # in the marks of the page's tables
COVERED_FILES = "tcp*.gcda"  # of net/ipv4
COVERED_SOURCES = "net/ipv4/tcp"


@dataclasses.dataclass
class FileCoverage:
    """Counts of how often each line and function of a source file ran."""

    lines: Counter[int] = dataclasses.field(default_factory=Counter)
    functions: Counter[str] = dataclasses.field(default_factory=Counter)

    @property
    def never_called(self) -> list[str]:
        """The functions that never ran."""
        return sorted(name for name, count in self.functions.items() if not count)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials and write the page's tables; return 1 if a trial failed."""
    parser = parser_of(__doc__)
    parser.add_argument("experiments", metavar="EXPERIMENT", nargs="*", help="(all)")
    default = kernels.debug_name(BASE_KERNEL)
    parser.add_argument("--kernel", default=default, help="one that looks for its own errors")
    parser.add_argument("--out", type=Path, default=Path("results/coverage"), help="results folder")
    parser.add_argument("--jobs", type=int, help="number of trials to run in parallel")
    options = parser.parse_args(arguments)
    with errors_as_exit():
        kernels.build_missing([options.kernel], print)
        planned = quickest_trials(options.kernel, options.experiments or EXPERIMENTS)
        engine = choose("guest", (), options.kernel)
        done = run_all(planned, engine, options.out, _tell, options.jobs)
        folder = kernels.built_folder(options.kernel)
        assert folder is not None
        well = [each.path / COVERAGE_FOLDER for each in done if each.status is Status.OK]
        covered = coverage(well, folder / COVERAGE_FOLDER)
    tables = "\n".join(coverage_lines(covered, len(well))).rstrip("\n")
    COVERAGE.write_text(with_tables(COVERAGE.read_text(), COVERAGE_BENCHMARK, tables))
    return int(len(well) < len(done))


def quickest_trials(kernel: str, names: Iterable[str]) -> list[Task]:
    """Return each named experiment's trial that is expected to end first."""
    return [
        min(planned, key=lambda task: estimate.guest_seconds(task.plan, task.scenario))
        for name in names
        if (planned := tasks(_short_scenarios(name, kernel)))
    ]


def _short_scenarios(name: str, kernel: str) -> list[Scenario]:
    return on_kernels(select(name, {}, EXPERIMENTS, quick=True).scenarios(1), (kernel,))


def _tell(event: SweepEvent) -> None:
    if isinstance(event, TrialFinished):
        reason = "" if event.status is Status.OK else f": {event.record.reason}"
        print(f"{event.task.scenario.name}: {event.status}{reason}", flush=True)


def coverage(counts: Iterable[Path], notes: Path) -> dict[str, FileCoverage]:
    """Add up what gcov says of folders of counts, by the notes of the build that counted."""
    by_file: dict[str, FileCoverage] = {}
    for folder in counts:
        with workplace(COVERAGE_FOLDER) as place:
            for path in folder.glob(COVERED_FILES):
                shutil.copy(path, place)
                shutil.copy(notes / f"{path.stem}.gcno", place)
            names = sorted(path.name for path in place.glob(COVERED_FILES))
            listing = run(["gcov", "--json-format", "--stdout", *names], cwd=place).stdout
        for line in listing.splitlines():
            _add(by_file, json.loads(line))
    return dict(sorted(by_file.items()))


def _add(by_file: dict[str, FileCoverage], counted: Mapping[str, Any]) -> None:
    for file in counted["files"]:
        if not file["file"].startswith(COVERED_SOURCES) or not file["file"].endswith(".c"):
            continue  # a header
        into = by_file.setdefault(Path(file["file"]).name, FileCoverage())
        for line in file["lines"]:
            into.lines[line["line_number"]] += line["count"]
        for function in file["functions"]:
            into.functions[function["name"]] += function["execution_count"]


def coverage_lines(covered: Mapping[str, FileCoverage], trials: int) -> Iterator[str]:
    """Yield the page's tables."""
    yield f"{number_of(trials, 'trial')}."
    yield ""
    rows = [_row(f"`{name}`", [each]) for name, each in covered.items()]
    header = ("file of `net/ipv4`", "lines", "that ran", "functions", "never called")
    yield from markdown_lines(header, [*rows, _row("all", list(covered.values()))])
    yield ""
    yield "Functions that were never called:"
    yield ""
    for name, each in covered.items():
        if each.never_called:
            yield f"- `{name}`: {', '.join(f'`{function}`' for function in each.never_called)}"


def _row(name: str, files: Sequence[FileCoverage]) -> tuple[str, ...]:
    lines = [count for each in files for count in each.lines.values()]
    functions = sum(len(each.functions) for each in files)
    never = sum(len(each.never_called) for each in files)
    share = 100 * sum(map(bool, lines)) / max(1, len(lines))
    return name, f"{len(lines)}", f"{share:.0f} %", f"{functions}", f"{never}"


if __name__ == "__main__":
    raise SystemExit(main())
