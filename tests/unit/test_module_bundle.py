"""The bundle of modules that a guest's Python imports a trial from, and how that Python begins."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.guest import module_bundle

TELLS = """
import json, sys
import neighbour
import testbed.guest.main

loaders = {name: type(getattr(each, "__loader__", None)) for name, each in sys.modules.items()}
print(json.dumps({
    "argv": sys.argv, "name": __name__, "prefix": sys.prefix,
    "modules": [*sys.modules], "file": testbed.errors.__file__,
    "usual": [name for name in loaders if loaders[name].__name__ == "SourceFileLoader"],
}))
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new bundle, in another place."""
    monkeypatch.setattr(module_bundle, "BUNDLE", tmp_path / "lib" / "testbed-modules")
    module_bundle.BUNDLE.parent.mkdir()
    assert module_bundle.current_bundle() == str(module_bundle.BUNDLE)
    return module_bundle.BUNDLE


@pytest.fixture(autouse=True)
def ask_again() -> Iterator[None]:
    """Let each test look for the bundle again."""
    module_bundle.current_bundle.cache_clear()
    yield
    module_bundle.current_bundle.cache_clear()


def described(folder: Path, file: str) -> dict[str, Any]:
    """Return what a module says of itself that imports a trial's modules."""
    (folder / "tells.py").write_text(TELLS)
    (folder / "neighbour.py").touch()
    argv = module_bundle.guest_command("tells", "a word", bundle=file)
    argv[argv.index(sys.prefix) + 1] += f":{folder}"
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_everything_that_a_trial_imports_is_in_the_file(made: Path, tmp_path: Path) -> None:
    found = described(tmp_path, str(made))
    before = {"encodings", "encodings.aliases", "encodings.utf_8", "warnings"}  # with -W
    before |= {"importlib", "importlib.machinery"}  # which bootstrap.py imports
    assert set(found["usual"]) - before == {"neighbour", "__main__"}
    assert found["file"] == str(module_bundle.PROJECT_FOLDER / "testbed/errors.py")


def test_it_begins_as_python_does_with_a_module(made: Path, tmp_path: Path) -> None:
    found = described(tmp_path, str(made))
    assert found["argv"] == [str(tmp_path / "tells.py"), "a word"]
    assert (found["name"], found["prefix"]) == ("__main__", sys.prefix)


def test_nothing_of_site_runs_in_a_guest(made: Path, tmp_path: Path) -> None:
    assert "site" not in described(tmp_path, str(made))["modules"]


def test_a_trial_loads_no_library_that_it_hardly_needs(made: Path, tmp_path: Path) -> None:
    """As OpenSSL for a hash: in a guest, each page of a library is a fault."""
    loaded = set(described(tmp_path, str(made))["modules"])
    assert not loaded & {"_hashlib", "_decimal", "pyexpat", "_ssl"}


def test_without_the_file_modules_are_imported_as_usual(tmp_path: Path) -> None:
    assert "testbed.errors" in described(tmp_path, "")["usual"]


def test_the_file_is_made_again_once_a_source_has_changed(made: Path) -> None:
    first = made.stat().st_ino
    module_bundle.current_bundle.cache_clear()
    module_bundle.current_bundle()
    assert made.stat().st_ino == first
    source = module_bundle.PROJECT_FOLDER / "testbed/errors.py"
    now = f"{source.stat().st_mtime_ns} {source.stat().st_size} {source}".encode()
    older = f"{source.stat().st_mtime_ns - 1} {source.stat().st_size} {source}".encode()
    made.write_bytes(made.read_bytes().replace(now, older))
    module_bundle.current_bundle.cache_clear()
    module_bundle.current_bundle()
    assert made.stat().st_ino != first
    assert now in made.read_bytes()


def test_the_file_is_made_again_by_another_version_of_this(made: Path) -> None:
    """As one that an older testbed left, which is read in another way."""
    listed = made.read_bytes().rpartition(module_bundle.SOURCES_MARK)[2].decode()
    assert f" {module_bundle.BOOTSTRAP}\n" in listed and f" {module_bundle.__file__}\n" in listed
    made.write_bytes(made.read_bytes().replace(module_bundle.SOURCES_MARK, b"\nmade from:\n"))
    first = made.stat().st_ino
    module_bundle.current_bundle.cache_clear()
    module_bundle.current_bundle()
    assert made.stat().st_ino != first


def test_where_it_cannot_be_written_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(module_bundle, "BUNDLE", tmp_path / "file" / "testbed-modules")
    assert module_bundle.current_bundle() == ""
