"""What shells complete: the scripts are run by the shells that are here, and cover every verb."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from collections.abc import Callable

import pytest

from experiments.catalogue import EXPERIMENTS
from experiments.command import main
from testbed.cli.parser import VERBS, build_parser

Script = Callable[[str], str]


def subparsers() -> dict[str, argparse.ArgumentParser]:
    """Each verb's parser."""
    (action,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


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
    assert completed(text, "testbed", "run", "x", "--format", "") == [
        "table",
        "csv",
        "json",
        "md",
        "latex",
    ]
    assert completed(text, "testbed", "run", "x", "--order", "") == ["listed"]
    assert completed(text, "testbed", "run", "x", "--out", "") == []  # a folder: bash's own
    assert completed(text, "testbed", "completion", "z") == ["zsh"]


OPTIONS = {
    verb: [
        action.option_strings[-1]
        for action in parser._actions
        if action.option_strings and action.option_strings[-1] != "--help"
    ]
    for verb, parser in subparsers().items()
}


@pytest.mark.parametrize("verb", OPTIONS)
def test_every_option_is_offered_by_every_shell(script: Script, verb: str) -> None:
    offered = completed(script("bash"), "testbed", verb, "--")
    assert set(OPTIONS[verb]) <= set(offered)
    (case,) = (
        line for line in script("zsh").splitlines() if line.strip().startswith(f'*" {verb} "*)')
    )
    assert set(OPTIONS[verb]) <= set(case.split("found=(")[1].rstrip(" );").split())
    seen = f"'__fish_seen_subcommand_from {verb}'"
    fish = [line for line in script("fish").splitlines() if seen in line]
    for option in OPTIONS[verb]:
        assert any(f" -l {option.removeprefix('--')} " in line for line in fish), option


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_verbs_experiments_and_axes_are_offered(script: Script, shell: str) -> None:
    text = script(shell)
    lines = text.splitlines()
    if shell == "zsh":
        (first,) = (line for line in lines if line.strip().startswith('"1 "*)'))
        assert first.split("found=(")[1].rstrip(" );").split() == [verb.name for verb in VERBS]
    else:
        verbs = [line.split(" -a ")[1].split()[0] for line in lines if "use_subcommand" in line]
        assert verbs == [verb.name for verb in VERBS]
    for name, experiment in EXPERIMENTS.items():
        of_axes = [
            line for line in lines if name in line and f"{next(iter(experiment.axes))}=" in line
        ]
        assert of_axes and all(f"{axis}=" in of_axes[0] for axis in experiment.axes), name
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)
