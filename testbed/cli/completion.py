"""`testbed completion`: scripts with which shells complete the command line.

They contain all words, so that the shell starts no Python to complete one.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.runs.progress import console
from testbed.scenario.experiment import Experiment

NAMING = ("run", "plan")  # the verbs that take an experiment's name


@dataclass(frozen=True)
class CompletedOption:
    """An option with the words that can follow it; if there are none, a file name may."""

    name: str
    help: str
    takes_value: bool
    values: tuple[str, ...]


@dataclass(frozen=True)
class CompletedVerb:
    """A verb with its options."""

    name: str
    about: str
    options: tuple[CompletedOption, ...]
    words: tuple[str, ...]  # for its first argument


def complete(options: argparse.Namespace) -> int:
    """Run `testbed completion`."""
    verbs = tuple(_verbs(options.parser, options.experiments))
    for line in SHELLS[options.shell](verbs, options.experiments):
        console.print(line, soft_wrap=True)
    return 0


def _verbs(
    parser: argparse.ArgumentParser, experiments: Mapping[str, Experiment]
) -> Iterator[CompletedVerb]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, verb in action.choices.items():
                options = tuple(_option(each) for each in verb._actions if each.option_strings)
                fixed = [each.choices for each in verb._actions if not each.option_strings]
                words = experiments if name in NAMING else next(iter(fixed), None)
                yield CompletedVerb(name, verb.description or "", options, tuple(words or ()))


def _option(action: argparse.Action) -> CompletedOption:
    """Return an option; of a metavar as `SEED|listed` the words in lower case can be typed."""
    shown = action.metavar if isinstance(action.metavar, str) else ""
    words = action.choices or [word for word in shown.split("|") if word.islower() and "|" in shown]
    name = action.option_strings[-1]
    return CompletedOption(name, action.help or "", action.nargs != 0, tuple(map(str, words)))


def _cases(
    verbs: Sequence[CompletedVerb], experiments: Mapping[str, Experiment]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield patterns of `NUMBER VERB WORD-BEFORE FIRST-ARGUMENT`, and the words that may follow."""
    yield '"1 "*', [verb.name for verb in verbs]
    for verb in verbs:
        if verb.name in NAMING:
            for name, experiment in experiments.items():
                axes = [f"{axis}=" for axis in experiment.axes]
                yield f'*" {verb.name} --set {name}"', axes
        for option in verb.options:
            if option.takes_value:
                yield f'*" {verb.name} {option.name} "*', option.values
        names = [option.name for option in verb.options]
        yield f'"2 {verb.name} "*', [*verb.words, *names]
        yield f'*" {verb.name} "*', names


def _case_lines(
    verbs: Sequence[CompletedVerb], experiments: Mapping[str, Experiment]
) -> Iterator[str]:
    for pattern, words in _cases(verbs, experiments):
        yield f"        {pattern}) found=({' '.join(map(shlex.quote, words))}) ;;"


def bash(verbs: Sequence[CompletedVerb], experiments: Mapping[str, Experiment]) -> Iterator[str]:
    """Yield the script for `source <(testbed completion bash)`."""
    yield "_testbed() {"
    yield "    local word=${COMP_WORDS[COMP_CWORD]} found=()"
    yield "    local before=${COMP_WORDS[COMP_CWORD - 1]}"
    yield '    case "$COMP_CWORD ${COMP_WORDS[1]} $before ${COMP_WORDS[2]-}" in'
    yield from _case_lines(verbs, experiments)
    yield "    esac"
    yield '    mapfile -t COMPREPLY < <(compgen -W "${found[*]}" -- "$word")'
    yield "    if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace; fi"
    yield "}"
    yield "complete -o default -F _testbed testbed"


def zsh(verbs: Sequence[CompletedVerb], experiments: Mapping[str, Experiment]) -> Iterator[str]:
    """Yield the script for `source <(testbed completion zsh)`, after `compinit`."""
    yield "_testbed() {"
    yield "    local -a found"
    yield '    case "$((CURRENT - 1)) ${words[2]} ${words[CURRENT - 1]} ${words[3]}" in'
    yield from _case_lines(verbs, experiments)
    yield "    esac"
    yield "    if [[ ${found[1]} == *= ]]; then compadd -S '' -- $found"
    yield "    elif (( $#found )) && compadd -- $found; then :"
    yield "    else _files; fi"
    yield "}"
    yield "compdef _testbed testbed"


def fish(verbs: Sequence[CompletedVerb], experiments: Mapping[str, Experiment]) -> Iterator[str]:
    """Yield the script for `testbed completion fish | source`."""
    for verb in verbs:
        about = _fish(verb.about)
        yield f"complete -c testbed -f -n __fish_use_subcommand -a {verb.name} -d {about}"
        seen = f"'__fish_seen_subcommand_from {verb.name}'"
        if verb.words:
            yield f"complete -c testbed -n {seen} -a {_fish(' '.join(verb.words))}"
        for option in verb.options:
            values = f" -x -a {_fish(' '.join(option.values))}" if option.values else ""
            value = values or (" -r" if option.takes_value else "")
            name = option.name.removeprefix("--")
            yield f"complete -c testbed -n {seen} -l {name}{value} -d {_fish(option.help)}"
    for name, experiment in experiments.items():
        axes = _fish(" ".join(f"{axis}=" for axis in experiment.axes))
        yield f"complete -c testbed -n '__fish_seen_subcommand_from {name}' -l set -x -a {axes}"


def _fish(text: str) -> str:
    """Quote a text for fish: only these two are special between single quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
