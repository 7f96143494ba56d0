"""What an evaluation found, in a sentence, in a table and as data, computed from its rows."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from analysis.evaluation.outcome_rows import SUBJECT, setting_columns
from analysis.evaluation.trial_view import MORE, Score
from analysis.figures import cases
from analysis.figures.general.messages import in_words, said_name
from analysis.figures.sheet import Cell, Head, Sheet, mean_cell
from analysis.metrics.metric_rows import AXIS
from analysis.results import reduction
from analysis.results.experiment_results import ResultSet
from analysis.statistics.text_tables import TextTable
from analysis.trials.labels import by_number, variant_key

MIN_DIFFERENCE = 1e-9


def sentence(table: pd.DataFrame, scores: Sequence[Score]) -> str:
    """Name the best and the worst subject of each score, with their range over the settings."""
    by_score = [(score, _by_setting(table, score)) for score in scores]
    if table[SUBJECT].nunique() > 1:
        return " ".join(_extremes(values, score) for score, values in by_score if len(values))
    name = str(table[SUBJECT].iloc[0])
    statements = [_worded(score.words, values[name]) for score, values in by_score if len(values)]
    return f"{said_name(name)}: {', '.join(statements)}." if statements else ""


def _by_setting(table: pd.DataFrame, score: Score) -> pd.DataFrame:
    """Return a score's mean in each setting (rows) of each subject that has it (columns)."""
    columns = setting_columns(table)
    one = table.assign(setting=table.groupby(columns, dropna=False).ngroup() if columns else 0)
    means = one.pivot_table(score.name, "setting", SUBJECT, aggfunc="mean", sort=False)
    return means.dropna() if len(means.dropna()) else means


def _worded(what: str, values: pd.Series[float]) -> str:
    """Put the values before the unit: `goodput 91 to 94 % of the link`."""
    what, _, unit = what.removesuffix(")").partition(" (")
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return f"{what} {low}{f' to {high}' * (high != low)} {unit}".rstrip()


def _extremes(values: pd.DataFrame, score: Score) -> str:
    """Name the best and the worst: `Link used is best with bbr, 95 %, and worst with cubic, 9`.

    Where it is another subject in another setting, say in how many of them; where none is so in
    most of the settings in which the subjects differ, say nothing of that end.
    """
    what = score.words.partition(" (")[0]
    start = what[:1].upper() + what[1:]
    least = max(MIN_DIFFERENCE, score.step)
    differ = values[values.max(axis=1) - values.min(axis=1) >= least]
    if differ.empty:
        worded = _worded(score.words, pd.Series(values.to_numpy().ravel()))
        worded = worded.removeprefix(what).strip()
        return f"{start}: the same of all ({worded})."
    ends = []
    for word, goodness in (("best", score.better * differ), ("worst", -score.better * differ)):
        near = goodness.gt(goodness.max(axis=1) - least, axis=0)
        near &= goodness.ge(goodness.min(axis=1) + least, axis=0)  # none is both best and worst
        often = near.sum()
        if 2 * often.max() <= len(differ):
            continue
        there = near[often.idxmax()]
        names = [str(name) for name in near if near[name].equals(there)]
        count = int(there.sum())
        where = f" in {count} of {len(values)} settings" * (count < len(values))
        those = differ.loc[there, names].to_numpy().ravel()
        worded = _worded(score.words, pd.Series(those))
        number = worded.removeprefix(what).strip()
        ends.append(f"{word} with {in_words(names)}{where}, {number}")
    if not ends:
        return f"{start}: which is best depends on the setting."
    return f"{start} is {', and '.join(ends)}."


def cells(
    table: pd.DataFrame, scores: Sequence[Score]
) -> Iterator[tuple[dict[str, str], str, tuple[pd.Series, ...]]]:
    """Return each setting and subject with the values of every score."""
    varied = [name for name in setting_columns(table) if table[name].nunique(dropna=False) > 1]
    groups = table.groupby([*varied, SUBJECT], sort=False, dropna=False)
    for key, rows in sorted(groups, key=lambda group: _order(group[0])):
        *values, subject = key if isinstance(key, tuple) else (key,)
        axes = [name.removeprefix(AXIS) for name in varied]
        yield cases.case(axes, values), str(subject), tuple(rows[each.name] for each in scores)


def _order(key: object) -> tuple[object, ...]:
    *values, subject = key if isinstance(key, tuple) else (key,)
    return (*(by_number(cases.text(value)) for value in values), variant_key(str(subject)))


def sheet(table: pd.DataFrame, scores: Sequence[Score]) -> Sheet:
    """Return a table with a row per setting and subject: means with half of their intervals."""
    table_cells = list(cells(table, scores))
    axes = list(table_cells[0][0]) if table_cells else []
    heads = [*(Head(name.replace("_", " ")) for name in axes), Head("subject")]
    heads += [Head(score.words, number=True) for score in scores]
    rows = [
        (
            *(Cell(case[name], case[name]) for name in axes),
            Cell(subject, subject),
            *(
                mean_cell(of_score, each.possible)
                for of_score, each in zip(values, scores, strict=True)
            ),
        )
        for case, subject, values in table_cells
    ]
    return Sheet(tuple(heads), tuple(rows))


def text_table(table: pd.DataFrame, scores: Sequence[Score]) -> TextTable:
    """Return the table of means for the terminal, with the sentence below it."""
    return sheet(table, scores).as_text(sentence(table, scores))


def better_words(score: Score) -> str:
    """Say whether more or less of a score is better."""
    return "more is better" if score.better == MORE else "less is better"


def evaluation_document(
    results: ResultSet,
    subject: str,
    others: Sequence[str],
    sentences: Sequence[str],
    table: TextTable,
) -> dict[str, Any]:
    """Return what an evaluation found, with the revision, kernels, seeds and trials behind it.

    A trial's identity is a hash of its scenario, its commands, the programs and the kernel;
    `trials` is a hash of all of them, the same wherever the same trials ran.
    """
    trials = list(results.trials)
    identities = sorted(trial.record.identity for trial in trials)
    return {
        "subject": subject,
        "others": list(others),
        "conclusions": list(sentences),
        "made_with": {
            "testbed": importlib.metadata.version("tcp-testbed"),
            "reduction": reduction.revision(),
            "trials": hashlib.sha256("\n".join(identities).encode()).hexdigest(),
            "engines": sorted({trial.record.engine for trial in trials}),
            "kernels": sorted({trial.record.kernel for trial in trials}),
        },
        "seeds": sorted({trial.scenario.seed for trial in trials}),
        "experiments": {each.experiment: len(each.trials) for each in results.experiments},
        "table": [dict(zip(table.header, row, strict=True)) for row in table.rows],
        "note": table.note,
    }
