"""The contract on disk: a trial's files have their names in testbed/store/names.py alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.store import names as store
from testbed.store.reading import read_json
from testbed.store.writing import write_json, write_table

CONTRACT = "testbed/store/names.py"
# Rooms that write a trial's directory or read it: no file name of their own at all.
AT_WORK = ("testbed/trial", "analysis/trials", "analysis/metrics", "analysis/verdict")
SUFFIXES = (".json", ".csv", ".parquet", ".log", ".err", ".pcap", ".pcapng")
OWN = {  # of programs that a trial starts, in a folder that goes with them
    "testbed/trial/parts/radio.py": {"medium.json", "hostapd.conf", "hostapd.log"},
}


def names() -> set[str]:
    """Every file name of the contract, with its folder and without."""
    found = {each.file for each in vars(store).values() if isinstance(each, store.Table)}
    texts = (value for name, value in vars(store).items() if name.isupper())
    found |= {each for each in texts if isinstance(each, str) and "." in each[1:]}
    found |= {store.NETWORK_UP}
    alone = (each.rpartition("/")[2] for each in found)
    return found | {each for each in alone if each.endswith(SUFFIXES)}


def literals(text: str) -> Iterator[tuple[int, str]]:
    """The string constants of a module, docstrings (of fields, too) aside: line and value."""
    tree = ast.parse(text)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def breaches(path: str, text: str) -> Iterator[str]:
    """Literals that name a file of the contract, or in the rooms at work any file."""
    for line, value in literals(text):
        known = any(name in value for name in names())
        any_file = path.startswith(AT_WORK) and value.endswith(SUFFIXES)
        if known or (any_file and value not in OWN.get(path, set())):
            yield f"{path}:{line}: {value!r}"


def test_file_names_stand_in_one_place(root: Path) -> None:
    found = [
        breach
        for package in ("testbed", "analysis", "experiments", "topologies")
        for path in sorted((root / package).rglob("*.py"))
        if (name := str(path.relative_to(root))) != CONTRACT
        for breach in breaches(name, path.read_text())
    ]
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        'path = folder / "samples" / "queues.csv"',
        'raise Error(f"{folder}/trial.json is missing")',
        'log = folder / "some.log"',
    ],
)
def test_a_literal_is_found(text: str) -> None:
    assert list(breaches("testbed/trial/x.py", text))


def test_docstrings_may_name_files() -> None:
    assert not list(breaches("testbed/trial/x.py", '"""Writes queues.csv."""\n'))


def test_a_table_has_its_columns(tmp_path: Path) -> None:
    write_table(tmp_path, store.CPU_LOAD, [(1, 0.5, 0.25, 0)])
    text = (tmp_path / "samples" / "load.csv").read_text()
    assert text.splitlines() == ["time_s,busiest,softirq,steal", "1,0.5,0.25,0"]


@pytest.mark.parametrize("text", ["", "{", None])
def test_a_document_that_is_damaged_or_missing_is_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        write_json(tmp_path, store.DROPS_FILE, {})
        (tmp_path / store.DROPS_FILE).write_text(text)
    assert read_json(tmp_path, store.DROPS_FILE) is None
