"""`python -m testbed.cli`: the command line without its script."""

import sys

from testbed.cli import main

if __name__ == "__main__":
    sys.exit(main())
