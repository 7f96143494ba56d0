"""Whether a change of the code moved a packet: the recipes run, and compared.

    python -m benchmarks.same_packets --certify      compare with what the ledger has, and note it
    python -m benchmarks.same_packets --drawn        the same, and draw trials if none is due
    python -m benchmarks.same_packets --programs     note other versions of iperf3, nginx, …
    python -m benchmarks.same_packets /tmp/packets   only run them all, into a results folder

A certificate says that this code sends the packets that other code sent: the recipes whose code is
not known yet run (`benchmarks/recipes.py`), and their captures are compared with those in the
ledger (`testbed/runs/behaviour.json`). If all are the same, the code has that behaviour. If some
moved, it has a new one, the moved recipes are printed, and the tables of pages that are like them
are stale (`benchmarks/papers.py`). Twenty trials of stored tables, drawn by the state of the code,
run too: one that moved while no recipe like it did means that a recipe is missing. The ledger has
the captures of those that were drawn before; half of each draw are new, until it has enough.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.statistics.packet_comparison import read_files
from benchmarks.harness import errors_as_exit, parser_of
from benchmarks.papers import (
    CAPTURE_DIGITS,
    HOW_TO_CERTIFY,
    PROJECT_ROOT,
    UNKNOWN_CAPTURES,
    all_tables,
    pages,
    store_of,
    stored_tables,
    trials_of,
)
from benchmarks.recipes import (
    captures_hash,
    features,
    is_touched,
    name_of,
    packets_hash,
    recipes,
    scenarios,
)
from testbed.errors import TestbedError, number_of
from testbed.guest.kernels import built_folder
from testbed.plan.plan import make_plan, tasks
from testbed.runs import behaviour
from testbed.runs.behaviour import Behaviour, Ledger
from testbed.runs.engine_choice import choose
from testbed.runs.estimate import guest_seconds, pace
from testbed.runs.identity import kernel_of_ours
from testbed.runs.provenance import programs_of, versions_of
from testbed.runs.sources import parts_of
from testbed.runs.sweep import SweepEvent, TrialFinished, run_all
from testbed.scenario.model import Scenario
from testbed.store.records import Status

DRAWN_TRIALS = 20
MAX_DRAWN_S = 10  # the estimated time of a trial that is drawn
ENOUGH_DRAWN = 200  # from then on, no new ones are noted


@dataclass(frozen=True)
class StoredTrial:
    """A trial of a stored table of a page."""

    table: str
    behaviour: str  # of the code that made the table
    scenario: Scenario
    captures: str  # the first digits of their hash; empty if it is not known

    @property
    def name(self) -> str:
        """The trial's name in the ledger, which tells its scenario."""
        return f"{self.scenario.experiment} {self.scenario.name}"


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


def certify(
    out: Path, jobs: int | None = None, *, draws: bool = False, programs: bool = False
) -> int:
    """Run what is not certified, note what it does, and print it; return 1 if something moved.

    `draws` runs trials of stored tables also if nothing is due, and `programs` the recipes whose
    programs have other versions here than in the ledger, which then has these.
    """
    known = behaviour.ledger()
    due = uncertified(known)
    if programs:
        due = with_other_programs(known, due)
    if not due and not draws:
        print(f"nothing to certify: this code's behaviour is known ({known.newest} or earlier)")
        return 0
    drawn = drawn_trials(known, repr([state_of(each) for each in due.values()]))
    trials = [*due.values(), *(each.scenario for each in drawn)]
    require_kernels(trials)
    here = other_programs(trials, known)
    if here and not programs:
        raise_other_programs(here, known)
    hashes = run(out, trials, jobs)
    after, moved = judged(known, due, hashes)
    for name in moved:
        print(f"moved: {name}")
    require_like_recipes(drawn, hashes, known, after)
    number = len(known.behaviours) + 1
    name = f"b{number}" if moved else known.newest
    changed = replace(
        known,
        behaviours={**known.behaviours, name: after},
        programs={**known.programs, **here},
        drawn=noted(known, drawn, hashes, after),
    )
    behaviour.write(changed)
    print(f"{name}: {number_of(len(due), 'recipe')} ran, {len(moved)} moved; ", end="")
    compared = number_of(sum(bool(each.captures) for each in drawn), "trial")
    print(f"{compared} of stored tables compared, {len(changed.drawn)} known, ", end="")
    print(f"{number_of(len(stale_now()), 'table')} stale")
    return int(bool(moved))


