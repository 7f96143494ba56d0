"""The programs of a command flow: words, files, and what may stand in braces."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from testbed.errors import nearest, quoted, range_faults
from testbed.scenario.added_fields import ADDED, shows_added

PLACEHOLDERS = (
    "server_ip",
    "client_ip",
    "port",
    "seed",
    "duration_s",
)  # what words may have in braces
EVERY_PORT = 0
PROGRAM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # where programs are looked for, on every engine
MOST_WORDS = 1000
MOST_FILES = 1000
_BRACES = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")


class Transmission(enum.StrEnum):
    """The protocol that programs speak."""

    TCP = "tcp"
    UDP = "udp"


@shows_added
@dataclass(frozen=True)
class Programs:
    """The programs of a flow of kind command, as lists of words that no shell reads."""

    client: tuple[str, ...]
    """The program that starts with the flow, and its words. `{server_ip}`, `{client_ip}`, `{port}`,
    `{seed}` and `{duration_s}` in them stand for their values, and `{{port}}` for `{port}`."""
    server: tuple[str, ...] = ()
    """The program that is there before and until the end, and its words, as above."""
    files: tuple[str, ...] = ()
    """Files that are copied into the folder in which each of the programs starts."""
    port: int | None = None
    """Where the server listens: one of the testbed's unless given. With 0 all TCP between the two
    hosts is the flow's, as it is of a client without a server."""
    upload: bool = False
    """Whether the server is at `dst`, where the data go to, and not at `src`."""
    protocol: Transmission = field(default=Transmission.TCP, repr=False, metadata=ADDED)
    """What they speak; over UDP a flow has no variant."""

    def with_files(self, place: Callable[[str], str]) -> Programs:
        """Return the programs with their files elsewhere."""
        return replace(self, files=tuple(map(place, self.files)))

    @property
    def unplaced(self) -> Programs:
        """The programs with their files' names alone: two people's trials are the same."""
        return self.with_files(lambda path: PurePosixPath(path).name)

    def listens_on(self, own: int) -> int:
        """Return the port of the flow's connections, 0 for all; `own` is one of the testbed's."""
        if self.port is not None:
            return self.port
        return own if self.server else EVERY_PORT


def filled(words: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words with values in the place of what stands in braces."""
    return tuple(
        _BRACES.sub(lambda m: f"{{{m[1]}}}" if m[1] else values[m[2]], word) for word in words
    )


def faults(programs: Programs, where: str) -> Iterator[str]:
    """Yield everything that is wrong with the words, the port and the files' names."""
    if not programs.client:
        yield f"{where}.client: no program is named"
    for role in ("client", "server"):
        yield from _word_faults(getattr(programs, role), f"{where}.{role}")
    port = programs.port
    yield from range_faults(f"{where}.port", port, 0, 65535)
    if programs.server and port is None and not _names_port(programs.server):
        yield f"{where}.server: has no {{port}}: say on which `port` it listens, 0 for any"
    if not (programs.server or port) and _names_port(programs.client):
        yield f"{where}.client: {{port}} of no server: say which `port`"
    yield from _file_faults(programs, where)


def _names_port(words: tuple[str, ...]) -> bool:
    return any(match[2] == "port" for word in words for match in _BRACES.finditer(word))


def _word_faults(words: tuple[str, ...], where: str) -> Iterator[str]:
    if len(words) > MOST_WORDS:
        yield f"{where}: {len(words)} words; at most {MOST_WORDS}"
    if words and not words[0]:
        yield f"{where}: the program's name is empty"
    for word in words:
        if "\0" in word:
            yield f"{where}: {quoted(word)} has a zero byte"
        for match in _BRACES.finditer(word):
            if match[2] and match[2] not in PLACEHOLDERS:
                hint = nearest(match[2], PLACEHOLDERS)
                yield f"{where}: unknown placeholder {{{match[2]}}}: {hint}"


def _file_faults(programs: Programs, where: str) -> Iterator[str]:
    if len(programs.files) > MOST_FILES:
        yield f"{where}.files: {len(programs.files)} files; at most {MOST_FILES}"
    names = [PurePosixPath(each).name for each in programs.files]
    for each in programs.files:
        if not PurePosixPath(each).is_absolute():
            yield f"{where}.files: {quoted(each)} is not an absolute path"
        elif names.count(PurePosixPath(each).name) > 1:
            yield f"{where}.files: two are called {quoted(PurePosixPath(each).name)}"
    for role in ("client", "server"):
        first = next(iter(getattr(programs, role)), "")
        if "/" in first and not first.startswith("/") and first.removeprefix("./") not in names:
            yield f"{where}.{role}: {quoted(first)} is none of its files, nor an absolute path"
