"""The programs of a command flow: words, files, and what may stand in braces."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Annotated

from testbed.errors import quoted
from testbed.faults import Fault, unknown
from testbed.scenario.limits import Length, Range, Text
from testbed.scenario.omitted_defaults import OMIT_DEFAULT, repr_without_defaults
from testbed.scenario.program_numbers import ProgramNumbers, number_faults

PLACEHOLDERS = (
    "server_ip",
    "client_ip",
    "port",
    "seed",
    "duration_s",
    "python",
)  # what words may have in braces
EVERY_PORT = 0
PROGRAM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # where programs are looked for, on every engine
MAX_WORDS = 1000
MAX_FILES = 1000
CLIENT_HINT = '"client": ["iperf3", "-c", "{server_ip}"]'
CLIENT_WORDS = Length(1, MAX_WORDS, "words", none="no program is named", few=CLIENT_HINT)
_BRACES = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")


class Transmission(enum.StrEnum):
    """The protocol that programs speak."""

    TCP = "tcp"
    UDP = "udp"


@repr_without_defaults
@dataclass(frozen=True)
class Programs:
    """The programs of a flow of kind command, as lists of words that no shell reads."""

    client: Annotated[
        tuple[str, ...], Length(1, MAX_WORDS, "words", none="no program is named", few=CLIENT_HINT)
    ]
    """The program that starts with the flow, and its words. `{server_ip}`, `{client_ip}`, `{port}`,
    `{seed}` and `{duration_s}` in them stand for their values, `{python}` for the Python that has
    the testbed, and `{{port}}` for `{port}`."""
    server: Annotated[tuple[str, ...], Length(0, MAX_WORDS, "words")] = ()
    """The program that is there before and until the end, and its words, as above."""
    files: Annotated[tuple[str, ...], Length(0, MAX_FILES, "files")] = ()
    """Files that are copied into the folder in which each of the programs starts."""
    port: Annotated[int, Range(0, 65535)] | None = None
    """Where the server listens: one of the testbed's unless given. With 0 all TCP between the two
    hosts is the flow's, as it is of a client without a server."""
    upload: bool = False
    """Whether the server is at `dst`, where the data go to, and not at `src`."""
    protocol: Transmission = field(default=Transmission.TCP, repr=False, metadata=OMIT_DEFAULT)
    """What they speak; over UDP a flow has no variant."""
    stack: Annotated[str, Text()] = field(default="", repr=False, metadata=OMIT_DEFAULT)
    """What tables call it in place of a variant: a stack and its congestion control."""

    measure: ProgramNumbers = field(default=(), repr=False, metadata=OMIT_DEFAULT)
    """Numbers that they print, each a column of the tables."""

    def with_files(self, place: Callable[[str], str]) -> Programs:
        """Return the programs with their files elsewhere."""
        return replace(self, files=tuple(map(place, self.files)))

    @property
    def unplaced(self) -> Programs:
        """The programs with their files' names alone: two people's trials are the same."""
        return self.with_files(lambda path: PurePosixPath(path).name)

    def listens_on(self, default: int) -> int:
        """Return the port of the flow's connections, 0 for all; `own` is one of the testbed's."""
        if self.port is not None:
            return self.port
        return default if self.server else EVERY_PORT


def filled(argv: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words with values in the place of what stands in braces."""
    return tuple(
        _BRACES.sub(lambda m: f"{{{m[1]}}}" if m[1] else values[m[2]], word) for word in argv
    )


def program_faults(programs: Programs) -> Iterator[Fault]:
    """Yield what is wrong with the words, with their port and with the files' names."""
    for role in ("client", "server"):
        yield from (fault.inside(role) for fault in _word_faults(getattr(programs, role)))
    if programs.server and programs.port is None and not _names_port(programs.server):
        yield Fault(("server",), "has no {port}: say on which `port` it listens, 0 for any")
    if not (programs.server or programs.port) and _names_port(programs.client):
        yield Fault(("client",), "{port} of no server: say which `port`")
    yield from _file_faults(programs)
    yield from (fault.inside("measure") for fault in number_faults(programs.measure))


def _names_port(argv: tuple[str, ...]) -> bool:
    return any(match[2] == "port" for word in argv for match in _BRACES.finditer(word))


def _word_faults(argv: tuple[str, ...]) -> Iterator[Fault]:
    if argv and not argv[0]:
        yield Fault((), "the program's name is empty")
    for word in argv:
        if "\0" in word:
            yield Fault((), f"{quoted(word)} has a zero byte")
        for match in _BRACES.finditer(word):
            if match[2] and match[2] not in PLACEHOLDERS:
                known = [f"{{{name}}}" for name in PLACEHOLDERS]
                yield unknown((), "placeholder", match[0], known)


def _file_faults(programs: Programs) -> Iterator[Fault]:
    names = [PurePosixPath(each).name for each in programs.files]
    for each in programs.files:
        if not PurePosixPath(each).is_absolute():
            yield Fault(("files",), f"{quoted(each)} is not an absolute path")
        elif names.count(PurePosixPath(each).name) > 1:
            yield Fault(("files",), f"two are called {quoted(PurePosixPath(each).name)}")
    for role in ("client", "server"):
        first = next(iter(getattr(programs, role)), "")
        if "/" in first and not first.startswith("/") and first.removeprefix("./") not in names:
            yield Fault((role,), f"{quoted(first)} is none of its files, nor an absolute path")
