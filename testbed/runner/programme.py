"""A programme: what the runner obeys, and what it answers.

testbed/runner/runner.c says what each instruction does. An instruction is known by its number;
its answer is read under that number once the programme has ended.
"""

from __future__ import annotations

import shlex
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.machine import safe_files
from testbed.store.names import COMMANDS

HOME = "-"  # the namespace that the runner is started in
NS = 1_000_000_000
BOOT_NS = 1_700_000_000 * NS  # the guest's wall clock at its boot: arbitrary but fixed
_FAILED = 1 << 31
_WHY_MOST = 500  # bytes of a failure's reason, which a hostile program may have written
_ANSWER_HEAD = struct.Struct("=II")  # of an answer: its instruction and its size
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n"}


@dataclass(frozen=True)
class LogEntry:
    """An instruction as people know it: a command in a node, for the log and for messages."""

    node: str
    argv: tuple[str, ...]
    stdin: str = ""
    fault: str = ""  # what its failure means; the reason is added
    errors: str = ""  # the file of a program's errors, whose last line says more


class Programme:
    """The instructions of a trial, in order."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._entries: dict[int, LogEntry] = {}
        self._errors: dict[str, str] = {}  # program → the file of its errors
        self._templates: dict[tuple[str, str], str] = {}  # (program, preloaded) → its name

    def add(self, *words: object, entry: LogEntry | None = None, fault: str = "") -> int:
        """Add an instruction and return its number."""
        number = len(self._lines)
        self._lines.append(_line(words))
        if entry or fault:
            self._entries[number] = entry or LogEntry("", (), fault=fault)
        return number

    def replace(self, number: int, *words: object) -> None:
        """Give an instruction other words: those that were not known when it was added."""
        self._lines[number] = _line(words)

    @property
    def text(self) -> str:
        """The programme as the runner reads it."""
        return "".join(f"{line}\n" for line in self._lines)

    @property
    def length(self) -> int:
        """The number of instructions so far."""
        return len(self._lines)

    def run(
        self, node: str, argv: Sequence[str], stdin: str = "", tries: int = 1, fault: str = ""
    ) -> int:
        """Run a command to its end, again if it fails; the last try must succeed."""
        entry = LogEntry(node, tuple(argv), stdin, fault)
        return self.add("run", node, tries, stdin, *argv, entry=entry)

    def start(
        self,
        name: str,
        node: str,
        argv: Sequence[str],
        stdout: str,
        stderr: str,
        folder: str = "",
        environment: Mapping[str, str] | None = None,
        user: tuple[int, Sequence[int]] = (0, (0,)),
    ) -> int:
        """Start a program, by the name that later instructions know it by."""
        uid, groups = user
        owner = (uid, ",".join(map(str, groups)))
        self._errors[name] = stderr
        words = (name, node, stdout, stderr, folder, *owner, *_variables(environment or {}))
        return self.add("start", *words, *argv, entry=LogEntry(node, tuple(argv)))

    def copy(
        self,
        name: str,
        node: str,
        argv: Sequence[str],
        stdout: str,
        stderr: str,
        preloaded: str,
        environment: Mapping[str, str],
    ) -> int:
        """Start a program as a copy of a template, which is loaded once.

        What is preloaded makes the copies.
        """
        loaded = {"LD_PRELOAD": preloaded}
        template = self._templates.get((argv[0], preloaded))
        if template is None:
            template = f"template {len(self._templates)}"
            self._templates[argv[0], preloaded] = template
            self.add("template", template, *_variables(loaded), argv[0])
        self._errors[name] = stderr
        words = (name, template, node, stdout, stderr, *_variables({**environment, **loaded}))
        return self.add("copy", *words, *argv, entry=LogEntry(node, tuple(argv)))

    def await_program(self, name: str, patience_s: float, *condition: object, fault: str) -> None:
        """Wait until a program is ready; a failure quotes the last line of its errors.

        Conditions: `listens NODE PORT`, `says FILE TEXT`, `exists FILE`, `interface NAME`.
        """
        entry = LogEntry("", (), fault=fault, errors=self._errors[name])
        self.add("await", name, round(patience_s * NS), *condition, entry=entry)

    def end(self, name: str, number: int, patience_s: float, *, with_children: bool = False) -> int:
        """Add an instruction that ends a program by a signal, or kills it after the patience."""
        scope = "group" if with_children else "alone"
        return self.add("end", name, int(number), round(patience_s * NS), scope)

    def send(
        self,
        node: str,
        kind: int,
        flags: int,
        message: bytes,
        *filled_in: tuple[str, int, str],
        entry: LogEntry | None = None,
        fault: str = "",
    ) -> int:
        """Send a netlink request.

        What only the runner knows is filled in at an offset: the `index` of an interface, a `node`,
        an eBPF `program`, or second `zero` on the monotonic clock.
        """
        words = [word for each in filled_in for word in each]
        return self.add("send", node, kind, flags, message.hex(), *words, entry=entry, fault=fault)

    def log(self, folder: Path, answers: Answers) -> None:
        """Write the log of all commands that were run."""
        with (folder / COMMANDS).open("w") as file:
            for number, entry in self._entries.items():
                if entry.argv and number <= answers.last:
                    file.write(_logged(entry, answers.outcome(number)))

    def fault(self, answers: Answers, folder: Path) -> TestbedError | None:
        """Return the error that ended the programme; None if it was obeyed to its end."""
        if answers.failure is None:
            return None
        number, why = answers.failure
        entry = self._entries.get(number, LogEntry("", ()))
        if entry.fault:
            last_words = _last_line(folder / entry.errors) if entry.errors else ""
            return TestbedError(": ".join(filter(None, (entry.fault, why, last_words))))
        where = entry.node if entry.node != HOME else "host"
        _status, last_words = answers.outcome(number)
        first = next(iter(last_words.strip().splitlines()), "")
        what = f"{where}: {shlex.join(entry.argv)}: {why}" if entry.argv else why
        return TestbedError(
            f"{what}: {first}" if first else what,
            f"{COMMANDS} in the trial's folder has the full output" if entry.argv else "",
        )


def _variables(environment: Mapping[str, str]) -> tuple[object, ...]:
    """Return the words of an environment, behind their number."""
    return (len(environment), *(f"{key}={value}" for key, value in environment.items()))


def _last_line(file: Path) -> str:
    return "".join(safe_files.tail(file).strip().splitlines()[-1:])


def _line(words: Sequence[object]) -> str:
    line = "\t".join(map(str, words))
    if "\\" in line or "\n" in line or line.count("\t") >= len(words):
        return "\t".join(_escaped(str(word)) for word in words)
    return line


def _escaped(word: str) -> str:
    for character, escape in _ESCAPES.items():
        word = word.replace(character, escape)
    return word


def _logged(entry: LogEntry, outcome: tuple[str, str]) -> str:
    status, output = outcome
    node = entry.node if entry.node != HOME else "host"
    lines = [f"[{node}] {shlex.join(entry.argv)}  → {status}"]
    lines += [f"    < {line}" for line in entry.stdin.splitlines()]
    lines += [f"    | {line}" for line in output.splitlines()]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class ProgramEnd:
    """The end of a program: its status (below 0 a signal), whether the programme ended it, when."""

    status: int
    was_ended: bool
    time_s: float


class Answers:
    """The runner's answers, by the numbers of instructions."""

    def __init__(self, data: bytes, zero: int) -> None:
        self._answers: dict[int, bytes] = {}
        self._zero = zero  # the instruction that sets second 0
        self.failure: tuple[int, str] | None = None
        place = 0
        while place + _ANSWER_HEAD.size <= len(data):
            number, size = _ANSWER_HEAD.unpack_from(data, place)
            place += _ANSWER_HEAD.size
            answer = data[place : place + size]
            if len(answer) < size:
                raise ValueError("they end in the midst of one")
            place += size
            if number & _FAILED:
                why = answer[:_WHY_MOST].decode(errors="replace")
                self.failure = number ^ _FAILED, " ".join(why.split())
            else:
                self._answers[number] = answer

    @property
    def zero_ns(self) -> int:
        """Second 0 on the monotonic clock."""
        return self.numbers(self._zero)[0]

    @property
    def epoch_s(self) -> float:
        """Second 0 on the wall clock."""
        return self.numbers(self._zero)[1] / NS

    @property
    def last(self) -> int:
        """The number of the last instruction that was obeyed, as far as answers tell."""
        return self.failure[0] if self.failure else 1 << 31

    def __contains__(self, number: int) -> bool:
        return number in self._answers

    def of(self, number: int) -> bytes:
        """Return an instruction's answer; empty if it had none."""
        return self._answers.get(number, b"")

    def numbers(self, number: int) -> tuple[int, ...]:
        """Return an answer of 64-bit numbers."""
        return struct.unpack(f"={len(self.of(number)) // 8}q", self.of(number))

    def time_s(self, number: int) -> float | None:
        """Return when it was, in the trial's seconds; None if it never was."""
        times = self.numbers(number)
        return times[0] / NS if times else None

    def files(self, number: int) -> dict[str, str]:
        """Return the files that were read: path → text."""
        parts = self.of(number).decode(errors="replace").split("\0")
        return dict(zip(parts[::2], parts[1::2], strict=False))

    def output(self, number: int) -> tuple[int, str, str]:
        """Return the exit status, the output and the errors of a command that was run."""
        status, size = struct.unpack_from("=ii", self.of(number))
        text = self.of(number)[8:]
        return status, text[:size].decode(errors="replace"), text[size:].decode(errors="replace")

    def ended(self, number: int) -> ProgramEnd | None:
        """Return how a program ended, by the number of its `end`."""
        values = self.numbers(number)
        return ProgramEnd(values[0], bool(values[1]), values[2] / NS) if values else None

    def messages(self, number: int) -> Iterator[bytes]:
        """Yield the messages of a netlink dump, without their heads."""
        data, place = self.of(number), 0
        while place + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, place)
            if length < 16:
                return
            if kind > 3:  # NLMSG_NOOP, ERROR, DONE, OVERRUN
                yield data[place + 16 : place + length]
            place += (length + 3) & ~3

    def outcome(self, number: int) -> tuple[str, str]:
        """Return how a command ended, as the log says it, and what it printed."""
        if self.failure and self.failure[0] == number and number not in self._answers:
            return "failed", self.failure[1]
        if number not in self._answers:  # it has nothing to say but that it was done
            return "0", ""
        status, output, errors = self.output(number)
        return str(status), output + errors
