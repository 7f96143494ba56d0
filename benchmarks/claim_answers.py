"""How the answer to a paper's claim is told: rows of a page, and the sentence written for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.claims.ledger import SIMULATED, Claim
from benchmarks.harness import markdown_lines
from experiments.catalogue import EXPERIMENTS
from testbed.errors import TestbedError

ON_LINUX = "on Linux"  # with the stack that profile ns2 sets up, beside answers in ns-2
STATEMENT_CHARACTERS = 130  # characters of an answer's statement in a claim's row
CLAIMS: dict[str, Claim] = {
    claim.id: claim
    for experiment in EXPERIMENTS.values()
    if experiment.claims
    for paper in experiment.claims()
    for claim in paper.claims
}
SENTENCES = {name: claim.sentences for name, claim in CLAIMS.items()}


@dataclass(frozen=True)
class ClaimAnswer:
    """The answer to a claim from some of its trials: a profile, a setting, a reading."""

    id: str
    claim: str
    trials: str
    answer: str
    statement: str
    n: int
    numbers: Mapping[str, str]  # what → ours
    out_of: str = ""  # n, the number of seeds if it is another, and what was left out
    beside: tuple[
        tuple[str, str, str], ...
    ] = ()  # name, answer and numbers of what does not decide
    needed: int = 0  # networks with which the plan's power is reached, by the spread in these
    kernels: tuple[tuple[str, str], ...] = ()  # others that were run, and the answer on each

    def sentence(self) -> str:
        """Return the sentence that was written for this answer, with its numbers, or nothing.

        Raises if it was written for another answer than the present one.
        """
        written = [each for each in SENTENCES.get(self.id, ()) if each.trials == self.trials]
        if not written:
            return ""
        if self.answer != written[0].answer:
            what = f"{self.id} ({self.trials}): the sentence is for {written[0].answer!r}, "
            raise TestbedError(f"{what}and the answer is {self.answer!r}", "write another sentence")
        try:
            return written[0].filled(self.numbers)
        except KeyError as missing:
            what = f"{self.id} ({self.trials}): its sentence has {missing}"
            raise TestbedError(what, f"there is {list(self.numbers)}") from missing


def claim_answer(data: Mapping[str, Any]) -> ClaimAnswer:
    """Return what is stored of an answer, from the report's JSON."""
    group = ", ".join(filter(None, (data["profile"], data["setting"], data["reading"])))
    answer = data.get("in_words") or data["verdict"]
    kernels = tuple((each["what"], each["in_words"]) for each in data.get("varied", ()))
    numbers = {row["what"]: str(row["ours"]) for row in data["rows"]}
    cells = (data["id"], data["claim"], group, answer, data["statement"])
    beside = tuple(
        (name, verdict, statement) for name, verdict, statement in data.get("beside", ())
    )
    out_of, needed = data.get("out_of", ""), data.get("needed", 0)
    return ClaimAnswer(*cells, data["n"], numbers, out_of, beside, needed, kernels)


def answer_lines(answers: Sequence[ClaimAnswer]) -> list[str]:
    """Return a row for each claim, and below them, folded, a row for each group of its trials."""
    rows = []
    for claim in dict.fromkeys(answer.id for answer in answers):
        of_claim = [answer for answer in answers if answer.id == claim]
        told = [sentence for answer in of_claim if (sentence := answer.sentence())]
        short = " ".join(told) or _shortened(of_claim[0].statement)
        short = " ".join(filter(None, (short, _what_may_decide(of_claim))))
        rows.append(
            (f"**{claim}** {of_claim[0].claim}", f"**{_in_and_outside(of_claim)}.** {short}")
        )
        rows += [
            (f"· {what}", f"{answer}: {_shortened(statement)}")
            for what, answer, statement in of_claim[0].beside
        ]
    kernels = dict.fromkeys(name for answer in answers for name, _ in answer.kernels)
    none = [""] * len(kernels)
    every = [
        row
        for a in answers
        for row in (
            (a.id, a.trials, a.answer, *_on(kernels, a), a.statement, a.out_of or str(a.n)),
            *(
                (a.id, f"· {what}", answer, *none, statement, "")
                for what, answer, statement in a.beside
            ),
        )
    ]
    if any(a.trials.startswith(SIMULATED) for a in answers):
        every = [(row[0], row[1].replace("ns2", ON_LINUX, 1), *row[2:]) for row in every]
    several = "Both answers" if len(answers) == 2 else f"All {len(answers)} answers"
    whole = several if len(answers) > 1 else "The answer in full"
    return [
        *markdown_lines(("claim", "answer"), rows),  # two columns: a phone has no room for more
        "",
        f"<details><summary>{whole}: by profile, setting and reading</summary>",
        "",
        *markdown_lines(("id", "trials", "answer", *kernels, "numbers", "n"), every),
        "",
        "</details>",
    ]


def _on(kernels: Iterable[str], answer: ClaimAnswer) -> list[str]:
    """Return the answer on each of these kernels, or nothing where it does not matter."""
    return [dict(answer.kernels).get(name, "") for name in kernels]


def _in_and_outside(answers: Sequence[ClaimAnswer]) -> str:
    """Return the verdicts on a claim: in the simulator that it is about, if it is, and on Linux."""
    inside = [answer for answer in answers if answer.trials.startswith(SIMULATED)]
    outside = [answer for answer in answers if answer not in inside]
    told, linux = (
        " / ".join(dict.fromkeys(verdict_of(answer.answer) for answer in part))
        for part in (inside, outside)
    )
    if not inside:
        return linux
    both = f"{SIMULATED} and {ON_LINUX}: {linux}"
    return both if told == linux else f"{SIMULATED}: {told}; {ON_LINUX}: {linux}"


def _what_may_decide(answers: Sequence[ClaimAnswer]) -> str:
    """Say how many networks decide nine of ten cases like what is open, by their spread."""
    is_simulated = any(answer.trials.startswith(SIMULATED) for answer in answers)
    still_open = [each for each in answers if verdict_of(each.answer) == "open" and each.needed]
    needed = dict.fromkeys(
        f"{each.needed:,} networks {SIMULATED if SIMULATED in each.trials else ON_LINUX}"
        if is_simulated
        else f"{each.needed:,} networks"
        for each in still_open
        if each.needed > each.n
    )
    told = [f"Some {' and '.join(needed)} may decide it."] if needed else []
    told += dict.fromkeys(
        f"The {each.n} networks that were planned do not decide it."
        for each in still_open
        if each.needed <= each.n
    )
    return " ".join(told)


def verdict_of(answer: str) -> str:
    """Return an answer without how it varies; of an undefined word, all of its readings."""
    parts = answer.split(", ")
    return ", ".join(part for part in parts if part.startswith("by ")) or parts[0]


def _shortened(statement: str) -> str:
    """Return how many parts hold, if a statement says so, else its first clause, or its parts."""
    parts = re.match(r"\d+ of \d+ parts [^:]*", statement)
    head = parts[0] if parts else statement.partition("; ")[0].rstrip(".")
    if len(head) <= STATEMENT_CHARACTERS:
        return head
    within, end, _ = head[:STATEMENT_CHARACTERS].rpartition("), ")
    return f"{within}{end}…" if end else head[:STATEMENT_CHARACTERS].rpartition(" ")[0] + " …"
