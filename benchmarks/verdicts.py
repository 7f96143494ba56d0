"""Attack the verdict: trials with planted faults, and the same trials without them.

    .venv/bin/python -m benchmarks.verdicts [--trials 200] [--seed 1] [--only TEXT] [--write]

Draws scenarios, runs each as it is and with faults planted in it (`benchmarks.planted_faults`), and
prints for each kind of fault how many were found, by which checks, and how many sound trials are
accused. A fault that changes no packet of its trial does not count, unless it hides something.
`--write` puts the table into docs/verdicts.md.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from benchmarks.harness import (
    errors_as_exit,
    markdown_lines,
    no_watcher,
    parser_of,
    require_guest,
    scratch_folder,
    with_tables,
)
from benchmarks.planted_faults import PLANTED_FAULTS, Planting
from benchmarks.recipes import captures_hash
from benchmarks.scenario_changes import drawn_scenario
from testbed.errors import TestbedError
from testbed.plan.plan import Task, make_plan
from testbed.runs.engine_choice import choose
from testbed.runs.sweep import run_all
from testbed.store.reading import open_trial
from testbed.store.records import Status
from testbed.trial import make

ATTACK_PAGE = Path(__file__).resolve().parents[1] / "docs" / "verdicts.md"
ATTACK_MARK = "benchmarks.verdicts"  # in the marks of the page's table
ATTACK_SOUND = ""  # the kind of a trial without a fault
ATTACK_FAULTS_EACH = 4  # of a scenario, which then runs five times
ATTACK_JOBS = 2
# What limits a flow of a sound trial, too: such a verdict is right.
ATTACK_LIMITED = ("receive window", "send buffer", "receive buffer", "session failures", "bucket")
ATTACK_REFUSED = "refused when it ran"  # by verification, or a program
ATTACK_UNREADABLE = "refused when it was read"


@dataclass(frozen=True)
class AttackOutcome:
    """What became of a trial."""

    number: int  # of its scenario
    kind: str
    grade: str
    rule: str  # that decided
    why: str
    is_fault: bool  # it changed a packet, or hides one

    @property
    def is_found(self) -> bool:
        """Whether the trial is not taken for a sound one."""
        return self.grade != Grade.VALID


def chosen_faults(seed: int, trials: int, kinds: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield scenarios with the faults that they are run with, all kinds about as often."""
    planned = Counter[str](dict.fromkeys(kinds, 0))
    number = count = 0
    while count < trials:
        fitting: list[str] = []
        for kind in sorted(kinds, key=planned.__getitem__):
            if len(fitting) < ATTACK_FAULTS_EACH and _planting(seed, number, kind) is not None:
                fitting.append(kind)
        planned.update(fitting)
        count += len(fitting) + 1
        yield number, fitting
        number += 1


def _planting(seed: int, number: int, kind: str) -> Planting | None:
    scenario = drawn_scenario(seed, number)
    if kind == ATTACK_SOUND:
        return Planting(Task(scenario, make_plan(scenario)))
    return PLANTED_FAULTS[kind](random.Random(f"{seed} {number} {kind}"), scenario)


def outcomes(seed: int, number: int, kinds: Iterable[str]) -> list[AttackOutcome]:
    """Run a scenario as it is, and with each of the faults."""
    with scratch_folder() as folder:
        sound, packets = run_one(seed, number, ATTACK_SOUND, Path(folder))
        done = [sound]
        for place, kind in enumerate(kinds):
            outcome, others = run_one(seed, number, kind, Path(folder) / f"{place}")
            if others == packets:
                outcome = dataclasses.replace(outcome, is_fault=False)
            done.append(outcome)
    return done


def run_one(seed: int, number: int, kind: str, out: Path) -> tuple[AttackOutcome, str]:
    """Run one trial; return what became of it, and a hash of its packets if they can tell."""
    planting = _planting(seed, number, kind)
    assert planting is not None
    parts = (*([planting.part] if planting.acts else []), *make.PARTS)
    with mock.patch.object(make, "PARTS", parts):
        (done,) = run_all([planting.task], choose("guest", ()), out, no_watcher, jobs=1)
    packets = "" if planting.hides else captures_hash(done.record)
    if planting.leaves:
        planting.leaves(done.path)
    grade, rule, why = _judged(done.path)
    return AttackOutcome(number, kind, grade, rule, why, is_fault=kind != ATTACK_SOUND), packets


