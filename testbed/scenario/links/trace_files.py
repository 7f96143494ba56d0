"""Traces by their files: what a scenario's file and `--set` name becomes the trace itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from testbed.errors import UsageError, hint_for, nearest, quoted
from testbed.scenario.links.trace import CONTENT, content_of

OURS = Path(__file__).with_name("traces")
SUFFIX = ".trace"
TRACE_FIELD = "trace"
LONGEST_BYTES = 16 << 20

_T = TypeVar("_T")


def own_names() -> list[str]:
    """The traces that come with the testbed."""
    return sorted(path.stem for path in OURS.glob(f"*{SUFFIX}"))


def read_trace(name: str | Path, folder: Path = Path()) -> str:
    """The content of one of our traces, by its name, or of a file in Mahimahi's format."""
    path = _path(str(name), folder)
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_BYTES + 1)
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}: line {line}: no trace: not text", _ours()) from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint_for(error) or _ours()) from error
    if len(data) > LONGEST_BYTES:
        raise UsageError(f"{path}: longer than {LONGEST_BYTES >> 20} MB: no trace", _ours())
    return content_of(text, str(path))


def _path(name: str, folder: Path) -> Path:
    own = OURS / f"{name}{SUFFIX}"
    if name in own_names():
        return own
    path = folder / name
    if not path.exists():
        raise UsageError(f"{quoted(name)}: no such trace: {nearest(name, own_names())}", _ours())
    return path


def _ours() -> str:
    return f"name a file in Mahimahi's format, or one of ours: {', '.join(own_names())}"


def listed_traces(text: str) -> Iterator[tuple[str, str]]:
    """The traces that a value of `--set` names, each with its content: of a folder all files."""
    folder = Path(text)
    if text in own_names() or not folder.is_dir():
        yield folder.stem, read_trace(text)
        return
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    if not files:
        raise UsageError(f"{folder}: no traces in this folder", _ours())
    yield from ((path.stem, read_trace(path)) for path in files)


def with_traces(value: _T, folder: Path) -> _T:
    """A scenario whose file named traces, with the traces themselves; `folder` is the file's."""
    found: object = value
    if isinstance(value, tuple):
        found = tuple(with_traces(each, folder) for each in value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            f.name: new
            for f in dataclasses.fields(value)
            if (new := _of_field(f.name, getattr(value, f.name), folder))
            is not getattr(value, f.name)
        }
        found = dataclasses.replace(value, **changed) if changed else value
    return found  # type: ignore[return-value]


def _of_field(name: str, value: object, folder: Path) -> object:
    if name == TRACE_FIELD and isinstance(value, str):
        return value if is_content(value) else read_trace(value, folder)
    if isinstance(value, tuple):
        new = tuple(with_traces(each, folder) for each in value)
        return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
    return with_traces(value, folder)


def is_content(text: str) -> bool:
    """Whether a text is a trace, and not the name of one."""
    return CONTENT.fullmatch(text) is not None


def expanded(values: Sequence[str]) -> list[tuple[str, str]]:
    """All values of `--set` for a trace: names for labels and axes, and contents."""
    found: dict[str, str] = {}
    for value in values:
        for name, content in listed_traces(value):
            if found.setdefault(name, content) != content:
                raise UsageError(f"--set: two traces are named {quoted(name)}", "rename one")
    return list(found.items())
