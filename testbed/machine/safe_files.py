"""Files in folders where others may write: what they put there is neither followed nor changed.

As root we work in folders of ordinary users, who could put a link where we are about to write,
read or delete. So a folder is opened step by step, following only links that root or we
made, and all else happens relative to its descriptor.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import io
import os
import stat
from collections.abc import Container, Iterator
from pathlib import Path
from typing import BinaryIO

from testbed.errors import TestbedError
from testbed.machine import trees
from testbed.machine.process import User, sudo_user

MAX_DOCUMENT_BYTES = 1 << 28  # of JSON, a log, or a table of samples
TAIL_BYTES = 65536  # of what a program or a console said, in which its last error is
LONG_TAIL_BYTES = 1 << 24  # of a log whose lines are all read
MAX_LINE_LENGTH = 1 << 16  # characters of a text or a table that is read line by line
MAX_SYMLINKS = 40  # on the way to a folder, as the kernel's own limit
_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


def open_folder(path: Path) -> int:
    """Return a descriptor of a folder, following only links that root or we made."""
    left = list(reversed(path.parts)) or ["."]
    links = 0
    here = os.open(".", _STEP)
    try:
        while left:
            there = os.open(left.pop(), _STEP, dir_fd=here)
            try:
                if stat.S_ISLNK(os.fstat(there).st_mode):
                    links += 1
                    left += reversed(_target(there, path, links).parts)
                else:
                    here, there = there, here
            finally:
                os.close(there)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def _target(link: int, path: Path, links: int) -> Path:
    """Return where a link on the way to `path` points; raise if it may not be followed."""
    owner = os.fstat(link).st_uid
    target = Path(os.readlink("", dir_fd=link))
    if owner not in (_root(), os.geteuid()):
        raise TestbedError(
            f"{path}: a link on the way, to {target}, was made by user {owner}",
            "name the folder itself, without the link",
        )
    if links > MAX_SYMLINKS:
        raise TestbedError(f"{path}: too many links on the way")
    return target


@functools.cache
def _root() -> int:
    """Return the number that root's files show: in a namespace without root, that of all others."""
    try:
        mapped = [line.split()[0] for line in Path("/proc/self/uid_map").read_text().splitlines()]
        return 0 if "0" in mapped else int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return 0


