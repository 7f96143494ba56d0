"""Fetching a kernel's source: a private apt, and one clear line where it fails."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import ANY

import pytest

from testbed.guest import kernels
from testbed.guest.worker import cache_folder

MIRROR = "http://mirror.example/debian/"
PACKAGE = "linux-source-7.3"
SCRIPT = '. "$1/recipe.sh"; . "$1/source.sh"; fetch_source 7.3; find_source 7.3; echo "$packaged"'
UNSIGNED = (
    "W: The previous index files will be used. "
    "GPG error: {m} x InRelease: The following signatures couldn't be verified\n"
    "E: The repository '{m} x InRelease' is not signed."
)
NO_SUITE = "E: The repository '{m} x Release' does not have a Release file."


@dataclass(frozen=True)
class Apt:
    """A machine whose apt-get is a script: what it was told, and what it should say."""

    folder: Path

    @property
    def sources(self) -> Path:
        """Where sources are kept."""
        return cache_folder() / "sources"

    def fetch(
        self,
        update: str = "",
        download: str = "",
        mirror: str = MIRROR,
        kernel: Path = kernels.SOURCE_FOLDER,
    ) -> tuple[int, str]:
        """Fetch the source; return the exit status and what was said last."""
        uris = f"'{mirror}dists/bookworm/InRelease' x_dists_bookworm_InRelease 0"
        for name, text in {"update": update, "download": download, "uris": uris}.items():
            (self.folder / name).write_text(text.format(m=MIRROR) + "\n")
        env = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        argv = ["bash", "-c", SCRIPT, "test", str(kernel)]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr + done.stdout


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Apt:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    package, folder = tmp_path / "package", tmp_path / "bin"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "DEBIAN/control").write_text(
        f"Package: {PACKAGE}\nVersion: 7.3.4-1\nArchitecture: all\n"
        "Maintainer: x <x@y>\nDescription: x\n"
    )
    (package / "usr/src").mkdir(parents=True)
    (package / f"usr/src/{PACKAGE}.tar.xz").write_text("Linux\n")
    folder.mkdir()
    argv = ["dpkg-deb", "--root-owner-group", "-b", str(package), str(folder / "x.deb")]
    subprocess.run(argv, check=True, capture_output=True)
    (folder / "apt-get").write_text(f"""#!/bin/sh
here={folder}
[ "$1" != --print-uris ] || exec cat $here/uris
cp "$3" $here/apt.conf
for last; do :; done
case $* in *" update") said=$here/update ;; *) said=$here/download ;; esac
cp debian.sources $here/
grep . $said && exit 100
[ $said = $here/update ] || cp $here/x.deb ${{last}}_7.3.4-1_all.deb
""")
    (folder / "apt-get").chmod(0o755)
    return Apt(folder)


def test_a_source_is_fetched_by_an_apt_of_its_own(apt: Apt) -> None:
    assert not kernels.has_source("7.3")
    status, said = apt.fetch()
    assert status == 0 and said.endswith("7.3.4-1\n")
    assert kernels.has_source("7.3")
    assert {path.name for path in apt.sources.iterdir()} == {"7.3", "lock"}
    assert (apt.sources / "7.3" / f"{PACKAGE}.tar.xz").read_text() == "Linux\n"
    sources = (apt.folder / "debian.sources").read_text()
    assert f"URIs: {MIRROR}\nSuites: trixie-backports\n" in sources
    options = (apt.folder / "apt.conf").read_text()
    for place in ("Dir::State", "Dir::Cache", "Dir::Etc::SourceList"):
        assert f'{place} "{apt.sources}/' in options


@pytest.mark.parametrize(
    ("update", "download", "line", "advice"),
    [
        (
            NO_SUITE,
            "",
            "The repository '{m} x Release' does not have a Release file.",
            "is the network there?",
        ),
        (
            UNSIGNED,
            "",
            "GPG error: {m} x InRelease: The following signatures couldn't be verified",
            "not what Debian signed",
        ),
        ("", "E: Unable to locate package x", "Unable to locate package x", "the network"),
        (
            "",
            "E: Failed to fetch x  Hash Sum mismatch",
            "Failed to fetch x  Hash Sum mismatch",
            "not what Debian signed",
        ),
    ],
)
def test_what_apt_refuses_is_one_line(
    apt: Apt, update: str, download: str, line: str, advice: str
) -> None:
    status, said = apt.fetch(update, download)
    *_, message, hint = said.splitlines()
    reason = line.format(m=MIRROR)
    assert status == 1
    assert message == f"kernel: error: cannot fetch {PACKAGE} of trixie-backports: {reason}"
    assert MIRROR in hint and advice in hint
    assert [path.name for path in apt.sources.iterdir()] == ["lock"]


def test_a_listed_version_is_fetched_by_its_hash(apt: Apt, tmp_path: Path) -> None:
    """A mirror may have a version to which the patches do not apply; apt is asked if it is gone."""
    kernel, foreign = tmp_path / "kernel", tmp_path / "foreign"
    kernel.mkdir()
    foreign.mkdir()
    for name in ("recipe.sh", "source.sh", "7.3"):
        (kernel / name).symlink_to(kernels.SOURCE_FOLDER / name)
    shutil.copy(kernels.SOURCE_FOLDER.parent / "foreign" / "fetch.py", foreign)
    deb = apt.folder / "x.deb"
    digest = hashlib.sha256(deb.read_bytes()).hexdigest()
    line = f"{PACKAGE}_7.3.9-1_all.deb {digest} {deb.as_uri()}\n"
    (foreign / "linux.list").write_text(line)
    assert apt.fetch(kernel=kernel) == (0, ANY)
    assert (apt.sources / "7.3" / "version").read_text() == "7.3.9-1\n"
    assert (apt.sources / "7.3" / f"{PACKAGE}.tar.xz").read_text() == "Linux\n"
    shutil.rmtree(apt.sources)
    (foreign / "linux.list").write_text(line.replace(digest, "0" * 64))
    status, said = apt.fetch(kernel=kernel)
    assert status == 0 and "it has another hash" in said and said.endswith("7.3.4-1\n")


def test_a_machine_without_a_mirror(apt: Apt) -> None:
    status, said = apt.fetch(mirror="http://other.example/packages/")
    assert status == 1 and "apt knows no mirror of Debian's" in said


def test_every_version_names_its_suite() -> None:
    suites = {v: (kernels.SOURCE_FOLDER / v / "suite").read_text() for v in kernels.versions()}
    assert suites == {"6.1": "bookworm\n", "6.12": "trixie\n", "7.3": "trixie-backports\n"}
