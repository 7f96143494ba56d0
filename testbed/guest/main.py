"""The guest's program: allow every congestion control, hide the project's path, run the trial.

A network namespace may set only the controls that the initial one allows. The guest ends with the
trial, so nothing is restored.
"""

from __future__ import annotations

import os
import sys

from testbed.machine import compiled
from testbed.machine.sysctl_guard import ALLOWED, AVAILABLE
from testbed.trial import session

# The set-up takes some virtual time, since a process that makes many system calls without sleeping
# is charged for them. Timers that start with a queue or a program would have another phase whenever
# the testbed's code changed. So everything starts at set times; waiting is free.
GUEST_GRID = session.ClockGrid(epoch_s=10.0, step_s=10.0, start_s=0.1)

if __name__ == "__main__":
    compiled.give_alias()
    ALLOWED.write_text(AVAILABLE.read_text())
    # The guest ends with this process, so Python need not tidy up.
    os._exit(session.main(sys.argv[1:], GUEST_GRID))
