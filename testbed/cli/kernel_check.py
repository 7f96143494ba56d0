"""`testbed kernel check TREE --since COMMIT`: what a change breaks, as a mail and a page."""

from __future__ import annotations

import argparse
import functools
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed.cli import kernel_report
from testbed.errors import UsageError
from testbed.guest import kernels
from testbed.kernels.comparison_trials import EXPERIMENT, chosen_trials
from testbed.kernels.kernel_check import CheckedTests, TreeTests, changed_files, checked
from testbed.kernels.kernel_comparison import KernelComparison, compare_kernels
from testbed.kernels.kernel_sources import KernelSource, build_source, kernel_source
from testbed.kernels.kernel_tests import KUNIT, TC_TESTING
from testbed.kernels.packetdrill import PACKETDRILL, PacketdrillTool, find_packetdrill
from testbed.kernels.selftest_runs import SelftestLimits
from testbed.machine import atomic
from testbed.runs.console import print_lines, say
from testbed.store.names import results_folder

CHECK_EXAMPLE = "testbed kernel check ~/linux --since origin/main"
CHECKED_NAMES = ("check-a", "check-b")  # of the kernels: before, and after
CHECK_FOLDER = "kernel-check"
MAX_NAMED_FILES, MAX_WHY = 8, 200  # files named, and characters of why a test is broken
CHECK_FORMS = {"mail": "check.mail", "md": "check.md"}


def kernel_check(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Build a tree and what it began with, and run Linux's tests; status 1 if it breaks one."""
    if len(arguments) != 1 or not options.since:
        raise UsageError("kernel check: a source tree, and --since COMMIT", CHECK_EXAMPLE)
    tree = Path(arguments[0])
    if not (tree / "arch" / "um" / "Kconfig").is_file():
        raise UsageError(f"{tree} is no source tree of Linux", CHECK_EXAMPLE)
    before, after = kernel_source(f"{tree}@{options.since}"), kernel_source(str(tree))
    files = changed_files(tree, before.commit)
    trials = chosen_trials(options.only)
    out = options.out or results_folder(CHECK_FOLDER)
    a, b = _built(before, after)
    limits = SelftestLimits(options.limit, options.timeout)
    tests = TreeTests(tree.resolve(), files, options.tests, limits, out, options.jobs, say)
    ends = list(_checks(tests, a, b))
    compared = compare_kernels(trials, (a, b), out / EXPERIMENT, lambda _event: None, options.jobs)
    texts = {
        form: check_text(form, ends, compared, files, (before.words, after.words))
        for form in CHECK_FORMS
    }
    atomic.replace_all(out, {CHECK_FORMS[form]: text for form, text in texts.items()})
    print_lines(*texts["md" if options.format == "md" else "mail"].splitlines())
    return int(any(end.new for end in ends))


def _built(before: KernelSource, after: KernelSource) -> tuple[str, str]:
    flavour = kernels.SELFTESTS_FLAVOUR
    a, _ = build_source(before, CHECKED_NAMES[0], "", say, flavour)
    b, _ = build_source(after, CHECKED_NAMES[1], a, say, flavour)
    return a, b


def _checks(tests: TreeTests, before: str, after: str) -> Iterator[CheckedTests]:
    """Yield how each kind of tests ends."""
    kinds = {KUNIT: tests.kunit, "selftests": tests.selftests}
    try:
        tool = PacketdrillTool(find_packetdrill(None))
    except UsageError as error:
        say(f"without packetdrill's tests: {error.message} ({error.hint})")
    else:
        kinds[PACKETDRILL] = functools.partial(tests.packetdrill, tool)
    if tests.changed_queues():
        kinds[TC_TESTING] = tests.queues
    for kind, run in kinds.items():
        end = checked(kind, run, before, after)
        say(_counts(end))
        yield end


def _counts(end: CheckedTests) -> str:
    passed = end.count - len(end.new) - len(end.old)
    line = f"{end.kind}: {passed} of {end.count} pass"
    return f"{line}, {len(end.old)} fail as before" if end.old else line


def check_text(
    form: str,
    ends: Sequence[CheckedTests],
    compared: KernelComparison,
    files: Sequence[str],
    names: tuple[str, str],
) -> str:
    """Return the answer as a mail, or as Markdown for a page."""
    broken = {f"{end.kind} {name}": why for end in ends for name, why in end.new.items()}
    count = sum(end.count for end in ends)
    verdict = f"{len(broken)} of {count} tests are broken" if broken else f"{count} tests as before"
    subject = f"{verdict}; {kernel_report.summary(compared)}"
    _, *packets = kernel_report.lines_of(compared, names, form)
    changed = f"Changed: {', '.join(files[:MAX_NAMED_FILES])}"
    more = f" and {len(files) - MAX_NAMED_FILES} more" if len(files) > MAX_NAMED_FILES else ""
    lines = [
        f"Subject: {subject}" if form == "mail" else f"### {subject}",
        "",
        *textwrap.wrap(f"{changed}{more}.", kernel_report.COLUMNS),
        "",
        *(f"- {_counts(end)}" for end in ends),
        "",
        *(["Broken:", ""] if broken else []),
        *(f"- {name}: {why[:MAX_WHY]}" for name, why in broken.items()),
        *packets,
    ]
    return "".join(f"{line}\n" for line in lines)
