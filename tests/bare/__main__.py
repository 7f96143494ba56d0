"""Run a command in a bare Debian machine, which is gone afterwards.

python -m tests.bare 13 ./setup.sh demo
"""

from __future__ import annotations

import subprocess
import sys

from testbed.errors import TestbedError
from tests.bare.machines import SUITES, machine


def main(argv: list[str]) -> int:
    """The command's exit status."""
    if len(argv) < 2 or argv[0] not in SUITES:
        print(f"usage: python -m tests.bare {'|'.join(SUITES)} COMMAND…", file=sys.stderr)
        return 2
    try:
        with machine(argv[0]) as made:
            return subprocess.run(made.command(*argv[1:]), check=False).returncode
    except TestbedError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
