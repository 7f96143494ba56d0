"""The image of the Containerfile, built and run by podman: with --bare.

The base image is made from Debian's packages, so that no registry of images is needed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.machine.process import run
from tests.bare.machines import CERTIFICATES, PROJECT, pip_settings, release

MAX_S = 3600
BASE, IMAGE = "localhost/debian:12", "localhost/tcp-testbed"
BUILT = "1764000000"  # the time of the image and of all that is in it
# what a cluster that trusts nobody sets
UNPRIVILEGED = (
    "--read-only --cap-drop all --security-opt no-new-privileges --network none --user 1000:1000 "
    "--tmpfs /tmp --tmpfs /trials:mode=1777"
).split()
# hard limits cannot be raised again in a machine that is itself confined
LIMITS = "--ulimit nofile=1024:1024 --ulimit nproc=4096:4096".split()


class Podman:
    """Podman with images of its own, below a folder."""

    def __init__(self, folder: Path) -> None:
        self._argv = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run"]
        if runc := shutil.which("runc") or shutil.which("runc", path="/usr/sbin"):
            self._argv += ["--runtime", runc]  # crun refuses machines with both kinds of cgroups

    def __call__(self, *argv: str) -> str:
        """What it printed; it must end well."""
        return run([*self._argv, *argv], timeout_s=MAX_S).stdout

    def unprivileged(self, *argv: str) -> str:
        """What a command in a container without any privilege printed."""
        return self("run", "--rm", *UNPRIVILEGED, *LIMITS, IMAGE, *argv)


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    folder = tmp_path_factory.mktemp("podman")
    made = Podman(folder)
    run(["tar", "-C", str(release("12")), "--create", "--file", f"{folder}/base.tar", "."])
    made("import", f"{folder}/base.tar", BASE)
    settings, certificates = pip_settings(folder)
    mounts = [f"--volume={settings}:/etc/pip.conf:ro"]
    if certificates:
        mounts.append(f"--volume={certificates}:{CERTIFICATES}:ro")
    built = ["--isolation", "chroot", "--network", "host", "--build-arg", f"DEBIAN={BASE}"]
    built += ["--timestamp", BUILT, "--build-arg", f"SOURCE_DATE_EPOCH={BUILT}"]
    made("build", *built, *mounts, "--tag", IMAGE, str(PROJECT))
    yield made
    made("system", "reset", "--force")


def test_it_has_no_privileges(podman: Podman) -> None:
    status = podman.unprivileged("cat", "/proc/self/status")
    told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {told[f"Cap{name}"].strip("0") for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {""}
    assert told["NoNewPrivs"] == "1"
    assert told["Uid"].split() == ["1000"] * 4
    assert "read-only" in podman.unprivileged(
        "sh", "-c", "touch /testbed/x /x /usr/x 2>&1 | tr A-Z a-z"
    )


def test_demo(podman: Podman) -> None:
    demo = "testbed run router-bottleneck --set queue=bfifo --set path=receiver".split()
    assert "all 5 trials are valid" in podman.unprivileged(*demo)


def test_a_mininet_script_leaves_the_same_bytes_twice(podman: Podman) -> None:
    script = "/testbed/experiments/course/bufferbloat.py"
    runs = [
        f"testbed mininet --unconfined --capture all --out {name} {script} </dev/null"
        for name in "ab"
    ]
    compared = "diff --recursive --exclude machine.json a b"  # which has the wall time
    assert podman.unprivileged("sh", "-ec", "; ".join((*runs, compared, "ls a/captures")))
