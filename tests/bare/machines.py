"""Bare Debian machines, as root file systems: the essential packages, apt and sudo, and no more.

A release is fetched once, by mmdebstrap, and kept in the user's cache. A machine is the release
below a layer of its own, which is removed with the machine; it runs on this machine's kernel and
network.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.machine.process import run

PROJECT = Path(__file__).resolve().parents[2]
MIRROR = "http://deb.debian.org"
SUITES = {"12": "bookworm", "13": "trixie"}  # a release's name in the archive
CERTIFICATES = "/etc/this-machine.crt"


@dataclass(frozen=True)
class Machine:
    """A root file system with an ordinary user, who may use sudo and has a copy of the project."""

    root: Path
    user: str
    folder: str  # where in it the project is

    @property
    def project(self) -> Path:
        """The project's copy, seen from outside."""
        return self.root / self.folder.removeprefix("/")

    def command(self, *argv: str) -> list[str]:
        """The command line that runs a command there, as the user, in the project's folder."""
        sandbox = "unshare --mount --pid --fork --kill-child --ipc --uts".split()
        enter = Path(__file__).with_name("enter.sh")
        return [*sandbox, str(enter), str(self.root), self.user, self.folder, *argv]


def release(number: str) -> Path:
    """The file system of a release of Debian, made if it is not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    made = cache / "tcp-testbed" / "bare" / f"debian-{number}"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=made.parent, prefix=".new-") as temporary:
            bootstrap(SUITES[number], Path(temporary) / "root")
            (Path(temporary) / "root").rename(made)
    return made


def bootstrap(suite: str, target: Path) -> None:
    """Make a release's file system from its packages."""
    sources = [
        f"deb {MIRROR}/debian {suite} main",
        f"deb {MIRROR}/debian {suite}-updates main",
        f"deb {MIRROR}/debian-security {suite}-security main",
    ]
    run(["mmdebstrap", "--variant=minbase", "--include=sudo", suite, str(target), *sources])


@contextlib.contextmanager
def machine(number: str, user: str = "student", folder: str = "") -> Iterator[Machine]:
    """A machine of that release, for as long as the block lasts."""
    lower = release(number)
    with tempfile.TemporaryDirectory(dir=lower.parent, prefix=".machine-") as temporary:
        upper, work, root = (Path(temporary) / name for name in ("upper", "work", "root"))
        for each in (upper, work, root):
            each.mkdir()
        Path(temporary).chmod(0o755)
        layers = f"lowerdir={lower},upperdir={upper},workdir={work}"
        run(["mount", "-t", "overlay", "overlay", "-o", layers, str(root)])
        try:
            made = Machine(root, user, folder or f"/home/{user}/tcp-testbed")
            _furnish(made)
            yield made
        finally:
            run(["umount", str(root)])


def _furnish(made: Machine) -> None:
    """The user, the project, and the way to the network."""
    etc = made.root / "etc"
    run(["useradd", "--root", str(made.root), "-m", "-s", "/bin/bash", made.user])
    (etc / "sudoers.d" / made.user).write_text(f"{made.user} ALL=(ALL) NOPASSWD: ALL\n")
    (etc / "hosts").write_text("127.0.0.1 localhost bare\n")
    shutil.copy("/etc/resolv.conf", etc)
    _, certificates = pip_settings(etc)
    if certificates:
        shutil.copy(certificates, made.root / CERTIFICATES.removeprefix("/"))
    copy_project(made.project)
    run(["chroot", str(made.root), "chown", "-R", f"{made.user}:", made.folder])


def pip_settings(folder: Path) -> tuple[Path, str]:
    """A pip.conf in a folder, and the certificates that it names by CERTIFICATES, if any.

    Between this machine and the package index may be a proxy with certificates of its own.
    """
    certificates = os.environ.get("PIP_CERT", "")
    made = folder / "pip.conf"
    made.write_text(f"[global]\ncert = {CERTIFICATES}\n" if certificates else "")
    return made, certificates


def copy_project(target: Path) -> None:
    """The project's files as they are now, without what git ignores."""
    argv = [
        "git",
        "-C",
        str(PROJECT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    for name in run(argv).stdout.split("\0"):
        if name and (PROJECT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, target / name, follow_symlinks=False)
