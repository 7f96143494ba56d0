"""All modules that a trial imports, compiled, in one file for the guest's Python (`begin.py`).

`marshal` reads them from the file's beginning, with the code that their dataclasses wrote; behind
stands what all was made from and by, so that the file is made anew once one of these has changed.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import marshal
import site
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.atomic import replace, workplace
from testbed.machine.process import run

PROJECT = Path(__file__).resolve().parents[2]
BEGIN = Path(__file__).with_name("begin.py")
MODULES = Path(sys.prefix) / "lib" / "testbed-modules"
TRIAL = "testbed.engines.inside"
MARK = b"\nmade from these:\n"


def as_in_guest(module: str, *words: str, modules: str = "") -> list[str]:
    """The command that runs a module as the guest does."""
    folders = (str(PROJECT), *site.getsitepackages())
    paths = ":".join(path for path in folders if Path(path).is_dir())
    # Mininet imports distutils; that warning is shown where the importer is the main module.
    quiet = ("-W", "ignore::DeprecationWarning")
    return [sys.executable, "-S", *quiet, str(BEGIN), modules, sys.prefix, paths, module, *words]


@functools.cache
def up_to_date() -> str:
    """The file, made if need be; empty where it cannot be, and modules are imported one by one."""
    if _is_current():
        return str(MODULES)
    with workplace("modules") as folder:
        made = folder / MODULES.name
        run(as_in_guest(__name__, str(made)))
        content = made.read_bytes()
    try:
        replace(MODULES, lambda path: path.write_bytes(content))
    except TestbedError:
        return ""
    return str(MODULES)


def _is_current() -> bool:
    try:
        _, _, made_from = MODULES.read_bytes().rpartition(MARK)
        files = [line.split(" ", 2)[2] for line in made_from.decode().splitlines()[1:]]
        return made_from.decode() == _state(files)
    except (OSError, ValueError, IndexError):
        return False


def _state(files: Iterable[str]) -> str:
    stats = ((file, Path(file).stat()) for file in files)
    lines = (f"{stat.st_mtime_ns} {stat.st_size} {file}" for file, stat in stats)
    return "\n".join((sys.version, *lines))


def _compiled() -> Iterator[tuple[str, tuple[object, str, object]]]:
    """What is imported here from source files: name, a package's folders, the file, the code."""
    for name, module in sys.modules.items():
        spec = getattr(module, "__spec__", None)
        if name != "__main__" and spec and spec.origin and spec.cached:
            code = spec.loader.get_code(spec.name)
            yield name, (spec.submodule_search_locations, spec.origin, code)


if __name__ == "__main__":
    importlib.import_module(TRIAL)
    found = dict(_compiled())
    origins = sorted({str(BEGIN), __file__, *(file for _folders, file, _code in found.values())})
    written = dict(vars(dataclasses)["exec"].__self__)  # see begin.py
    Path(sys.argv[1]).write_bytes(marshal.dumps((found, written)) + MARK + _state(origins).encode())
