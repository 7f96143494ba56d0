"""A user-space transport as a folder: `stack.toml`, and the programs that send and receive by it.

With the testbed are those in `stacks/`, which are known by their names; any other folder is named
by its path. What is built of a folder is kept in the cache by a hash of all its files.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated

from testbed.errors import TestbedError, UsageError, nearest, quoted
from testbed.faults import Fault, usage_error
from testbed.machine import safe_files
from testbed.machine.atomic import whole_folder, workplace
from testbed.machine.file_hashes import hash_of
from testbed.machine.process import run
from testbed.machine.safe_files import make_folder
from testbed.scenario.limits import SAFE_NAME, Length, Text
from testbed.scenario.names import is_name
from testbed.scenario.programs import Programs, Transmission, program_faults
from testbed.scenario.reading import checked
from testbed.scenario.variants import can_be

SHIPPED = Path(__file__).resolve().parents[2] / "stacks"
DESCRIPTION = "stack.toml"
OF_STACK = ":"  # of a stack and its control: quinn:bbr
NO_SOURCES = {"target", "node_modules", "__pycache__"}  # folders that a build leaves
MAX_SOURCES, MAX_SOURCE_BYTES = 1000, 1 << 26
MAX_BUILD_S = 3600.0
CONTROL_WORD = "{variant}"  # stands for the stack's control in the words of its programs

Words = Annotated[tuple[str, ...], Length(1, 1000, "words", none="no program is named")]
ControlName = Annotated[str, SAFE_NAME]


@dataclass(frozen=True)
class StackDescription:
    """What `stack.toml` says."""

    about: Annotated[str, Text()]
    """The library and its version, in a few words."""
    receiver: Words
    """The program that listens, and its words: as in a flow of kind command."""
    sender: Words
    """The program that connects and sends until it is ended; `{variant}` is its control."""
    variants: Mapping[ControlName, str]
    """Its congestion controls, each with the kernel's variant of that name, or nothing."""
    files: Annotated[tuple[str, ...], Length(0, 1000, "files")]
    """What the programs need beside them, by paths in the folder when it is built."""
    build: tuple[Words, ...] = ()
    """The commands that build it, in a copy of the folder, from what is locked there."""
    protocol: Transmission = Transmission.UDP
    """What the programs speak."""


@dataclass(frozen=True)
class UserStack:
    """A stack: where it is, and what its description says."""

    name: str
    folder: Path
    description: StackDescription = field(repr=False)

    @property
    def reference(self) -> str:
        """What finds it: its name, or its folder if that is another's."""
        return self.name if self.folder.parent == SHIPPED else str(self.folder)

    @property
    def cached(self) -> Path:
        """The folder in which its files are once they are built."""
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        name = f"{self.name}-{sources_hash(self.folder)}"
        return Path(base) / "tcp-testbed" / "stacks" / name

    @property
    def is_built(self) -> bool:
        """Whether its files are there."""
        return not self.description.build or self.cached.is_dir()

    def programs(self, control: str) -> Programs:
        """Return the programs of a flow with one of its controls; raise if they are not there."""
        description = self.description
        if control not in description.variants:
            raise UsageError(
                f"stack {self.name} has no congestion control {quoted(control)}",
                f"it has {', '.join(description.variants)}",
            )
        if not self.is_built:
            raise UsageError(
                f"stack {self.name} is not built, or was built of other sources",
                f"testbed stack build {self.reference}",
            )
        place = self.cached if description.build else self.folder
        return Programs(
            client=tuple(word.replace(CONTROL_WORD, control) for word in description.sender),
            server=tuple(word.replace(CONTROL_WORD, control) for word in description.receiver),
            files=tuple(str(place / name) for name in description.files),
            upload=True,
            protocol=description.protocol,
            stack=f"{self.name}{OF_STACK}{control}",
        )


