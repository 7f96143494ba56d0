"""Set up from nothing, on bare Debian machines: minutes each, with --bare."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.bare.machines import PROJECT, SUITES, Machine, machine

RELEASES = tuple(SUITES)
MAX_S = 3600


def succeeds(on: Machine, *argv: str) -> str:
    """What a command printed, both streams; it must end well."""
    done = subprocess.run(
        on.command(*argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=MAX_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(params=RELEASES)
def bare(request: pytest.FixtureRequest) -> Iterator[Machine]:
    with machine(request.param) as made:
        yield made


def test_demo(bare: Machine) -> None:
    said = succeeds(bare, "./setup.sh", "demo")
    assert "all 5 trials are valid" in said, said
    assert not foreign(bare), "sudo is for packages only"
    again = succeeds(bare, "./setup.sh")
    assert re.search(r"Debian packages: all \d+ are installed", again)
    assert "building" not in again


def foreign(on: Machine) -> str:
    """What in the user's home is not the user's."""
    return succeeds(on, "find", f"/home/{on.user}", "!", "-user", on.user)


def provisioning() -> str:
    """The Vagrantfile's script."""
    text = (PROJECT / "Vagrantfile").read_text()
    (found,) = re.findall(r'provision "shell", privileged: false, inline: (".*")$', text, re.M)
    script: str = json.loads(found)
    return script


def test_what_vagrant_runs() -> None:
    with machine("12", user="vagrant", folder="/vagrant") as made:
        said = succeeds(made, "bash", "-l", "-c", provisioning())
        assert "ready" in said
        checked = succeeds(made, ".venv/bin/testbed", "check")
        assert "guest engine" in checked
