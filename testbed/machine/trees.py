"""Folders that others write in: what is taken from them, and how they are removed.

A guest changes the folder that it writes into as it likes, and so does code in place of its
kernel. There may be links, pipes, names of any bytes, and folders that nobody may read or that lie
in 100,000 others. So no file is opened there: folders are opened by the descriptor of the one that
the guest got, which `openat2` does not leave; files that a table allows are moved to a folder that
no guest has seen, and looked at there. Nothing recurses.

The standard library alone: the head of a cluster sends this code to its workers.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import re
import secrets
import stat
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self


class _Library(ctypes.CDLL):
    """A C library that is loaded again where this code is sent to."""

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self._name, ctypes.DEFAULT_MODE, None, True)


MAX_DEPTH = 100  # of folders in a tree: those who read results recurse
MAX_PATH_BYTES = 2000  # below a folder of results, whose own path comes before it
MAX_TOTAL_BYTES = 1 << 36  # of all files, which are hashed or read: most of it may be a hole
MAX_SHOWN = 3  # of what was not taken
MAX_NAME_SHOWN = 80
TREE = "**"  # the end of a rule's path: any files, in any folders
PLAIN_NAME = "[!-.0-~]+"  # what `*` in a rule's path stands for: printable, no space and no slash
OPENAT2 = 437  # the number of the system call
RESOLVE = 0x01 | 0x02 | 0x04 | 0x08  # NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH
_FOUND = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_libc = _Library(None, use_errno=True)
_patterns: dict[tuple[str, ...], tuple[re.Pattern[str], re.Pattern[str]]] = {}  # can be sent
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


@dataclass(frozen=True)
class Rule:
    """Files that a run may leave, by their path, in which `*` is part of a plain name."""

    path: str
    max_bytes: int  # of one file
    max_files: int = 1  # in a tree: of files and folders


@dataclass(frozen=True)
class Taken:
    """What was taken of what a guest left, and what was not."""

    files: int = 0  # in trees
    total_bytes: int = 0
    refused: int = 0  # what is no plain file, or beyond a limit
    unexpected: int = 0  # other files and folders, which no rule allows
    shown: tuple[str, ...] = ()  # the first of both

    def __str__(self) -> str:
        """Return a line that counts what was not taken, and names the first; empty if all was."""
        count = self.refused + self.unexpected
        if not count:
            return ""
        more = f" and {count - len(self.shown)} more" if count > len(self.shown) else ""
        what = (
            "1 thing that the guest left was"
            if count == 1
            else f"{count:,} things that the guest left were"
        )
        return f"{what} not taken: {', '.join(self.shown)}{more}"


class GuestFolder:
    """The folder that a guest writes into, inside one that only we may pass.

    It gets all that is in a folder before the guest is started. When the guest has ended, what is
    allowed is moved back, and the rest is removed.
    """

    def __init__(self, folder: Path) -> None:
        self._name = f".guest.{secrets.token_hex(8)}"
        self._handed: set[str] = set()  # what the host put there, and what is in these folders
        with contextlib.ExitStack() as opened:
            results = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, results)
            os.mkdir(self._name, 0o700, dir_fd=results)
            inside = f"{self._name}/guest"
            os.mkdir(inside, 0o700, dir_fd=results)
            self._results, self._folder = results, open_folder(results, inside)
            opened.callback(os.close, self._folder)
            owner = os.fstat(results)
            os.fchown(self._folder, -1, owner.st_gid)
            os.fchmod(self._folder, stat.S_IMODE(owner.st_mode))
            self._hand_over()
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove what was not taken."""
        with self._opened:
            remove(self._results, self._name)

    @property
    def start_path(self) -> Path:
        """The working directory of the process that is to be started, and for nothing else."""
        return Path(f"/proc/self/fd/{self._folder}")

    def _hand_over(self) -> None:
        with os.scandir(self._results) as entries:
            for entry in [each for each in entries if each.name != self._name]:
                self._handed.add(entry.name)
                if entry.is_dir(follow_symlinks=False):
                    with _folder(self._results, entry.name) as below, os.scandir(below) as names:
                        self._handed.update(f"{entry.name}/{each.name}" for each in names)
                _move(entry.name, self._results, self._folder)

    def take(self, rules: Sequence[Rule]) -> Taken:
        """Move back the files that the rules allow, once the guest has ended.

        Nothing is said of what the host had put there, or of what is in folders of its folders.
        """
        os.fchmod(self._folder, 0o700)
        taking = _Taking(self._folder, self._results, self._handed, rules)
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            waiting += taking.look(waiting.pop())
        return taking.taken()


