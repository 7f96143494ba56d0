"""The kernels that a guest can have: Debian's, for which there are patches, and the user's own."""

from __future__ import annotations

import os
from pathlib import Path

from testbed.errors import TestbedError, nearest
from testbed.machine.process import run
from testbed.scenario.model import BASE_KERNEL
from testbed.scenario.names import checked

SOURCES = Path(__file__).resolve().parents[2] / "kernel"
IMAGE = SOURCES / "image.sh"


def versions() -> list[str]:
    """The versions of Linux that have patches, the oldest first."""
    found = [path.parent.name for path in SOURCES.glob("[0-9]*/patches")]
    return sorted(found, key=lambda name: [int(part) for part in name.split(".")])


def cache() -> Path:
    """Where kernels are built (recipe.sh)."""
    own = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(own) / "tcp-testbed" / "kernel"


def own_folder(name: str) -> Path:
    """The folder of one of the user's kernels, whether it is built or not."""
    return cache() / "own" / checked(name)


def built(name: str) -> Path | None:
    """The folder of a built kernel, or None."""
    if name not in versions():
        folder = own_folder(name)
        return folder if (folder / "base").exists() else None
    done = run([str(IMAGE), "--path", name], check=False)
    folder = Path(done.stdout.strip())
    return folder if done.status == 0 and (folder / "base").exists() else None


def is_installed(version: str) -> bool:
    """Whether Debian's source of this version is on this machine."""
    return Path(f"/usr/src/linux-source-{version}.tar.xz").exists()


def own() -> list[str]:
    """The names of the user's own kernels that are built."""
    return sorted(path.parent.name for path in (cache() / "own").glob("[!.]*/base"))


def not_built(name: str) -> TestbedError:
    """What to do about a kernel that is not built."""
    if name in versions():
        return TestbedError(f"kernel {name} is not built", f"testbed kernel build {name}")
    hint = nearest(name, [*versions(), *own()])
    return TestbedError(
        f"there is no kernel {name}",
        f"{hint}; one of your own: testbed kernel build --source DIR --name {name}",
    )


def default() -> str:
    """The kernel of whatever does not name one: that of the stored numbers, or on a machine
    that has not its source the newest that it has."""
    if is_installed(BASE_KERNEL) or built(BASE_KERNEL):
        return BASE_KERNEL
    there = [version for version in versions() if is_installed(version)]
    return there[-1] if there else BASE_KERNEL
