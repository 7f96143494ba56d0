"""Whether a change of the code has changed a packet, a number or a verdict.

    .venv/bin/python -m tests.same_bytes record FILE       before the change
    .venv/bin/python -m tests.same_bytes compare FILE      after it; exit status 1 on any difference

Short trials of every experiment, part, queue, variant, profile and topology run by `testbed run`,
and FILE keeps what they left: hashes of captures and samples, every column, every check. `compare`
runs the very scenarios that FILE holds. In the guest all of it has to be the same, to the bit; on
the host, in real time, only what follows from the scenario is kept. Beside the trials, the plans of
all experiments' full trials are compared, which is quick.

Nothing of the project is imported, so that modules may move: only the command line is used, and
the files of a trial. What is not compared is in
tests/same_bytes_seen.py: UNSTEADY, `_contents`, `normal`; of checks on the host, what STEADY does
not name.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.same_bytes_recipes import Json, Recipe, all_recipes
from tests.same_bytes_seen import (
    CAPTURES,
    COLUMNS,
    VERDICT,
    Seen,
    digest,
    look_at_guest,
    look_at_host,
)

TESTBED = str(Path(sys.executable).with_name("testbed"))
TOO_LONG_S = 900
HOST_ATTEMPTS = 3  # in real time, what others do on the machine can spoil a trial
SHOWN = 8  # differences of a trial, unless all are asked for


@dataclass(frozen=True)
class Taken:
    """What became of a recipe: the scenario as it ran, and what the trial left."""

    recipe: Recipe
    scenario: Json
    seen: Seen


@dataclass(frozen=True)
class Difference:
    """A value that is another now; None where it does not exist."""

    kind: str
    key: str
    before: str | None
    after: str | None

    @property
    def one_sided(self) -> bool:
        """Whether a column exists before only, or now only."""
        return self.kind == COLUMNS and None in (self.before, self.after)

    def __str__(self) -> str:
        return f"{self.kind} {self.key}: {_brief(self.before)} → {_brief(self.after)}"


def testbed(*words: str) -> subprocess.CompletedProcess[str]:
    """The command line, on a terminal so wide that it breaks no line."""
    env = {**os.environ, "COLUMNS": "500"}
    return subprocess.run(
        [TESTBED, *words], capture_output=True, text=True, env=env, timeout=TOO_LONG_S, check=False
    )


def run_recipe(recipe: Recipe, folder: Path) -> Taken:
    """Run it in an empty folder of its own."""
    folder.mkdir(parents=True)
    target = recipe.target
    if not isinstance(target, str):
        path = folder / "scenario.json"
        path.write_text(json.dumps(target, indent=2) + "\n")
        target = str(path)
    out = folder / "results"
    words = [target, "--engine", recipe.engine, "--jobs", "1", "--out", str(out), *recipe.options]
    words += [word for setting in recipe.settings for word in ("--set", setting)]
    done = testbed("run", *words)
    trials = [path.parent for path in sorted(out.glob("*/trial.json"))]
    if len(trials) != 1:
        said = f"{len(trials)} trials: {(done.stderr or done.stdout).strip()[-500:]}"
        return Taken(recipe, {}, {"trial": {"exit": str(done.returncode), "said": said}})
    scenario = json.loads((trials[0] / "scenario.json").read_text())
    look = look_at_guest if recipe.engine == "guest" else look_at_host
    seen = look(trials[0], next(out.glob("runs/*/metrics.parquet")))
    if recipe.engine == "guest":  # on the host it tells of a load on the machine, too
        seen["trial"]["exit"] = str(done.returncode)
    return Taken(recipe, scenario, seen)


def run_until(recipe: Recipe, folder: Path, good: Callable[[Taken], bool]) -> Taken:
    """Where time is real, again if it did not go as it should."""
    attempts = 1 if recipe.engine == "guest" else HOST_ATTEMPTS
    for attempt in range(1, attempts + 1):
        taken = run_recipe(recipe, folder if attempt == 1 else folder / f"again-{attempt}")
        if good(taken):
            break
    return taken


def run_side_by_side(
    recipes: Sequence[Recipe], folder: Path, jobs: int, good: Callable[[Taken], bool]
) -> Iterator[Taken]:
    """In order; guests `jobs` at a time, then the host's one by one."""
    places = [folder / re.sub(r"[^\w.=-]+", "-", recipe.name) for recipe in recipes]
    pairs = list(zip(recipes, places, strict=True))

    def one(pair: tuple[Recipe, Path]) -> Taken:
        return run_until(*pair, good)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, [pair for pair in pairs if pair[0].engine == "guest"])
    yield from map(one, [pair for pair in pairs if pair[0].engine != "guest"])


