"""The figures of docs/stacks.md: transports in user space and the kernel's, each beside each.

    .venv/bin/python -m benchmarks.stack_figures matrix       who shares with whom, three networks
    .venv/bin/python -m benchmarks.stack_figures envelopes    conformance, at 20 Mbit/s

runs the trials in the guest, without those that ./results has already, and writes the figure to
docs/stacks. All stacks have to be built: `testbed stack build`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.harness import errors_as_exit, parser_of
from experiments.command import main as testbed
from experiments.stacks.stack_trials import KERNEL_CONTROLS
from testbed.errors import TestbedError
from testbed.stacks.stack import OF_STACK, shipped, stack_of
from testbed.store.names import results_folder

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "stacks"
SHOWN_STACKS = [name for name in shipped() if name != "aioquic"]  # which is slow, in Python


def main() -> None:
    """Run the trials of a figure, and write it."""
    parser = parser_of(__doc__)
    parser.add_argument("figure", choices=("matrix", "envelopes"))
    figure = parser.parse_args().figure
    stacks = [
        f"{name}{OF_STACK}{each}"
        for name in SHOWN_STACKS
        for each in stack_of(name).description.variants
    ]
    names = [*KERNEL_CONTROLS, *stacks]
    pairs = [f"{one}/{other}" for n, one in enumerate(names) for other in names[n:]]
    figures_of = {
        "matrix": f"stack-sharing --set pair={','.join(pairs)} --set duration_s=10 --seeds 3",
        "envelopes": f"stack-conformance --set variant={','.join(names)} --set rtt_ms=10 "
        "--set duration_s=15",
    }
    experiment, *settings = figures_of[figure].split()
    call = ["run", experiment, *settings]
    with errors_as_exit():
        if testbed([*call, "--engine", "guest", "--name", figure]):
            raise TestbedError("not all trials are valid", "the reasons are above")
        FOLDER.mkdir(exist_ok=True)
        drawn = results_folder(experiment) / "runs" / figure / "figures" / f"{figure}.png"
        shutil.copy(drawn, FOLDER / drawn.name)


if __name__ == "__main__":
    main()
