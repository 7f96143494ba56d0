"""Stored reductions that somebody else wrote: their numbers and texts reach no page unchecked."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.results import reduction
from analysis.results.reduction import reduction_of
from analysis.results.tables import write_metrics
from testbed.cli.entry import main
from testbed.store import REDUCED, REPORT, open_trial, spreadsheet_cell
from tests.trial_writer import write_trial


def rewrite_reduction(trial: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change the flows' rows that are stored with a trial."""
    whole = pq.read_table(trial / REDUCED)
    flows = change(pa.Table.from_struct_array(whole["flows"].combine_chunks().flatten()))
    rows = flows.to_struct_array().combine_chunks()
    column = pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
    place = whole.schema.get_field_index("flows")
    pq.write_table(whole.set_column(place, "flows", column), trial / REDUCED)


def bend_texts(trial: Path, text: str, columns: Iterable[str]) -> None:
    """Put a text into columns of the flows' rows that are stored with a trial."""

    def bend(flows: pa.Table) -> pa.Table:
        for name in columns:
            place = flows.schema.get_field_index(name)
            flows = flows.set_column(place, name, pa.array([text] * len(flows)))
        return flows

    rewrite_reduction(trial, bend)


NAMED = ("setting", "variant", "queue", "topology", "label")


def test_no_file_of_a_report_has_a_formula(tmp_path: Path) -> None:
    """Texts of a stored reduction, as others could write it, in all tables and figures' data."""
    trial = write_trial(tmp_path / "results" / "trial")
    reduction_of(open_trial(trial))
    bend_texts(trial, "=1+1", NAMED)
    assert main(["report", str(tmp_path / "results")]) == 0
    write_metrics(tmp_path / "results")
    files = [*tmp_path.glob("results/*.csv"), *tmp_path.glob("results/*-figures/*.csv")]
    assert len(files) > 1
    cells = [cell for file in files for row in csv.reader(file.open()) for cell in row]
    assert "'=1+1" in cells
    assert [cell for cell in cells if cell != spreadsheet_cell(cell)] == []


@pytest.mark.parametrize("text", ["\x1b[2J", "$\\frac{$ $x^{$", "</svg><script>x", "x" * 5000])
def test_a_report_of_texts_that_somebody_else_stored(tmp_path: Path, text: str) -> None:
    """They are left out, or shown as they are; every figure is an image."""
    trial = write_trial(tmp_path / "results" / "trial")
    reduction_of(open_trial(trial))
    bend_texts(trial, text, NAMED)
    assert main(["report", str(tmp_path / "results")]) == 0
    page = (tmp_path / "results" / REPORT).read_text()
    assert "\x1b" not in page and "<script>x" not in page
    drawn = list(tmp_path.glob("results/*-figures/*.svg"))
    assert drawn
    for figure in drawn:
        ElementTree.parse(figure)


def without_column(flows: pa.Table) -> pa.Table:
    return flows.drop_columns(["flow"])


def with_texts_for_numbers(flows: pa.Table) -> pa.Table:
    place = flows.schema.get_field_index("throughput_mbps")
    return flows.set_column(place, "throughput_mbps", pa.array(["1"] * len(flows)))


def without_rows(flows: pa.Table) -> pa.Table:
    return flows.slice(0, 0)


def of_another(flows: pa.Table) -> pa.Table:
    return pa.concat_tables([flows, flows])


@pytest.mark.parametrize(
    "change", [without_column, with_texts_for_numbers, without_rows, of_another]
)
def test_a_reduction_that_is_not_this_trials_is_made_again(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table]
) -> None:
    trial = open_trial(write_trial(tmp_path / "results" / "trial"))
    before = reduction_of(trial).flows
    rewrite_reduction(trial.path, change)
    assert reduction_of(trial).flows.equals(before)
    assert main(["report", str(tmp_path / "results")]) == 0


def test_a_file_that_stands_for_too_many_values_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet writes a million equal values in a few bytes."""
    trial = open_trial(write_trial(tmp_path / "trial"))
    reduction_of(trial)
    bend_texts(trial.path, "x", ["label"])
    assert reduction_of(trial).flows["label"].eq("x").all()
    monkeypatch.setattr(reduction, "MOST_STORED_VALUES", 1000)
    assert not reduction_of(trial).flows["label"].eq("x").any()
