"""A record of what figures were made of, so that a run does not draw unchanged figures again.

A figure is made of its folder's trials by our code. A hash of both is kept beside the figures; what
a trial measured is known by its record, which has the time that it took and its captures' hashes.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine import json_files
from testbed.machine.atomic import replace
from testbed.machine.safe_files import read_bytes
from testbed.store.names import RECORD, SCENARIO
from testbed.store.reading import trial_paths
from testbed.store.records import DAMAGED

CODE_ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "analysis/**/*.py",
    "analysis/**/*.[ch]",
    "analysis/**/*.mplstyle",
    "experiments/**/*.py",
    "testbed/scenario/*.py",
)
SUFFIXES = (".png", ".svg", ".csv")


@dataclass(frozen=True)
class CachedFigures:
    """The figures of an experiment in a folder, and whether the experiment has its own tables."""

    made_of: str
    figures: tuple[str, ...]  # the names of the PNG files
    own_tables: bool


def inputs_hash(results: Path) -> str:
    """Return the hash of everything that a results folder's figures are made of."""
    whole = hashlib.sha256(importlib.metadata.version("matplotlib").encode())
    code = sorted(path for pattern in CODE for path in CODE_ROOT.glob(pattern))
    trials = trial_paths(results)
    records = [trial / name for trial in trials for name in (SCENARIO, RECORD)]
    for path in (*code, *records):
        content = read_bytes(path)
        whole.update(f"{path.parent.name}/{path.name} {len(content)} ".encode() + content)
    return whole.hexdigest()


def read(folder: Path, experiment: str, wanted: str) -> CachedFigures | None:
    """Return the stored figures if their inputs have this hash and all files are there."""
    with contextlib.suppress(OSError, *DAMAGED):
        data = json_files.read_record(_file(folder, experiment))
        kept = CachedFigures(data["made_of"], tuple(data["figures"]), bool(data["own_tables"]))
        files = ((folder / name).with_suffix(end) for name in kept.figures for end in SUFFIXES)
        if kept.made_of == wanted and all(file.is_file() for file in files):
            return kept
    return None


def store(folder: Path, experiment: str, made_of: str, drawn: Sequence[Path], is_own: bool) -> None:
    """Record what the figures were made of."""
    data = {"made_of": made_of, "figures": [path.name for path in drawn], "own_tables": is_own}
    with contextlib.suppress(TestbedError):  # another user's results: they are drawn each time
        replace(_file(folder, experiment), lambda path: path.write_text(json.dumps(data)))


def _file(folder: Path, experiment: str) -> Path:
    return folder / f"{experiment}.drawn.json"
