"""setup.sh as far as it goes without setting anything up, and the lock that it installs."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from testbed.machine.process import run
from tests.lab import wait_until


def test_help_names_the_three_forms(root: Path) -> None:
    done = run([str(root / "setup.sh"), "--help"])
    for form in ("./setup.sh  ", "./setup.sh demo", "./setup.sh test"):
        assert form in done.stdout


@pytest.mark.parametrize("words", [["nonsense"], ["test", "demo"], ["--demo"]])
def test_wrong_usage(root: Path, words: list[str]) -> None:
    done = run([str(root / "setup.sh"), *words], check=False)
    assert done.status == 2
    assert done.stderr.startswith("usage: ./setup.sh")
    assert not done.stdout


@pytest.mark.parametrize(
    ("pattern", "marks"), [("OF_ROOT", ("root", "as_root")), ("OF_THE_HOST", ("host",))]
)
def test_it_knows_the_files_of_marked_tests(
    root: Path, request: pytest.FixtureRequest, pattern: str, marks: tuple[str, ...]
) -> None:
    """Of all that were collected with this one; root runs no others than those that it knows."""
    found = re.search(rf"{pattern}='(.*?)'", (root / "setup.sh").read_text())
    assert found
    files = {
        each.path for each in request.session.items if any(map(each.get_closest_marker, marks))
    }
    assert not [path for path in files if not re.search(found[1], path.read_text())]


@pytest.fixture
def stubbed(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """setup.sh where all packages are installed, a kernel takes a minute, and no lock file is."""
    programs = {
        "setup.sh": (root / "setup.sh").read_text(),
        "kernel/image.sh": '#!/bin/sh\n[ "$1" = --whole ] && exit 1\necho $$ >pid; exec sleep 60\n',
        "bin/dpkg-query": '#!/bin/sh\nshift 3; for each; do echo "installed $each"; done\n',
        # the first step after the compiler's start
        "bin/cat": "#!/bin/sh\nwhile [ ! -s pid ]; do sleep 0.01; done; exec /bin/cat $*\n",
    }
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.delenv("SUDO_UID", raising=False)
    return tmp_path


def test_a_failure_ends_the_kernels_compiler(stubbed: Path) -> None:
    done = run([str(stubbed / "setup.sh")], check=False)
    assert done.status == 1
    assert "building, once, while the rest is installed" in done.stdout
    process = Path("/proc") / (stubbed / "pid").read_text().strip()
    # it is ended by a signal, and setup.sh waits for none of it
    wait_until(lambda: not process.exists())


@pytest.mark.parametrize(
    ("process", "stays"),
    [("2147483647", False), (str(os.getpid()), True), ("", True)],
    ids=["ended", "running", "the administrator's"],
)
def test_what_a_killed_call_forbids_is_allowed_again(
    stubbed: Path, process: str, stays: bool
) -> None:
    """The file of a call that still runs stays, and so does the administrator's own."""
    policy, setup = stubbed / "policy-rc.d", stubbed / "setup.sh"
    text = setup.read_text().replace("POLICY=/usr/sbin/policy-rc.d", f"POLICY={policy}")
    assert str(policy) in text
    setup.write_text(text)
    marked = re.search(r"^readonly BY_US='(.*)'$", text, re.MULTILINE)
    assert marked is not None
    line = f"{marked[1]} {process}\n" if process else "# ours\n"
    policy.write_text(f"#!/bin/sh\n{line}exit 101\n")
    (stubbed / "bin/sudo").write_text('#!/bin/sh\n[ "$1" != -n ] || shift\nexec "$@"\n')
    (stubbed / "bin/sudo").chmod(0o755)
    run([str(setup)], check=False)
    assert policy.exists() == stays


def locked(root: Path) -> dict[str, str]:
    """Each locked package with the text of its entry."""
    text = re.sub(r"^ *#.*\n", "", (root / "requirements.lock").read_text(), flags=re.MULTILINE)
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return {entry.split("==")[0]: entry for entry in entries if entry.strip()}


def test_lock_is_pinned_and_hashed(root: Path) -> None:
    entries = locked(root)
    assert entries.keys() > {"matplotlib", "numpy", "pandas", "pytest", "scipy"}
    for name, entry in entries.items():
        assert re.match(r"[a-z0-9-]+==[0-9][^ ]* \\\n +--hash=sha256:[0-9a-f]{64}", entry), name


def test_lock_names_no_index(root: Path) -> None:
    assert "://" not in (root / "requirements.lock").read_text()


def test_lock_has_everything_asked_for(root: Path) -> None:
    asked = re.findall(r"^[a-z][a-z0-9-]*", (root / "requirements.in").read_text(), re.MULTILINE)
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert {*asked, *project["dependencies"]} <= set(locked(root))
