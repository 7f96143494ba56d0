"""Nothing that somebody else wrote is read whole without a limit."""

from __future__ import annotations

import ast
import io
import os
import tracemalloc
from pathlib import Path

import pytest

from testbed.cli.programs import CALLS_CLI
from testbed.errors import TestbedError
from testbed.machine import json_files, safe_files
from testbed.programs import program_runs as programs

OF_KERNELS = "what a kernel's build noted, in its folder"
OF_HOST = "files of /proc and /sys"
OURS = "files of this project, or that it wrote itself where no guest was"
READ_WHOLE = {  # modules that read whole files, each with what they are
    **dict.fromkeys(
        ("cli/kernel", "cli/machine", "kernels/guest_under_gdb", "guest/machine"), OF_KERNELS
    ),
    **dict.fromkeys(("kernels/kernel_sources", "guest/kernels", "kernels/kunit"), OF_KERNELS),
    **dict.fromkeys(
        ("guest/engine", "guest/worker", "programs/program_runs", "runs/source_meaning"), OF_KERNELS
    ),
    **dict.fromkeys(("host/engine", "machine/journal", "machine/leftovers"), OF_HOST),
    **dict.fromkeys(("machine/locks", "machine/safe_files", "machine/sysctl_guard"), OF_HOST),
    **dict.fromkeys(("machine/tracefs", "laboratory/judge", "guest/boot"), OF_HOST),
    **dict.fromkeys(("cli/new_experiment", "guest/debug_kernel"), OURS),
    **dict.fromkeys(("kernels/gdb_script", "machine/compiled", "machine/installed_packages"), OURS),
    **dict.fromkeys(
        ("runs/behaviour", "runs/estimate", "video/browser", "video/http3_server", "video/webm"),
        OURS,
    ),
    **dict.fromkeys(("captures/inspection", "report/make", "report/page"), OURS),
    **dict.fromkeys(("report/trial_page", "results/plotted"), OURS),
}
BOUNDED = {"safe_files", "reader", "connected"}  # the last two read lines that were read


def test_no_other_module_reads_whole_files(root: Path) -> None:
    found = set()
    for path in (*(root / "testbed").rglob("*.py"), *(root / "analysis").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            match call:
                case ast.Call(func=ast.Attribute(ast.Name(name), "read_text" | "read_bytes")):
                    whole = name not in BOUNDED
                case ast.Call(func=ast.Attribute(_, "read_text" | "read_bytes")):
                    whole = True
                case _:
                    whole = False
            if whole:
                found.add(f"{path.parent.name}/{path.stem}")
    assert found == READ_WHOLE.keys()


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert safe_files.read_bytes(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than"):
        safe_files.read_bytes(path, 4)
    path.write_bytes(b"\xff1")
    assert safe_files.read_text(path) == "\ufffd1"


def test_a_pipe_is_no_file_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a plain file"):
        safe_files.read_bytes(tmp_path / "pipe")
    assert safe_files.tail(tmp_path / "pipe") == ""


def test_of_a_hole_of_a_terabyte_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "said"
    with path.open("wb") as file:
        file.seek(1 << 40)
        file.write(b"\nthe end")
    assert safe_files.tail(path).endswith("\nthe end")
    assert len(safe_files.tail(path, 7)) == 7
    assert safe_files.tail(tmp_path / "none") == ""


def test_what_is_relayed_is_relayed_in_pieces(tmp_path: Path) -> None:
    path, out = tmp_path / "out", io.BytesIO()
    relay = programs.Relay(path, out)
    path.write_bytes(b"first\n")
    relay.look()
    with path.open("ab") as file:
        file.truncate(50 << 20)
    tracemalloc.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(out, "write", lambda _piece: 0)
            relay.look()
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert out.getvalue() == b"first\n"
    assert peak < 4 << 20


def test_what_is_relayed_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MAX_OUTPUT_BYTES", 5)
    path, out = tmp_path / "out", io.BytesIO()
    relay = programs.Relay(path, out)
    path.write_bytes(b"12345")
    relay.look()
    with path.open("ab") as file:
        file.truncate(1 << 40)
    with pytest.raises(TestbedError, match="printed more than"):
        relay.look()
    assert out.getvalue() == b"12345"


@pytest.mark.parametrize("text", ["[],", "0,", '{"":0},', "[[]],", '{"":[]},', '"a",'])
def test_json_of_more_values_than_that_is_not_parsed(text: str) -> None:
    within, beyond = (f"[{text * count}0]".encode() for count in (10, 100_000))
    assert len(json_files.parse(within, 100)) == 11
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 100 values"):
            json_files.parse(beyond, 100)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize(
    ("script", "prompts"),
    [
        ("net.start()\n    CLI(net)\n", True),
        ("x = CLI (net)  # talk\n", True),
        ("# CLI(net)\n", False),
        ("x = 1  # a CLI(net)\n", False),
        ("x = (  # starts a\n# CLI(net)\n)\n", False),
        ("MY_CLI(net)\n", False),
        ("net.pingAll()\n" * 300_000, False),  # hours, if a search began at each line
    ],
)
def test_scripts_that_prompt(script: str, prompts: bool) -> None:
    assert bool(CALLS_CLI.search(script)) is prompts
