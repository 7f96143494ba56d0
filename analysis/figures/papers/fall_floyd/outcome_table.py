"""Expected and seen, one row per variant and number of losses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analysis.figures.papers.fall_floyd.expectations import EXPECTED
from analysis.figures.papers.fall_floyd.outcome import Expected, Outcome
from analysis.figures.papers.fall_floyd.outcomes import outcome, sequence
from analysis.figures.plotting.sheet import Cell, Head, Sheet
from analysis.results.experiment_results import ExperimentResults
from analysis.statistics.text_tables import TextTable
from analysis.trials.labels import variant_key
from testbed.errors import TestbedError
from testbed.store import Status, Trial

Expectations = Mapping[str, tuple[Expected, ...]]  # variant → with one loss, two, …


def outcomes(trials: Iterable[Trial]) -> list[tuple[Trial, Outcome]]:
    """Every trial that ran and was captured, with its outcome, in the order of the figure."""
    found = []
    for trial in trials:
        flow = trial.scenario.flows[0]
        if trial.record.status is Status.OK and flow.drops:
            with contextlib.suppress(TestbedError):  # neither captured nor sampled
                found.append((trial, outcome(trial, flow, sequence(trial, flow))))
    return sorted(found, key=lambda each: _place(each[0]))


def _place(trial: Trial) -> tuple[object, ...]:
    flow = trial.scenario.flows[0]
    engine, profile = trial.record.engine, str(trial.scenario.profile)
    return engine, profile, variant_key(flow.variant or ""), len(flow.drops), trial.record.seed


def expected_and_seen(results: ExperimentResults) -> TextTable:
    """The observed outcomes, with the expected ones in brackets."""
    return compared(outcomes(results.trials), EXPECTED)


def sheets(results: ExperimentResults) -> Iterator[tuple[str, Sheet]]:
    """The same for the page."""
    table = expected_and_seen(results)
    rows = tuple(tuple(Cell(text, text) for text in row) for row in table.rows)
    yield f"Recovery from the losses; {table.note}", Sheet(tuple(map(Head, table.header)), rows)


def compared(seen_by_trial: Iterable[tuple[Trial, Outcome]], expected: Expectations) -> TextTable:
    """One row per trial."""
    lines = []
    for trial, seen in seen_by_trial:
        variant = trial.scenario.flows[0].variant or ""
        rows = expected.get(variant, ())[len(seen.lost) - 1 : len(seen.lost)]
        lines.append((variant, str(len(seen.lost)), *_cells(seen, rows[0] if rows else None)))
    return TextTable(HEADER, tuple(lines), _note([line[-1] for line in lines]))


def _note(verdicts: Sequence[str]) -> str:
    """The number of trials as expected, out of those with an expectation."""
    judged = [each for each in verdicts if each != NOTHING_EXPECTED]
    right = judged.count(AS_EXPECTED)
    return f"seen (expected): {right} of {len(judged)} {AS_EXPECTED}" if judged else ""


HEADER = (
    "variant",
    "lost",
    "sent again",
    "timeouts",
    "halvings",
    "slow start",
    "round trips",
    "verdict",
)
AS_EXPECTED = "as expected"
NOTHING_EXPECTED = "–"
SHOWN = 7  # segments sent again


def _cells(seen: Outcome, wanted: Expected | None) -> tuple[str, ...]:
    again = [str(number) for number in seen.sent_again[:SHOWN]]
    if len(seen.sent_again) > SHOWN:
        again += [f"… {len(seen.sent_again)} in all"]
    texts = (
        " ".join(again),
        str(seen.timeouts),
        str(seen.halvings),
        _yes(seen.slow_start),
        f"{seen.round_trips:.1f}",
    )
    if wanted is None:
        return (*texts, NOTHING_EXPECTED)
    low, high = wanted.round_trips
    brackets = (
        "the lost" if wanted.exactly_the_lost else "at least the lost",
        str(wanted.timeouts),
        str(wanted.halvings),
        _yes(wanted.slow_start),
        f"{low:g}" if low == high else f"{low:g}–{high:g}",
    )
    verdict = "; ".join(wanted.differences(seen)) or AS_EXPECTED
    return (*(f"{a} ({b})" for a, b in zip(texts, brackets, strict=True)), verdict)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
