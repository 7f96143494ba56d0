"""The commands of benchmarks as commands: errors end them with one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from testbed.errors import TestbedError


@contextlib.contextmanager
def errors_as_exit() -> Iterator[None]:
    """End the command with an error's message and hint in place of a traceback."""
    try:
        yield
    except TestbedError as error:
        hint = f" (hint: {error.hint})" if error.hint else ""
        raise SystemExit(f"{error.message}{hint}") from error
