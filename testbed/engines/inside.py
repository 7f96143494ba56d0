"""Run inside the guest before the trial: allow every congestion control.

A network namespace may set only the controls that the initial one allows. The guest ends with the
trial, so nothing is restored.
"""

from __future__ import annotations

import sys

from testbed.engines.host import ALLOWED, AVAILABLE
from testbed.trial import session

# The set-up takes some virtual time, since system calls without sleeping do, and the amount changes
# with the testbed's code. Captures must not depend on that, and waiting is free.
EPOCH_GRID_S = 10.0

if __name__ == "__main__":
    ALLOWED.write_text(AVAILABLE.read_text())
    sys.exit(session.main(sys.argv[1:], EPOCH_GRID_S))