def judged(
    known: Ledger, due: Mapping[str, Scenario], hashes: Mapping[str, str]
) -> tuple[Behaviour, list[str]]:
    """Return the behaviour of code whose recipes have these hashes, and which of them moved."""
    newest = known.behaviours[known.newest]
    ran = {name: hashes[each.name] for name, each in due.items()}
    moved = [name for name, each in ran.items() if newest.recipes.get(name, each) != each]
    states = {} if moved else {part: list(state_list) for part, state_list in newest.states.items()}
    shown = {name: each for name, each in due.items() if name in newest.recipes}
    if moved:  # the others have behaved as the newest before, and do
        shown = {n: e for n, e in recipes().items() if n in due or newest.has(state_of(e))}
    for each in shown.values():
        for part, state in state_of(each).items():
            if state not in states.setdefault(part, []):
                states[part].append(state)
    after = Behaviour(
        {**newest.recipes, **ran}, {part: tuple(state_list) for part, state_list in states.items()}
    )
    if new := [name for name, each in due.items() if not after.has(state_of(each))]:
        raise TestbedError(
            f"the ledger has nothing to compare these with: {', '.join(new)}",
            "certify them with the code before the change, which is known",
        )
    return after, moved


def require_kernels(chosen: Iterable[Scenario]) -> None:
    """Raise an error if a kernel of these trials is not built."""
    if missing := unbuilt(chosen):
        hints = (f"testbed kernel build {name}" for name in missing)
        raise TestbedError(f"kernel {', '.join(missing)} is not built", "; ".join(hints))


def unbuilt(chosen: Iterable[Scenario]) -> list[str]:
    """Return the kernels of these trials that are not built."""
    return [name for name in sorted({e.kernel for e in chosen}) if built_folder(name) is None]


def other_programs(chosen: Iterable[Scenario], known: Ledger) -> dict[str, str]:
    """Return the versions of the trials' programs that are others than the ledger's."""
    here = versions_of(sorted({name for each in chosen for name in programs_of(each)}))
    return {name: each for name, each in here.items() if each != known.programs.get(name)}


def raise_other_programs(here: Mapping[str, str], known: Ledger) -> None:
    """Raise the error of programs whose versions are others than the ledger's."""
    versions = (f"{name} {known.programs.get(name)}, here {each}" for name, each in here.items())
    raise TestbedError(
        f"the ledger's captures are of other programs: {', '.join(versions)}",
        "certify where the ledger's versions are; if the code is certified, "
        "python -m benchmarks.same_packets --programs takes those of this machine",
    )


def with_other_programs(known: Ledger, due: Collection[str]) -> dict[str, Scenario]:
    """Return the recipes that run programs of other versions here; no code may be due."""
    if due:
        raise TestbedError(
            "the code has changed, too: the one or the other could have moved a packet",
            f"{HOW_TO_CERTIFY}, where the programs are the ledger's",
        )
    mine = {n: e for n, e in recipes().items() if n in known.behaviours[known.newest].recipes}
    other = other_programs(mine.values(), known)
    return {name: each for name, each in mine.items() if other.keys() & set(programs_of(each))}


def drawn_trials(known: Ledger, state: str) -> list[StoredTrial]:
    """Return trials of stored tables, drawn by the state of the code and what was drawn before."""
    trials = list({each.name: each for each in stored_trials(known)}.values())
    random.Random(f"{state} {len(known.drawn)}").shuffle(trials)
    kernels = {name for name in {e.scenario.kernel for e in trials} if built_folder(name)}
    fit = [each for each in trials if each.scenario.kernel in kernels]
    seen = (each for each in fit if each.captures and can_be_drawn(each, known))
    compared = DRAWN_TRIALS // 2 if len(known.drawn) < ENOUGH_DRAWN else DRAWN_TRIALS
    drawn = list(itertools.islice(seen, compared))
    fresh = (each for each in fit if not each.captures and can_be_drawn(each, known))
    wanted = DRAWN_TRIALS - len(drawn) if len(known.drawn) < ENOUGH_DRAWN else 0
    return [*drawn, *itertools.islice(fresh, wanted)]


