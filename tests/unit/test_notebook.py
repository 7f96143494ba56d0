"""The notebook of the docs: its code runs on a results folder, and what it shows is kept in it."""

from __future__ import annotations

import ast
import json
import linecache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from analysis.results.table import write_metrics
from tests.trial_writer import write_trial

NOTEBOOK = Path("docs", "results.ipynb")
LARGEST_BYTES = 200_000  # a notebook is text: larger ones hold figures that nobody asked for


def code_cells(root: Path) -> list[dict[str, Any]]:
    """The cells with code, in their order."""
    cells = json.loads((root / NOTEBOOK).read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.fixture
def space(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the notebook's names stand for after all of it has run on a trial made by hand."""
    write_trial(tmp_path / "one-trial", samples=True)
    write_metrics(tmp_path)
    monkeypatch.setenv("TESTBED_RESULTS", str(tmp_path))
    names: dict[str, Any] = {}
    with mpl.rc_context({"backend": "agg"}):
        for number, cell in enumerate(code_cells(root), start=1):
            source, file = "".join(cell["source"]), f"<cell {number}>"
            # so that a traceback shows the cell's line
            linecache.cache[file] = (len(source), None, source.splitlines(True), file)
            exec(compile(source, file, "exec"), names)
        plt.close("all")
    return names


def test_it_finds_what_is_in_the_trial(space: dict[str, Any]) -> None:
    assert list(space["tcp"]["flow"]) == ["tcp"]
    assert space["trial"].path.name == "one-trial"
    assert len(space["sockets"]) == 3
    assert space["marks"]["retransmission"] == 2  # of the lost one, and one for nothing
    assert space["acks"]["ack_rtt_ms"].median() == pytest.approx(100)
    received = pd.Series(space["acknowledged"])
    assert received.iloc[-1] == 10_001  # ten packets of 1000 bytes, after the SYN


def test_it_is_kept_as_it_ran(root: Path) -> None:
    """Every cell once, from the first on; what ends in a value shows it."""
    cells = code_cells(root)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        source = "".join(cell["source"])
        if isinstance(ast.parse(source).body[-1], ast.Expr):
            assert cell["outputs"], source
        assert not [each for each in cell["outputs"] if each["output_type"] == "error"]
    assert (root / NOTEBOOK).stat().st_size < LARGEST_BYTES
