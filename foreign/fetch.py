#!/usr/bin/python3
"""Print where a file of the lists is; fetch it first, if need be.

    foreign/fetch.py NAME

It is kept in the user's cache. It needs no package, as setup.sh calls it before there are any.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE_S = 60


def sources() -> dict[str, tuple[str, list[str]]]:
    """Return the hash of each file and its places, by its name."""
    text = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("*.list"))
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {name: (digest, places) for name, digest, *places in lines}


def fetched(name: str) -> Path:
    """Return where the file is; raise an OSError if no place has it with its hash."""
    digest, places = sources()[name]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tcp-testbed/sources"
    for path in (HERE / name, cache / name):
        if path.exists() and _sha256(path) == digest:
            return path
    cache.mkdir(parents=True, exist_ok=True)
    reasons = [] if places else [f"{HERE / name} is damaged"]
    for place in places:
        try:
            return _download(place, cache / name, digest)
        except OSError as error:
            reasons.append(f"{place}: {error}")
    raise OSError("; ".join(reasons))


def _download(place: str, path: Path, digest: str) -> Path:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".") as file:
        with urllib.request.urlopen(place, timeout=PATIENCE_S) as answer:
            shutil.copyfileobj(answer, file)
        file.flush()
        if _sha256(Path(file.name)) != digest:
            raise OSError("it has another hash")
        shutil.copyfile(file.name, f"{file.name}.whole")
        return Path(f"{file.name}.whole").replace(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    try:
        print(fetched(sys.argv[1]))
    except OSError as error:
        hint = "is the network up, and the disk not full?"
        sys.exit(f"cannot fetch {sys.argv[1]}: {error}\n    hint: {hint}")
