"""The answers of an experiment's claims at the paper's exact point, where no network is drawn.

python -m benchmarks.exact_points router-fairness [--seeds 20] [--set AXIS=VALUE …] [--out DIR]

What is drawn within 5 % or a packet's time elsewhere is exactly as the paper says; starts are still
drawn. Prints the answers that are others than those of drawn networks, which the pages show.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.claim_answers import claim_answer
from benchmarks.harness import errors_as_exit, markdown_lines, parser_of, scratch_folder
from benchmarks.ledger_changes import kind_of, stored_now
from experiments.catalogue import EXPERIMENTS
from testbed.cli.entry import main as testbed
from testbed.scenario.experiment import Experiment
from testbed.scenario.model import Scenario


def at_its_point(experiment: Experiment) -> Experiment:
    """Return the experiment with the network as it is written, in every seed."""
    build: Callable[..., Scenario] = experiment.build

    def exact(**axes: Any) -> Scenario:
        return dataclasses.replace(build(**axes), drawn_share=0.0, drawn_service_times=0.0)

    return dataclasses.replace(experiment, build=exact)


def others_than_drawn(name: str, seeds: int, settings: list[str], folder: Path) -> list[str]:
    """Run the experiment at its point, and return the table of the answers that are others."""
    at_point = {name: at_its_point(EXPERIMENTS[name])}
    out, page = str(folder / name), folder / "report.html"
    chosen = [word for each in settings for word in ("--set", each)]
    run = ["run", name, "--seeds", str(seeds), *chosen, "--engine", "guest", "--out", out]
    for verb in ([*run, "--captures", "zstd"], ["report", out, "--claims", "--out", str(page)]):
        if testbed(verb, at_point):
            raise SystemExit("testbed: the run failed, as it says above")
    claims = json.loads(page.with_name(f"{page.stem}-claims.json").read_text(encoding="utf-8"))
    drawn, rows, same = stored_now(), [], 0
    for each in map(claim_answer, claims):
        known = drawn.get((each.id, each.trials))
        if not each.n or not known:
            continue
        if kind_of(each) == kind_of(known):
            same += 1
        else:
            told = [f"{kind_of(one)} ({one.n}): {one.statement}" for one in (each, known)]
            rows.append((each.id, each.trials, *told))
    head = ("claim", "trials", "at the paper's point (networks)", "drawn (networks)")
    return [*markdown_lines(head, rows), "", f"{same} answers are the same"]


def main() -> None:
    """Print the answers that only the paper's exact point gives."""
    parser = parser_of(__doc__)
    parser.add_argument("experiment", choices=sorted(EXPERIMENTS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--set", action="append", default=[], metavar="AXIS=VALUE")
    parser.add_argument("--out", type=Path, help="keep the trials there")
    options = parser.parse_args()
    asked = (options.experiment, options.seeds, options.set)
    with errors_as_exit(), scratch_folder() as scratch:
        print("\n".join(others_than_drawn(*asked, options.out or Path(scratch))))


if __name__ == "__main__":
    main()
