"""The verbs that read results folders, with thousands of trials: processor time and memory.

    .venv/bin/python -m benchmarks.many_trials [--trials N] [--seeds N]

One trial of the guest's is run and copied, with other labels and seeds; captures and tables are
links to the first one's. No command is shown with less memory than the benchmark has, from which it
is started; the memory is that of the largest process. `report` runs on one processor, too. The
goals, on a machine with nothing else to do: `report` in 30 s and 500 MB, `runs` and `list` in two
seconds. docs/performance.md has what was measured.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from analysis.results.reduction import reduction_of
from benchmarks.harness import (
    Cost,
    errors_as_exit,
    in_turns,
    parser_of,
    print_costs,
    run_trials,
    scratch_folder,
)
from experiments.catalogue import EXPERIMENTS
from testbed.runs.results_folders import keep_run
from testbed.store.names import RECORD, SCENARIO, VERDICT_FILE
from testbed.store.reading import Trial, open_trial
from testbed.store.records import file_record

SMALL_FILES = {SCENARIO, RECORD, VERDICT_FILE}  # those of a copy are its own
ON_ONE, ONE_PROCESSOR = "report, 1 processor", ("taskset", "--cpu-list", "0")
COMMAND_LINE = "import sys; from experiments.command import main; sys.exit(main(sys.argv[1:]))"


def copy_trial(trial: Trial, folder: Path, number: int, seeds: int) -> str:
    """Copy a trial with another label and seed; return its name."""
    cell, seed = divmod(number, seeds)
    axes = {**trial.scenario.axes, "copy": str(cell)}
    scenario = dataclasses.replace(trial.scenario, label=f"copy-{cell}", seed=seed + 1, axes=axes)
    record = dataclasses.replace(trial.record, seed=seed + 1, identity=f"{number:064x}")
    path = folder / f"copy-{cell}-seed{seed + 1}"
    shutil.copytree(
        trial.path, path, copy_function=os.link, ignore=lambda _, names: SMALL_FILES & {*names}
    )
    (path / SCENARIO).write_text(scenario.to_json())
    files = {**record.files, SCENARIO: file_record(path / SCENARIO)}
    (path / RECORD).write_text(dataclasses.replace(record, files=files).to_json())
    shutil.copy(trial.path / VERDICT_FILE, path)
    return path.name


def run_verb(verb: list[str], folder: Path, *before: str) -> Cost:
    """Run a command of the testbed's in its own process; return its wall time and memory."""
    command = [*before, sys.executable, "-c", COMMAND_LINE, *verb]
    begun = time.monotonic()
    with (folder / "printed").open("w") as printed:
        process = subprocess.Popen(command, cwd=folder, stdout=printed)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(verb)}: status {process.returncode}")
    return Cost(time.monotonic() - begun, memory_mb=usage.ru_maxrss / 1024)


def main() -> None:
    """Make the folder, and measure each verb."""
    parser = parser_of(__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=10, help="of each setting")
    options = parser.parse_args()
    with errors_as_exit(), scratch_folder() as scratch:
        scenario = EXPERIMENTS["variants"].scenarios({}, 1, quick=True)[0]
        (done,) = run_trials([scenario], scratch)
        reduction_of(first := open_trial(done.path))
        out = Path(scratch) / "results"
        names = [copy_trial(first, out, number, options.seeds) for number in range(options.trials)]
        keep_run(out, "all", "testbed run variants", names)
        verb = functools.partial(run_verb, folder=Path(scratch))
        cases = {
            "report": lambda: verb(["report", str(out)]),
            ON_ONE: lambda: run_verb(["report", str(out)], Path(scratch), *ONE_PROCESSOR),
            "runs": lambda: verb(["runs", str(out)]),
            "list": lambda: verb(["list"]),
        }
        print_costs(in_turns(cases, 1), ["report"])


if __name__ == "__main__":
    main()
