"""The ledger of the papers' answers, now and at an earlier revision: by kind and by cause.

python -m benchmarks.ledger_changes [--before REVISION] [--each] [--page docs/papers/README.md]

`--each` lists every answer that is another, with what was changed for it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import TypeAdapter

from analysis.statistics.estimates import MIN_CONSTANT
from benchmarks.claim_answers import ClaimAnswer, verdict_of
from benchmarks.harness import markdown_lines, parser_of, with_tables
from benchmarks.papers import PROJECT_ROOT, STORED
from testbed.machine.process import run

LEDGER_CHANGES = "benchmarks.ledger_changes"
FIRST_LEDGER = "4bb1f2be"  # what the review that asked for today's rules had read
USABLE = ("supported", "contradicted", "refuted", "too small to matter", "by reading")
KINDS = (*USABLE, "in part", "not testable here", "open")
OPEN_BY_DECLARATION, OPEN_WORD = (
    "declared open, whatever the test gives",
    "readings of a word that disagree",
)
OPEN_TOO_FEW, OPEN_NOT_RUN = "fewer networks than what is constant takes", "not run"
OPEN_ACROSS = "an interval across a margin or bound"
CAUSES = (OPEN_BY_DECLARATION, OPEN_NOT_RUN, OPEN_WORD, OPEN_TOO_FEW, OPEN_ACROSS)
GONE = {  # answers that are no longer given, by a part of their trials' names
    "receiver": "set on the laptop, the variant changes nothing of a download (RGSJ0)",
    "CBR 40–100 s": "JH's CBR ends at second 60",
    "modern": "today's stacks were run with another window than the papers'",
}
NOW_CALLED = {", CBR 40–60 s": "", "modern, sender, ": "modern, "}  # RGSJ7: no setting any more
SPLIT = "one answer for each window, or kind of loss events"

ANSWER = TypeAdapter(ClaimAnswer)
Answers = Mapping[tuple[str, str], ClaimAnswer]


def stored_now() -> Answers:
    """Return the answers that the papers' pages show, by claim and trials."""
    files = (PROJECT_ROOT / "experiments").glob(f"*/{STORED}")
    return _by_trials(each.read_text(encoding="utf-8") for each in files)


def stored_then(revision: str) -> Answers:
    """Return the answers that were stored at a revision."""
    listed = _git("ls-tree", "-r", "--name-only", revision, "experiments").splitlines()
    names = [name for name in listed if Path(name).name == STORED]
    return _by_trials(_git("show", f"{revision}:{name}") for name in names)


def _git(*arguments: str) -> str:
    return run(["git", "-C", str(PROJECT_ROOT), *arguments]).stdout


def _by_trials(files: Iterator[str]) -> Answers:
    tables = (table for text in files for table in json.loads(text).values())
    given = (
        ANSWER.validate_python(each)
        for each_table in tables
        for each in each_table.get("answers", ())
    )
    return {(each.id, each.trials): each for each in given}


def kind_of(answer: ClaimAnswer) -> str:
    """Return what kind of answer it is: one of `KINDS`."""
    given = verdict_of(answer.answer)
    return "by reading" if given.startswith("by ") else given


def cause_of(answer: ClaimAnswer) -> str:
    """Return why an answer is open: one of `CAUSES`."""
    if answer.statement.startswith("by the test alone"):
        return OPEN_BY_DECLARATION
    if not answer.n:
        return OPEN_NOT_RUN
    if "; by " in answer.statement and not answer.needed:
        return OPEN_WORD
    return OPEN_TOO_FEW if answer.n < MIN_CONSTANT and not answer.needed else OPEN_ACROSS


def tables(before: Answers, after: Answers) -> str:
    """Return the counts by kind, and those of open answers by cause, as Markdown."""
    both = [before, after]
    kinds = [Counter(kind_of(each) for each in answers.values()) for answers in both]
    causes = [
        Counter(cause_of(each) for each in answers.values() if kind_of(each) == "open")
        for answers in both
    ]
    usable = [sum(each[name] for name in USABLE) for each in kinds]
    rows = [(name, *(str(each[name]) for each in kinds)) for name in KINDS]
    rows += [(f"open: {name}", *(str(each[name]) for each in causes)) for name in CAUSES]
    rows += [("all", *(str(len(each)) for each in both))]
    for name, numbers in (
        ("a reader can use", usable),
        ("are open", [each["open"] for each in kinds]),
    ):
        shares = (
            f"{count / max(len(each), 1):.1%}" for count, each in zip(numbers, both, strict=True)
        )
        rows += [(f"share that {name}", *shares)]
    return "\n".join(markdown_lines(("answers", "before", "now"), rows))


def changes(before: Answers, after: Answers) -> Iterator[str]:
    """Yield a line for each answer that is another, with what was changed for it."""
    earlier = {_now_called(key, after): each for key, each in before.items()}
    for key in sorted({**earlier, **after}):
        then, now = earlier.get(key), after.get(key)
        if then and now and kind_of(then) == kind_of(now):
            continue
        told = " → ".join(kind_of(each) if each else "–" for each in (then, now))
        yield f"{', '.join(key)}: {told} ({_reason(key[1], then, now)})"


def _now_called(key: tuple[str, str], after: Answers) -> tuple[str, str]:
    """Return the trials of an earlier answer by their present name, if they have one."""
    claim, trials = key
    names = (trials.replace(old, new) for old, new in NOW_CALLED.items())
    return next(((claim, name) for name in (trials, *names) if (claim, name) in after), key)


def _reason(trials: str, then: ClaimAnswer | None, now: ClaimAnswer | None) -> str:
    if not then or not now:
        return next((why for part, why in GONE.items() if not now and part in trials), SPLIT)
    networks = f"{then.n} → {now.n} networks"
    if kind_of(then) == "open":
        return f"it was {cause_of(then)}; {networks}"
    head = "the head alone decides; " if now.beside else ""
    return f"{head}one interval and one margin; {networks}"


def main() -> None:
    """Print the counts, and write them into a page."""
    parser = parser_of(__doc__)
    parser.add_argument("--before", default=FIRST_LEDGER, metavar="REVISION")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    before, after = stored_then(options.before), stored_now()
    made = tables(before, after)
    print(made)
    if options.each:
        print("\n".join(changes(before, after)))
    if options.page:
        text = options.page.read_text(encoding="utf-8")
        options.page.write_text(with_tables(text, LEDGER_CHANGES, made), encoding="utf-8")


if __name__ == "__main__":
    main()
