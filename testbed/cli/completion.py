"""`testbed completion`: argcomplete completes the command line in bash, zsh and fish."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from testbed.runs.console import console

if TYPE_CHECKING:
    from testbed.scenario.experiment import Experiment

SHELLS = ("bash", "zsh", "fish")
ASKED_BY_SHELL = "_ARGCOMPLETE"  # a variable that the shell's script sets
NAMING = "experiment"  # the argument of verbs that take an experiment's name
FILES_OF_EXPERIMENTS = ("py", "json")


def complete(options: argparse.Namespace) -> int:
    """Run `testbed completion`."""
    from argcomplete.shell_integration import shellcode

    script = shellcode(["testbed"], True, options.shell)
    console.print(script, soft_wrap=True, markup=False, highlight=False)
    return 0


def answer_shell(parser: argparse.ArgumentParser, experiments: Mapping[str, Experiment]) -> None:
    """Write what may stand at the cursor for the shell that started this process, and exit."""
    import argcomplete

    for action in _actions(parser):
        completer: Callable[..., Iterable[str]] | None = None
        if action.dest == NAMING:
            completer = functools.partial(_names, experiments)
        elif action.dest == "set":
            completer = functools.partial(_axes, experiments)
        elif isinstance(action.metavar, str) and "|" in action.metavar:
            completer = functools.partial(_typed_words, action.metavar)
        if completer is not None:
            action.completer = completer  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options="long")


def _names(experiments: Mapping[str, Experiment], prefix: str, **_: object) -> Sequence[str]:
    """Return the experiments that begin like this; if none does, files may be meant."""
    from argcomplete.completers import FilesCompleter

    names = [name for name in experiments if name.startswith(prefix)]
    return names or list(FilesCompleter(FILES_OF_EXPERIMENTS)(prefix))


def _axes(
    experiments: Mapping[str, Experiment], parsed_args: argparse.Namespace, **_: object
) -> Iterable[str]:
    experiment = experiments.get(getattr(parsed_args, NAMING, ""))
    return [f"{axis}=" for axis in experiment.axes] if experiment else []


def _typed_words(metavar: str, **_: object) -> Iterable[str]:
    """Return the words of a metavar as `SEED|listed` that are typed as they are."""
    return [word for word in metavar.split("|") if word.islower()]


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and of the parsers of its verbs."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _actions(verb)
