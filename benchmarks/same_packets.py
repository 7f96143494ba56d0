"""Whether a change of the code moved a packet: the recipes run, and compared.

    python -m benchmarks.same_packets --certify      compare with what the ledger has, and note it
    python -m benchmarks.same_packets /tmp/packets   only run them all, into a results folder

A certificate says that this code sends the packets that other code sent: the recipes whose code is
not known yet run (`benchmarks/recipes.py`), and their captures are compared with those in the
ledger (`testbed/runs/behaviour.json`). If all are the same, the code has that behaviour. If some
moved, it has a new one, the moved recipes are printed, and the tables of pages that are like them
are stale (`benchmarks/papers.py`). Twenty trials of stored tables, drawn by the state of the code,
run too: one that moved while no recipe like it did means that a recipe is missing.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.harness import errors_as_exit, parser_of
from benchmarks.papers import (
    CAPTURE_DIGITS,
    PROJECT_ROOT,
    UNKNOWN_CAPTURES,
    all_tables,
    pages,
    store_of,
    stored_tables,
    trials_of,
)
from benchmarks.recipes import captures_hash, features, is_touched, name_of, recipes, scenarios
from testbed.errors import TestbedError, number_of
from testbed.guest.kernels import built_folder
from testbed.plan.plan import make_plan, tasks
from testbed.runs import behaviour
from testbed.runs.behaviour import Behaviour, Ledger
from testbed.runs.engine_choice import choose
from testbed.runs.estimate import guest_seconds
from testbed.runs.identity import kernel_of_ours
from testbed.runs.provenance import programs_of, versions_of
from testbed.runs.sources import parts_of
from testbed.runs.sweep import SweepEvent, TrialFinished, run_all
from testbed.scenario.model import Scenario
from testbed.store.records import Status

DRAWN_TRIALS = 20
MAX_DRAWN_S = 10  # the estimated time of a trial that is drawn


@dataclass(frozen=True)
class StoredTrial:
    """A trial of a stored table of a page, whose captures are known."""

    table: str
    scenario: Scenario
    captures: str  # the first digits of their hash


def state_of(scenario: Scenario) -> dict[str, str]:
    """Return the parts of our code that make a trial's packets, with their states."""
    return parts_of(make_plan(scenario), kernel_of_ours(scenario))


def uncertified(known: Ledger) -> dict[str, Scenario]:
    """Return the recipes that are new, or whose code is not known.

    One whose kernel has no known state is not among them: no stored table needs that kernel.
    """
    newest = known.behaviours[known.newest]
    return {
        name: each
        for name, each in recipes().items()
        if f"kernel {each.kernel}" in newest.states
        and (name not in newest.recipes or not known.id_of(state_of(each)))
    }


def certify(out: Path, jobs: int | None = None) -> int:
    """Run what is not certified, note what it does, and print it; return 1 if something moved."""
    known = behaviour.ledger()
    due = uncertified(known)
    if not due:
        print(f"nothing to certify: this code's behaviour is known ({known.newest} or earlier)")
        return 0
    require_here(due.values(), known)
    drawn = drawn_trials(repr([state_of(each) for each in due.values()]))
    hashes = run(out, [*due.values(), *(each.scenario for each in drawn)], jobs)
    after, moved = judged(known, due, hashes)
    for name in moved:
        print(f"moved: {name}")
    missed = [
        each
        for each in drawn
        if hashes[each.scenario.name][:CAPTURE_DIGITS] != each.captures
        and not is_touched(features(each.scenario), known.behaviours[known.newest], after)
    ]
    for each in missed:
        print(f"moved, and no recipe like it did: {each.scenario.name} of {each.table}")
    if missed:
        raise TestbedError("not certified: a recipe is missing", "add it to benchmarks/recipes.py")
    number = len(known.behaviours) + 1
    name = f"b{number}" if moved else known.newest
    behaviour.write(replace(known, behaviours={**known.behaviours, name: after}))
    print(f"{name}: {number_of(len(due), 'recipe')} ran, {len(moved)} moved; ", end="")
    print(f"{len(drawn)} trials of stored tables ran, {number_of(len(stale_now()), 'table')} stale")
    return int(bool(moved))


