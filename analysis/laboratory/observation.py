"""What was observed of a whole program: its commands, its networks, its TCP connections.

`testbed/guest/observer.c` writes the lines that are read here. A program can write some of them
itself, so that a line that cannot be read is left out.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

from testbed.machine.safe_files import read_text

SOCKET = re.compile(
    r"^(?>.+ (?P<seconds>\d{1,10}+\.\d++): inet_sock_set_state: )(?>.*?sport=)(?P<sport>\d{1,5}+)"
    r" dport=(?P<dport>\d{1,5}+) saddr=(?P<saddr>\S++) daddr=(?P<daddr>\S++) (?>.*?oldstate=TCP_)"
    r"(?P<old>\w++) newstate=TCP_(?P<new>\w++)"
)
MAX_OBSERVED_BYTES = 1 << 25  # observer.c writes half as many
SOCKET_CLOCK_NS = 1000  # the kernel's trace has the changes of sockets in microseconds
MAX_SOCKET_LINE = 1000  # characters
MAX_LINES_BACK = 1000  # of a script, among which that of a command is looked for
MACHINE_ITSELF = "the machine itself"  # the node of a namespace without a name
LOST_SOCKETS = re.compile(r"^# entries-in-buffer/entries-written: (\d+)/(\d+)")


@dataclass(frozen=True)
class ExecutedCommand:
    """A command that the program executed."""

    order: int  # among all that was observed: much happens at one instant of virtual time
    time_ns: int
    namespace: int
    control: str  # the congestion control of its namespace, just then
    words: Sequence[str]
    ended_ns: int | None = None
    status: int | None = None  # None: it was ended, or has not ended
    origin: str = ""  # of what was set without a command, for which this one stands

    @functools.cached_property
    def program(self) -> str:
        """The program's name, without its folder."""
        return self.words[0].rpartition("/")[2]

    def after(self, word: str) -> str:
        """Return the word after a word, or nothing."""
        rest = self.words[self.words.index(word) + 1 :] if word in self.words else ()
        return rest[0] if rest else ""

    def __str__(self) -> str:
        return " ".join((self.program, *self.words[1:]))


@dataclass(frozen=True)
class ObservedQueue:
    """A queue discipline of a device with what passed it."""

    kind: str
    sent_bytes: int
    packets: int
    drops: int
    limit: int | None  # in packets
    rate_mbit: float  # 0: it limits none by itself
    waiting_bytes: int = 0
    delay_ms: float = 0.0
    is_root: bool = True


@dataclass(frozen=True)
class ObservedDevice:
    """A network device with what passed it."""

    index: int
    name: str
    peer: int
    received_bytes: int
    sent_bytes: int
    sent_packets: int
    segments_later: bool  # TSO: what it is handed is up to 64 KB
    queues: list[ObservedQueue] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ObservedNamespace:
    """A network namespace at an instant."""

    order: int
    inode: int
    label: str
    time_ns: int = 0
    control: str = ""  # its congestion control
    devices: dict[int, ObservedDevice] = field(default_factory=dict)


@dataclass(frozen=True)
class SocketChange:
    """A TCP socket's change from one state to another."""

    time_ns: int
    source: tuple[str, int]
    destination: tuple[str, int]
    old: str
    new: str