def can_be_drawn(trial: StoredTrial, known: Ledger) -> bool:
    """Return whether a trial is quick, and what is stored of it is of the newest behaviour."""
    scenario, then = trial.scenario, known.behaviours.get(trial.behaviour)
    if not then or is_touched(features(scenario), then, known.behaviours[known.newest]):
        return False
    # over the learnt pace of this machine, so that all machines draw the same trials
    return guest_seconds(make_plan(scenario), scenario) < MAX_DRAWN_S * pace()


def stored_trials(known: Ledger) -> Iterator[StoredTrial]:
    """Yield the trials of current tables, with their captures as far as they are known."""
    for table in all_tables(pages()):
        stored = stored_tables(store_of(table.page)).get(table.name)
        if stored and stored.revision == table.revision():
            for place, scenario in enumerate(trials_of(table)):
                digits = stored.captures[place * CAPTURE_DIGITS :][:CAPTURE_DIGITS]
                digits = "" if digits == UNKNOWN_CAPTURES else digits
                trial = StoredTrial(table.name, stored.behaviour, scenario, digits)
                yield replace(trial, captures=digits or known.drawn.get(trial.name, ""))


def digits_of(hashes: str) -> list[str]:
    """Return the first digits of the hash of a trial's captures, and of that of its packets."""
    return [each[:CAPTURE_DIGITS] for each in hashes.split("/")]


def require_like_recipes(
    drawn: Iterable[StoredTrial], hashes: Mapping[str, str], known: Ledger, after: Behaviour
) -> None:
    """Raise an error if a drawn trial moved, and no recipe that is like it."""
    newest = known.behaviours[known.newest]
    missed = [
        f"{each.name} of {each.table}"
        for each in drawn
        if each.captures
        and each.captures not in digits_of(hashes[each.scenario.name])
        and not is_touched(features(each.scenario), newest, after)
    ]
    if missed:
        raise TestbedError(
            f"not certified: no recipe moved that is like these, which did: {'; '.join(missed)}",
            "add one to benchmarks/recipes.py",
        )


def noted(
    known: Ledger, drawn: Iterable[StoredTrial], hashes: Mapping[str, str], after: Behaviour
) -> dict[str, str]:
    """Return the captures of drawn trials, of before and now, that are of the newest behaviour."""
    now = {each.name: digits_of(hashes[each.scenario.name])[-1] for each in drawn}
    newest = known.behaviours[known.newest]
    if not any(newest.moved(after).values()):
        return dict(sorted({**known.drawn, **now}.items()))
    still = {
        each.name
        for each in stored_trials(known)
        if not is_touched(features(each.scenario), newest, after)
    }
    kept = {name: each for name, each in known.drawn.items() if name in still}
    return dict(sorted({**kept, **now}.items()))


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
    return {
        each.scenario.name: f"{captures_hash(each.record)}/{packets_hash(read_files(each.path))}"
        for each in done
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Certify this code, or only run all recipes; the exit status is 1 if a packet moved."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="the results folder")
    parser.add_argument("--certify", action="store_true", help="compare, and write the ledger")
    parser.add_argument("--drawn", action="store_true", help="so, and draw trials if none is due")
    parser.add_argument(
        "--programs", action="store_true", help="so, with programs as they are here"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only trials named like this")
    parser.add_argument("--jobs", type=int, metavar="N", help="trials side by side")
    options = parser.parse_args(arguments)
    with errors_as_exit(), tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if options.certify or options.drawn or options.programs:
            return certify(folder, options.jobs, draws=options.drawn, programs=options.programs)
        chosen = [each for each in scenarios() if options.only in name_of(each)]
        for kernel in unbuilt(chosen):
            names = ", ".join(name_of(each) for each in chosen if each.kernel == kernel)
            print(f"left out: {names}: run testbed kernel build {kernel} for it")
            chosen = [each for each in chosen if each.kernel != kernel]
        print(f"{number_of(len(run(folder, chosen, options.jobs)), 'trial')}")
        return 0


def _print(event: SweepEvent) -> None:
    if isinstance(event, TrialFinished):
        print(f"{event.scenario.experiment} {event.path.name}: {event.status}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
