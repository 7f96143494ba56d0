"""Files and folders that appear whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from testbed.errors import TestbedError, hint_for
from testbed.machine import safe_files
from testbed.machine.journal import JOURNAL

_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def _temporary(parent: int, name: str) -> Iterator[str]:
    """Yield a name for something new in a folder, noted; what has it in the end is removed."""
    new = JOURNAL.temporary_name(name)
    number = JOURNAL.note(temporary=str(safe_files.real_path(parent) / new))
    try:
        yield new
    finally:
        with contextlib.suppress(OSError):
            safe_files.remove(parent, new)
            JOURNAL.cross_out(number)  # otherwise `testbed clean` removes it


def replace(
    path: Path,
    write: Callable[[Path], object],
    *,
    private: bool = False,
    durable: bool = False,
) -> None:
    """Let `write` create a file, which then takes the place of `path`.

    It belongs to the user who ran sudo, unless it is `private`. If it is `durable`, it is on the
    disk before the older one is gone, and so is all that was written before.
    """
    with (
        _told(path),
        safe_files.folder(path.parent) as parent,
        _temporary(parent, path.name) as new,
    ):
        with _new_file(parent, new, 0o600 if private else 0o666) as file:
            write(safe_files.place(file))
            if not private:
                safe_files.give_to_user(file)
            if durable:
                safe_files.sync(file)
        os.replace(new, path.name, src_dir_fd=parent, dst_dir_fd=parent)


def replace_all(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files of a folder, each of which takes the place of the one of its name.

    Thousands of them are noted once, and not on the disk one by one.
    """
    with _told(folder), safe_files.folder(folder) as parent, _temporary(parent, "new") as new:
        for name, text in texts.items():
            with _new_file(parent, new, 0o666) as file:
                with os.fdopen(file, "w", encoding="utf-8", closefd=False) as script:
                    script.write(text)
                safe_files.give_to_user(file)
            os.replace(new, name, src_dir_fd=parent, dst_dir_fd=parent)


@contextlib.contextmanager
def _new_file(parent: int, name: str, mode: int) -> Iterator[int]:
    file = os.open(name, _NEW_FILE, mode, dir_fd=parent)
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say of an error of the system's what could not be written, and what may help."""
    try:
        yield
    except OSError as error:
        missing = f"there is no folder {path.parent}: make it, or name another path"
        hint = missing if error.errno == errno.ENOENT else hint_for(error)
        raise TestbedError(f"{path}: cannot be written: {error.strerror or error}", hint) from error


def replace_link(path: Path, target: str) -> None:
    """Make a link point at another target, in one step."""
    with safe_files.folder(path.parent) as parent, _temporary(parent, path.name) as new:
        os.symlink(target, new, dir_fd=parent)
        os.replace(new, path.name, src_dir_fd=parent, dst_dir_fd=parent)


def one_journal() -> contextlib.AbstractContextManager[None]:
    """Return a context in which the process's journal stays, rather than one for each file."""
    return JOURNAL.held()


@contextlib.contextmanager
def whole_folder(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a folder that takes the place of `path` when it is complete and on the disk.

    Until then it has another name, is closed to other users, and is used by a descriptor: whoever
    may write in the folder above cannot put a link in its place. After an exception it is gone, and
    an older one stays. A `private` one stays closed to others, with all that is in it.
    """
    with safe_files.folder(path.parent) as parent, _temporary(parent, path.name) as new:
        os.mkdir(new, dir_fd=parent)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        made = os.open(new, flags, dir_fd=parent)
        try:
            mode = stat.S_IMODE(os.fstat(made).st_mode)
            safe_files.close_to_others(made)
            yield safe_files.place(made)
            if private:
                safe_files.close_all_to_others(made)
            else:
                os.fchmod(made, mode)
            safe_files.give_all_to_user(made)
            safe_files.sync(made)
        finally:
            os.close(made)
        _take_the_place(parent, new, path.name)


def _take_the_place(parent: int, new: str, name: str) -> None:
    """Replace a folder by two renames; what was there before is deleted last."""
    old = JOURNAL.temporary_name(name)
    number = JOURNAL.note_on_disk(aside=str(safe_files.real_path(parent) / old), of=name)
    try:
        try:
            os.rename(name, old, src_dir_fd=parent, dst_dir_fd=parent)
        except FileNotFoundError:
            pass
        except PermissionError as error:  # in a sticky folder
            owner = os.stat(name, dir_fd=parent, follow_symlinks=False).st_uid
            raise TestbedError(
                f"{safe_files.real_path(parent) / name}: only user {owner} can replace it",
                "name another folder with --out",
            ) from error
        os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)
    finally:
        with contextlib.suppress(OSError):
            put_back_or_remove(parent, old, name)
            JOURNAL.cross_out(number)


def put_back_or_remove(parent: int, old: str, name: str) -> bool:
    """End a replacement: the old one goes back if nothing has taken its place."""
    back = safe_files.exists(parent, old) and not safe_files.exists(parent, name)
    if back:
        os.rename(old, name, src_dir_fd=parent, dst_dir_fd=parent)
    else:
        safe_files.remove(parent, old)
    return back


@contextlib.contextmanager
def workplace(purpose: str) -> Iterator[Path]:
    """Yield a folder for temporary files, removed afterwards."""
    base = _temporary_files()
    with safe_files.folder(base) as parent, _temporary(parent, f"testbed-{purpose}") as name:
        os.mkdir(name, 0o700, dir_fd=parent)
        yield base / name


def _temporary_files() -> Path:
    """Return the folder that temporary files go to.

    `tempfile.gettempdir` tries each by a file, which a process that is killed just then leaves.
    """
    given = filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP")))
    for place in (*given, "/tmp", "/var/tmp"):
        if Path(place).is_dir() and os.access(place, os.W_OK | os.X_OK):
            return Path(place).absolute()
    raise TestbedError("temporary files can be written nowhere", "set TMPDIR to a folder of yours")
