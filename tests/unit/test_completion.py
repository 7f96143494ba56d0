"""What shells complete: the scripts are run by the shells that are here, and cover every verb."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.command import main
from testbed.cli.parser import VERBS

Script = Callable[[str], str]


@pytest.fixture
def script(capsys: pytest.CaptureFixture[str]) -> Script:
    """What `testbed completion SHELL` prints."""

    def printed(shell: str) -> str:
        assert main(["completion", shell]) == 0
        return capsys.readouterr().out

    return printed


def completed(script: str, *words: str) -> list[str]:
    """What bash would offer for the last of these words."""
    line = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; compopt() {{ :; }}; _testbed\n"
    ask += "printf '%s\\n' \"${COMPREPLY[@]}\""
    argv = ["bash", "--norc", "-c", f"{script}\n{ask}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_offers_what_comes_next(script: Script) -> None:
    text = script("bash")
    assert completed(text, "testbed", "") == [verb.name for verb in VERBS]
    assert completed(text, "testbed", "rep") == ["report"]
    assert completed(text, "testbed", "run", "router") == ["router-bottleneck", "router-fairness"]
    assert completed(text, "testbed", "plan", "fall-floyd", "--com") == ["--commands"]
    axes = [f"{axis}=" for axis in EXPERIMENTS["router-fairness"].axes]
    assert completed(text, "testbed", "run", "router-fairness", "--set", "") == axes
    assert completed(text, "testbed", "run", "x", "--engine", "g") == ["guest"]
    assert completed(text, "testbed", "run", "x", "--format", "") == ["table", "csv", "json", "md"]
    assert completed(text, "testbed", "run", "x", "--order", "") == ["listed"]
    assert completed(text, "testbed", "run", "x", "--out", "") == []  # a folder: bash's own
    assert completed(text, "testbed", "completion", "z") == ["zsh"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_others_say_the_same(script: Script, shell: str) -> None:
    text = script(shell)
    for verb in VERBS:
        assert verb.name in text
    for name, experiment in EXPERIMENTS.items():
        assert name in text
        assert all(f"{axis}=" in text for axis in experiment.axes)
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)
