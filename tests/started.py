"""A trial that notes what it starts: each command with its arguments and its environment."""

from __future__ import annotations

import os
import runpy
import subprocess
from pathlib import Path
from typing import Any

NOTED = "started.txt"
own = subprocess.Popen


class Noted(own):  # type: ignore[type-arg]
    """In place of `subprocess.Popen`."""

    def __init__(self, args: Any, **options: Any) -> None:
        env = options.get("env") or os.environ
        with Path(NOTED).open("a") as file:
            print(*args, *(f"{name}={value}" for name, value in env.items()), file=file)
        super().__init__(args, **options)


if __name__ == "__main__":
    vars(subprocess)["Popen"] = Noted
    runpy.run_module("testbed.guest.main", run_name="__main__")
