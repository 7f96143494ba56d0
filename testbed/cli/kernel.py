"""`testbed kernel`: list, build and remove the kernels that a guest can have, and compare two."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from testbed.errors import TestbedError, UsageError, nearest, number_of
from testbed.guest import kernels
from testbed.guest.boot import require_confined
from testbed.kernels.kernel_sources import build_source, check_unlike, kernel_source
from testbed.kernels.kernel_tests import SuiteEnd, ktap_plan, ktap_suite
from testbed.plan.plan import tasks
from testbed.runs.console import console, folding_table, print_error, print_lines, say
from testbed.runs.engine_choice import choose
from testbed.runs.progress import time_left
from testbed.runs.selection import parse_settings, select
from testbed.runs.sweep import SweepEvent, TrialFinished, Watcher, run_all
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.scenario.variations import on_kernels
from testbed.store.names import results_folder
from testbed.store.reading import open_trial
from testbed.store.records import Status

COMPARED_NAMES = ("compare-a", "compare-b")  # of kernels that have no name of their own
TEST_EXAMPLE = "testbed kernel test 6.1,6.12 red codel kunit"
COMPARE_EXAMPLE = "testbed kernel compare ~/linux@v6.1 ~/linux, or: … ~/linux change.patch"
CANDIDATE = "candidate"  # the name of a tree's kernel that is compared, unless --name says another
SAME_FOLDER = "kernel-same"
SAME_PACKETS, OTHER_PACKETS, SKIP = 0, 1, 125  # exit statuses for `git bisect run`
FOR_BISECT = ("same", "compare", "test", "check")  # what ends with them
SAME_EXAMPLE = (
    "git bisect run testbed kernel same variants --source . --as good --set variant=cubic"
)
BUILD_EXAMPLES = "testbed kernel build 6.12, or: testbed kernel build --source DIR --name NAME"


def kernel(options: argparse.Namespace) -> int:
    """Run `testbed kernel`."""
    what, *arguments = options.words or ["list"]
    if what not in ACTS:
        raise UsageError(f"kernel {what}: unknown action", nearest(what, ACTS))
    try:
        return ACTS[what](options, arguments)
    except TestbedError as error:
        if what in FOR_BISECT and not isinstance(error, UsageError):
            return print_error(error, SKIP)
        raise


def _list(_options: argparse.Namespace, arguments: Sequence[str]) -> int:
    if arguments:
        raise UsageError(f"kernel list {arguments[0]}: nothing follows", "testbed kernel list")
    table = folding_table("kernel", "state", "what")
    for row in _rows():
        table.add_row(*row)
    console.print(table)
    return 0


def _rows() -> Iterator[tuple[str, str, str]]:
    for version in kernels.versions():
        folder = kernels.built_folder(version)
        remarks = ["the default"] if version == kernels.default_kernel() else []
        if version == BASE_KERNEL:
            remarks.append("what the stored numbers are of")
        state = "built" if folder else "not built"
        if not (folder or kernels.has_source(version)):
            remarks.append("its build fetches the source")
        yield version, state, "; ".join([*_version(folder), *remarks])
    for name in map(kernels.debug_name, kernels.versions()):
        if folder := kernels.built_folder(name):
            yield name, "built", "; ".join([*_version(folder), "looks for the kernel's errors"])
    for name in kernels.custom_names():
        yield name, "built", "; ".join(_version(kernels.custom_folder(name)))


def _version(folder: Path | None) -> list[str]:
    return [(folder / "version").read_text().strip()] if folder else []


def _build(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    wanted = _wanted(options, arguments)
    if isinstance(wanted, str):
        wanted = kernels.debug_name(wanted) if options.flavour == kernels.DEBUG_FLAVOUR else wanted
        flavour = "" if options.flavour == kernels.DEBUG_FLAVOUR else options.flavour
        if flavour and wanted.endswith(kernels.debug_name("")):
            raise UsageError(
                f"kernel build: --{flavour} and a kernel that looks for its errors are two images",
                "build one after the other",
            )
        folder = kernels.build_version(wanted, say, flavour)
        console.print(f"kernel {wanted}: {folder}", soft_wrap=True)
        return 0
    folder = kernels.build_custom(wanted, say)
    console.print(f"kernel {wanted.name}: {folder}", soft_wrap=True)
    console.print(f"    testbed run EXPERIMENT --set kernel={wanted.name}", soft_wrap=True)
    return 0


def _wanted(options: argparse.Namespace, arguments: Sequence[str]) -> kernels.CustomKernel | str:
    """Return the version to build as it is, or the description of the user's kernel."""
    if len(arguments) + (options.source is not None) != 1:
        raise UsageError("kernel build: one version, or --source DIR", BUILD_EXAMPLES)
    source = arguments[0] if arguments else str(options.source)
    if options.flavour and (options.source or options.config or options.name):
        config = kernels.SOURCE_FOLDER / options.flavour / "guest.config"
        if options.flavour != kernels.SELFTESTS_FLAVOUR:
            raise UsageError(
                f"kernel build: --{options.flavour} is for Debian's kernels as they are",
                f"yours: --config {config}",
            )
    changes = (options.patches, options.config, options.add)
    if arguments and not any(changes) and not options.name:
        return source
    if not options.name:
        raise UsageError("kernel build: a kernel of your own needs --name NAME", BUILD_EXAMPLES)
    return kernels.CustomKernel(options.name, source, *changes, flavour=options.flavour)


