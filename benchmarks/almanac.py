"""What changed for TCP from one kernel to the next, in a hundred workloads, as tables of a page.

    .venv/bin/python -m benchmarks.almanac [--kernels 6.1,6.12,7.3] [--out results/almanac]

Runs the workloads that no earlier call has run (a minute and a half of processor time for three
kernels), and writes the tables of docs/almanac.md. A workload is a variant in a condition of
`testbed kernel compare`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.harness import (
    errors_as_exit,
    markdown_lines,
    no_watcher,
    parser_of,
    with_tables,
)
from testbed.guest import kernels
from testbed.kernels.comparison_trials import comparison_trials
from testbed.kernels.kernel_comparison import (
    EFFECTS,
    Divergence,
    Effect,
    KernelComparison,
    compare_kernels,
    effects,
)
from testbed.scenario.model import Scenario

ALMANAC = Path(__file__).resolve().parents[1] / "docs" / "almanac.md"
ALMANAC_BENCHMARK = "benchmarks.almanac"  # in the marks of the page's tables
ALMANAC_VARIANTS = ("linux-reno", "cubic", "bbr", "vegas", "dctcp")  # Linux's own
ALMANAC_RESULTS = Path("results/almanac")


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare each kernel with the next one, and write the page's tables."""
    parser = parser_of(__doc__)
    parser.add_argument("--kernels", default=",".join(kernels.versions()), help="the oldest first")
    parser.add_argument("--out", type=Path, default=ALMANAC_RESULTS, help="results folder")
    parser.add_argument("--jobs", type=int, help="number of trials to run in parallel")
    options = parser.parse_args(arguments)
    with errors_as_exit():
        lines: list[str] = []
        for pair in pairwise(options.kernels.split(",")):
            kernels.build_missing(pair, print)
            comparison = compare_kernels(
                workloads(), pair, options.out, no_watcher, options.jobs, explained=0
            )
            lines += comparison_lines(pair, comparison)
    tables = "\n".join(lines).rstrip("\n")
    ALMANAC.write_text(with_tables(ALMANAC.read_text(), ALMANAC_BENCHMARK, tables))


def workloads() -> list[Scenario]:
    """Return Linux's own variants in each condition."""
    return [each for each in comparison_trials() if each.axes["variant"] in ALMANAC_VARIANTS]


def comparison_lines(pair: tuple[str, str], comparison: KernelComparison) -> Iterator[str]:
    """Yield the section of two kernels."""
    yield f"## From {pair[0]} to {pair[1]}"
    yield ""
    others = len(comparison.divergences)
    yield f"Other packets in {others} of {comparison.trials} workloads" + (
        "." if not others else ":"
    )
    yield ""
    for axis in ("variant", "condition") if others else ():
        by_group = list(effects(comparison.divergences, axis))
        rows = []
        for name in dict.fromkeys(each.axes[axis] for each in workloads()):
            differing = [
                d for d in comparison.divergences if d.trials[0].scenario.axes[axis] == name
            ]
            rows.append(_row(name, differing, [each for each in by_group if each.group == name]))
        header = (axis, "other packets", "first at, s", *map(_title, EFFECTS))
        yield from markdown_lines(header, rows)
        yield ""
    for each in comparison.failed:
        yield f"Not compared, {each.condition}: {each.reason}"
        yield ""


def _title(column: str) -> str:
    what, unit = EFFECTS[column]
    return f"{what}, {unit}" if unit else what


def _row(name: str, differing: Sequence[Divergence], by_column: Sequence[Effect]) -> list[str]:
    cells = {each.what: _cell(each) for each in by_column}
    numbers = [cells.get(what, "–") for what, _ in EFFECTS.values()]
    first = f"{min(each.first.earliest_s for each in differing):.3f}" if differing else "–"
    return [f"`{name}`", str(len(differing)), first, *numbers]


def _cell(effect: Effect) -> str:
    """Return the older mean, and the difference with its interval, bold if it is significant."""
    comparison = effect.comparison
    difference, low, high = (
        round(n, 4) + 0.0 for n in (comparison.difference, comparison.low, comparison.high)
    )
    text = f"{difference:+.2g} [{low:+.2g}, {high:+.2g}]"
    return f"{effect.mean_a:.3g}, {f'**{text}**' if effect.is_significant else text}"


if __name__ == "__main__":
    main()
