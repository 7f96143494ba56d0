"""Remember the line of a Python script at which a command is executed (docs/mininet.md).

`prepare` has the system's Python import this at its start. The lines go to a mapped file, without
a system call that the script would not make, and are read when the script has ended.
"""

import mmap
import os
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

LINES_FOLDER = "/run/laboratory"
SYSCTLS = "/proc/sys/"
SIZE = 1 << 20  # of a process's lines: later ones are left out
MAX_LINES = 10000
LONGEST = 600  # of a command
LIBRARY_PATHS = (f"{sys.prefix}/lib/", "/usr/bin/", "/run/programs/", "<", __file__)
# audit event → the place of the command among its arguments
EVENTS = {"subprocess.Popen": 1, "os.system": 0, "os.exec": 1, "os.posix_spawn": 1, "os.spawn": 2}


class Lines:
    """A process's lines, in a file that is mapped when the first one is written."""

    def __init__(self) -> None:
        self.memory: mmap.mmap | None = None
        self.written: set[str] = set()
        self.link = ""  # the place at which the link that is being made was added

    def forget(self) -> None:
        """Begin with another file, in a child."""
        self.memory = None
        self.written = set()

    def record(self, command: Any) -> None:
        """Write the script's line of a command; whatever fails, the script goes on without it."""
        try:
            if not isinstance(command, (str, bytes, os.PathLike)):
                command = " ".join(os.fsdecode(word) for word in command)
            self.write(os.fsdecode(command))
        except (OSError, TypeError, ValueError):
            return

    def write(self, text: str) -> None:
        """Write the script's line of a command, once."""
        place = self.link or script_place()
        line = f"{place} {escaped(text[:LONGEST])}"
        if not place or line in self.written or len(self.written) == MAX_LINES:
            return
        self.written.add(line)
        if self.memory is None:
            path = f"{LINES_FOLDER}/{os.getpid()}.{time.monotonic_ns()}"
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            os.ftruncate(file, SIZE)
            self.memory = mmap.mmap(file, SIZE)
            os.close(file)
        whole = f"line {time.monotonic_ns()} {line}\n".encode()
        if self.memory.tell() + len(whole) < SIZE:
            self.memory.write(whole)


LINES = Lines()
# the two nodes of a topology's link → where it was added
LINK_PLACES: dict[frozenset[str], str] = {}


def escaped(text: str) -> str:
    """Return a word in which %XX is what is no visible character."""
    codes = text.encode(errors="replace")
    return "".join(chr(c) if 32 < c < 127 and c != 37 else f"%{c:02X}" for c in codes)


def script_place() -> str:
    """Return the file and the line of the innermost frame that is a script's."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        name = frame.f_code.co_filename
        if not name.startswith(LIBRARY_PATHS):
            return escaped(f"{name}:{frame.f_lineno}")
        frame = frame.f_back
    return ""


def audited(event: str, arguments: Sequence[Any]) -> None:
    """Record the command of an audit event that executes one, and a file by which one sets.

    It is called for every event.
    """
    if event in EVENTS:
        LINES.record(arguments[EVENTS[event]])
    elif event == "open" and arguments[2] & os.O_ACCMODE and str(arguments[0])[:10] == SYSCTLS:
        LINES.record(arguments[0])


def watch_node(kind: Any) -> None:
    """Record what Mininet's nodes hand to their shells."""
    original = kind.write

    def write(self: Any, data: Any) -> None:
        LINES.record(data)
        original(self, data)

    kind.write = write


def watch_topo(kind: Any) -> None:
    """Remember where a topology's links are added."""
    original = kind.addLink

    def add(self: Any, node1: Any, node2: Any, *more: Any, **options: Any) -> Any:
        result = original(self, node1, node2, *more, **options)
        LINK_PLACES[frozenset((node1, node2))] = script_place()
        return result

    kind.addLink = add


def watch_link(kind: Any) -> None:
    """Take a topology's link for made where it was added."""
    original: Callable[..., None] = kind.__init__

    def make(self: Any, node1: Any, node2: Any, *more: Any, **options: Any) -> None:
        LINES.link = LINK_PLACES.get(frozenset((str(node1), str(node2))), "")
        try:
            original(self, node1, node2, *more, **options)
        finally:
            LINES.link = ""

    kind.__init__ = make


sys.addaudithook(audited)
os.register_at_fork(after_in_child=LINES.forget)