def shipped() -> list[str]:
    """Return the names of the stacks that come with the testbed."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{DESCRIPTION}"))


def stack_of(name: str) -> UserStack:
    """Return the stack of a name, or in a folder; raise for what is wrong with its description."""
    folder = SHIPPED / name if name in shipped() else Path(name).absolute()
    path = folder / DESCRIPTION
    if not path.is_file():
        hint = f"a folder with a {DESCRIPTION}, or one of {', '.join(shipped())}"
        if "/" not in name and not folder.is_dir():
            hint = nearest(name, shipped())
        raise UsageError(f"unknown stack {quoted(name)}", hint)
    return UserStack(folder.name, folder, _description(path))


def _description(path: Path) -> StackDescription:
    try:
        data = tomllib.loads(safe_files.read_text(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML: {error}", "docs/stacks.md has an example") from error
    read, faults = checked(StackDescription, data, str(path))
    if read is not None:
        faults += _faults(read, path.parent)
    if faults:
        raise usage_error(faults, str(path), "docs/stacks.md has an example")
    description: StackDescription = read
    return description


def _faults(description: StackDescription, folder: Path) -> Iterator[Fault]:
    """Yield what fields of a description are not together."""
    if not is_name(folder.name):
        yield Fault((), f"{quoted(folder.name)}: the folder's name is not a name for tables")
    if not description.variants:
        yield Fault(("variants",), "none", 'cubic = "cubic"')
    for name, like in description.variants.items():
        if like and not can_be(like):
            yield Fault(("variants", name), f"{quoted(like)} is no variant of the kernel's")
    for name in description.files:
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts:
            yield Fault(("files",), f"{quoted(name)} is not in the folder")
        elif not description.build and not (folder / name).is_file():
            yield Fault(("files",), f"no such file: {quoted(name)}")
    client, server = (
        tuple(word.replace(CONTROL_WORD, "cubic") for word in argv)
        for argv in (description.sender, description.receiver)
    )
    files = tuple(str(folder / name) for name in description.files)
    for fault in program_faults(Programs(client, server, files, protocol=description.protocol)):
        keys = tuple({"client": "sender", "server": "receiver"}.get(str(k), k) for k in fault.keys)
        yield Fault(keys, fault.words, fault.hint)


def source_files(folder: Path) -> list[Path]:
    """Return what a stack is built from: all files of its folder but what builds leave there."""
    files = list[Path]()
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(e for e in folders if e not in NO_SOURCES and not e.startswith("."))
        files += [path for name in sorted(names) if (path := Path(place) / name).is_file()]
        if len(files) > MAX_SOURCES:
            raise UsageError(
                f"{folder}: more than {MAX_SOURCES} files", "move what is built out of it"
            )
    if sum(path.stat().st_size for path in files) > MAX_SOURCE_BYTES:
        raise UsageError(
            f"{folder}: more than {MAX_SOURCE_BYTES >> 20} MB", "move what is built out of it"
        )
    return files


def sources_hash(folder: Path) -> str:
    """Return a hash of all that a stack is built from."""
    lines = (f"{path.relative_to(folder)} {hash_of(path)}\n" for path in source_files(folder))
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


def build(stack: UserStack, tell: Callable[[str], None]) -> Path:
    """Build a stack unless it is there; return the folder with its files.

    `tell` is called with each command before it runs. A failed build leaves nothing behind.
    """
    if stack.is_built:
        return stack.cached if stack.description.build else stack.folder
    make_folder(stack.cached.parent)
    with workplace("stack") as place:
        for path in source_files(stack.folder):
            copy = place / path.relative_to(stack.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        for command in stack.description.build:
            tell(shlex.join(command))
            _run(command, place)
        with whole_folder(stack.cached) as folder:
            for name in stack.description.files:
                if not (place / name).is_file():
                    raise TestbedError(
                        f"stack {stack.name}: its build made no {name}",
                        "`files` of stack.toml are paths in the folder after `build`",
                    )
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(place / name, target)
    return stack.cached


def _run(command: Sequence[str], place: Path) -> None:
    """Run a command of a build; raise with the line that says what is wrong, if it fails."""
    done = run(command, cwd=place, timeout_s=MAX_BUILD_S, check=False)
    if done.status:
        lines = f"{done.stdout}\n{done.stderr}".strip().splitlines() or ["(no output)"]
        error_line = next((line for line in lines if "error" in line.lower()), lines[-1])
        raise TestbedError(
            f"{shlex.join(command)}: exit status {done.status}: {error_line.strip()}"
        )
