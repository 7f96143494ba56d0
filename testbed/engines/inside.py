"""Run inside the guest before the trial: allow every congestion control, hide the project's path.

A network namespace may set only the controls that the initial one allows. The guest ends with the
trial, so nothing is restored.
"""

from __future__ import annotations

import os
import sys

from testbed.machine import compiled
from testbed.machine.borrowed_settings import ALLOWED, AVAILABLE
from testbed.trial import session

# The set-up takes some virtual time: a process that makes many system calls without sleeping pays
# for them. Timers that start with a queue or a program would have another phase whenever the
# testbed's own code changed; so everything starts at set times, and waiting is free.
GRIDS = session.Grids(epoch_s=10.0, step_s=10.0, start_s=0.1)

if __name__ == "__main__":
    compiled.give_alias()
    ALLOWED.write_text(AVAILABLE.read_text())
    # The guest ends with this process: what Python tidies up at its end would be for nobody.
    os._exit(session.main(sys.argv[1:], GRIDS))