class TakingLimits:
    """What rules allow, and what was taken of it so far."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self._files, self._folders = _compiled(tuple(rule.path for rule in rules))
        self._counts = [0] * len(rules)
        self._total_bytes = 0

    def rule_of_file(self, parts: tuple[str, ...]) -> int | None:
        """Return the number of the rule that allows a file, or None."""
        return _first(self._files, parts)

    def rule_of_folder(self, parts: tuple[str, ...]) -> int | None:
        """Return the number of the rule whose files a folder may have, or None."""
        return _first(self._folders, parts)

    def beyond(self, number: int, parts: tuple[str, ...], size: int) -> str:
        """Return the limit that a file or folder is beyond, or nothing."""
        rule = self.rules[number]
        if len(parts) > MAX_DEPTH:
            return f"below {MAX_DEPTH} folders"
        if len(os.fsencode("/".join(parts))) > MAX_PATH_BYTES:
            return f"a path of more than {MAX_PATH_BYTES} bytes"
        if size > rule.max_bytes:
            return f"larger than {_amount(rule.max_bytes)}"
        if self._counts[number] >= rule.max_files:
            return f"more than {rule.max_files:,} files"
        if self._total_bytes + size > MAX_TOTAL_BYTES:
            return f"more than {_amount(MAX_TOTAL_BYTES)} in all"
        return ""

    def count(self, number: int, size: int) -> None:
        """Count a file or folder that is taken."""
        self._counts[number] += 1
        self._total_bytes += size


class _Taking:
    """Takes files, folder by folder."""

    def __init__(
        self, source: int, target: int, handed: Collection[str], rules: Sequence[Rule]
    ) -> None:
        self._tree_files = self._tree_bytes = self._refused = self._unexpected = 0
        self._shown: list[str] = []
        self._source, self._target, self._handed = source, target, handed
        self._limits = TakingLimits(rules)
        self._owner = os.fstat(target).st_uid

    def taken(self) -> Taken:
        """Return what was taken so far."""
        counts = (self._tree_files, self._tree_bytes, self._refused, self._unexpected)
        return Taken(*counts, tuple(self._shown))

    def look(self, above: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Take the files of a folder, and return those of its folders that may have more."""
        folders = []
        try:
            with (
                contextlib.ExitStack() as made,
                _folder(self._source, "/".join(above) or ".") as source,
                os.scandir(source) as entries,
            ):
                target = -1
                for entry in entries:
                    parts = (*above, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        if self._may_enter(parts):
                            folders.append(parts)
                    elif (number := self._limits.rule_of_file(parts)) is None:
                        self._pass_over(parts, entry.stat(follow_symlinks=False))
                    else:
                        if target < 0:
                            target = made.enter_context(self._made(above))
                        self._take(number, parts, source, target)
        except OSError as error:
            self._drop(above, error.strerror or "cannot be read")
        return folders

    def _may_enter(self, parts: tuple[str, ...]) -> bool:
        number = self._limits.rule_of_folder(parts)
        if number is None:
            self._pass_over(parts, None)
            return False
        if self._limits.rules[number].path.endswith(TREE):
            if why := self._limits.beyond(number, parts, 0):
                self._drop(parts, why)
                return False
            self._limits.count(number, 0)
        return True

    def _take(self, number: int, parts: tuple[str, ...], source: int, target: int) -> None:
        """Move a file, and look at what has arrived: by then nobody can change it."""
        name = parts[-1]
        try:
            before = os.stat(name, dir_fd=source, follow_symlinks=False)
            if why := self._unfit(before) or self._limits.beyond(number, parts, before.st_size):
                return self._drop(parts, why)
            _move(name, source, target)
            status = os.stat(name, dir_fd=target, follow_symlinks=False)
            why = self._unfit(status) or self._limits.beyond(number, parts, status.st_size)
            if why or not os.path.samestat(before, status):
                remove(target, name)
                return self._drop(parts, why or "changed meanwhile")
            mode = status.st_mode & 0o755 | 0o600
            if stat.S_IMODE(status.st_mode) != mode:
                os.chmod(name, mode, dir_fd=target)  # a file, as nobody else can put a link there
        except OSError as error:
            return self._drop(parts, error.strerror or "cannot be moved")
        self._limits.count(number, status.st_size)
        if self._limits.rules[number].path.endswith(TREE):
            self._tree_files += 1
            self._tree_bytes += status.st_size

    def _unfit(self, status: os.stat_result) -> str:
        """Return what is wrong with a file, or nothing."""
        if not stat.S_ISREG(status.st_mode):
            return _KINDS[stat.S_IFMT(status.st_mode)]
        if status.st_nlink != 1:
            return "a hard link"
        return "" if status.st_uid == self._owner else f"of user {status.st_uid}"

    @contextlib.contextmanager
    def _made(self, parts: tuple[str, ...]) -> Iterator[int]:
        """Open a folder for what is taken, and make it first if it is not there."""
        for depth in range(1, len(parts) + 1):
            with contextlib.suppress(FileExistsError):
                os.mkdir("/".join(parts[:depth]), dir_fd=self._target)
        with _folder(self._target, "/".join(parts) or ".") as made:
            yield made

    def _pass_over(self, parts: tuple[str, ...], status: os.stat_result | None) -> None:
        """Leave what no rule allows; say so unless the host had put it there."""
        why = "" if status is None or stat.S_ISREG(status.st_mode) else self._unfit(status)
        if why:
            self._drop(parts, why)
        elif "/".join(parts[:2]) not in self._handed:
            self._unexpected += 1
            self._show(parts, "")

    def _drop(self, parts: tuple[str, ...], why: str) -> None:
        """Leave what is no plain file, or beyond a limit; folders of programs may have such."""
        if len(parts) <= 2 or "/".join(parts[:2]) not in self._handed:
            self._refused += 1
            self._show(parts, f" ({why})")

    def _show(self, parts: tuple[str, ...], why: str) -> None:
        if len(self._shown) < MAX_SHOWN:
            name = repr("/".join(parts))[1:-1]
            short = name if len(name) <= MAX_NAME_SHOWN else f"{name[:MAX_NAME_SHOWN]}…"
            self._shown.append(f"{short}{why}")


def _expression(path: str) -> str:
    """Return the regular expression of a rule's path."""
    plain = re.escape(path.removesuffix(TREE)).replace(r"\*", PLAIN_NAME)
    return f"{plain}.+" if path.endswith(TREE) else plain


def _above(path: str) -> str:
    """Return the regular expression of the folders that a rule's files are in."""
    parts = path.split("/")
    folders = [_expression("/".join(parts[:depth])) for depth in range(1, len(parts))]
    return "|".join([*folders, *([_expression(path)] if parts[-1] == TREE else [])]) or r"(?!)"


def _compiled(paths: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what matches the files of rules, and the folders above: with a group for each rule."""
    if paths not in _patterns:
        files, folders = map(_expression, paths), map(_above, paths)
        _patterns[paths] = _alternatives(files), _alternatives(folders)
    return _patterns[paths]


def _alternatives(expressions: Iterable[str]) -> re.Pattern[str]:
    groups = [f"({each})" for each in expressions]
    joined = re.compile("|".join(groups) or r"(?!)", re.DOTALL)
    if joined.groups != len(groups):  # a group more, and files would be taken by other rules
        raise ValueError("a rule's path must not contain capturing groups")
    return joined


def _first(expressions: re.Pattern[str], parts: tuple[str, ...]) -> int | None:
    """Return the number of the first rule that matches a path."""
    match = expressions.fullmatch("/".join(parts))
    return match.lastindex - 1 if match and match.lastindex else None


def _amount(size: int) -> str:
    return f"{size >> 20:,} MiB" if size >= 1 << 20 else f"{size:,} bytes"


def _move(name: str, source: int, target: int) -> None:
    os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)


def open_folder(parent: int, path: str) -> int:
    """Open a folder below another, and make it ours to read and to change.

    No link and no mount on the way is followed.
    """
    with _found(parent, path, os.O_DIRECTORY) as descriptor:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            Path(f"/proc/self/fd/{descriptor}").chmod(mode | stat.S_IRWXU)
        return os.open(".", _LISTED, dir_fd=descriptor)


@contextlib.contextmanager
def _folder(parent: int, path: str) -> Iterator[int]:
    folder = open_folder(parent, path)
    try:
        yield folder
    finally:
        os.close(folder)


@contextlib.contextmanager
def _found(parent: int, path: str, flags: int = 0) -> Iterator[int]:
    """Find a file or folder, whoever may open it."""
    how = struct.pack("=QQQ", _FOUND | flags, 0, RESOLVE)
    descriptor = _libc.syscall(OPENAT2, parent, os.fsencode(path), how, len(how))
    if descriptor < 0:
        why = ctypes.get_errno()
        if why not in (errno.ENOSYS, errno.EPERM):  # Linux before 5.6, or a container's filter
            raise OSError(why, os.strerror(why), path)
        descriptor = _found_step_by_step(parent, path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _found_step_by_step(parent: int, path: str, flags: int) -> int:
    device, here = os.fstat(parent).st_dev, os.dup(parent)
    for name in path.split("/"):
        try:
            below = os.open(name, _FOUND | flags, dir_fd=here)
        finally:
            os.close(here)
        here = below
        if os.fstat(here).st_dev != device:
            os.close(here)
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    return here


def remove(parent: int, name: str) -> None:
    """Remove a file, a link or a whole folder, however deep, but nothing in a mount."""
    if not _removed(parent, name):
        with _folder(parent, name) as folder:
            _empty(folder)
        os.rmdir(name, dir_fd=parent)


def _removed(parent: int, name: str) -> bool:
    """Remove a file or an empty folder; return False if a folder is not empty."""
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
    return True


def _empty(folder: int) -> None:
    """Remove all that is in a folder: what is deeper is moved up first, under new names."""
    mark, numbers, left = secrets.token_hex(8), itertools.count(), True
    while left:
        left = False
        with os.scandir(folder) as entries:
            for entry in entries:
                left = True
                with contextlib.suppress(FileNotFoundError):
                    if not _removed(folder, entry.name):
                        _move_up(folder, entry.name, mark, numbers)


def _move_up(folder: int, name: str, mark: str, numbers: Iterator[int]) -> None:
    with _folder(folder, name) as below, os.scandir(below) as entries:
        for entry in entries:
            if not _removed(below, entry.name):
                with _folder(below, entry.name):  # who moves a folder must be able to write in it
                    pass
                new = f"{mark}.{next(numbers)}"
                os.rename(entry.name, new, src_dir_fd=below, dst_dir_fd=folder)