@dataclass(frozen=True, eq=False)
class Observation:
    """A program's run as it was observed."""

    commands: Sequence[ExecutedCommand]
    namespaces: Sequence[ObservedNamespace]
    sockets: Sequence[SocketChange]
    sockets_complete: bool
    controls: Sequence[str]  # the congestion controls that the kernel has
    script_lines: Sequence[tuple[int, str, str]]  # when, file and line, what was executed there
    began_ns: int = 0  # the clock of these times when the program started
    began_clock_ns: int = 0  # the wall clock just then, which captures have

    def of(self, *programs: str) -> Iterator[ExecutedCommand]:
        """Yield the commands of some programs."""
        return (each for each in self.commands if each.program in programs)

    @functools.cached_property
    def _looks(self) -> Mapping[tuple[int, str], Sequence[tuple[int, ObservedDevice]]]:
        """The times that each device was seen, with their places among all that was observed."""
        looks = defaultdict(list)
        for seen in self.namespaces:
            for device in seen.devices.values():
                looks[seen.inode, device.name].append((seen.order, device))
        return looks

    @functools.cached_property
    def rates(self) -> Mapping[tuple[int, str, str], Sequence[ExecutedCommand]]:
        """The commands of tc that succeeded, by their device and their class or `tbf`."""
        by_class = defaultdict(list)
        for each in self.of("tc"):
            if each.status == 0:
                for word in {each.after("classid"), *({"tbf"} & set(each.words))}:
                    by_class[each.namespace, each.after("dev"), word].append(each)
        return by_class

    @functools.cached_property
    def _labels(self) -> Mapping[int, str]:
        """The names of namespaces, as far as they have some."""
        seen = reversed(self.namespaces)
        return {each.inode: each.label for each in seen if each.label != "-"}

    @functools.cached_property
    def _lines(self) -> Sequence[tuple[int, str, str]]:
        """The script's lines in the order of time."""
        return sorted(self.script_lines, key=lambda line: line[0])

    def _lines_before(self, time_ns: int) -> Iterator[tuple[str, str]]:
        """Yield the last lines of the script by then, the latest first, as places and texts."""
        end = bisect.bisect_right(self._lines, time_ns, key=lambda line: line[0])
        for number in range(end - 1, max(0, end - MAX_LINES_BACK) - 1, -1):
            yield self._lines[number][1:]

    @functools.cached_property
    def _replacements(self) -> Mapping[tuple[int, str], Sequence[int]]:
        """Where among all commands a device, or its root queue, was replaced or removed."""
        orders = defaultdict(list)
        for each in self.of("tc", "ip"):
            if {"del", "delete", "replace", "root"} & set(each.words):
                for word in each.words:
                    orders[each.namespace, word].append(each.order)
        return orders

    def device(self, command: ExecutedCommand, name: str) -> ObservedDevice | None:
        """Return a device of a command's namespace as it was last seen before it was replaced."""
        replaced = self._replacements.get((command.namespace, name), ())
        following = replaced[bisect.bisect_right(replaced, command.order) :]
        until = following[0] if following else math.inf
        looks = self._looks.get((command.namespace, name), ())
        place = bisect.bisect_right(looks, until, key=lambda look: look[0])
        seen = place > 0 and looks[place - 1][0] >= command.order
        return looks[place - 1][1] if seen else None

    def place(self, command: ExecutedCommand) -> str:
        """Return the file and line of the script at which a command was executed, or nothing.

        It is the last line before the command that has all of it, or else its program.
        """
        if command.origin:
            return command.origin
        program, whole, with_program = _word(command.program), str(command), ""
        for place, text in self._lines_before(command.time_ns):
            if whole in text:
                return place
            if not with_program and program.search(text):
                with_program = place
        return with_program

    def last_line(self, text: str, time_ns: int) -> str:
        """Return the file and line of the script that last had a text by then, or nothing."""
        return next((p for p, whole in self._lines_before(time_ns) if text in whole), "")

    def last_seen(self) -> Mapping[tuple[int, str], ObservedDevice]:
        """Return the devices by namespace and name, each as it was last seen."""
        return {key: looks[-1][1] for key, looks in self._looks.items()}

    def seen_after(self, command: ExecutedCommand, key: tuple[int, str]) -> ObservedDevice:
        """Return a device as it was first seen after a command began, or else last."""
        looks = self._looks[key]
        later = bisect.bisect_right(looks, command.order, key=lambda look: look[0])
        return looks[min(later, len(looks) - 1)][1]

    def label(self, namespace: int) -> str:
        """Return the name of a network namespace for a reader."""
        return self._labels.get(namespace, MACHINE_ITSELF)


def _number(text: str) -> int:
    """Read a number of the observer's: each has at most 64 bits."""
    value = int(text)
    if value.bit_length() > 64:
        raise ValueError("more than 64 bits")
    return value


@functools.lru_cache
def _word(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(text)}\b")


