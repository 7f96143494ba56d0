"""Python files of the user's own, run to take something from them; their faults are one line."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from testbed.errors import TestbedError, UsageError
from testbed.machine import safe_files
from testbed.machine.process import sudo_user

PYTHON_SUFFIX = ".py"


def import_file(path: Path) -> ModuleType:
    """Import a file, which may import what lies beside it; no bytecode is written."""
    if os.geteuid() == 0 and (why := safe_files.changed_by_others(path, sudo_user())):
        raise UsageError(
            f"{path}: root does not run this file: {why}", "copy it where only you write"
        )
    name = f"own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look their types up
    sys.path.append(str(path.resolve().parent))
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise error_in_file(path, error) from error
    finally:
        sys.dont_write_bytecode = wrote
    return module


def error_in_file(path: Path, error: Exception | SystemExit) -> TestbedError:
    """Return an error of a file's code as one line, with its line in that file."""
    if isinstance(error, TestbedError):
        return error
    if isinstance(error, SyntaxError):
        line: int | None = error.lineno
    else:
        frames = traceback.extract_tb(error.__traceback__)
        path_text = str(path.resolve())
        lines = [each.lineno for each in frames if str(Path(each.filename).resolve()) == path_text]
        line = lines[-1] if lines else None
    where = f"{path}: line {line}" if line else str(path)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return UsageError(f"{where}: {type(error).__name__}: {text}", "correct that line")
