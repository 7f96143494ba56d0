"""The one file that a guest's Python imports a trial from, and how that Python begins."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.engines import modules

TELLS = """
import json, sys
compiled = []
sys.addaudithook(lambda event, about: event == "compile" and compiled.append(str(about[0])))
import neighbour
import testbed.engines.inside

loaders = {name: type(getattr(each, "__loader__", None)) for name, each in sys.modules.items()}
print(json.dumps({
    "argv": sys.argv, "name": __name__, "prefix": sys.prefix,
    "modules": [*sys.modules], "file": testbed.errors.__file__,
    "methods": sum("def __create_fn__" in text for text in compiled),
    "usual": [name for name in loaders if loaders[name].__name__ == "SourceFileLoader"],
}))
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file, made anew elsewhere."""
    monkeypatch.setattr(modules, "MODULES", tmp_path / "lib" / "testbed-modules")
    modules.MODULES.parent.mkdir()
    assert modules.up_to_date() == str(modules.MODULES)
    return modules.MODULES


@pytest.fixture(autouse=True)
def ask_again() -> Iterator[None]:
    """Each test asks for itself, and what it heard is not kept for others."""
    modules.up_to_date.cache_clear()
    yield
    modules.up_to_date.cache_clear()


def told(folder: Path, file: str) -> dict[str, Any]:
    """What a module that imports a trial's says of itself."""
    (folder / "tells.py").write_text(TELLS)
    (folder / "neighbour.py").touch()
    argv = modules.as_in_guest("tells", "a word", modules=file)
    argv[argv.index(sys.prefix) + 1] += f":{folder}"
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_everything_that_a_trial_imports_is_in_the_file(made: Path, tmp_path: Path) -> None:
    found = told(tmp_path, str(made))
    before = {"encodings", "encodings.aliases", "encodings.utf_8", "warnings"}  # with -W
    assert set(found["usual"]) - before == {"neighbour", "__main__"}
    assert found["file"] == str(modules.PROJECT / "testbed/errors.py")


def test_no_method_that_dataclasses_write_is_compiled_in_a_guest(
    made: Path, tmp_path: Path
) -> None:
    assert told(tmp_path, "")["methods"] > 400
    assert told(tmp_path, str(made))["methods"] == 0


def test_it_begins_as_python_does_with_a_module(made: Path, tmp_path: Path) -> None:
    found = told(tmp_path, str(made))
    assert found["argv"] == [str(tmp_path / "tells.py"), "a word"]
    assert (found["name"], found["prefix"]) == ("__main__", sys.prefix)


def test_nothing_of_site_runs_in_a_guest(made: Path, tmp_path: Path) -> None:
    assert "site" not in told(tmp_path, str(made))["modules"]


def test_a_trial_loads_no_library_that_it_hardly_needs(made: Path, tmp_path: Path) -> None:
    """As OpenSSL for a hash: in a guest, each page of a library is a fault."""
    loaded = set(told(tmp_path, str(made))["modules"])
    assert not loaded & {"_hashlib", "_decimal", "pyexpat", "_ssl"}


def test_without_the_file_modules_are_imported_as_usual(tmp_path: Path) -> None:
    assert "testbed.errors" in told(tmp_path, "")["usual"]


def test_the_file_is_made_again_once_a_source_has_changed(made: Path) -> None:
    first = made.stat().st_ino
    modules.up_to_date.cache_clear()
    modules.up_to_date()
    assert made.stat().st_ino == first
    source = modules.PROJECT / "testbed/errors.py"
    now = f"{source.stat().st_mtime_ns} {source.stat().st_size} {source}".encode()
    older = f"{source.stat().st_mtime_ns - 1} {source.stat().st_size} {source}".encode()
    made.write_bytes(made.read_bytes().replace(now, older))
    modules.up_to_date.cache_clear()
    modules.up_to_date()
    assert made.stat().st_ino != first
    assert now in made.read_bytes()


def test_the_file_is_made_again_by_another_version_of_this(made: Path) -> None:
    """As one that an older testbed left, which is read in another way."""
    listed = made.read_bytes().rpartition(modules.MARK)[2].decode()
    assert f" {modules.BEGIN}\n" in listed and f" {modules.__file__}\n" in listed
    made.write_bytes(made.read_bytes().replace(modules.MARK, b"\nmade from:\n"))
    first = made.stat().st_ino
    modules.up_to_date.cache_clear()
    modules.up_to_date()
    assert made.stat().st_ino != first


def test_where_it_cannot_be_written_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(modules, "MODULES", tmp_path / "file" / "testbed-modules")
    assert modules.up_to_date() == ""
