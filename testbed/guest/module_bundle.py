"""The bundle: all modules that a trial imports, compiled, in one file for the guest's Python.

Read file by file, 200 modules are 3,400 system calls, and each of those is a hand-over between a
guest's process and its kernel. `marshal` reads the modules from the beginning of the bundle; behind
them stand the source files with their times and sizes, so that a change makes a new bundle.
"""

from __future__ import annotations

import functools
import importlib
import marshal
import site
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.atomic import replace, workplace
from testbed.machine.compiled import LIBRARIES
from testbed.machine.process import run

PROJECT_FOLDER = Path(__file__).resolve().parents[2]
BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
BUNDLE = LIBRARIES / "testbed-modules"
GUEST_MAIN = "testbed.guest.main"
SOURCES_MARK = b"\nmade from these:\n"


def guest_command(module: str, *arguments: str, bundle: str = "") -> list[str]:
    """Return the command that runs a module as the guest does."""
    folders = (str(PROJECT_FOLDER), *site.getsitepackages())
    paths = ":".join(path for path in folders if Path(path).is_dir())
    # Mininet imports distutils; that warning is shown where the importer is the main module.
    quiet = ("-W", "ignore::DeprecationWarning")
    first = (bundle, sys.prefix, paths, module)
    return [sys.executable, "-S", *quiet, str(BOOTSTRAP), *first, *arguments]


@functools.cache
def current_bundle() -> str:
    """Return the bundle's path after writing it if a source has changed.

    The path is empty where it cannot be written; then the guest imports modules file by file.
    """
    if _is_current():
        return str(BUNDLE)
    with workplace("modules") as folder:
        new = folder / BUNDLE.name
        run(guest_command(__name__, str(new)))
        content = new.read_bytes()
    try:
        replace(BUNDLE, lambda path: path.write_bytes(content))
    except TestbedError:
        return ""
    return str(BUNDLE)


def _is_current() -> bool:
    try:
        _, _, state = BUNDLE.read_bytes().rpartition(SOURCES_MARK)
        files = [line.split(" ", 2)[2] for line in state.decode().splitlines()[1:]]
        return state.decode() == _state(files)
    except (OSError, ValueError, IndexError):
        return False


def _state(files: Iterable[str]) -> str:
    stats = ((file, Path(file).stat()) for file in files)
    lines = (f"{stat.st_mtime_ns} {stat.st_size} {file}" for file, stat in stats)
    return "\n".join((sys.version, *lines))


def _compiled_modules() -> Iterator[tuple[str, tuple[object, str, object]]]:
    """Yield the modules that this process imported from files: name, folders, file, code."""
    for name, module in sys.modules.items():
        spec = getattr(module, "__spec__", None)
        if name != "__main__" and spec and spec.origin and spec.cached:
            code = spec.loader.get_code(spec.name)
            yield name, (spec.submodule_search_locations, spec.origin, code)


if __name__ == "__main__":
    importlib.import_module(GUEST_MAIN)
    modules = dict(_compiled_modules())
    sources = {str(BOOTSTRAP), __file__, *(file for _folders, file, _code in modules.values())}
    state = SOURCES_MARK + _state(sorted(sources)).encode()
    Path(sys.argv[1]).write_bytes(marshal.dumps(modules) + state)