@contextlib.contextmanager
def folder(path: Path) -> Iterator[int]:
    """Open a folder for the duration of a block."""
    descriptor = open_folder(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def place(descriptor: int) -> Path:
    """Return a path to the open file or folder, whatever becomes of its name."""
    return Path(f"/proc/self/fd/{descriptor}")


def real_path(descriptor: int) -> Path:
    """Return the name by which others find what is open."""
    return place(descriptor).readlink()


def open_file(path: Path) -> int:
    """Open a regular file, not a link, and return its descriptor."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with folder(path.parent) as parent:
        descriptor = os.open(path.name, flags, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TestbedError(f"{path}: not a plain file")
    return descriptor


def plain_file(path: Path, max_bytes: int | None = MAX_DOCUMENT_BYTES) -> Path:
    """Return the path of a plain file; raise an error if reading it could take all time or memory.

    Whoever wrote a results folder may have put pipes, devices and holes of terabytes there.
    """
    _check_plain(path, path.stat(), max_bytes)
    return path


class UnfitFile(OSError, ValueError):
    """An error: the file is no plain one, or too large for its content to be right."""

    def __str__(self) -> str:
        return str(self.strerror)


def _check_plain(path: Path, status: os.stat_result, max_bytes: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnfitFile(errno.EINVAL, "not a plain file", str(path))
    if max_bytes is not None and status.st_size > max_bytes:
        raise UnfitFile(errno.EFBIG, f"larger than {max_bytes >> 20} MiB", str(path))


def _opened(path: Path, max_bytes: int | None) -> BinaryIO:
    """Open a plain file; a pipe that took its place keeps nobody waiting."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    file = open(path, "rb", opener=lambda name, _flags: os.open(name, flags))  # noqa: SIM115
    try:
        _check_plain(path, os.fstat(file.fileno()), max_bytes)
    except OSError:
        file.close()
        raise
    return file


def read_bytes(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Read a plain file of a limited size, even if somebody else is writing it."""
    with _opened(path, max_bytes) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def read_text(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES) -> str:
    """Read a text of a limited size; bytes that are not UTF-8 are replaced."""
    return read_bytes(path, max_bytes).decode(errors="replace")


def lines(path: Path, max_length: int = MAX_LINE_LENGTH) -> Iterator[str]:
    """Yield the lines of a text of any size; one that is longer comes in several pieces."""
    with io.TextIOWrapper(_opened(path, None), errors="replace") as file:
        while line := file.readline(max_length):
            yield line


def table(path: Path) -> Path:
    """Return the path of a plain file for a reader of tables, which holds whole lines of it."""
    with _opened(path, MAX_DOCUMENT_BYTES) as file:
        while len(piece := file.read(MAX_LINE_LENGTH)) == MAX_LINE_LENGTH:
            if b"\n" not in piece:
                raise UnfitFile(
                    errno.EINVAL, f"a line of more than {MAX_LINE_LENGTH} bytes", str(path)
                )
    return path


def head(path: Path, max_length: int) -> str:
    """Return the beginning of a text, which may be of any size."""
    with io.TextIOWrapper(_opened(path, None), errors="replace") as file:
        return file.read(max_length)


def tail(path: Path, max_bytes: int = TAIL_BYTES) -> str:
    """Return the end of a text, which may be of any size; nothing if there is no such file."""
    try:
        with _opened(path, None) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - max_bytes))
            return file.read(max_bytes).decode(errors="replace")
    except OSError:
        return ""


def make_folder(path: Path) -> None:
    """Make a folder and those above it, for the user who ran sudo."""
    try:
        os.close(open_folder(path))
    except FileNotFoundError:
        make_folder(path.parent)
        with folder(path.parent) as parent:
            with contextlib.suppress(FileExistsError):
                os.mkdir(path.name, dir_fd=parent)
            made = os.open(path.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            give_to_user(made)
        finally:
            os.close(made)


def exists(parent: int, name: str) -> bool:
    """Return whether a folder has an entry of that name, a dangling link included."""
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def remove(parent: int, name: str) -> None:
    """Remove a file, a link or a whole folder, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        trees.remove(parent, name)


def remove_folder(path: Path) -> None:
    """Remove a folder that others may have written in, if it is there."""
    with contextlib.suppress(FileNotFoundError), folder(path.parent) as parent:
        trees.remove(parent, path.name)


def remove_file(path: Path) -> None:
    """Remove one file, if it is there, but none behind another user's link."""
    with folder(path.parent) as parent, contextlib.suppress(FileNotFoundError):
        os.unlink(path.name, dir_fd=parent)


def give_to_user(descriptor: int) -> None:
    """Give a file or folder that we made as root to the user who ran sudo."""
    if user := sudo_user():
        os.fchown(descriptor, user.uid, user.gid)


def close_to_others(descriptor: int) -> None:
    """Close a folder to other users; programs of the user who ran sudo may pass through it."""
    if user := sudo_user():
        os.fchown(descriptor, -1, user.gid)
    os.fchmod(descriptor, 0o710 if user else 0o700)


def close_all_to_others(directory: int) -> None:
    """Close a folder that we made to other users, with all in it."""
    for _path, _folders, files, here in os.fwalk(".", dir_fd=directory):
        for name in files:
            mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
            os.chmod(name, mode & stat.S_IRWXU, dir_fd=here)
        os.fchmod(here, stat.S_IRWXU)


def sync(descriptor: int) -> None:
    """Put on the disk what was written on its file system: faster than file by file."""
    if _libc.syncfs(descriptor):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def give_all_to_user(directory: int) -> None:
    """Give a folder that we made as root to the user who ran sudo, with all in it.

    From the innermost out: until the end nobody else can change what is in it.
    """
    if user := sudo_user():
        for _path, _folders, files, here in os.fwalk(".", topdown=False, dir_fd=directory):
            for name in files:
                os.chown(name, user.uid, user.gid, dir_fd=here, follow_symlinks=False)
            os.fchown(here, user.uid, user.gid)


def changed_by_others(path: Path, user: User | None = None) -> str:
    """Return who could change a file or folder besides root and `user`; empty if nobody."""
    users = {0, user.uid if user else 0}
    groups = {0, user.gid if user else 0}
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - without resolving links
    resolved = path.resolve()
    for each in (*reversed(absolute.parents), absolute, *reversed(resolved.parents), resolved):
        with contextlib.suppress(FileNotFoundError):
            info = each.lstat()
            if info.st_uid not in users:
                return f"{each} belongs to user {info.st_uid}"
            if _is_open(info, groups):
                return f"{each} can be written by others"
    return ""


def _is_open(info: os.stat_result, groups: Container[int]) -> bool:
    """Return whether others can write; in a sticky folder they can only touch their own files."""
    if stat.S_ISLNK(info.st_mode) or (stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX):
        return False
    by_group = info.st_mode & stat.S_IWGRP and info.st_gid not in groups
    return bool(by_group or info.st_mode & stat.S_IWOTH)
