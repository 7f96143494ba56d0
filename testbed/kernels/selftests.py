"""Linux's own tests of the network, from a kernel's source: tools/testing/selftests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from testbed.errors import TestbedError, UsageError, nearest
from testbed.guest import kernels
from testbed.guest.worker import cache_folder
from testbed.machine import atomic, safe_files
from testbed.machine.process import run

SELFTESTS = "tools/testing/selftests"


def selftests(version: str, part: str) -> Path:
    """Return a folder of the tests of one of Debian's kernels, unpacked once from its source."""
    if version not in kernels.versions():
        hint = nearest(version, kernels.versions())
        raise UsageError(f"--selftests {version}: no such kernel", hint)
    archive = kernels.source_archive(version)
    if archive is None:
        hint = f"testbed kernel build {version}"
        raise UsageError(f"--selftests {version}: its source is not here", hint)
    place = cache_folder() / "selftests" / f"{version}-{archive.stat().st_mtime_ns}"
    folder = place / Path(part).name
    if not folder.is_dir():
        safe_files.make_folder(place)
        with atomic.workplace("selftests") as unpacked:
            _unpack(archive, version, part, unpacked)
            with atomic.whole_folder(folder) as new:
                shutil.copytree(unpacked, new, dirs_exist_ok=True)
    return folder


def _unpack(archive: Path, version: str, part: str, place: Path) -> None:
    depth = 1 + len(Path(SELFTESTS, part).parts)
    inside = ["--wildcards", f"--strip-components={depth}", f"*/{SELFTESTS}/{part}/*"]
    argv = ["tar", "-xJf", str(archive), "-C", str(place), *inside]
    done = run(argv, check=False, env={**os.environ, "LC_ALL": "C"})
    if "Not found in archive" in done.stderr:
        raise UsageError(
            f"Linux {version} has no {SELFTESTS}/{part}",
            f"a newer one: --selftests {kernels.versions()[-1]}",
        )
    if done.status != 0:
        why = done.stderr.strip().split("\n")[0]
        raise TestbedError(f"{archive} cannot be unpacked: {why}", "is the disk full?")
