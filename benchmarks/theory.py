"""Laws of congestion control beside what the guest's kernels do: prediction, measurement, verdict.

    .venv/bin/python -m benchmarks.theory [--kernels 6.1 6.12 7.3] [--laws mathis cubic]

Runs the laws' trials (`benchmarks/laws.py`), puts the numbers into docs/theory.csv in place of
earlier ones of the same laws and kernels, and writes the tables of docs/theory.md from all that is
there. On a busy machine it takes some five minutes a kernel, and twice that for `bbr_beside_cubic`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.harness import (
    errors_as_exit,
    markdown_lines,
    parser_of,
    run_trials,
    scratch_folder,
    with_tables,
)
from benchmarks.laws import BUFFERS_BDP, LAWS, SHARES, TheoryLaw, mended_share, ware_share
from testbed.guest import kernels
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.store.reading import Trial, open_trial

THEORY_PAGE = Path(__file__).resolve().parents[1] / "docs" / "theory.md"
THEORY_NUMBERS = THEORY_PAGE.with_suffix(".csv")
THEORY_BENCHMARK = "benchmarks.theory"  # in the marks of the page's tables


def measured_rows(law: TheoryLaw, kernel: str) -> pd.DataFrame:
    """Run a law's trials on a kernel, and return its rows."""
    with scratch_folder() as folder:

        def run(scenario: Scenario) -> Trial:
            done = run_trials([replace(scenario, kernel=kernel)], folder, jobs=1)
            return open_trial(done[0].path)

        rows = pd.DataFrame([vars(row) for row in law.rows(run)])
    return rows.assign(law=law.name, kernel=kernel)


def law_lines(numbers: pd.DataFrame) -> Iterator[str]:
    """Yield the table of the laws, and what each says."""
    measured = [each for each in kernels.versions() if each in set(numbers["kernel"])]
    rows = []
    for law in LAWS:
        of_law = numbers[numbers["law"] == law.name]
        for what, group in of_law.groupby("what", sort=False):
            by_kernel = group.set_index("kernel")
            cells = [_number(by_kernel, each) for each in measured]
            first = group.iloc[0]
            unit = f" {first['unit']}" if isinstance(first["unit"], str) else ""
            predicted = f"{first['predicted']:.4g}{unit}"
            rows.append([law.name, str(what), predicted, *cells, verdict(law, group)])
    heads = (f"Linux {each}" for each in measured)
    yield from markdown_lines(("law", "what", "predicted", *heads, "verdict"), rows)
    yield ""
    yield from (law.sentence for law in LAWS if law.name in set(numbers["law"]))


def _number(by_kernel: pd.DataFrame, kernel: str) -> str:
    """Return the measurement, and what this kernel's trials predict if that is another number."""
    if kernel not in by_kernel.index:
        return "–"
    predicted, estimate = by_kernel["predicted"].iloc[0], by_kernel["predicted"][kernel]
    of = "" if math.isclose(estimate, predicted, rel_tol=0.01) else f" ({estimate:.4g})"
    return f"{by_kernel['measured'][kernel]:.4g}{of}"


def verdict(law: TheoryLaw, group: pd.DataFrame) -> str:
    """Return whether all kernels agree with the law, else which do not."""
    wrong = [
        str(row["kernel"])
        for _, row in group.iterrows()
        if not law.agrees(row["predicted"], row["measured"])
    ]
    if not wrong:
        return "agrees"
    return "**differs**" if len(wrong) == len(group) else f"**differs** on {', '.join(wrong)}"


def share_lines(numbers: pd.DataFrame) -> Iterator[str]:
    """Yield the table of BBR's share of the link beside others."""
    of_law = numbers[numbers["law"] == SHARES.name]
    buffers = [f"{bdp} BDP" for bdp in BUFFERS_BDP]
    models = {"Ware's model": ware_share, "the model, mended": mended_share}
    rows = [[name, *map(_share, map(model, BUFFERS_BDP))] for name, model in models.items()]
    for (kernel, what), group in of_law.groupby(["kernel", "what"], sort=False):
        label = str(what) if kernel == BASE_KERNEL else f"{what}, Linux {kernel}"
        shares = dict(zip(group["unit"], group["measured"], strict=True))
        rows.append([label, *(_share(shares.get(each, math.nan)) for each in buffers)])
    yield from markdown_lines(("buffer", *buffers), rows)


def _share(share: float) -> str:
    return "–" if math.isnan(share) else f"{share:.2f}"


def theory_tables(numbers: pd.DataFrame) -> str:
    """Return the page's tables."""
    head = f"BBR's share of the link beside others, on Linux {BASE_KERNEL} unless said:"
    return "\n".join((*law_lines(numbers), "", head, "", *share_lines(numbers)))


def read_theory_numbers() -> pd.DataFrame:
    """Return what was measured last, of each law and kernel."""
    return pd.read_csv(THEORY_NUMBERS, dtype={"kernel": str})


@errors_as_exit()
def main() -> None:
    """Measure laws, store their numbers, and write the page's tables."""
    parser = parser_of(__doc__)
    every = {law.rows.__name__: law for law in (*LAWS, SHARES)}
    parser.add_argument("--kernels", nargs="*", default=kernels.versions())
    parser.add_argument("--laws", nargs="*", choices=every, default=[*every])
    options = parser.parse_args()
    order = list(every.values())
    for kernel in options.kernels:
        if kernels.built_folder(kernel) is None:
            print(f"Linux {kernel} is not built, and left out", flush=True)
            continue
        for law in (every[name] for name in options.laws):
            if kernels.versions().index(law.since) > kernels.versions().index(kernel):
                continue
            rows = measured_rows(law, kernel)
            print(f"{law.name} on {kernel}: {len(rows)} rows", flush=True)
            kept = read_theory_numbers() if THEORY_NUMBERS.exists() else rows[:0]
            kept = kept[(kept["law"] != law.name) | (kept["kernel"] != kernel)]
            table = pd.concat((kept, rows))
            places = table["law"].map([each.name for each in order].index)
            table = table.iloc[np.lexsort((table["kernel"].map(kernels.versions().index), places))]
            table.to_csv(THEORY_NUMBERS, index=False, float_format="%.5g")
    page = THEORY_PAGE.read_text()
    THEORY_PAGE.write_text(
        with_tables(page, THEORY_BENCHMARK, theory_tables(read_theory_numbers()))
    )


if __name__ == "__main__":
    main()
