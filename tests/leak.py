"""A program that sends what it sees of its machine: where that differs, so do the captures.

`leak.py ADDRESS PORT` runs as a command flow's client; with no words it prints what it sees.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ABOUT = ("mode", "ino", "dev", "nlink", "uid", "gid", "size", "blocks", "blksize", "rdev")
TIMES = ("atime_ns", "mtime_ns", "ctime_ns")
SEEN = ("/proc/cpuinfo", "/proc/version", "/proc/self/limits", "/proc/self/status")


def about(path: str) -> dict[str, int]:
    """Return all that stat(2) says of a file."""
    found = os.lstat(path)
    return {name: getattr(found, f"st_{name}") for name in ABOUT + TIMES}


def listed(folder: str) -> list[str]:
    """Return the names in a folder, in their order."""
    return [path.name for path in Path(folder).iterdir()]


def change_files() -> None:
    """Do in the working folder what programs do."""
    Path("made").mkdir()
    for number in range(300):
        Path(f"made/{number * 7919 % 300}").write_text("x" * number)
    Path("made/1").rename("made/one")
    Path("made/1").write_text("another")
    os.link("made/2", "made/two")
    Path("link").symlink_to("made")
    os.mkfifo("pipe")
    Path("made/3").chmod(0o4711)
    os.chown("made/4", 33, 65534)
    os.utime("made/5", ns=(1, 2))
    Path("made/6").unlink()
    Path("made/closed").mkdir(mode=0o311)


def files() -> Iterator[tuple[str, Any]]:
    """Yield what folders and files say of themselves, after changes, too."""
    yield "before", {name: about(name) for name in [".", *listed(".")]}
    change_files()
    for where, folders, names in os.walk("."):
        yield where, [folders, names]
        yield f"{where} entries", [(e.name, e.inode(), e.is_dir()) for e in os.scandir(where)]
        for name in (*folders, *names):
            yield f"{where}/{name}", about(f"{where}/{name}")
    with Path("made/7").open() as opened:
        Path("made/7").unlink()
        yield "gone", os.fstat(opened.fileno()).st_nlink
    for name in ("link", "pipe", "made/two"):  # a trial leaves plain files alone
        Path(name).unlink()
    yield "trial", listed("/run/trial")
    for path in (".", "/", "/usr"):
        yield f"disk {path}", list(os.statvfs(path))
    for path in ("/", "/usr/bin/python3", "/etc/passwd"):
        yield path, {**about(path), "atime_ns": 0}


def machine() -> Iterator[tuple[str, Any]]:
    """Yield what the kernel says of the machine and of us."""
    yield "uname", list(os.uname())
    yield "ids", [os.getresuid(), os.getresgid(), os.getgroups(), os.getpid(), str(Path.cwd())]
    yield "environment", sorted(os.environ.items())
    yield "limits", [resource.getrlimit(number) for number in range(16)]
    for name in sorted(os.sysconf_names.keys() - {"SC_AVPHYS_PAGES"}):
        with contextlib.suppress(OSError):
            yield name, os.sysconf(name)
    yield "auxiliary", Path("/proc/self/auxv").read_bytes().hex()
    for path in SEEN:
        yield path, Path(path).read_text()


def main(words: list[str]) -> None:
    """Send everything, or print it."""
    facts = dict((*files(), *machine()))
    text = json.dumps(facts, indent=1)
    if not words:
        print(text)
        return
    with socket.create_connection((words[0], int(words[1]))) as peer:
        peer.sendall(text.encode())
    print(text)


main(sys.argv[1:])
