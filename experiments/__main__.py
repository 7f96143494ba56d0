"""`python -m experiments`: the command line without its script."""

import sys

from experiments.command import main

if __name__ == "__main__":
    sys.exit(main())
