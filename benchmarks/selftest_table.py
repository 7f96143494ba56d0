"""The table of docs/selftests.md, from the results of `testbed kernel test KERNEL selftests`.

    python -m benchmarks.selftest_table results/selftests-7.3 …

Of a test in several folders, the last one counts. What each failure is due to stands
in kernel/selftests/causes.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import errors_as_exit, markdown_lines, with_tables
from testbed.cli.kernel_selftests import SELFTEST_RESULTS
from testbed.errors import UsageError
from testbed.kernels.selftest_builds import FLAVOUR_FOLDER, data_lines
from testbed.machine import json_files

SELFTESTS_PAGE = Path(__file__).resolve().parents[1] / "docs" / "selftests.md"
SuiteResults = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]  # by kernel and suite


def main(arguments: Sequence[str]) -> int:
    """Write the table into the page."""
    if not arguments:
        raise SystemExit((__doc__ or "").strip())
    with errors_as_exit():
        results = read(list(map(Path, arguments)))
        text = "\n".join(lines_of(results, causes()))
    SELFTESTS_PAGE.write_text(with_tables(SELFTESTS_PAGE.read_text(), "selftests", text))
    return 0


def read(folders: Sequence[Path]) -> SuiteResults:
    """Return the results in folders, by kernel and suite."""
    by_test: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for folder in folders:
        document = json_files.read(folder / SELFTEST_RESULTS)
        if not isinstance(document, list):
            raise UsageError(
                f"{folder / SELFTEST_RESULTS} is no list of results", "name results folders"
            )
        for each in document:
            by_test[each["kernel"], each["group"], each["test"]] = each
    by_suite: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for kernel, suite, name in sorted(by_test):
        by_suite[kernel, suite].append(by_test[kernel, suite, name])
    return by_suite


def causes() -> Mapping[str, tuple[str, str]]:
    """Return what failures are due to, by SUITE:TEST: a word, and a sentence."""
    rows = (line.split(" ", 2) for line in data_lines(FLAVOUR_FOLDER / "causes"))
    return {test: (where, why) for test, where, why in rows}


def lines_of(results: SuiteResults, known: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of the tables: totals by suite, what did not pass, and all times."""
    totals = ("Linux", "suite", "tests", "pass", "fail", "skip", "no end", "virtual s", "wall s")
    yield from markdown_lines(totals, _totals(results))
    yield ""
    header = ("Linux", "test", "ended", "subtests", "due to", "cause, or what it says")
    yield from markdown_lines(header, _others(results, known))
    for (kernel, suite), tests in results.items():
        passed = [each for each in tests if each["status"] == "pass"]
        if not passed:
            continue
        times = (f"{_name(each)} {each['virtual_s']:.0f}/{each['time']:.0f}" for each in passed)
        yield ""
        yield f"Passed on {kernel} in {suite}, with seconds of virtual and of wall time: "
        yield ", ".join(times) + "."


def _totals(results: SuiteResults) -> Iterator[Sequence[str]]:
    rows = {key: Counter(each["status"] for each in tests) for key, tests in results.items()}
    for (kernel, suite), counts in rows.items():
        tests = results[kernel, suite]
        seconds = (f"{sum(each[key] for each in tests):.0f}" for key in ("virtual_s", "time"))
        failed = counts["fail"] + counts["crash"]
        unended = counts["limit"] + counts["hang"]
        passed = counts["pass"] + counts["xfail"]
        numbers = (len(tests), passed, failed, counts["skip"], unended)
        yield (kernel, f"`{suite}`", *map(str, numbers), *seconds)


def _others(results: SuiteResults, known: Mapping[str, tuple[str, str]]) -> Iterator[Sequence[str]]:
    for (kernel, suite), tests in results.items():
        for each in tests:
            if each["status"] == "pass":
                continue
            where, why = known.get(f"{suite}:{each['test']}", ("", each["reason"][:160]))
            outcomes = Counter(one["result"] for one in each["results"])
            passed = f"{outcomes['pass']} of {outcomes.total()} pass" if outcomes else ""
            reason = why.replace("|", "\\|").replace("<", "&lt;")
            yield (kernel, f"`{suite}:{each['test']}`", each["status"], passed, where, reason)


def _name(result: Mapping[str, Any]) -> str:
    return f"`{result['test']}`"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
