"""Nothing that somebody else wrote is read whole without a limit."""

from __future__ import annotations

import ast
import io
import os
import re
import tracemalloc
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from analysis.laboratory.samples import write_sample_tables
from testbed.cli.programs import CALLS_CLI
from testbed.errors import TestbedError
from testbed.guest import worker
from testbed.machine import json_files, safe_files
from testbed.programs import program_runs as programs
from testbed.store.names import MACHINE_QUEUES

READERS = re.compile(  # functions that read, or keep in memory, whatever size a file is
    r"(json|tomllib|pickle)\.loads?|csv\.(reader|DictReader)|mmap\.mmap"
    r"|(io\.)?open|io\.FileIO|os\.fdopen"
    r"|numpy\.(load|loadtxt|genfromtxt|fromfile|fromregex|memmap)|pandas\.read_\w+"
    r"|pyarrow\.(\w+\.)?(read_\w+|ParquetFile|memory_map|input_stream|OSFile|CompressedInput\w+)"
    r"|xml\.(\w+\.)+(parse|fromstring|iterparse|XML|XMLParser)"
    r"|(gzip|bz2|lzma|zipfile|tarfile|zstandard|shelve)\.(?!compress|error)\w+"
    r"|zlib\.decompress\w*"
)
METHODS = ("read_text", "read_bytes", "readlines", "open")
WITHOUT_SIZE = ("read", "readline")
WRITES = re.compile(r"[wxa][b+]*")
STARTS = ("part.open", "flow.open", "tab.open")  # of a trial's programs: they open no file
OF_KERNELS = "what a kernel's build noted, in its folder"
OF_HOST = "files of /proc, /sys and /etc, and lines of programs of the host"
OURS = "files of this project, or that it wrote itself where no guest was"
CHECKED = "text whose length, or number of values, was checked"
STREAMED = "the file is read in pieces of limited size"
GUESTS = "it runs in a guest"
TRUSTED = "who sends it may run code here"
EXCEPTIONS: Mapping[tuple[str, str], str] = {  # what a call is, and why these modules may have it
    (
        ".read_text",
        OF_KERNELS,
    ): "bundles/machine cli/kernel cli/machine kernels/guest_under_gdb guest/machine"
    " kernels/kernel_sources guest/kernels kernels/kernel_tests guest/engine guest/worker"
    " programs/program_runs",
    (".read_text", OF_HOST): "guest/boot machine/journal machine/leftovers machine/locks"
    " machine/safe_files machine/sysctl_guard machine/tracefs host/engine",
    (".read_text", OURS): "cli/new_experiment machine/compiled runs/behaviour runs/estimate"
    " runs/source_meaning kernels/gdb_script captures/inspection report/page report/trial_page",
    (".read_text", GUESTS): "laboratory/judge programs/perturbed",
    (".read_text", CHECKED): "laboratory/observation",
    (".read_bytes", OURS): "guest/debug_kernel guest/worker kernels/kernel_sources video/webm"
    " machine/installed_packages report/make results/page_series",
    (".read_bytes", OF_HOST): "machine/leftovers machine/locks",
    (".read_bytes", GUESTS): "video/browser video/http3_server",
    (".open", OF_HOST): "machine/tracefs guest/worker",
    (".open", OURS): "cli/watch_film machine/installed_packages host/kernel_trace report/make",
    (".open", STREAMED): "captures/pcap runs/provenance statistics/packet_comparison",
    (".read", OF_HOST): "guest/worker machine/process captures/inspection captures/tshark",
    (".readline", OF_HOST): "host/nodes",
    ("csv.DictReader", OURS): "host/kernel_trace",
    ("csv.DictReader", CHECKED): "programs/expectations",
    ("csv.reader", OURS): "machine/installed_packages captures/inspection",
    ("csv.reader", CHECKED): "scenario/trace",
    ("io.FileIO", STREAMED): "parts/pcapng",
    (
        "json.loads",
        OURS,
    ): "api/run metrics/program_output kernels/comparison_trials kernels/gdb_script runs/behaviour"
    " runs/estimate statistics/comparison statistics/text_tables",
    ("json.loads", CHECKED): "machine/json_files machine/leftovers programs/expectations"
    " scenario/reading video/result results/stored_tables",
    ("json.loads", GUESTS): "video/browser programs/perturbed",
    ("mmap.mmap", GUESTS): "programs/script_lines",
    ("mmap.mmap", STREAMED): "captures/pcap",
    ("open", CHECKED): "machine/safe_files",
    ("os.fdopen", STREAMED): "results/workers results/background_reduction",
    ("pandas.read_csv", STREAMED): "captures/tshark",
    ("pandas.read_csv", OURS): "claims/samples",
    ("pandas.read_csv", CHECKED): "laboratory/program_results statistics/expected trials/samples",
    ("pickle.load", TRUSTED): "results/workers",
    ("pickle.loads", TRUSTED): "guest/worker runs/cluster",
    ("pyarrow.CompressedInputStream", STREAMED): "captures/pcap statistics/packet_comparison",
    ("pyarrow.csv.read_csv", CHECKED): "trials/samples",
    ("tomllib.loads", CHECKED): "programs/expectations stacks/stack",
    ("xml.etree.ElementTree.fromstring", GUESTS): "testbed/video_site",
    ("xml.etree.ElementTree.fromstring", OF_HOST): "captures/inspection",
    ("zipfile.ZipFile", STREAMED): "bundles/make bundles/opened",
    ("zipfile.ZipInfo", OURS): "bundles/make",
    ("zlib.decompressobj", CHECKED): "machine/json_files",
    ("zlib.decompressobj", STREAMED): "captures/pcap",
}


def imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                yield (each.asname, each.name) if each.asname else (top, top)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                (each.asname or each.name, f"{node.module}.{each.name}") for each in node.names
            )


def read_in_pieces(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what opens a file of which a block only reads pieces of given sizes, or writes."""
    for block in (each for each in ast.walk(tree) if isinstance(each, ast.With)):
        for item in block.items:
            if isinstance(item.optional_vars, ast.Name):
                name, inside = item.optional_vars.id, [*map(ast.unparse, block.body)]
                uses = re.findall(rf"\b{name}\b(?!\.(?:read\([^)]|fileno\(\)))", " ".join(inside))
                if not uses:
                    yield item.context_expr


def readers(text: str) -> Iterator[str]:
    """Yield the calls by which a module may read a whole file, however large."""
    tree = ast.parse(text)
    imported, in_pieces = dict(imported_names(tree)), [*read_in_pieces(tree)]
    for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
        written = ast.unparse(call.func)
        first, dot, rest = written.partition(".")
        method = rest.rpartition(".")[2]
        mode = [each.value for each in ast.walk(call) if isinstance(each, ast.Constant)]
        writes = any(isinstance(word, str) and WRITES.fullmatch(word) for word in mode)
        if (writes and method in ("open", "fdopen")) or call in in_pieces or written in STARTS:
            continue
        full = f"{imported.get(first, first)}{dot}{rest}"
        if READERS.fullmatch(full):
            yield full
        elif (method in METHODS and full != "os.open" and first != "safe_files") or (
            method in WITHOUT_SIZE and not call.args
        ):
            yield f".{method}"


def test_no_other_module_reads_whole_files(root: Path) -> None:
    found = set()
    for path in (*(root / "testbed").rglob("*.py"), *(root / "analysis").rglob("*.py")):
        module = f"{path.parent.name}/{path.stem}"
        found |= {(form, module) for form in readers(path.read_text())}
    assert found == {
        (form, module) for (form, _why), modules in EXCEPTIONS.items() for module in modules.split()
    }


@pytest.mark.parametrize(
    ("code", "form"),
    [
        ("path.read_text()", ".read_text"),
        ("(folder / 'x').read_bytes()", ".read_bytes"),
        ("with path.open() as file:\n    for line in file: pass", ".open"),
        ("with path.open('rb') as file:\n    file.readlines()", ".open"),
        ("with path.open('rb') as file:\n    rest = file.read()", ".open"),
        ("with path.open('rb') as file:\n    start = file.read(9); json_of(file)", ".open"),
        ("file.readline()", ".readline"),
        ("open(path, 'rb')", "open"),
        ("import io\nio.open(path)", "io.open"),
        ("import os\nos.fdopen(3)", "os.fdopen"),
        ("import json\njson.load(file)", "json.load"),
        ("from json import loads as parsed\nparsed(text)", "json.loads"),
        ("import pickle\npickle.load(file)", "pickle.load"),
        ("import tomllib\ntomllib.load(file)", "tomllib.load"),
        ("import csv\ncsv.reader(file)", "csv.reader"),
        ("import numpy as np\nnp.load(path)", "numpy.load"),
        ("import numpy as np\nnp.fromfile(path)", "numpy.fromfile"),
        ("import numpy as np\nnp.loadtxt(path)", "numpy.loadtxt"),
        ("import pandas as pd\npd.read_parquet(path)", "pandas.read_parquet"),
        ("import pyarrow.parquet as pq\npq.read_table(path)", "pyarrow.parquet.read_table"),
        ("from pyarrow import csv\ncsv.read_csv(path)", "pyarrow.csv.read_csv"),
        ("import pyarrow as pa\npa.memory_map(path)", "pyarrow.memory_map"),
        ("import gzip\ngzip.open(path)", "gzip.open"),
        ("import zlib\nzlib.decompress(packed)", "zlib.decompress"),
        ("import zipfile\nzipfile.ZipFile(path)", "zipfile.ZipFile"),
        ("from tarfile import open as archive\narchive(path)", "tarfile.open"),
        (
            "import xml.etree.ElementTree as ET\nET.parse(path)",
            "xml.etree.ElementTree.parse",
        ),
        ("from mmap import mmap\nmmap(file, 0)", "mmap.mmap"),
        ("with path.open('wb') as file:\n    file.write(b'x')", None),
        ("with path.open('rb') as file:\n    start = file.read(LIMIT + 1)", None),
        ("import os\nos.open(path, os.O_RDONLY)", None),
        ("import gzip\ngzip.compress(text)", None),
        ("safe_files.read_text(path)", None),
    ],
)
def test_forms_of_reading_are_found(code: str, form: str | None) -> None:
    assert [*dict.fromkeys(readers(code))][:1] == ([form] if form else [])


def test_lines_come_in_pieces_of_limited_length(tmp_path: Path) -> None:
    path = tmp_path / "said"
    path.write_bytes(b"one\r\n" + b"x" * 25 + b"\n\xff")
    assert [*safe_files.lines(path, 10)] == ["one\n", "x" * 10, "x" * 10, "x" * 5 + "\n", "\ufffd"]
    assert safe_files.head(path, 5) == "one\nx"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    tracemalloc.start()
    try:
        assert len(next(safe_files.lines(path))) == safe_files.MAX_LINE_LENGTH
        assert len(safe_files.head(path, 9)) == 9
        with pytest.raises(OSError, match="larger than 256 MiB"):
            safe_files.table(path)
        os.truncate(path, safe_files.MAX_DOCUMENT_BYTES)
        with pytest.raises(OSError, match="a line of more than 65536 bytes"):
            safe_files.table(path)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 << 20
    path.write_bytes(b"time_s\n" + b"1\n" * 100_000)
    assert safe_files.table(path) == path


def test_forged_samples_of_a_machine_are_left_out(tmp_path: Path) -> None:
    sample = "queue 2000000000 - eth0 1: red 3 4 5 6 7\n"
    lines = tmp_path / "guest.sampled"
    with lines.open("w") as file:
        file.write(f"{sample}queue {'9' * 400} - eth0 1: red 3 4 5 6 7\nqueue ")
        file.truncate(64 << 20)  # with holes, in one line
        file.seek(0, os.SEEK_END)
        file.write(f"\n{sample}")
    tracemalloc.start()
    try:
        write_sample_tables(lines, 10**9, tmp_path)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20
    assert (tmp_path / MACHINE_QUEUES.file).read_text().count("eth0") == 2


def test_what_a_worker_sends_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_PACKED_BYTES", 1 << 30)
    (tmp_path / "one").write_bytes(b"12\0")
    assert worker.pack(tmp_path)[1]["one"][:2] == (b"12", 3)
    with (tmp_path / "other").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(ValueError, match="more than 1 GiB of files in a trial"):
        worker.pack(tmp_path)


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
