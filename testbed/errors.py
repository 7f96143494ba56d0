"""The one error that users see: what went wrong and what to do next."""

from __future__ import annotations

import errno
import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any
from unicodedata import category

HINTS = {  # by the number of a system error
    errno.ENOSPC: "make room, or name another disk: --out DIR, or > FILE for what is printed",
    errno.EDQUOT: "your quota is used up: make room, or name another folder with --out",
    errno.EACCES: "`ls -ld` shows whose it is, and who may open it; name a folder of your own",
    errno.EPERM: "it is another user's, or only root may do it: `ls -ld` shows whose it is",
    errno.EROFS: "nothing can be written there: name another folder with --out",
    errno.ENOENT: "is the name spelt right?",
    errno.EISDIR: "it is a folder: name a file",
    errno.ENOTDIR: "a part of the path is a file: name a folder there",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.EIO: "the disk cannot be read or written: `dmesg` says more",
    errno.EMFILE: "too many open files: raise the limit with `ulimit -n`, or use fewer --jobs",
    errno.ENOMEM: "run fewer trials side by side, e.g. --jobs 1",
}
MAX_QUOTE = 60  # characters of what the user wrote
MAX_REASON = 200  # characters of what an exception says
MAX_LISTED_NAMES = 40  # names
MAX_FAULTS = 20  # of one request
MAX_READ_FAULTS = 10_000  # those that are alike count once
FAULT_BREAK = "; "  # between the faults of a message


class TestbedError(Exception):
    """Something the user can act on: one line of what and where, one of what to do next."""

    __test__ = False  # pytest would collect the class for its name

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(TestbedError):
    """The request itself is wrong (exit status 2), as opposed to its execution (1)."""

    faults: Sequence[Any] = ()  # single ones (`testbed/faults.py`), if it is about a document
    lines: Sequence[str] = ()  # the message in lines, a fault each, if it lists faults


def hint_for(error: OSError) -> str:
    """Return the remedy for a system error; empty if there is none to add."""
    return HINTS.get(error.errno or 0, "")


def quoted(value: object) -> str:
    """Quote a value of the user's for a message: one printable line of limited length."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case str() if len(value) > MAX_QUOTE:
            return f"{value[:MAX_QUOTE]!r}… ({len(value)} characters)"
        case float() if math.isinf(value):
            return "a number beyond all bounds"
    return repr(value)


def number_of(count: int, noun: str) -> str:
    """Return `1 trial`, `2 trials`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    """Escape what is not printable on a line of a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def short(error: Exception) -> str:
    """Return what an exception says on one line of limited length: it may quote a file."""
    text = printable(str(error).strip())
    return f"{text[:MAX_REASON]}…" if len(text) > MAX_REASON else text


def printable_lines(text: str, kept: str = "\n\t") -> str:
    """Escape what is not printable in lines of text; their ends, tabs and wide spaces stay."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in kept or category(c) == "Zs" else ascii(c)[1:-1] for c in text
    )


def near(name: str, known: Iterable[str]) -> str:
    """Return the known name that is closest to one that is mistyped; empty if none is close."""
    import difflib  # only for who mistypes

    names = sorted(known)
    return next(iter(difflib.get_close_matches(name[:MAX_QUOTE].lower(), names, 1, 0.6)), "")


def require_known(what: str, name: str, known: Collection[str]) -> None:
    """Raise an error that names the nearest known value, unless the value is known."""
    if name not in known:
        raise UsageError(f"{what}: unknown {quoted(name)}", nearest(name, known))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a phrase with the closest known spelling, or with some names if none is close."""
    names = sorted(known)
    if close := near(name, names):
        return f"did you mean {close!r}?"
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return f"known: {', '.join(map(printable, names[:MAX_LISTED_NAMES]))}{more}"
