"""The guest's confinement on the host: by testbed/machine/confine.c, which says what it may do.

The guest's kernel is an ordinary program, and what is read-only in its mount table is read-only
by its own word alone.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from testbed.machine.atomic import workplace
from testbed.machine.compiled import require_built
from testbed.machine.process import run
from testbed.store import GUEST_MEMORY

CONFINE = Path(sys.prefix) / "lib" / "testbed-confine"


@functools.cache
def forbidden() -> str:
    """Empty if this host lets us confine a guest, or why not."""
    require_built(CONFINE)
    with workplace("confine") as folder:
        (folder / GUEST_MEMORY).mkdir()
        done = run([str(CONFINE), GUEST_MEMORY, "true"], check=False, cwd=folder)
    return done.stderr.strip().removeprefix("testbed-confine: ") if done.status else ""


@functools.cache
def keeps_addresses_fixed() -> bool:
    """True if address randomisation can be switched off here; containers' seccomp forbids it."""
    return not run(["setarch", "-R", "true"], check=False).status
