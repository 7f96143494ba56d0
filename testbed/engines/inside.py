"""Run inside the guest before the trial: every congestion control may be used.

A network namespace may set only what the first one allows. The guest is ours alone and
ends with the trial, so nothing is restored.
"""

from __future__ import annotations

import sys

from testbed.engines.host import ALLOWED, AVAILABLE
from testbed.trial import session

# The set-up takes some virtual time, as programs that call the kernel without sleeping do: more or
# less of it, whenever our own code changes. Captures must not depend on that, and waiting is free.
EPOCH_GRID_S = 10.0

if __name__ == "__main__":
    ALLOWED.write_text(AVAILABLE.read_text())
    sys.exit(session.main(sys.argv[1:], EPOCH_GRID_S))
