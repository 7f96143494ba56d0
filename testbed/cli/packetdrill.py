"""`testbed packetdrill`: Linux's own TCP tests, in virtual time and without root."""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed.cli import run_output
from testbed.cli.run_output import JunitCase
from testbed.errors import UsageError
from testbed.guest import kernels
from testbed.kernels.kernel_tests import ktap_plan, ktap_result
from testbed.kernels.packetdrill import (
    PACKETDRILL,
    PACKETDRILL_TESTS,
    PacketdrillTool,
    ScriptEnd,
    find_packetdrill,
    run_scripts,
    script_runs,
)
from testbed.kernels.selftests import selftests
from testbed.machine import atomic
from testbed.runs.console import print_lines, say
from testbed.store.names import results_folder

EXAMPLE = "testbed packetdrill gtests/net/tcp, or: testbed packetdrill --selftests 6.12"


def packetdrill(options: argparse.Namespace) -> int:
    """Run `testbed packetdrill`: exit status 1 if a script failed."""
    places = [Path(word) for word in options.words]
    if not places and not options.selftests:
        raise UsageError("packetdrill: no script", EXAMPLE)
    tool = PacketdrillTool(find_packetdrill(options.packetdrill), options.tolerance)
    places += [selftests(options.selftests, PACKETDRILL_TESTS)] if options.selftests else []
    names = options.kernel.split(",") if options.kernel else [kernels.default_kernel()]
    kernels.require_known(names)
    runs = script_runs(places, names)
    out = options.out or results_folder(PACKETDRILL)
    print_lines(*ktap_plan(len(runs)))
    ends = []
    for number, end in enumerate(run_scripts(runs, tool, out, say, options.jobs), 1):
        lines = [*end.said, f"packets: {end.kept}"] if end.kept else end.said
        print_lines(*ktap_result(number, end.run.name, end.passed, lines))
        ends.append(end)
    print_lines(*(f"# {line}" for line in summary(ends)))
    if options.junit:
        atomic.replace(options.junit, lambda path: path.write_text(junit(ends)))
    return int(not all(end.passed for end in ends))


def summary(ends: Sequence[ScriptEnd]) -> Iterator[str]:
    """Yield the totals of each kernel, then the scripts whose results differ between kernels."""
    by_kernel: dict[str, list[ScriptEnd]] = defaultdict(list)
    by_script: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    for end in ends:
        by_kernel[end.run.kernel].append(end)
        by_script[end.run.shown_name, end.run.family][end.run.kernel] = end.passed
    for name, kernel_ends in by_kernel.items():
        passed = sum(end.passed for end in kernel_ends)
        took_s = sum(end.took_s for end in kernel_ends)
        scripts = {end.run.shown_name for end in kernel_ends}
        failed = {end.run.shown_name for end in kernel_ends if not end.passed}
        yield (
            f"{name}: pass:{passed} fail:{len(kernel_ends) - passed}, scripts that pass: "
            f"{len(scripts - failed)} of {len(scripts)}; {took_s:.1f} s of virtual time"
        )
    for (script, family), passes in by_script.items():
        if len(set(passes.values())) > 1:
            answers = (f"{name} {'ok' if passed else 'not ok'}" for name, passed in passes.items())
            yield f"differs: {script} {family}: {', '.join(answers)}"


def junit(ends: Sequence[ScriptEnd]) -> str:
    """Return the results as JUnit XML, with a suite for each kernel."""
    suites: dict[str, list[JunitCase]] = {}
    for end in ends:
        failure = "" if end.passed else end.reason
        case = JunitCase(
            end.run.shown_name, end.run.family, failure, os.linesep.join(end.said), end.took_s
        )
        suites.setdefault(f"{PACKETDRILL} {end.run.kernel}", []).append(case)
    return run_output.junit(suites)
