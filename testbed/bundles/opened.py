"""A bundle of anybody's, unpacked: names and sizes are checked before anything is written.

An archive may have names that lead out of the folder, links, two files of a name, a list of names
of gigabytes, or a kilobyte that stands for a gigabyte. So only what rules allow is taken, up to
their limits, into a new folder that is open to nobody else.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import io
import lzma
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.bundles.manifest import (
    BUNDLE_APPENDIX,
    BUNDLE_CITATION,
    BUNDLE_CRATE,
    BUNDLE_MANIFEST,
    BUNDLE_PAGE,
    BUNDLED_PIECE_BYTES,
    BUNDLED_RESULTS,
    CLAIMS,
    DAMAGED_HINT,
    PROGRAM_FILES,
    BundledFile,
    BundleManifest,
    fingerprint,
    read_manifest,
)
from testbed.errors import TestbedError, UsageError, quoted, short
from testbed.machine import safe_files
from testbed.machine.atomic import workplace
from testbed.machine.safe_files import MAX_DOCUMENT_BYTES, UnfitFile, plain_file
from testbed.machine.trees import Rule, TakingLimits
from testbed.store.names import REPORT, is_file_name

SUFFIX = ".zip"
MAX_LIST_BYTES = 1 << 24  # of the names in an archive
MAX_BUNDLED_FILES = 200_000
MAX_BUNDLE_BYTES = 1 << 34  # of an archive, and of one of its files
BUNDLED = (
    *(
        Rule(each, MAX_DOCUMENT_BYTES)
        for each in (BUNDLE_MANIFEST, BUNDLE_CRATE, BUNDLE_PAGE, BUNDLE_CITATION, BUNDLE_APPENDIX)
    ),
    *(Rule(each, MAX_DOCUMENT_BYTES) for each in (CLAIMS, REPORT)),
    Rule(f"{BUNDLED_RESULTS}/**", MAX_BUNDLE_BYTES, MAX_BUNDLED_FILES),
    Rule(f"{PROGRAM_FILES}/**", MAX_DOCUMENT_BYTES, MAX_BUNDLED_FILES),
)
UNREADABLE = (  # what reading an archive can raise
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError),
    *(OSError, ValueError, LookupError, OverflowError, RuntimeError, NotImplementedError),
)
TOO_LARGE_HINT = "a bundle without captures is small: testbed bundle … --captures drop"


@dataclass(frozen=True)
class Bundle:
    """A bundle in a folder of ours."""

    archive: Path
    folder: Path
    manifest: BundleManifest
    fingerprint: str
    faults: Mapping[str, str]  # file → what is wrong with it

    @property
    def stores(self) -> list[Path]:
        """Return its results folders."""
        above = self.folder / BUNDLED_RESULTS
        return sorted(above.iterdir()) if above.is_dir() else []

    def require_whole(self) -> None:
        """Raise for the first file that is not what the bundle lists."""
        for name, fault in self.faults.items():
            raise TestbedError(f"{self.archive}: {name}: {fault}", DAMAGED_HINT)


class _BoundedFile(io.FileIO):
    """A file of which no piece is larger than the list of names may be."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read no more than the limit, whatever the archive says of itself."""
        few = size is not None and 0 <= size < MAX_LIST_BYTES
        return super().read(size if few else MAX_LIST_BYTES) or b""


def is_bundle(path: Path) -> bool:
    """Return whether a path is that of a bundle and not of a folder."""
    return path.suffix == SUFFIX and not path.is_dir()


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[Bundle]:
    """Unpack a bundle for the duration of a block."""
    try:
        plain_file(path, MAX_BUNDLE_BYTES)
    except UnfitFile as error:
        raise UsageError(f"{path}: {error}", TOO_LARGE_HINT) from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", "name a bundle: paper.zip") from error
    with contextlib.ExitStack() as opened:
        try:
            file = opened.enter_context(_BoundedFile(path))
            archive = opened.enter_context(zipfile.ZipFile(file))
            entries = _checked(archive, path)
        except UNREADABLE as error:
            what = f"truncated, or no bundle: {short(error)}"
            raise TestbedError(f"{path}: {what}", DAMAGED_HINT) from error
        try:
            text = archive.read(BUNDLE_MANIFEST)
        except UNREADABLE as error:
            what = f"{BUNDLE_MANIFEST}: damaged: {short(error)}"
            raise TestbedError(f"{path}: {what}", DAMAGED_HINT) from error
        manifest = read_manifest(text, str(path))
        folder = opened.enter_context(workplace("bundle"))
        needed = sum(entry.file_size for entry in entries.values())
        if needed > shutil.disk_usage(folder).free:
            raise TestbedError(
                f"{path}: unpacked it has {needed / 1e9:.1f} GB, more than is free in "
                f"{folder.parent}",
                "name another folder: TMPDIR=FOLDER",
            )
        faults = dict(_unpack(archive, entries, manifest, folder))
        yield Bundle(path, folder, manifest, fingerprint(text), faults)


