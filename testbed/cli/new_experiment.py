"""`testbed new`: an experiment in a file of the user's own, to begin with."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from testbed.cli.console import console
from testbed.errors import UsageError, quoted
from testbed.machine.atomic import replace
from testbed.own_files import python_file
from testbed.own_files.python_file import SUFFIX

TEMPLATE = Path(python_file.__file__).with_name("experiment_template.py")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")


def new_experiment(options: argparse.Namespace) -> int:
    """`testbed new`."""
    name = options.name.removesuffix(SUFFIX)
    path = Path(name + SUFFIX)
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{quoted(name)} is no name for an experiment",
            "a letter, then letters, digits, - and _, at most 40: testbed new buffer_size",
        )
    if path.exists():
        raise UsageError(f"{path}: is there already", "name another, or remove it")
    if name in options.experiments:
        raise UsageError(f"{name!r} is an experiment of the testbed's", "name another")
    text = TEMPLATE.read_text().replace("NAME", name)
    replace(path, lambda aside: aside.write_text(text))
    console.print(f"{path}: testbed run ./{path} --quick", soft_wrap=True)
    return 0
