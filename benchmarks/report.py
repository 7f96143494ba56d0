"""What a report of many trials costs: `python -m benchmarks.report [--trials 1000]`.

Made-up results of the dumbbell's load sweep, reduced already, as a report finds them. Beside
it, in the same run, reading and concatenating the trials' metrics with pandas alone: what no
report could do without.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import pandas as pd

from analysis.report import collect, make_report
from tests import report_writer

LIMIT_S = 20


def main() -> None:
    """Print the times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "dumbbell-load"
        report_writer.write_experiment(folder, "dumbbell-load", 4, options.trials)
        begun = time.monotonic()
        tables = [pd.read_parquet(path) for path in sorted(folder.glob("*/reduced.parquet"))]
        rows = sum(len(each["flows"][0]) for each in tables)
        read_s = time.monotonic() - begun
        begun = time.monotonic()
        found = collect([folder])
        collected_s = time.monotonic() - begun
        page = make_report(found, Path(name) / "report.html")
        whole_s = time.monotonic() - begun
        print(f"{options.trials} trials, {rows} rows")
        print(f"  pandas reads their metrics   {read_s:6.2f} s")
        print(f"  collected for the report     {collected_s:6.2f} s  {collected_s / read_s:5.2f} x")
        print(f"  the whole report             {whole_s:6.2f} s  {whole_s / read_s:5.2f} x")
        print(f"  (at most {LIMIT_S} s)  {page.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
