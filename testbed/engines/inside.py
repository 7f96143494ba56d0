"""Run inside the guest before the trial: every congestion control may be used.

A network namespace may set only what the first one allows. The guest is ours alone and
ends with the trial, so nothing is restored.
"""

from __future__ import annotations

import sys

from testbed import trial
from testbed.engines.host import ALLOWED, AVAILABLE

if __name__ == "__main__":
    ALLOWED.write_text(AVAILABLE.read_text())
    sys.exit(trial.main(sys.argv[1:]))