def _remove(_options: argparse.Namespace, arguments: Sequence[str]) -> int:
    if not arguments:
        raise UsageError("kernel remove: no name", "testbed kernel list")
    for name in arguments:
        for path in kernels.remove(name):
            console.print(f"removed {path}", soft_wrap=True)
    return 0


def _same(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Build the tree, run the same trials on both kernels, and compare their captures."""
    if len(arguments) != 1 or options.source is None or not options.good:
        raise UsageError("kernel same: an experiment, --source DIR and --as KERNEL", SAME_EXAMPLE)
    scenarios = _scenarios(options, arguments[0])
    if kernels.built_folder(options.good) is None:
        raise kernels.not_built(options.good)
    name = options.name or CANDIDATE
    changes = (options.patches, options.config, options.add)
    wanted = kernels.CustomKernel(name, str(options.source), *changes, like=options.good)
    kernels.build_custom(wanted, say)
    out = options.out or results_folder(SAME_FOLDER)
    return print_comparison(run_on_both(scenarios, options.good, name, out), options.good)


def _progress(total: int) -> Watcher:
    """Return a watcher that says on stderr how far a sweep is: stdout has the answer."""
    begun = time.monotonic()
    done = 0

    def watch(event: SweepEvent) -> None:
        nonlocal done
        done += isinstance(event, TrialFinished)
        if isinstance(event, TrialFinished) and done % max(1, total // 10) == 0:
            say(f"{done} of {total} trials{time_left(begun, done, total)}")

    say(f"running {number_of(total, 'trial')}, both kernels' in turn")
    return watch


def run_on_both(
    scenarios: Sequence[Scenario], good: str, other: str, out: Path
) -> list[tuple[TrialFinished, TrialFinished]]:
    """Run each scenario on both kernels, unless its trial exists; returns the trials in pairs."""
    planned = tasks(on_kernels(scenarios, (good, other)))
    done = run_all(planned, choose("guest", (), good), out, _progress(len(planned)))
    by_name = {each.scenario.name: each for each in done}
    both = [by_name[task.scenario.name] for task in planned]
    return list(zip(both[::2], both[1::2], strict=True))


def print_comparison(pairs: Sequence[tuple[TrialFinished, TrialFinished]], good: str) -> int:
    """Print which trials captured other packets; returns the exit status for `git bisect run`."""
    from analysis.statistics.packet_comparison import same_captures

    failed = [done for pair in pairs for done in pair if done.status is not Status.OK]
    for done in failed:  # a trial that did not run says nothing about the packets
        console.print(f"{done.path.name}: {done.record.reason}", soft_wrap=True)
    if failed:
        return SKIP
    others = [b.path for a, b in pairs if not same_captures(*map(open_trial, (a.path, b.path)))]
    for path in others:
        console.print(f"other packets than on {good}: {path}", soft_wrap=True)
    if others:
        return OTHER_PACKETS
    console.print(f"the same packets as on {good}, in all {len(pairs)} trials")
    return SAME_PACKETS


def _compare(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Build both kernels, run the trials of the table on both, and say where packets part."""
    from testbed.cli import kernel_report
    from testbed.kernels.comparison_trials import EXPERIMENT, chosen_trials
    from testbed.kernels.kernel_comparison import compare_kernels

    if len(arguments) != 2:
        raise UsageError("kernel compare: two kernels, trees, commits or a patch", COMPARE_EXAMPLE)
    first = kernel_source(arguments[0])
    second = kernel_source(arguments[1], first)
    check_unlike(first, second)
    chosen = chosen_trials(options.only)
    one, _ = build_source(first, COMPARED_NAMES[0], "", say)
    other, _ = build_source(second, COMPARED_NAMES[1], one, say)
    out = options.out or results_folder(EXPERIMENT)
    watch = _progress(2 * len(chosen))
    comparison = compare_kernels(chosen, (one, other), out, watch, options.jobs)
    kernel_names = [
        f"{source.words} ({_version_of(name)})" for source, name in ((first, one), (second, other))
    ]
    print_lines(
        *kernel_report.lines_of(comparison, (kernel_names[0], kernel_names[1]), options.format)
    )
    say(f"the trials: {out}")
    if comparison.divergences:
        return OTHER_PACKETS
    return SKIP if comparison.failed else SAME_PACKETS


def _test(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Run Linux's own tests on kernels, and print what they say as KTAP."""
    from testbed.kernels.kernel_tests import (
        KUNIT,
        TC_TESTING,
        queues_with_tests,
        run_kunit,
        run_queue_tests,
    )
    from testbed.kernels.selftests import selftests

    if not arguments:
        raise UsageError("kernel test: no kernel", TEST_EXAMPLE)
    names, asked = arguments[0].split(","), arguments[1:]
    require_confined()
    if asked[:1] == [kernels.SELFTESTS_FLAVOUR]:
        from testbed.cli.kernel_selftests import kernel_selftests

        return kernel_selftests(options, names, asked[1:])
    kernels.require_known(names)
    queue_names = [word for word in asked if word != KUNIT]
    ends: list[Iterable[SuiteEnd]] = []
    count = 0
    if KUNIT in asked:
        at_boot = [end for name in names for end in run_kunit(name, say)]
        ends.append(at_boot)
        count += len(at_boot)
    if queue_names or KUNIT not in asked:
        newest_first = kernels.versions()[::-1]
        newest = next(filter(kernels.has_source, newest_first), newest_first[0])
        tests = selftests(options.selftests or newest, TC_TESTING)
        queues = queues_with_tests(tests, queue_names)
        ends.append(run_queue_tests(names, queues, tests, say))
        count += len(names) * len(queues)
    return _print_suites(itertools.chain(*ends), count)


def _check(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Say what a change of a tree breaks."""
    from testbed.cli.kernel_check import kernel_check

    require_confined()
    return kernel_check(options, arguments)


def _print_suites(ends: Iterable[SuiteEnd], count: int) -> int:
    """Print the results of suites as they come, and return the exit status."""
    print_lines(*ktap_plan(count))
    passed: dict[str, list[bool]] = {}
    for number, end in enumerate(ends, 1):
        print_lines(*ktap_suite(number, end))
        passed.setdefault(end.kernel, []).extend(test.passed for test in end.tests)
    for name, results in passed.items():
        print_lines(f"# {name}: pass:{sum(results)} fail:{len(results) - sum(results)}")
    return int(not all(all(results) for results in passed.values()))


def _version_of(name: str) -> str:
    return "".join(_version(kernels.built_folder(name)))


def _scenarios(options: argparse.Namespace, experiment: str) -> list[Scenario]:
    settings = parse_settings(options.set, f"testbed plan {experiment} lists what can be set")
    return select(experiment, settings, options.experiments, quick=options.quick).scenarios(1)


ACTS: Mapping[str, Callable[[argparse.Namespace, Sequence[str]], int]] = {
    "list": _list,
    "build": _build,
    "remove": _remove,
    "same": _same,
    "compare": _compare,
    "test": _test,
    "check": _check,
}
