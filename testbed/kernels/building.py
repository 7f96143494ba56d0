"""Building kernels: Debian's at their first use, and the user's own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError, UsageError
from testbed.kernels import known
from testbed.machine.process import run_told
from testbed.scenario.names import checked

OWN = known.SOURCES / "own.sh"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """A kernel of the user's own: of a source tree, or of a version of Debian's."""

    name: str
    source: str
    patches: Path | None = None
    config: Path | None = None
    add: Path | None = None
    like: str = ""  # a kernel whose compiled files are a beginning

    def words(self) -> list[str]:
        """The arguments of own.sh."""
        given = {"--patches": self.patches, "--config": self.config, "--add": self.add}
        options = [(name, str(path)) for name, path in given.items() if path is not None]
        options += [("--like", self.like)] if self.like else []
        return [self.name, self.source, *(word for option in options for word in option)]


def build_version(version: str, tell: Tell) -> Path:
    """Build one of Debian's kernels, unless it is there; minutes."""
    if version not in known.versions():
        raise UsageError(
            f"no patches for Linux {version}",
            f"there are some for {', '.join(known.versions())}; any tree: --source DIR --name NAME",
        )
    if not known.is_installed(version):
        raise TestbedError(
            f"this machine has no source of Linux {version}",
            f"apt-get install linux-source-{version}, if your Debian has it (6.1: Debian 12); "
            "testbed kernel list",
        )
    return _built([str(known.IMAGE), version], tell)


def build_own(wanted: Wanted, tell: Tell) -> Path:
    """Build one of the user's own, or what has changed of it since the last time."""
    checked(wanted.name)
    if wanted.name in known.versions():
        raise UsageError(f"{wanted.name} is Debian's", "give yours another --name")
    return _built([str(OWN), *wanted.words()], tell)


def _built(argv: Sequence[str], tell: Tell) -> Path:
    """The scripts' last two lines are an error's message and hint."""
    done = run_told(argv, tell)
    if done.status != 0:
        *_, message, hint = ["", "", *filter(None, done.stderr.splitlines())]
        said = message.removeprefix("kernel: ") or hint or f"{argv[0]} ended with {done.status}"
        raise TestbedError(said, hint.strip())
    return Path(done.stdout.strip().splitlines()[-1])


def make_ready(names: Iterable[str], tell: Tell) -> None:
    """Build those of Debian's that are not built; one of the user's own must be."""
    for name in dict.fromkeys(names):
        if known.built(name) is None:
            if name not in known.versions():
                raise known.not_built(name)
            build_version(name, tell)


def remove(name: str) -> list[Path]:
    """Delete a kernel of the user's own with what is kept of its build."""
    if name in known.versions():
        raise UsageError(f"{name} is Debian's", "only kernels of your own are removed by name")
    places = [known.own_folder(name), known.cache() / "trees" / name]
    there = [path for path in places if path.is_dir()]
    if not there:
        raise known.not_built(name)
    for path in there:
        shutil.rmtree(path)
    (known.cache() / "trees" / f"{name}.lock").unlink(missing_ok=True)
    return there
