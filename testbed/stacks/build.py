"""Building a stack by its registry's own tool, once, and putting it into the cache."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine.atomic import whole_folder, workplace
from testbed.machine.process import run
from testbed.machine.safe_files import make_folder
from testbed.stacks.stack import UserStack, source_files

MAX_BUILD_S = 3600.0


def build(stack: UserStack, tell: Callable[[str], None]) -> Path:
    """Build a stack unless it is there; return the folder with its files.

    `tell` is called with each command before it runs. A failed build leaves nothing behind.
    """
    if stack.is_built:
        return stack.cached if stack.description.build else stack.folder
    make_folder(stack.cached.parent)
    with workplace("stack") as place:
        for path in source_files(stack.folder):
            copy = place / path.relative_to(stack.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        for command in stack.description.build:
            tell(shlex.join(command))
            _run(command, place)
        with whole_folder(stack.cached) as folder:
            for name in stack.description.files:
                if not (place / name).is_file():
                    raise TestbedError(
                        f"stack {stack.name}: its build made no {name}",
                        "`files` of stack.toml are paths in the folder after `build`",
                    )
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(place / name, target)
    return stack.cached


def _run(command: Sequence[str], place: Path) -> None:
    """Run a command of a build; raise with the line that says what is wrong, if it fails."""
    done = run(command, cwd=place, timeout_s=MAX_BUILD_S, check=False)
    if done.status:
        lines = f"{done.stdout}\n{done.stderr}".strip().splitlines() or ["(no output)"]
        error_line = next((line for line in lines if "error" in line.lower()), lines[-1])
        raise TestbedError(
            f"{shlex.join(command)}: exit status {done.status}: {error_line.strip()}"
        )