@dataclass
class ObservationReader:
    """An observation's lines, read one by one."""

    folder: Path
    pending: dict[int, int] = field(default_factory=dict)  # process → its command's number
    commands: list[ExecutedCommand] = field(default_factory=list)
    namespaces: list[ObservedNamespace] = field(default_factory=list)
    sockets: list[SocketChange] = field(default_factory=list)
    sockets_complete: bool = True
    controls: Sequence[str] = ()
    began: tuple[int, int] = (0, 0)
    order: int = 0
    places: list[tuple[int, str, str]] = field(default_factory=list)  # when, place, text
    ended: int | None = None  # the number of the command that ended last

    def read_text(self, text: str) -> None:
        """Read lines; those that cannot be read are left out."""
        for line in text.splitlines():
            with contextlib.suppress(ArithmeticError, ValueError, IndexError):
                self.read(line)

    def read(self, line: str) -> None:
        """Read one line."""
        kind, *fields = line.split() or [""]
        self.order += 1
        if socket := SOCKET.match(line, 0, MAX_SOCKET_LINE):
            self._read_socket(socket)
        elif socket := LOST_SOCKETS.match(line):
            self.sockets_complete = socket[1] == socket[2]
        elif kind == "began":
            self.began = (_number(fields[0]), _number(fields[1]))
        elif kind == "controls":
            self.controls = fields
        elif kind == "unconnected":
            self.sockets_complete = False
        elif kind == "command" and len(fields) > 4:
            self._read_command(
                _number(fields[0]), _number(fields[1]), _number(fields[2]), fields[3], fields[4:]
            )
        elif kind == "exit" and (number := self.pending.pop(_number(fields[1]), None)) is not None:
            ended = replace(
                self.commands[number], ended_ns=_number(fields[0]), status=_number(fields[2])
            )
            self.commands[number] = ended
            self.ended = number
        elif kind == "namespace":
            control = fields[3] if len(fields) > 3 else ""
            seen = ObservedNamespace(
                self.order, _number(fields[1]), unquote(fields[2]), _number(fields[0]), control
            )
            self.namespaces.append(seen)
        elif kind == "line":
            text = " ".join(unquote(fields[2]).split())
            self.places.append((_number(fields[0]), unquote(fields[1]), text))
        elif kind in ("device", "address", "qdisc") and self.namespaces:
            self._read_of_device(kind, fields)

    def _read_command(
        self, time_ns: int, process: int, namespace: int, control: str, fields: Sequence[str]
    ) -> None:
        executed = ExecutedCommand(
            self.order,
            time_ns,
            namespace,
            control,
            [unquote(w, errors="replace").strip("\0") for w in fields],
        )
        number = self.pending.get(process)
        if number is not None and self.commands[number].words[1:] == executed.words[1:]:
            self.commands[number] = executed  # the search in PATH went on
            return
        self.pending[process] = len(self.commands)
        self.commands.append(executed)

    def _read_socket(self, match: re.Match[str]) -> None:
        self.sockets.append(
            SocketChange(
                round(float(match["seconds"]) * 1e9),
                (match["saddr"], int(match["sport"])),
                (match["daddr"], int(match["dport"])),
                match["old"],
                match["new"],
            )
        )

    def _read_of_device(self, kind: str, fields: Sequence[str]) -> None:
        devices, index = self.namespaces[-1].devices, _number(fields[0])
        if kind == "device":
            peer, received, sent, packets, segments = map(_number, fields[2:])
            name = unquote(fields[1])
            devices[index] = ObservedDevice(
                index, name, peer, received, sent, packets, bool(segments)
            )
        elif index in devices and kind == "address":
            devices[index].addresses.append(fields[1])
        elif index in devices:
            sent, packets, drops, limit, rate, *more = map(_number, fields[2:])
            waiting, delay_ns, is_root = more or (0, 0, 1)
            most = limit if limit >= 0 else None
            queue = ObservedQueue(
                fields[1],
                sent,
                packets,
                drops,
                most,
                rate * 8 / 1e6,
                waiting,
                delay_ns / 1e6,
                bool(is_root),
            )
            devices[index].queues.append(queue)

    def observation(self) -> Observation:
        """Return the observation, once all lines are read."""
        return Observation(
            self.commands,
            self.namespaces,
            self.sockets,
            self.sockets_complete,
            self.controls,
            [
                (when, place.removeprefix(f"{self.folder}/"), text)
                for when, place, text in self.places
            ],
            *self.began,
        )


def read_observation(path: Path, folder: Path) -> Observation:
    """Read the lines of a program that ran in a folder."""
    reader = ObservationReader(folder)
    reader.read_text(read_text(path, MAX_OBSERVED_BYTES))
    return reader.observation()
