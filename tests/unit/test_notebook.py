"""The notebook of the docs: it runs in Jupyter's own kernel, and what it shows is kept in it."""

from __future__ import annotations

import ast
import json
import linecache
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

from tests.lab import PATIENCE_S
from tests.trial_writer import write_trial

NOTEBOOK = Path("docs", "results.ipynb")
MAX_NOTEBOOK_BYTES = 200_000  # a notebook is text: larger ones hold figures that nobody asked for


def code_cells(root: Path) -> list[dict[str, Any]]:
    """The cells with code, in their order, from the one behind that which installs."""
    cells = json.loads((root / NOTEBOOK).read_text())["cells"]
    install, *others = [cell for cell in cells if cell["cell_type"] == "code"]
    assert install["source"] == ["%pip install -q tcp-testbed"]
    return others


def instead_of_trials(folder: Path) -> str:
    """The cell before the first: whatever is to run, a trial made by hand has run."""
    write_trial(folder / "one-trial", samples=True)
    return (
        "import testbed.api.run\n"
        "from testbed import open_results\n"
        "def run(*_, **__):\n"
        "    print('trials: 1 of 1')\n"
        f"    return open_results({str(folder)!r}).rows\n"
        "testbed.api.run.run = run"
    )


@pytest.fixture
def space(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the notebook's names stand for after all of it has run on a trial made by hand."""
    monkeypatch.setattr("testbed.api.run.run", None)  # and back again
    exec(compile(instead_of_trials(tmp_path), "<cell 0>", "exec"), {})
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
    """Every cell once, from the first on; what ends in a value shows it, and the third a plot."""
    cells = code_cells(root)
    assert [cell["execution_count"] for cell in cells] == list(range(2, len(cells) + 2))
    assert "image/png" in cells[1]["outputs"][0]["data"]
    for cell in cells:
        source = "".join(cell["source"])
        if isinstance(ast.parse(source).body[-1], ast.Expr):
            assert cell["outputs"], source
        assert not [each for each in cell["outputs"] if each["output_type"] == "error"]
    assert (root / NOTEBOOK).stat().st_size < MAX_NOTEBOOK_BYTES


@pytest.mark.slow
def test_it_runs_in_jupyters_kernel(root: Path, tmp_path: Path) -> None:
    """As any Jupyter starts it: our Python, in the notebook's folder."""
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager = KernelManager(connection_file=str(tmp_path / "kernel.json"))
    manager._kernel_spec = KernelSpec(argv=argv, display_name="ours", language="python")
    home = str(Path.home())  # whoever runs this need not be in /etc/passwd
    environment = {"HOME": home, "IPYTHONDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    manager.start_kernel(cwd=str(root / NOTEBOOK.parent), env=environment)
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE_S)
        _outputs(client, instead_of_trials(tmp_path))
        shown = [_outputs(client, "".join(cell["source"])) for cell in code_cells(root)]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    wanted = [bool(cell["outputs"]) for cell in code_cells(root)]
    assert [bool(kinds) for kinds in shown] == wanted  # a figure or a table where one is kept
    assert any("display_data" in kinds for kinds in shown)


def _outputs(client: Any, source: str) -> list[str]:
    """The kinds of output of a cell; an error is one of the test's."""
    asked = client.execute(source)
    kinds: list[str] = []
    while True:
        message = client.get_iopub_msg(timeout=PATIENCE_S)
        if message["parent_header"].get("msg_id") != asked:
            continue
        kind, content = message["msg_type"], message["content"]
        assert kind != "error", "\n".join(content["traceback"])
        if kind == "status" and content["execution_state"] == "idle":
            return kinds
        if kind in ("display_data", "execute_result", "stream"):
            kinds.append(kind)
