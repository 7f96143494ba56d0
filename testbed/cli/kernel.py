"""`testbed kernel`: list, build and remove the kernels that a guest can have, and compare two."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.table import Table

from testbed.cli.choosing import chosen
from testbed.cli.console import console, errors
from testbed.errors import TestbedError, UsageError, nearest
from testbed.kernels import building, known
from testbed.runs.same_captures import SKIP, compared
from testbed.scenario.model import BASE_KERNEL, Scenario
from testbed.store import results_folder

CANDIDATE = "candidate"  # the name of a tree's kernel that is compared, unless --name says another
FOLDER = "kernel-same"
SAME = "git bisect run testbed kernel same variants --source . --as good --set variant=cubic"
EXAMPLES = "testbed kernel build 6.12, or: testbed kernel build --source DIR --name NAME"


def kernel(options: argparse.Namespace) -> int:
    """`testbed kernel`."""
    what, *words = options.words or ["list"]
    if what not in ACTS:
        raise UsageError(f"kernel {what}: no such thing to do", nearest(what, ACTS))
    return ACTS[what](options, words)


def say(line: str) -> None:
    """Pass on what a build says, which takes minutes."""
    errors.print(line, soft_wrap=True)


def _list(_options: argparse.Namespace, words: Sequence[str]) -> int:
    if words:
        raise UsageError(f"kernel list {words[0]}: nothing follows", "testbed kernel list")
    table = Table(box=None)
    for heading in ("kernel", "state", "what"):
        table.add_column(heading, overflow="fold")
    for row in _rows():
        table.add_row(*row)
    console.print(table)
    return 0


def _rows() -> Iterator[tuple[str, str, str]]:
    for version in known.versions():
        folder = known.built(version) if known.is_installed(version) else None
        words = ["the default"] if version == known.default() else []
        if version == BASE_KERNEL:
            words.append("what the stored numbers are of")
        state = "built" if folder else "not built"
        if not known.is_installed(version):
            state = "no source: apt-get install linux-source-" + version
        yield version, state, "; ".join([*_version(folder), *words])
    for name in known.own():
        yield name, "built", "; ".join(_version(known.own_folder(name)))


def _version(folder: Path | None) -> list[str]:
    return [(folder / "version").read_text().strip()] if folder else []


def _build(options: argparse.Namespace, words: Sequence[str]) -> int:
    wanted = _wanted(options, words)
    if isinstance(wanted, str):
        folder = building.build_version(wanted, say)
        console.print(f"kernel {wanted}: {folder}", soft_wrap=True)
        return 0
    folder = building.build_own(wanted, say)
    console.print(f"kernel {wanted.name}: {folder}", soft_wrap=True)
    console.print(f"    testbed run EXPERIMENT --set kernel={wanted.name}", soft_wrap=True)
    return 0


def _wanted(options: argparse.Namespace, words: Sequence[str]) -> building.Wanted | str:
    """A version of Debian's as it is, or the user's own."""
    if len(words) + (options.source is not None) != 1:
        raise UsageError("kernel build: one version, or --source DIR", EXAMPLES)
    source = words[0] if words else str(options.source)
    changes = (options.patches, options.config, options.add)
    if words and not any(changes) and not options.name:
        return source
    if not options.name:
        raise UsageError("kernel build: a kernel of your own needs --name NAME", EXAMPLES)
    return building.Wanted(options.name, source, *changes)


def _remove(_options: argparse.Namespace, words: Sequence[str]) -> int:
    if not words:
        raise UsageError("kernel remove: no name", "testbed kernel list")
    for name in words:
        for path in building.remove(name):
            console.print(f"removed {path}", soft_wrap=True)
    return 0


def _same(options: argparse.Namespace, words: Sequence[str]) -> int:
    """Build the tree, run the same trials on both kernels, and compare what was captured."""
    if len(words) != 1 or options.source is None or not options.good:
        raise UsageError("kernel same: an experiment, --source DIR and --as KERNEL", SAME)
    scenarios = _scenarios(options, words[0])
    if known.built(options.good) is None:
        raise known.not_built(options.good)
    name = options.name or CANDIDATE
    changes = (options.patches, options.config, options.add)
    wanted = building.Wanted(name, str(options.source), *changes, like=options.good)
    try:
        building.build_own(wanted, say)
        found = compared(scenarios, options.good, name, options.out or results_folder(FOLDER))
    except UsageError:
        raise
    except TestbedError as error:
        say(f"testbed: {error.message}")
        return SKIP
    for line in found.lines:
        console.print(line, soft_wrap=True)
    return found.status


def _scenarios(options: argparse.Namespace, experiment: str) -> list[Scenario]:
    network = {"topo": "", "link": "", "flow": [], "duration": 0.0}
    own = {"experiments": options.experiments, "set": options.set, "quick": options.quick}
    asked = argparse.Namespace(experiment=experiment, sensitivity=False, **network, **own)
    return chosen(asked).scenarios(1)


ACTS: Mapping[str, Callable[[argparse.Namespace, Sequence[str]], int]] = {
    "list": _list,
    "build": _build,
    "remove": _remove,
    "same": _same,
}