def judged(
    known: Ledger, due: Mapping[str, Scenario], hashes: Mapping[str, str]
) -> tuple[Behaviour, list[str]]:
    """Return the behaviour of code whose recipes have these hashes, and which of them moved."""
    newest = known.behaviours[known.newest]
    ran = {name: hashes[each.name] for name, each in due.items()}
    moved = [name for name, each in ran.items() if newest.recipes.get(name, each) != each]
    states = {} if moved else {part: list(own) for part, own in newest.states.items()}
    shown = {name: each for name, each in due.items() if name in newest.recipes}
    if moved:  # the others have behaved as the newest before, and do
        shown = {n: e for n, e in recipes().items() if n in due or newest.has(state_of(e))}
    for each in shown.values():
        for part, state in state_of(each).items():
            if state not in states.setdefault(part, []):
                states[part].append(state)
    after = Behaviour({**newest.recipes, **ran}, {part: tuple(own) for part, own in states.items()})
    if new := [name for name, each in due.items() if not after.has(state_of(each))]:
        raise TestbedError(
            f"the ledger has nothing to compare these with: {', '.join(new)}",
            "certify them with the code before the change, which is known",
        )
    return after, moved


def require_here(chosen: Iterable[Scenario], known: Ledger) -> None:
    """Raise an error if a kernel is not built, or if programs are others than the ledger's."""
    kernels = sorted({each.kernel for each in chosen})
    if missing := [name for name in kernels if built_folder(name) is None]:
        hints = (f"testbed kernel build {name}" for name in missing)
        raise TestbedError(f"kernel {', '.join(missing)} is not built", "; ".join(hints))
    names = {name for each in chosen for name in programs_of(each)}
    here = versions_of(sorted(names))
    if others := [name for name in here if here[name] != known.programs.get(name)]:
        versions = (f"{name} {known.programs.get(name)}, here {here[name]}" for name in others)
        raise TestbedError(
            f"the ledger's captures are of other programs: {', '.join(versions)}",
            "certify where these versions are; elsewhere run the recipes by both codes, and "
            "testbed compare --packets",
        )


def drawn_trials(state: str) -> list[StoredTrial]:
    """Return trials of stored tables, drawn by the state of the code."""
    known = [each for each in stored_trials() if built_folder(each.scenario.kernel)]
    drawn = random.Random(state).sample(known, k=len(known))
    quick = (e for e in drawn if guest_seconds(make_plan(e.scenario), e.scenario) < MAX_DRAWN_S)
    return [each for each, _ in zip(quick, range(DRAWN_TRIALS), strict=False)]


def stored_trials() -> Iterator[StoredTrial]:
    """Yield the trials of current tables whose captures are known."""
    for table in all_tables(pages()):
        stored = stored_tables(store_of(table.page)).get(table.name)
        if stored and stored.captures and stored.revision == table.revision():
            for place, scenario in enumerate(trials_of(table)):
                digits = stored.captures[place * CAPTURE_DIGITS :][:CAPTURE_DIGITS]
                if digits and digits != UNKNOWN_CAPTURES:
                    yield StoredTrial(table.name, scenario, digits)


def stale_now() -> list[str]:
    """Print and return the names of the tables of pages that are stale."""
    stale = [table for table in all_tables(pages()) if table.is_stale()]
    for table in stale:
        print(f"stale: {table.name} ({table.page.relative_to(PROJECT_ROOT)})")
    return [table.name for table in stale]


def run(out: Path, chosen: Sequence[Scenario], jobs: int | None = None) -> dict[str, str]:
    """Run trials; return the hash of each one's captures by its name; all have to run."""
    done = run_all(tasks(chosen), choose("guest", ()), out, _print, jobs)
    if failed := [each for each in done if each.status is not Status.OK]:
        reasons = (f"{name_of(each.scenario)}: {each.record.reason}" for each in failed)
        raise TestbedError("; ".join(reasons), "mend that, then certify")
    return {each.scenario.name: captures_hash(each.record) for each in done}


def main(arguments: Sequence[str] | None = None) -> int:
    """Certify this code, or only run all recipes; the exit status is 1 if a packet moved."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="the results folder")
    parser.add_argument("--certify", action="store_true", help="compare, and write the ledger")
    parser.add_argument("--only", default="", metavar="TEXT", help="only trials named like this")
    parser.add_argument("--jobs", type=int, metavar="N", help="trials side by side")
    options = parser.parse_args(arguments)
    with errors_as_exit(), tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if options.certify:
            return certify(folder, options.jobs)
        chosen = [each for each in scenarios() if options.only in name_of(each)]
        print(f"{number_of(len(run(folder, chosen, options.jobs)), 'trial')}")
        return 0


def _print(event: SweepEvent) -> None:
    if isinstance(event, TrialFinished):
        print(f"{event.scenario.experiment} {event.path.name}: {event.status}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