def _checked(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the files of an archive by name; raise for one that no bundle has."""
    limits, entries = TakingLimits(BUNDLED), dict[str, zipfile.ZipInfo]()
    for entry in archive.infolist():
        if why := _unfit(entry, limits) or ("twice" if entry.filename in entries else ""):
            name = quoted(entry.orig_filename)
            raise TestbedError(
                f"{path}: {name}: {why}", "`testbed bundle` writes no such thing: it was changed"
            )
        entries[entry.filename] = entry
    if BUNDLE_MANIFEST not in entries:
        raise TestbedError(f"{path}: no bundle: {BUNDLE_MANIFEST} is missing", DAMAGED_HINT)
    return entries


def _unfit(entry: zipfile.ZipInfo, limits: TakingLimits) -> str:
    """Return why a bundle cannot have this file, or nothing; count it."""
    name, mode = entry.filename, entry.external_attr >> 16
    parts = tuple(name.split("/"))
    if name.startswith("/") or ".." in parts or entry.orig_filename != name:
        return "a name that leads elsewhere"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "a link" if stat.S_ISLNK(mode) else "not a plain file"
    number = limits.rule_of_file(parts)
    if number is None or not is_file_name(name):
        return "not one of a bundle's files"
    if why := limits.beyond(number, parts, entry.file_size):
        return why
    limits.count(number, entry.file_size)
    return ""


def _unpack(
    archive: zipfile.ZipFile,
    entries: Mapping[str, zipfile.ZipInfo],
    manifest: BundleManifest,
    folder: Path,
) -> Iterator[tuple[str, str]]:
    """Write the files into a folder of ours; yield what is not as the manifest lists it."""
    for name in manifest.files.keys() - entries.keys():
        yield name, "missing"
    with safe_files.folder(folder) as parent:
        for name, entry in entries.items():
            if name == BUNDLE_MANIFEST:
                continue
            try:
                written = _write(archive, entry, parent)
            except UNREADABLE as error:
                yield name, f"damaged: {short(error)}"
                continue
            listed = manifest.files.get(name)
            if listed is None:
                yield name, f"not listed in {BUNDLE_MANIFEST}"
            elif written != listed:
                yield name, "changed: it is not what the bundle lists"


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, parent: int) -> BundledFile:
    """Write one file, and return its size and hash."""
    *above, _ = entry.filename.split("/")
    for depth in range(1, len(above) + 1):
        with contextlib.suppress(FileExistsError):
            os.mkdir("/".join(above[:depth]), 0o700, dir_fd=parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(entry.filename, flags, 0o600, dir_fd=parent)
    with os.fdopen(descriptor, "wb") as file, archive.open(entry) as packed:
        while piece := packed.read(BUNDLED_PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
            file.write(piece)
    return BundledFile(size, digest.hexdigest())


@functools.cache
def _until_the_end() -> contextlib.ExitStack:
    opened = contextlib.ExitStack()
    atexit.register(opened.close)
    return opened


@functools.cache
def _unpacked_once(path: Path, _changed_ns: int) -> Bundle:
    bundle = _until_the_end().enter_context(unpacked(path))
    bundle.require_whole()
    return bundle


def folder_of(path: Path) -> Path:
    """Return the results folder that a path names: itself, or the one of the bundle that it is."""
    folders = folders_of(path)
    if len(folders) != 1:
        raise UsageError(
            f"{path}: {len(folders)} results folders are in it", "unpack it, and name one of them"
        )
    return folders[0]


def folders_of(path: Path) -> list[Path]:
    """Return the results folders that a path names: itself, or those of the bundle that it is.

    A bundle is unpacked until the process ends.
    """
    if not is_bundle(path):
        return [path]
    changed_ns = path.stat().st_mtime_ns if path.exists() else 0
    return _unpacked_once(path.absolute(), changed_ns).stores
