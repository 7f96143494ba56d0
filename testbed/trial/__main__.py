"""`python -m testbed.trial SCENARIO OUT`: run one trial here."""

from __future__ import annotations

import sys

from testbed.trial.session import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
