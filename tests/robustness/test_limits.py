"""`testbed list` runs under small limits, and loads nothing that would not."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

LIMITS = {
    "150 MB of addresses": (resource.RLIMIT_AS, 150 << 20),
    "64 descriptors": (resource.RLIMIT_NOFILE, 64),
}


def said(words: list[str], **options: object) -> str:
    """Run a command; return its status, and whether NumPy was loaded: its threads take memory."""
    program = (
        "import sys; from experiments.command import main; "
        f"status = main({words!r}); print(status, 'numpy' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    assert "Traceback" not in run.stderr
    assert run.returncode == 0, run.stderr
    return str(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", LIMITS)
def test_list_under_a_limit(name: str) -> None:
    which, most = LIMITS[name]
    assert said(["list"], preexec_fn=lambda: resource.setrlimit(which, (most, most))) == "0 False"


def test_list_with_the_least_priority_on_one_processor() -> None:
    def settle() -> None:
        os.nice(19)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    assert said(["list"], preexec_fn=settle) == "0 False"
