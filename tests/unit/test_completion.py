"""What shells complete: argcomplete is asked as the shells' scripts ask it, about every verb."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import argcomplete
import pytest
from argcomplete.finders import CompletionFinder
from argcomplete.shell_integration import shellcode

from experiments.catalogue import EXPERIMENTS
from experiments.command import main
from testbed.cli.completion import SHELLS
from testbed.cli.parser import VERBS, build_parser

Completed = Callable[..., list[str]]


def subparsers() -> dict[str, argparse.ArgumentParser]:
    """Each verb's parser."""
    (action,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch) -> Completed:
    """What is offered for the last of these words."""

    def offered(*words: str) -> list[str]:
        found: list[str] = []

        def autocomplete(parser: argparse.ArgumentParser, **settings: Any) -> NoReturn:
            """argcomplete's, without its exit and the descriptors 8 and 9, which are ours here."""
            finder = CompletionFinder(parser, append_space=False, **settings)
            found.extend(finder._get_completions([*words[:-1]], words[-1], "", None))
            sys.exit(0)

        monkeypatch.setenv("_ARGCOMPLETE", "1")
        monkeypatch.setattr(argcomplete, "autocomplete", autocomplete)
        with pytest.raises(SystemExit):
            main([])
        monkeypatch.delenv("_ARGCOMPLETE")
        return found

    return offered


def test_what_comes_next_is_offered(completed: Completed) -> None:
    assert completed("testbed", "") == ["--help", "--version", *(verb.name for verb in VERBS)]
    assert completed("testbed", "rep") == ["report"]
    assert completed("testbed", "run", "router") == ["router-bottleneck", "router-fairness"]
    assert completed("testbed", "plan", "fall-floyd", "--com") == ["--commands"]
    assert completed("testbed", "run", "x", "--engine", "g") == ["guest"]
    assert completed("testbed", "run", "x", "--format", "") == [
        "table",
        "csv",
        "json",
        "md",
        "latex",
    ]
    assert completed("testbed", "run", "x", "--order", "") == ["listed"]
    assert completed("testbed", "completion", "z") == ["zsh"]


def test_files_are_offered(
    completed: Completed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").touch()
    (tmp_path / "mine.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert completed("testbed", "run", "./mi") == ["./mine.py"]
    assert sorted(completed("testbed", "run", "x", "--out", "mi")) == ["mine.py", "mine.txt"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_and_its_axes_are_offered(completed: Completed, name: str) -> None:
    axes = [f"{axis}=" for axis in EXPERIMENTS[name].axes]
    for verb in ("run", "plan"):
        assert name in completed("testbed", verb, name[:-1])
        assert completed("testbed", verb, name, "--set", "") == axes


@pytest.mark.parametrize("verb", subparsers())
def test_every_option_is_offered(completed: Completed, verb: str) -> None:
    options = [
        action.option_strings[-1] for action in subparsers()[verb]._actions if action.option_strings
    ]
    assert set(options) <= {*completed("testbed", verb, "-"), *completed("testbed", verb, "--")}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_accepts_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert text.rstrip() == shellcode(["testbed"], True, shell).rstrip()
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


@pytest.mark.slow
def test_bash_asks_the_command(tmp_path: Path) -> None:
    """With the script that it is given, a `testbed` that is found in PATH."""
    command = tmp_path / "testbed"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m experiments "$@"\n')
    command.chmod(0o755)
    ask = 'source <("$0" completion bash); COMP_LINE="testbed run router-f"; COMP_POINT=20\n'
    ask += "COMP_TYPE=9 COMP_CWORD=2 COMP_WORDS=(testbed run router-f)\n"
    ask += "compopt() { :; }; _python_argcomplete testbed; printf '%s' \"${COMPREPLY[@]}\""
    done = subprocess.run(
        ["bash", "--norc", "-c", ask, command],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert done.stdout.strip() == "router-fairness"
