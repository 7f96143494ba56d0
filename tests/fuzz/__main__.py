"""Fuzz readers of what others write: python -m tests.fuzz [--minutes M] [--first N] [FORMAT…].

Each format gets the same share of the time. What breaks a reader is kept in
tests/fuzz/found/FORMAT; once the reader is mended, it belongs in tests/fuzz/corpus/FORMAT.
"""

from __future__ import annotations

import argparse
import time

from tests.fuzz.attempts import attempt, attempt_numbers, corpus, keep
from tests.fuzz.formats import FORMATS


def main() -> int:
    """Read the corpus, then new inputs; status 1 if there was a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--first", type=int, default=int(time.time()), help="first input's number")
    options = parser.parse_args()
    if unknown := set(options.formats) - set(FORMATS):
        parser.error(f"no format {', '.join(sorted(unknown))}: {', '.join(FORMATS)}")
    names = options.formats or list(FORMATS)
    faults = 0
    for name in names:
        begun = time.monotonic()
        old = attempt(FORMATS[name], corpus(name))
        new = attempt_numbers(name, options.first, begun + 60 * options.minutes / len(names))
        said = f"{name}: {new.inputs} inputs from {options.first} on, {new.refused} refused"
        print(said, flush=True)
        for fault, data in (old.faults | new.faults).items():
            print(f"    {fault}: {keep(name, data)}", flush=True)
            faults += 1
    return int(faults > 0)


if __name__ == "__main__":
    raise SystemExit(main())
