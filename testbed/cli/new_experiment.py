"""`testbed new`: an example of an experiment, in a file for the user to change."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from testbed.errors import UsageError, quoted
from testbed.machine.atomic import replace
from testbed.own_files import python_file
from testbed.own_files.python_file import PYTHON_SUFFIX
from testbed.runs.console import console

TEMPLATE = Path(python_file.__file__).with_name("experiment_template.py")
EXPERIMENT_FILE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


def new_experiment(options: argparse.Namespace) -> int:
    """Run `testbed new`."""
    name = options.name.removesuffix(PYTHON_SUFFIX)
    path = Path(name + PYTHON_SUFFIX)
    if not EXPERIMENT_FILE_NAME.fullmatch(name):
        raise UsageError(
            f"{quoted(name)}: not a name for an experiment",
            "a letter, then letters, digits, - and _, at most 40: testbed new buffer_size",
        )
    if path.exists():
        raise UsageError(f"{path}: it exists already", "name another, or remove it")
    if name in options.experiments:
        raise UsageError(
            f"{name!r} is the name of a built-in experiment", f"name another: testbed new my_{name}"
        )
    text = TEMPLATE.read_text().replace("NAME", name)
    replace(path, lambda aside: aside.write_text(text))
    console.print(f"an example of an experiment, for you to change: {path}", soft_wrap=True)
    console.print(f"next: testbed run ./{path} --quick", soft_wrap=True)
    return 0