def _judged(path: Path) -> tuple[str, str, str]:
    """Return the verdict on a trial, the check that decided, and its reason."""
    try:
        trial = open_trial(path)
        if trial.record.status is not Status.OK:
            return Grade.INVALID, ATTACK_REFUSED, trial.record.reason
        verdict = judge(trial)
    except TestbedError as error:
        return Grade.INVALID, ATTACK_UNREADABLE, error.message
    assert verdict is not None
    deciding = (check.name for check in verdict.checks if check.why == verdict.why)
    return verdict.verdict, next(deciding, "") if verdict.why else "", verdict.why


def wilson(count: int, of: int) -> str:
    """Return a share with its interval of 95 %, by Wilson's score."""
    if not of:
        return ""
    z = 1.96
    share, more = count / of, z**2 / of
    middle = share + more / 2
    half = z * math.sqrt((share * (1 - share) + more / 4) / of)
    low, high = ((middle + side * half) / (1 + more) for side in (-1, 1))
    return f"{share:.0%} ({low:.0%} to {high:.0%})"


ATTACK_HEADER = ("fault", "planted", "without effect", "found", "share found", "by")


def table_lines(done: Sequence[AttackOutcome]) -> list[str]:
    """Return the table, a line a kind of fault, and the sound trials below it."""
    rows = []
    for kind in PLANTED_FAULTS:
        of_kind = [each for each in done if each.kind == kind]
        faults = [each for each in of_kind if each.is_fault]
        caught = [each for each in faults if each.is_found]
        rules = Counter(each.rule for each in caught).most_common()
        by = ", ".join(f"{rule} {count}" for rule, count in rules)
        counts = (len(of_kind), len(of_kind) - len(faults), len(caught))
        if of_kind:
            rows.append((kind, *map(str, counts), wilson(len(caught), len(faults)), by))
    sound = [each for each in done if each.kind == ATTACK_SOUND]
    limited = [each for each in sound if each.rule in ATTACK_LIMITED]
    accused = [each for each in sound if each.is_found and each not in limited]
    faults = [each for each in done if each.is_fault]
    caught = [each for each in faults if each.is_found]
    invalid = sum(each.grade == Grade.INVALID for each in accused)
    return [
        f"Of {len(faults)} faults {len(caught)} were found: {wilson(len(caught), len(faults))}. Of "
        f"{len(sound)} sound trials {len(accused)} are accused, {invalid} of them as invalid: "
        f"{wilson(len(accused), len(sound))}. {len(limited)} are suspect for what limited their "
        "flows, which is so.",
        "",
        *markdown_lines(ATTACK_HEADER, rows),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the trials and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="TEXT", help="kinds of faults that have it")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args(arguments)
    require_guest()
    kinds = [kind for kind in PLANTED_FAULTS if options.only in kind]
    with errors_as_exit(), ProcessPoolExecutor(ATTACK_JOBS) as pool:
        done = [
            outcome
            for each in pool.map(_outcomes, chosen_arguments(options.seed, options.trials, kinds))
            for outcome in each
        ]
    lines = table_lines(done)
    print("\n".join(lines))
    if options.write:
        ATTACK_PAGE.write_text(with_tables(ATTACK_PAGE.read_text(), ATTACK_MARK, "\n".join(lines)))


def chosen_arguments(
    seed: int, trials: int, kinds: Sequence[str]
) -> list[tuple[int, int, list[str]]]:
    """Return what each scenario is run with."""
    return [(seed, number, faults) for number, faults in chosen_faults(seed, trials, kinds)]


def _outcomes(arguments: tuple[int, int, list[str]]) -> list[AttackOutcome]:
    done = outcomes(*arguments)
    for each in done:
        is_wrong = each.is_found == (each.kind == ATTACK_SOUND) and (
            each.is_fault or each.kind == ATTACK_SOUND
        )
        what = f"{each.number}, {each.kind or 'sound'}: {each.grade}: {each.why}"
        if is_wrong:
            print(f"WRONG {what}", flush=True)
        elif each.kind and each.rule == ATTACK_REFUSED:
            print(f"      {what}", flush=True)
    return done


if __name__ == "__main__":
    main()
