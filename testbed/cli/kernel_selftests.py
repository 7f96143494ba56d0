"""`testbed kernel test KERNEL selftests`: Linux's own tests of the network, in virtual time."""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from testbed.cli import run_output
from testbed.cli.execute import busy_cores
from testbed.cli.run_output import JunitCase
from testbed.errors import UsageError
from testbed.guest import kernels
from testbed.guest.machine import machine_kernel
from testbed.kernels.kernel_sources import build_source, kernel_source
from testbed.kernels.kernel_tests import ktap_plan, ktap_result
from testbed.kernels.selftest_builds import (
    SelftestSource,
    built_tests,
    chosen_suites,
    chosen_tests,
    source_of_tree,
    source_of_version,
)
from testbed.kernels.selftest_runs import (
    SelftestEnd,
    SelftestLimits,
    SelftestRuns,
    SelftestStatus,
    missing_symbols,
)
from testbed.machine import atomic
from testbed.runs.console import print_lines, say
from testbed.runs.suite_results import (
    TEST_FAILED,
    TEST_PASSED,
    TEST_SKIPPED,
    SuiteRun,
    unlike,
)
from testbed.store.names import results_folder

SELFTESTS_EXAMPLE = "testbed kernel test 7.3 selftests net/mptcp -t simult_flows.sh"
TESTED = "tested"  # begins the name of a tree's kernel
SELFTEST_RESULTS, SELFTEST_JUNIT = "results.json", "junit.xml"


def kernel_selftests(
    options: argparse.Namespace, names: Sequence[str], suites: Sequence[str]
) -> int:
    """Run tests on kernels or trees, and print how they end as KTAP; status 1 if one failed."""
    if options.busy and options.repeat is None:
        raise UsageError("--busy is for --repeat", f"{SELFTESTS_EXAMPLE} --repeat 20 --busy")
    ends: list[SelftestEnd] = []
    seeds = range(1, (options.repeat or 1) + 1)
    for position, named in enumerate(names, 1):
        name = kernel_of(named, position)
        folder = machine_kernel(name, say, kernels.SELFTESTS_FLAVOUR)
        source, userland = _source(options, name), kernels.userland(say)
        wanted = chosen_suites(source, suites)
        built = built_tests(source, userland, folder, say)
        tests = chosen_tests([test for test in built if test.suite in wanted], options.tests)
        out = options.out or results_folder(f"selftests-{name}")
        runs = SelftestRuns(
            userland,
            name,
            folder,
            SelftestLimits(options.limit, options.timeout),
            out,
            options.capture,
            missing_symbols(folder / "config"),
        )
        items = [(test, seed) for test in tests for seed in seeds]
        print_lines(*ktap_plan(len(items)))
        with busy_cores(options.busy):
            for number, end in enumerate(runs.run(items, options.jobs), 1):
                print_lines(*_ktap(number, end))
                ends.append(end)
                _write_results(out, [each for each in ends if each.kernel == name])
    print_lines(*(f"# {line}" for line in summary(ends)))
    return int(any(end.status.reported == SelftestStatus.FAILED for end in ends))


def kernel_of(named: str, position: int) -> str:
    """Return the name of a kernel that is there, or of one that is built now from a tree."""
    source = kernel_source(named)
    if source.kernel in kernels.versions():  # its image for these tests is built if it is missing
        return source.kernel
    built, _ = build_source(source, f"{TESTED}-{position}", "", say, kernels.SELFTESTS_FLAVOUR)
    return built


def _source(options: argparse.Namespace, kernel: str) -> SelftestSource:
    """Return the source of the tests: a tree, or the version that is named, or is the kernel's."""
    if options.source:
        return source_of_tree(options.source)
    newest_first = kernels.versions()[::-1]
    newest = next(filter(kernels.has_source, newest_first), newest_first[0])
    version = options.selftests or (kernel if kernel in newest_first else newest)
    if version not in newest_first or not kernels.has_source(version):
        raise UsageError(
            f"--selftests {version}: its source is not here", f"testbed kernel build {newest}"
        )
    return source_of_version(version)


