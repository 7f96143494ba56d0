"""Stored reductions that somebody else wrote: their numbers and texts reach no page unchecked."""

from __future__ import annotations

import base64
import csv
import dataclasses
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from analysis.results import page_series, stored_tables
from analysis.results.reduction import reduction_of
from analysis.results.stored_tables import Json
from analysis.results.tables import write_metrics
from testbed.cli.entry import main
from testbed.store.names import REDUCED, REPORT
from testbed.store.reading import open_trial
from testbed.store.writing import spreadsheet_cell
from tests.trial_writer import write_trial


def rewrite_reduction(trial: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change the flows' rows that are stored with a trial."""
    stored = stored_tables.read(trial)
    assert stored is not None
    tables = {**stored.tables, "flows": change(stored.tables["flows"])}
    stored_tables.write(trial / REDUCED, dataclasses.replace(stored, tables=tables))


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


@pytest.mark.slow(but=1)
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


def without_rows(flows: pa.Table) -> pa.Table:
    return flows.slice(0, 0)


def of_another(flows: pa.Table) -> pa.Table:
    return pa.concat_tables([flows, flows])


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("change", [without_column, without_rows, of_another])
def test_a_reduction_that_is_not_this_trials_is_made_again(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table]
) -> None:
    trial = open_trial(write_trial(tmp_path / "results" / "trial"))
    before = reduction_of(trial).flows
    rewrite_reduction(trial.path, change)
    assert reduction_of(trial).flows.equals(before)
    assert main(["report", str(tmp_path / "results")]) == 0


def numbers_as_texts(flows: Json) -> None:
    names, content = flows["blocks"]["<f8"]
    flows["blocks"]["<f8"] = [[*names[:-1], "label"], content]


def texts_as_numbers(flows: Json) -> None:
    names, content = flows["blocks"]["<i4"]
    flows["blocks"]["<i4"] = [[*names[:-1], "goodput_mbps"], content]


def objects(flows: Json) -> None:
    flows["blocks"]["|O"] = flows["blocks"].pop("<f8")


def a_text_that_is_none(flows: Json) -> None:
    flows["texts"][0] = {"a": 1}


def fewer_texts(flows: Json) -> None:
    flows["texts"] = flows["texts"][:1]


def half_the_numbers(flows: Json) -> None:
    names, content = flows["blocks"]["<f8"]
    flows["blocks"]["<f8"] = [names, content[: len(content) // 8 * 4]]


def a_block_of_nothing(flows: Json) -> None:
    flows["blocks"]["<f8"][0] = []


def no_base64(flows: Json) -> None:
    flows["blocks"]["<f8"][1] += "-"


def a_number_for_a_table(flows: Json) -> None:
    flows["columns"] = 7


@pytest.mark.parametrize(
    "change",
    [
        numbers_as_texts,
        texts_as_numbers,
        objects,
        a_text_that_is_none,
        fewer_texts,
        half_the_numbers,
        a_block_of_nothing,
        no_base64,
        a_number_for_a_table,
    ],
)
def test_a_document_of_something_else_is_not_read(
    tmp_path: Path, change: Callable[[Json], None]
) -> None:
    trial = open_trial(write_trial(tmp_path / "results" / "trial"))
    before = reduction_of(trial).flows
    document = json.loads(gzip.decompress((trial.path / REDUCED).read_bytes()))
    change(document["tables"]["flows"])
    (trial.path / REDUCED).write_bytes(gzip.compress(json.dumps(document).encode()))
    assert stored_tables.read(trial.path) is None
    assert reduction_of(trial).flows.equals(before)


def test_a_file_that_stands_for_too_much_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes can stand for a million equal ones."""
    trial = write_trial(tmp_path / "trial")
    reduction_of(open_trial(trial))
    assert stored_tables.read(trial) is not None
    with monkeypatch.context() as patched:
        patched.setattr(stored_tables, "MAX_STORED_VALUES", 10)
        assert stored_tables.read(trial) is None


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("content", [b"[" + b"[]," * (30 << 20) + b"0]", b'"' + b"a" * (99 << 20)])
def test_a_hundred_kilobytes_take_no_gigabytes(tmp_path: Path, content: bytes) -> None:
    trial = write_trial(tmp_path / "trial")
    (trial / REDUCED).write_bytes(gzip.compress(content))
    packed = base64.b64encode(zlib.compress(content)).decode()
    opened = open_trial(trial)
    tracemalloc.start()
    try:
        assert stored_tables.read(trial) is None
        assert not page_series.matches_trial(packed, opened)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 << 20
