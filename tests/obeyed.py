"""Programmes that this machine's runner obeys, and answers made up by hand."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.runner.programme import Answers, Programme
from testbed.trial.make import RUNNER
from tests.lab import PATIENCE_S

NEEDS_ROOT = pytest.mark.root("makes namespaces on the host")


def obeyed(folder: Path, programme: Programme, zero: int = -1) -> Answers:
    """Let the runner obey a programme in a folder; its status and its answers agree."""
    (folder / "programme").write_text(programme.text)
    words = [str(RUNNER), "programme", "answers"]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    answers = Answers((folder / "answers").read_bytes(), zero)
    assert done.returncode == (answers.failure is not None), done.stderr
    return answers


def made_up(answers: Mapping[int, bytes], zero: int = -1) -> Answers:
    """Answers as the runner would write them."""
    records = (struct.pack("=II", number, len(data)) + data for number, data in answers.items())
    return Answers(b"".join(records), zero)