def _ktap(number: int, end: SelftestEnd) -> Iterator[str]:
    notes = [*end.said, *([f"the kernel: {end.report}"] if end.report else [])]
    if end.results and end.status is not SelftestStatus.PASSED:
        notes.append(f"results: {end.results}")
    counts = f"{end.count(TEST_PASSED)} passed, {end.count(TEST_FAILED)} failed"
    times = f"{end.virtual_s:.1f} s virtual, {end.wall_s:.1f} s wall"
    summary_line = f"# {counts}, {end.count(TEST_SKIPPED)} skipped; {times}"
    skipped = end.status is SelftestStatus.SKIPPED
    passed = end.status.reported != SelftestStatus.FAILED
    name = end.test.full_name + (f" seed {end.seed}" if end.seed > 1 else "")
    *lines, result = ktap_result(number, name, passed, notes, skipped=skipped)
    yield from lines
    yield f"{result} {end.reason}" if skipped else f"{result} {summary_line}"


def summary(ends: Sequence[SelftestEnd]) -> Iterator[str]:
    """Yield the totals of each kernel, and the tests that end in another way with another seed."""
    by_kernel: dict[str, list[SelftestEnd]] = defaultdict(list)
    repeats: dict[tuple[str, str], list[SelftestEnd]] = defaultdict(list)
    for end in ends:
        by_kernel[end.kernel].append(end)
        repeats[end.kernel, end.test.full_name].append(end)
    for name, some in by_kernel.items():
        counts = Counter(end.status for end in some)
        totals = " ".join(
            f"{status}:{counts[status]}" for status in SelftestStatus if counts[status]
        )
        virtual_s = sum(end.virtual_s for end in some)
        yield f"{name}: {totals}; {virtual_s:.0f} s of virtual time"
    for (kernel, test), some in repeats.items():
        if len(some) > 1:
            flips = list(unlike([_suite_run(end) for end in some]))
            yield from (f"{kernel} {test}: {line}" for line in flips)
            yield f"{kernel} {test}: {len(some)} seeds, {_differing(flips)} flip"


def _suite_run(end: SelftestEnd) -> SuiteRun:
    outcome = {"pass": TEST_PASSED, "skip": TEST_SKIPPED}.get(end.status.reported, TEST_FAILED)
    outcomes = {**dict(end.outcomes), "as a whole": outcome}
    return SuiteRun(end.seed, 0, end.virtual_s, end.wall_s, outcomes)


def _differing(lines: Sequence[str]) -> int:
    return sum(line.startswith("differs: ") for line in lines)


def _write_results(out: Path, ends: Sequence[SelftestEnd]) -> None:
    """Write what has ended so far in the forms of NIPA's executors and of JUnit."""
    texts = {
        SELFTEST_RESULTS: json.dumps([nipa_result(end) for end in ends], indent=1) + "\n",
        SELFTEST_JUNIT: junit(ends),
    }
    atomic.replace_all(out, texts)


def nipa_result(end: SelftestEnd) -> dict[str, Any]:
    """Return a result as NIPA's executors report it, with what else is known of it."""
    return {
        "test": end.test.name,
        "group": end.test.suite,
        "result": end.status.reported,
        "time": round(end.wall_s, 1),
        "results": [
            {"test": name, "result": _NIPA_WORDS[outcome]} for name, outcome in end.outcomes
        ],
        "status": end.status,
        "reason": end.reason,
        "virtual_s": round(end.virtual_s, 3),
        "kernel": end.kernel,
        "seed": end.seed,
        "kernel_report": end.report,
        "folder": end.results.name if end.results else "",
    }


_NIPA_WORDS = {TEST_PASSED: "pass", TEST_FAILED: "fail", TEST_SKIPPED: "skip"}


def junit(ends: Sequence[SelftestEnd]) -> str:
    """Return the results as JUnit XML, with a suite for each of Linux's."""
    suites: dict[str, list[JunitCase]] = defaultdict(list)
    for end in ends:
        failed = end.status.reported == SelftestStatus.FAILED
        text = "\n".join(end.said)
        suites[f"{end.kernel} {end.test.suite}"].append(
            JunitCase(
                end.test.suite,
                end.test.name,
                end.reason if failed else "",
                text,
                end.virtual_s,
                end.reason if end.status is SelftestStatus.SKIPPED else "",
            )
        )
    return run_output.junit(suites)