def look_at_plans() -> Seen:
    """Of each experiment, each full trial's commands; a trial's name holds its scenario's hash.

    Not the table above them, which estimates times from what has run before.
    """
    words = testbed("check", "--variants").stdout
    found: Seen = {"check": {"--variants": digest(words.encode())}}
    table = testbed("list").stdout.partition("\n\n")[0]
    for line in table.splitlines()[1:]:
        name = line.split()[0]
        text = testbed("plan", name, "--commands").stdout
        text = re.sub(r"(python3? -m) [\w.]+", r"\1 MODULE", text)
        head, *plans = text.split("\n\n")
        warnings = sorted(line for line in head.splitlines() if line.startswith("warning:"))
        found[f"plan {name}"] = {"warnings": "\n".join(warnings)} | {
            plan.partition("\n")[0]: digest(plan.strip().encode()) for plan in plans
        }
    return found


# ---------------------------------------------------------------- record and compare


def differences(before: Seen, after: Seen, allowed: Sequence[str]) -> list[Difference]:
    """Every value that is not the same, but for those that may change."""
    found = [
        Difference(kind, key, old, new)
        for kind in dict.fromkeys([*before, *after])
        for key in dict.fromkeys([*before.get(kind, {}), *after.get(kind, {})])
        if (old := before.get(kind, {}).get(key)) != (new := after.get(kind, {}).get(key))
    ]
    return [each for each in found if not _matches(each.key, allowed)]


def _matches(key: str, patterns: Iterable[str]) -> bool:
    names = (key, key.rpartition("/")[2])
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns for name in names)


def _brief(value: str | None) -> str:
    if value is None:
        return "absent"
    return value[:12] if re.fullmatch("[0-9a-f]{64}", value) else value[:160]


@dataclass
class Tally:
    """What the closing lines count."""

    trials: int = 0
    alike: Counter[str] = field(default_factory=Counter)  # kind → values that are the same
    total: Counter[str] = field(default_factory=Counter)
    columns: dict[str, bool] = field(default_factory=dict)  # name → the same everywhere
    verdicts: int = 0
    one_sided: Counter[str] = field(default_factory=Counter)
    differing: int = 0  # trials

    def add(self, before: Seen, found: Sequence[Difference]) -> None:
        """A trial with what differs in it."""
        self.trials += 1
        self.differing += bool(found)
        self.verdicts += not any(each.kind == VERDICT for each in found)
        changed = {(each.kind, each.key) for each in found}
        for kind, values in before.items():
            self.total[kind] += len(values)
            self.alike[kind] += sum((kind, key) not in changed for key in values)
        for key in before.get(COLUMNS, {}):
            name = key.rpartition("/")[2]
            self.columns[name] = self.columns.get(name, True) and (COLUMNS, key) not in changed
        for each in found:
            if each.one_sided:
                side = "now" if each.before is None else "before"
                self.one_sided[f"column {each.key.rpartition('/')[2]} exists only {side}"] += 1

    def lines(self) -> Iterator[str]:
        """The last one is the summary."""
        yield from (f"{text} ({count} rows)" for text, count in sorted(self.one_sided.items()))
        for kind in sorted(self.total):
            yield f"  {kind}: {_share(self.alike[kind], self.total[kind])} values identical"
        captures = _share(self.alike[CAPTURES], self.total[CAPTURES])
        names = _share(sum(self.columns.values()), len(self.columns))
        verdicts = _share(self.verdicts, self.trials)
        yield (
            f"{self.trials} trials: {captures} captures identical, {names} columns identical, "
            f"{verdicts} verdicts identical"
        )


def _share(alike: int, total: int) -> str:
    return str(total) if alike == total else f"{alike} of {total}"


def record(options: argparse.Namespace, folder: Path) -> int:
    """Run all trials and write the file; exit status 1 if one did not come about."""
    recipes = [each for each in all_recipes() if options.only in each.name]
    trials, lost = [], 0
    for taken in run_side_by_side(recipes, folder, options.jobs, _is_as_it_should):
        lost += not taken.scenario
        trials.append(
            {
                "name": taken.recipe.name,
                "engine": taken.recipe.engine,
                "options": taken.recipe.options,
                "scenario": taken.scenario,
                "seen": taken.seen,
            }
        )
        print(f"{taken.recipe.name}: {_told(taken.seen)}", flush=True)
    plans = {} if options.only else look_at_plans()
    for plan in plans:
        experiment = plan.removeprefix("plan ")
        if plan != experiment and not any(each.target == experiment for each in recipes):
            print(f"no trial of {experiment}: add some to EXPERIMENTS")
            lost += 1
    content = {"plans": plans, "trials": trials}
    options.file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(trials)} trials and {sum(map(len, plans.values()))} plans in {options.file}")
    return 1 if lost else 0


