"""`testbed mininet` and `shell`: whole programs, unchanged, in the guest."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import dataclasses
import os
import re
import shutil
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from testbed.errors import UsageError, number_of, printable, printable_lines
from testbed.guest.machine import MachineProgram, machine_kernel, root_environment
from testbed.machine import safe_files
from testbed.machine.atomic import workplace
from testbed.programs.kathara import KATHARA_EXAMPLE, is_lab, lab_script, read_lab
from testbed.programs.program_runs import JUDGE, Output, ProgramRun, copy_in_place, run_in_folder
from testbed.runs.console import say
from testbed.store.names import (
    CAPTURES_FOLDER,
    MACHINE_FILES,
    MACHINE_FLOWS,
    NETWORK_SHELL,
)

SYSTEM_PYTHON = "/usr/bin/python3"  # the system's, which has Mininet and matplotlib
MININET_EXAMPLE = "testbed mininet lab.py, or: testbed mininet -- mn --test pingall"
CALLS_CLI = re.compile(r"^[^#\n]*\bCLI *\(", re.MULTILINE)
KEPT_ON_TERMINALS = "\n\t\r"
FAULTY_LABORATORY = 3  # the status of --check, if the script's is 0
MIN_MEMORY_MB = 64
NO_LIMIT_S = 10**9  # of what somebody works with at a terminal


def mininet(options: argparse.Namespace) -> int:
    """Run `testbed mininet`: a script in its own folder, or after `--` a command such as mn."""
    typed = list(options.words)
    if not typed:
        raise UsageError("mininet: no script", MININET_EXAMPLE)
    captured = captured_interfaces(options)
    if typed[0] == "--":
        command = command_of(typed, MININET_EXAMPLE)
        prompts = command[0] == "mn" and "--test" not in command
        return run_command(
            options, command, Path.cwd(), "mininet", prompts=prompts, captured=captured
        )
    if is_lab(folder := Path(typed[0])):
        return _run_lab(options, folder, typed[1:], captured)
    script = existing_script(typed[0], MININET_EXAMPLE)
    if "--capture" in typed:
        tell(f"--capture behind {typed[0]} is the script's own: ours stands before it")
    prompts = bool(CALLS_CLI.search(safe_files.read_text(script)))
    command = script_command(script, typed[1:])
    return run_command(
        options,
        command,
        script.parent,
        "mininet",
        name=script.stem,
        prompts=prompts,
        captured=captured,
    )


def _run_lab(
    options: argparse.Namespace, folder: Path, typed: Sequence[str], captured: Sequence[str]
) -> int:
    """Run a laboratory of Kathará's, and what is to be done in its machines."""
    lab = read_lab(folder)
    for line in lab.left_out:
        tell(line)
    script = lab_script(lab, typed, captured)
    if not typed:
        tell(f"it only starts; what is done there follows its name: {KATHARA_EXAMPLE}")
    name = lab.folder.name
    command = ["/bin/bash", "-c", script, NETWORK_SHELL]
    return run_command(options, command, lab.folder, "mininet", name=name, captured=captured)


def existing_script(name: str, example: str) -> Path:
    """Return the path of a script, whose folder is the one it runs in."""
    script = Path(name).resolve()
    if not script.is_file():
        raise UsageError(f"{name}: no such script", example)
    return script


def script_command(script: Path, arguments: Sequence[str]) -> list[str]:
    """Return the words that run a script in its own folder: Python's with the system's Python."""
    interpreter = [SYSTEM_PYTHON] if script.suffix == ".py" else ["/bin/bash"]
    by_itself = os.access(script, os.X_OK) and script.suffix != ".py"
    first = [f"./{script.name}"] if by_itself else [*interpreter, script.name]
    return [*first, *arguments]


def captured_interfaces(options: argparse.Namespace) -> list[str]:
    """Return what --capture names."""
    return [name for name in options.capture.split(",") if name]


def shell(options: argparse.Namespace) -> int:
    """Run `testbed shell`: a shell as root of a guest, at this terminal and in real time."""
    command = list(options.words) or ["/bin/bash", "-l"]
    return run_command(options, command, Path.cwd(), "shell", prompts=True)


def command_of(typed: Sequence[str], example: str) -> list[str]:
    """Return the words of a command, which `--` may begin."""
    command = list(typed[1:] if typed and typed[0] == "--" else typed)
    if not command:
        raise UsageError("no command", example)
    return command


