"""Linux's own tests of the network, from a kernel's source: tools/testing/selftests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import TestbedError, UsageError, nearest
from testbed.guest import kernels
from testbed.guest.worker import cache_folder
from testbed.machine import atomic, safe_files
from testbed.machine.process import run

SELFTESTS = "tools/testing/selftests"
# What the tests of the network are compiled with, below the top of a source.
TEST_PARTS = (
    *("Makefile", "Kbuild", "Kconfig", "scripts", "usr", "include", "Documentation/netlink"),
    *("arch/x86/Makefile", "arch/x86/include", "arch/x86/entry/syscalls"),
    *("tools/arch", "tools/build", "tools/include", "tools/lib", "tools/net", "tools/scripts"),
    "tools/testing/selftests",
)


def selftests(version: str, part: str) -> Path:
    """Return a folder of the tests of one of Debian's kernels, unpacked once from its source."""
    if version not in kernels.versions():
        hint = nearest(version, kernels.versions())
        raise UsageError(f"--selftests {version}: no such kernel", hint)
    archive = kernels.source_archive(version)
    if archive is None:
        hint = f"testbed kernel build {version}"
        raise UsageError(f"--selftests {version}: its source is not here", hint)
    return _unpacked(archive, version, Path(part).name, [f"{SELFTESTS}/{part}"])


def test_tree(version: str) -> Path:
    """Return what a version's tests of the network are compiled from, unpacked once."""
    archive = kernels.source_archive(version)
    assert archive is not None  # its kernel was built from it
    return _unpacked(archive, version, "tree", TEST_PARTS)


def _unpacked(archive: Path, version: str, name: str, parts: Sequence[str]) -> Path:
    """Return a folder with a part of a source, or with several below their names."""
    place = cache_folder() / "selftests" / f"{version}-{archive.stat().st_mtime_ns}"
    folder = place / name
    if not folder.is_dir():
        safe_files.make_folder(place)
        with atomic.workplace("selftests") as unpacked:
            _unpack(archive, version, parts, unpacked)
            with atomic.whole_folder(folder) as new:
                shutil.copytree(unpacked, new, dirs_exist_ok=True, symlinks=True)
    return folder


def _unpack(archive: Path, version: str, parts: Sequence[str], place: Path) -> None:
    depth = 1 + (len(Path(parts[0]).parts) if len(parts) == 1 else 0)
    inside = ["--wildcards", "--no-wildcards-match-slash", *(f"*/{part}" for part in parts)]
    argv = ["tar", "-xJf", str(archive), "-C", str(place), f"--strip-components={depth}", *inside]
    done = run(argv, check=False, env={**os.environ, "LC_ALL": "C"})
    if "Not found in archive" in done.stderr:
        if len(parts) > 1:  # an older version has fewer
            return
        raise UsageError(
            f"Linux {version} has no {parts[0]}",
            f"a newer one: --selftests {kernels.versions()[-1]}",
        )
    if done.status != 0:
        why = done.stderr.strip().split("\n")[0]
        raise TestbedError(f"{archive} cannot be unpacked: {why}", "is the disk full?")
