"""What tests/same_bytes.py keeps of a trial, all of it as text."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

Seen = dict[str, dict[str, str]]  # kind → key → value, all as text
UNSTEADY = frozenset({"wall_s", "network_up_s", "peak_memory_mb"})  # of trial.json
APART = frozenset({"trial.json", "verdict.json", "metrics.parquet"})  # read, and not hashed
CAPTURES, COLUMNS, VERDICT = "captures", "columns", "verdict"  # kinds that the summary counts
STEADY = frozenset(  # checks of the host's that do not depend on what else the machine does
    {"variant", "options", "configuration", "offloads", "capture file", "buffer", "loss", "ECN"}
)


def digest(data: bytes) -> str:
    """Its sha256."""
    return hashlib.sha256(data).hexdigest()


def look_at_guest(trial: Path, metrics: Path) -> Seen:
    """Everything but how long it took."""
    record = json.loads((trial / "trial.json").read_text())
    files = {str(path.relative_to(trial)): path for path in sorted(trial.rglob("*"))}
    rest: dict[str, dict[str, str]] = {CAPTURES: {}, "samples": {}, "files": {}}
    for name, path in files.items():
        if path.is_file() and name not in APART:
            rest[_kind_of(name)][name] = digest(_contents(path))
    return {
        "trial": {key: _written(record[key]) for key in sorted(record.keys() - UNSTEADY)},
        COLUMNS: dict(columns(metrics)),
        VERDICT: dict(checks(trial)),
        **rest,
    }


def look_at_host(trial: Path, metrics: Path) -> Seen:
    """What real time does not change: the commands, and what was measured and asked at all."""
    record = json.loads((trial / "trial.json").read_text())
    lines = [line for line in normal(trial / "commands.log") if not line.startswith("    |")]
    return {
        "trial": {key: _written(record[key]) for key in ("status", "reason", "hint")},
        COLUMNS: {key.rpartition("/")[2]: "there" for key, _ in columns(metrics)},
        VERDICT: steady_checks(dict(checks(trial))),
        "commands": {f"line {number}": line for number, line in enumerate(lines, start=1)},
    }


def steady_checks(verdict: Mapping[str, str]) -> dict[str, str]:
    """Which checks were made, and what those say that no load on the machine can change."""
    grades = {key: grade for key, grade in verdict.items() if key.endswith("/verdict")}
    found = {f"check {key.partition(' of ')[0]}": "made" for key in grades}
    for key, grade in grades.items():
        name = f"check {key.partition(' of ')[0]}"
        if name.removeprefix("check ") in STEADY and found[name] != "invalid":
            found[name] = grade
    if not found:  # it did not run
        return {"verdict": "none"}
    return {"verdict": "invalid" if "invalid" in found.values() else "valid", **found}


def _kind_of(name: str) -> str:
    folder = name.partition("/")[0]
    if folder == "captures":
        return CAPTURES
    return "samples" if folder == "samples" and name.endswith(".csv") else "files"


def _contents(path: Path) -> bytes:
    """What is hashed of a file: never what it says of the machine's folders, or of a library."""
    if path.suffix == ".pcapng":
        return packets(path.read_bytes())
    if path.suffix == ".parquet":  # numbers, not how they are packed
        frame = pd.read_parquet(path)
        return f"{frame.dtypes.to_dict()}\n{frame.to_csv()}".encode()
    if path.name == "commands.log":
        return "\n".join(normal(path)).encode()
    return path.read_bytes().replace(str(Path.cwd()).encode(), b"PROJECT")


def packets(data: bytes) -> bytes:
    """A capture without its first block, which names the program that wrote it: the interface, and
    every packet with its time."""
    first = int.from_bytes(data[4:8], "little")
    return data[first:]


def normal(log: Path) -> list[str]:
    """commands.log without what differs by itself: process ids on the host, and where the project
    and its modules lie."""
    if not log.is_file():  # the kernel lacks what the trial needs: nothing was done
        return []
    text = log.read_text().replace(str(Path.cwd()), "PROJECT")
    text = re.sub(r"\b(pid|netns) \d+", r"\1 N", text)
    return re.sub(r"(python3? -m) [\w.]+", r"\1 MODULE", text).splitlines()


def columns(metrics: Path) -> Iterator[tuple[str, str]]:
    """`flow/column` and the value, of every row; floats so that they read back as the same."""
    rows: Counter[str] = Counter()
    for row in pd.read_parquet(metrics).to_dict("records"):
        flow = _numbered(str(row["flow"]), rows)
        yield from ((f"{flow}/{name}", repr(value)) for name, value in row.items())


def checks(trial: Path) -> Iterator[tuple[str, str]]:
    """The verdict, and `check of subject/field` for everything that each check says."""
    path = trial / "verdict.json"
    if not path.is_file():
        return
    verdict = json.loads(path.read_text())
    yield from ((key, _written(value)) for key, value in verdict.items() if key != "checks")
    names: Counter[str] = Counter()
    for check in verdict["checks"]:
        name = _numbered(f"{check.pop('name')} of {check.pop('subject')}", names)
        yield from ((f"{name}/{key}", _written(value)) for key, value in check.items())


def _numbered(name: str, counts: Counter[str]) -> str:
    counts[name] += 1
    return name if counts[name] == 1 else f"{name} ({counts[name]})"


def _written(value: Any) -> str:
    """Text as it is; all else as JSON, and long tables by their hash."""
    if isinstance(value, str):
        return value
    text = json.dumps(value, sort_keys=True)
    return text if len(text) < 20_000 and not isinstance(value, dict) else digest(text.encode())