def run_command(
    options: argparse.Namespace,
    command: Sequence[str],
    folder: Path,
    verb: str,
    *,
    name: str = "",
    prompts: bool = False,
    captured: Sequence[str] = (),
) -> int:
    """Run a command; at a terminal and in real time if it `prompts` and there is one."""
    kernel = machine_kernel(options.kernel, say)
    out = options.out or Path("results") / verb / (name or Path(command[0]).name)
    at_terminal = prompts and sys.stdin is not None and sys.stdin.isatty()
    variables = {"TERM": os.environ.get("TERM", "dumb")} if at_terminal else {}
    with workplace("input") as place:
        program = machine_program(
            options,
            command,
            folder,
            seed=options.seed,
            captured=captured,
            variables=variables,
            input_file=input_file(place / "stdin"),
        )
        if options.check and not at_terminal:
            program = dataclasses.replace(program, judge=JUDGE)
        if at_terminal:
            program = dataclasses.replace(
                program, limit_s=NO_LIMIT_S, patience_s=NO_LIMIT_S, at_terminal=True
            )
            tell("in real time, at this terminal; with </dev/null in virtual time, without input")
        with (
            _terminal_as_it_was(),
            _passed_on(sys.stdout) as output,
            _passed_on(sys.stderr) as errors,
        ):
            run = run_in_folder(program, kernel, out, output, errors)
    if options.in_place:
        for left_out in copy_in_place(out / MACHINE_FILES, folder):
            tell(f"{left_out}: not copied: something else is in its place")
    _tell_end(program, run, out)
    return run.end.status or (FAULTY_LABORATORY if options.check and run.findings else 0)


def machine_program(
    options: argparse.Namespace,
    command: Sequence[str],
    folder: Path,
    *,
    seed: int,
    captured: Sequence[str],
    variables: Mapping[str, str] | None = None,
    input_file: Path | None = None,
) -> MachineProgram:
    """Return a command with the limits and the environment that the options give it."""
    most_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    if not MIN_MEMORY_MB <= options.memory <= most_mb:
        raise UsageError(
            f"--memory {options.memory}: not between {MIN_MEMORY_MB} and this machine's "
            f"{most_mb} MB",
            "for example --memory 1024",
        )
    environment = {**(variables or {}), **_variables(options.env)}
    return MachineProgram(
        command,
        folder,
        root_environment(Path.home(), environment, _own_path()),
        input=input_file,
        seed=seed,
        memory_mb=options.memory,
        limit_s=options.limit,
        patience_s=options.timeout,
        captured=captured,
    )


class PrintableOutput:
    """Output of a program for a terminal: what the terminal would obey is escaped.

    It comes as bytes, in pieces that may end within a character.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: bytes, *, final: bool = False) -> None:
        """Take the next piece, or the final one."""
        self._stream.write(printable_lines(self._decoder.decode(data, final), KEPT_ON_TERMINALS))

    def flush(self) -> None:
        """Show what was written."""
        self._stream.flush()


@contextlib.contextmanager
def _passed_on(stream: TextIO) -> Iterator[Output]:
    """Yield what passes a program's output on: as it is, unless a terminal would obey it."""
    if not stream.isatty():
        yield stream.buffer
        return
    escaped = PrintableOutput(stream)
    try:
        yield escaped
    finally:
        escaped.write(b"", final=True)


@contextlib.contextmanager
def _terminal_as_it_was() -> Iterator[None]:
    """Restore the terminal's settings afterwards: the guest's kernel changes them."""
    if sys.stdin is None or not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _variables(given: Sequence[str]) -> dict[str, str]:
    """Return the variables of --env NAME=VALUE; without a value, as they are here."""
    pairs = [text.partition("=") for text in given]
    if not all(name for name, *_ in pairs):
        raise UsageError("--env: a variable has a name", "for example --env LANG=C")
    return {name: value if sign else os.environ.get(name, "") for name, sign, value in pairs}


def _own_path() -> list[str]:
    return [path for path in os.environ.get("PATH", "").split(":") if path.startswith("/")]


def input_file(copy: Path) -> Path | None:
    """Copy what is piped or redirected to us: in virtual time it is all there from the start."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy


def tell(line: str) -> None:
    """Print a line of ours beside a program's output."""
    sys.stderr.write(f"testbed: {printable(line)}\n")


def _tell_end(program: MachineProgram, run: ProgramRun, out: Path) -> None:
    end = run.end
    for note in run.notes:
        tell(note)
    if end.at_limit:
        tell(f"ended after {program.limit_s} s of virtual time: --limit SECONDS gives it more")
    if end.at_finding:
        tell(f"ended by --check after {end.took_s:.1f} s, at a finding")
    if end.too_many_processes:
        most = program.most_processes
        tell(f"ended: it had {most} processes, as a fork bomb has: --memory MB allows more")
    for finding in run.findings:
        tell(str(finding))
    files = f"; {number_of(end.files, 'file')} in {out / MACHINE_FILES}" if end.files else ""
    took = f"{end.took_s:.1f} s"
    virtual = took if program.at_terminal else f"{took} of virtual time in {run.wall_s:.1f} s"
    status = f"exit status {end.status}, " if end.status else ""
    tell(f"{status}{virtual}; its output is in {out}{files}")
    if program.captured:
        captures = number_of(run.captures, "capture")
        tell(f"{captures} in {out / CAPTURES_FOLDER}, their flows in {out / MACHINE_FLOWS}")
    if run.captures:
        tell(f"next: testbed report {out}")