def _is_as_it_should(taken: Taken) -> bool:
    verdict = taken.seen.get(VERDICT, {}).get("verdict", "none")
    return verdict == "valid" or taken.seen["trial"].get("status") == "unsupported"


def _told(seen: Seen) -> str:
    trial = seen["trial"]
    if "said" in trial:
        return trial["said"]
    verdict = seen[VERDICT]
    words = [trial["status"], verdict.get("verdict", "no verdict"), verdict.get("why", "")]
    return f"{' '.join(filter(None, words))}, {len(seen.get(CAPTURES, {}))} captures"


def compare(options: argparse.Namespace, folder: Path) -> int:
    """Run the file's scenarios, and tell what is not as it was."""
    content = json.loads(options.file.read_text())
    old = {each["name"]: each for each in content["trials"] if options.only in each["name"]}
    recipes = [
        Recipe(name, each["scenario"], engine=each["engine"], options=tuple(each["options"]))
        for name, each in old.items()
        if each["scenario"]
    ]

    def told(taken: Taken) -> list[Difference]:
        return differences(old[taken.recipe.name]["seen"], taken.seen, options.allow)

    tally = Tally()
    for taken in run_side_by_side(recipes, folder, options.jobs, lambda each: not told(each)):
        found = told(taken)
        tally.add(old[taken.recipe.name]["seen"], found)
        print(_line(taken.recipe.name, found, options.all), flush=True)
    unlike = 0 if options.only else _compare_plans(content["plans"], options)
    print("\n".join(tally.lines()))
    return 1 if tally.differing or unlike else 0


def _compare_plans(before: Seen, options: argparse.Namespace) -> int:
    """How many plans are not as they were."""
    after, unlike = look_at_plans(), 0
    for kind in dict.fromkeys([*before, *after]):
        old, new = ({kind: side.get(kind, {})} for side in (before, after))
        found = differences(old, new, options.allow)
        unlike += len(found)
        print(_line(kind, found, options.all))
    print(
        f"{_share(sum(map(len, before.values())) - unlike, sum(map(len, before.values())))} "
        "plans identical"
    )
    return unlike


def _line(name: str, found: Sequence[Difference], everything: bool) -> str:
    """One-sided columns are told at the end, of all trials together."""
    told = [str(each) for each in found if not each.one_sided]
    shown = told if everything else told[:SHOWN]
    more = [f"{len(told) - len(shown)} more (--all)"] if len(told) > len(shown) else []
    columns = sum(each.one_sided for each in found)
    more += [f"{columns} columns on one side only"] if columns else []
    return f"{name}: {'; '.join(shown + more) or 'same'}"


def main(argv: Sequence[str] | None = None) -> int:
    """Record, or compare."""
    parser = argparse.ArgumentParser(description="Has a change of the code changed any result?")
    verbs = parser.add_subparsers(required=True)
    for act, about in ((record, "before a change"), (compare, "after it")):
        verb = verbs.add_parser(act.__name__, help=about)
        verb.set_defaults(act=act)
        verb.add_argument("file", type=Path, help="the recording, as JSON")
        verb.add_argument("--jobs", type=int, default=2, help="trials side by side (2)")
        verb.add_argument("--only", default="", metavar="NAME", help="trials named like this")
        verb.add_argument("--results", type=Path, help="keep the trials in this new folder")
        verb.add_argument(
            "--allow",
            action="append",
            default=[],
            metavar="COLUMN",
            help="may differ: a column, or a field, file or check; with * and ?",
        )
        verb.add_argument("--all", action="store_true", help="every difference")
    options = parser.parse_args(argv)
    if options.results and options.results.exists():
        parser.error(f"{options.results} exists already")
    began_s = time.monotonic()
    with contextlib.ExitStack() as stack:
        kept = options.results or stack.enter_context(tempfile.TemporaryDirectory())
        status: int = options.act(options, Path(kept))
    print(f"{time.monotonic() - began_s:.0f} s", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
