"""`testbed` runs under small limits, with nothing loaded that would not, and without a PATH."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.command import main
from tests.lab import PATIENCE_S

LIMITS = {
    "150 MB of addresses": (resource.RLIMIT_AS, 150 << 20),
    "64 descriptors": (resource.RLIMIT_NOFILE, 64),
}
PROGRAM = (
    "import sys; from experiments.command import main; "
    "status = main(['list']); print(status, 'numpy' in sys.modules)"
)


def list_within(limit: Callable[[], None]) -> str:
    """Run `testbed list` in a process that is limited first.

    Return its status, and whether NumPy was loaded, whose threads take memory.
    """
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=limit,
    )
    assert "Traceback" not in run.stderr
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", LIMITS)
def test_list_under_a_limit(name: str) -> None:
    resource_number, most = LIMITS[name]
    assert list_within(lambda: resource.setrlimit(resource_number, (most, most))) == "0 False"


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("verb", ["run", "report", "reduce", "compare", "evaluate"])
def test_too_few_addresses_are_a_line(verb: str, tmp_path: Path) -> None:
    """Before a library ends the process by a signal, or in the midst of an import."""
    folder = str(tmp_path)
    known = {"run": ["variants"], "evaluate": ["reno"], "compare": [folder, folder]}
    words = known.get(verb, [folder])
    program = f"import sys; from experiments.command import main; sys.exit(main({[verb, *words]}))"
    limits = (500 << 20, 500 << 20)
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limits),
    )
    assert run.returncode == 1
    assert run.stderr.startswith("testbed: too little memory: the process may have 500 MiB")
    assert "hint: raise the limit to 1048576 or more (`ulimit -v`)" in run.stderr


@pytest.mark.slow
def test_list_with_the_least_priority_on_one_processor() -> None:
    def settle() -> None:
        os.nice(19)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    assert list_within(settle) == "0 False"


def test_the_systems_programs_are_found_without_a_path() -> None:
    """Which kernels are built is what scripts say that call many of them."""
    program = "import sys; from experiments.command import main; sys.exit(main(['kernel', 'list']))"

    def said(path: str) -> str:
        argv = [sys.executable, "-c", program]
        env = os.environ | {"PATH": path}
        run = subprocess.run(
            argv, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
        return run.stdout

    usual = said(os.environ["PATH"])
    assert "  built" in usual
    assert [said(path) for path in ("", "/nowhere")] == [usual, usual]


def test_a_processor_without_sse_4_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text("processor\t: 0\nflags\t\t: fpu sse sse2 ssse3 pni cx16\nbugs\t:\n")
    monkeypatch.setattr("testbed.cli.entry.PROCESSORS", described)
    assert main(["demo"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("testbed: this processor has no popcnt, sse4_2, which NumPy")
    assert "hint: in a virtual machine choose another than qemu64" in said
    assert main(["list"]) == 0
