"""Where the host allows no namespaces: programs do not run, unless the user says so."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.engine import Cancelled
from testbed.errors import TestbedError
from testbed.guest import boot
from testbed.guest.boot import why_not_confined
from testbed.machine.process import Completed
from testbed.scenario.model import Flow, FlowKind
from testbed.scenario.programs import Programs
from testbed.store.names import GUEST_CONSOLE, GUEST_OUTPUT
from testbed.store.reading import Trial, open_trial
from testbed.store.records import Status
from tests.lab import alive
from tests.scenarios import router

# no further namespace in this one, and no privileges that would make one
FORBID = "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all "
FORBID += '--inh-caps=-all --bounding-set=-all "$@"'
WITHOUT = ("unshare", "-U", "--map-current-user", "--keep-caps", "sh", "-c", FORBID, "sh")
TESTBED = (sys.executable, "-m", "experiments")
ALL_VERBS = """
import sys
from experiments.command import main
for words in sys.argv[1:]:
    print(words, main(words.split()), flush=True)
"""
LINE = "testbed: programs could change files of the host: their guest cannot be confined: "
can_forbid = pytest.mark.skipif(
    bool(subprocess.run([*WITHOUT, "true"], check=False, capture_output=True).returncode),
    reason="needs a user namespace, to forbid others in it",
)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Scenarios with a program of the user's, and without one."""
    command = Programs(("/bin/sh", "-c", "echo ran"))
    flow = Flow("web", FlowKind.COMMAND, "sender1", "receiver", variant="cubic", command=command)
    ordinary = router(variant="cubic", duration_s=1)
    (tmp_path / "ordinary.json").write_text(ordinary.to_json())
    (tmp_path / "asked.json").write_text(dataclasses.replace(ordinary, flows=(flow,)).to_json())
    return tmp_path


def without_namespaces(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WITHOUT, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=os.environ | {"XDG_STATE_HOME": str(folder / "state")},
    )


@can_forbid
def test_verbs_that_run_programs_refuse_before_anything_starts(programs: Path) -> None:
    verbs = (
        "exec -- true",
        "mininet lab.py",
        "shell",
        "grade lab.py",
        "packetdrill script.pkt",
        "kernel test 6.1 red",
        "run asked.json --engine guest --out out",
    )
    done = without_namespaces(programs, sys.executable, "-c", ALL_VERBS, *verbs)
    said = [line for line in done.stdout.splitlines() if not line.startswith("engine: ")]
    assert said[2::3] == [f"{verb} 2" for verb in verbs], said
    assert len(said) == 3 * len(verbs)
    assert all(line.startswith(LINE) for line in said[::3]), said
    assert all(line.startswith("    hint: --unconfined ") for line in said[1::3]), said
    assert not (programs / "results").exists() and not list(programs.glob("out/*-guest"))


def trial_of(folder: Path, *words: str) -> tuple[Trial, str]:
    done = without_namespaces(folder, *TESTBED, "run", *words, "--engine", "guest", "--out", "out")
    (path,) = folder.glob("out/*-guest")
    return open_trial(path), done.stdout


@pytest.mark.slow
@can_forbid
@pytest.mark.parametrize(
    "words", [("ordinary.json",), ("asked.json", "--unconfined")], ids=["ordinary", "unconfined"]
)
def test_trials_run_unconfined_and_it_is_said_before(
    programs: Path, words: tuple[str, ...]
) -> None:
    trial, said = trial_of(programs, *words)
    assert trial.record.status is Status.OK
    assert any("not confined: the host allows no user" in line for line in trial.record.warnings)
    assert said.index("the guests are not confined: the host allows no user") < said.index("ok")


@can_forbid
def test_check_says_that_programs_do_not_run(programs: Path) -> None:
    said = " ".join(without_namespaces(programs, *TESTBED, "check").stdout.split())
    assert "not confined (the host allows no user namespaces: " in said
    assert "programs run with --unconfined only" in said


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the confinement says, try by try; then it works."""
    said: list[str] = []

    def run(argv: list[str], **_how: object) -> Completed:
        line = said.pop(0) if said else ""
        return Completed(
            tuple(argv), 125 if line else 0, "", f"testbed-confine: {line}\n" * bool(line)
        )

    monkeypatch.setattr(boot, "run", run)
    monkeypatch.setattr(boot, "CONFINE_PAUSES_S", (0.0, 0.0, 0.0))
    why_not_confined.cache_clear()
    yield said
    why_not_confined.cache_clear()


def test_what_passes_is_tried_again_and_not_remembered(answers: list[str]) -> None:
    again = "cannot fork: Resource temporarily unavailable"
    answers += [again, again]
    assert why_not_confined() == ""
    why_not_confined.cache_clear()
    answers += [again] * 3
    with pytest.raises(TestbedError, match="cannot be confined at the moment: cannot fork"):
        why_not_confined()
    assert why_not_confined() == ""


def test_what_stays_is_remembered(answers: list[str]) -> None:
    answers += ["the host allows no user namespaces: Operation not permitted"]
    assert why_not_confined().endswith("not permitted")
    assert why_not_confined().endswith("not permitted")
    why_not_confined.cache_clear()
    # too many namespaces: this host allows some
    answers += ["the host allows no user namespaces: No space left on device"] * 2
    assert why_not_confined() == ""


# what goes on while the guest ends, and while its files are taken
CHANGES = f"while :; do for f in {GUEST_OUTPUT} x; do rm -rf $f; ln -s /etc/passwd $f; rm $f; "
CHANGES += "mkfifo $f; rm $f; mkdir $f; chmod 0 $f; rmdir $f; echo 1 >$f; done; done"


@pytest.mark.parametrize("hangs", [False, True])
def test_what_an_unconfined_guest_started_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    """No namespace kills it, and after `setsid` it is not in the guest's process group."""
    session, kernel, results = tmp_path / "session", tmp_path / "kernel", tmp_path / "results"
    for folder in (kernel, results):
        folder.mkdir()
    (kernel / "linux").write_text(
        "#!/bin/sh\n"
        f"setsid sh -c 'echo $$ >{session}; {CHANGES}' &\n"
        f"until [ -s {session} ]; do sleep 0.01; done; {'sleep 300' if hangs else 'exit 3'}\n"
    )
    (kernel / "linux").chmod(0o755)
    monkeypatch.setattr(boot, "why_not_confined", lambda: "no namespaces")
    core = min(os.sched_getaffinity(0))
    guest = boot.Boot(kernel, core, (), 3.0, lambda: session.exists() and hangs)
    if hangs:
        with pytest.raises(Cancelled):
            boot.boot(guest, results, boot.LEFT_BY_GUESTS)
    else:
        ended = boot.boot(guest, results, boot.LEFT_BY_GUESTS)
        assert ended.status == 3
    assert not alive(int(session.read_text()))
    left = [*results.iterdir()]
    assert {path.name for path in left} <= {GUEST_OUTPUT, GUEST_CONSOLE}
    assert all(path.is_file() and not path.is_symlink() for path in left)
