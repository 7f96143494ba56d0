"""`testbed mininet`, `exec` and `shell`: whole programs, unchanged, in the guest."""

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
from testbed.machine.file_hashes import hash_of
from testbed.machine.process import end_all, start
from testbed.programs.kathara import KATHARA_EXAMPLE, is_lab, lab_script, read_lab
from testbed.programs.network_script import network_script, read_network
from testbed.programs.program_runs import JUDGE, Output, ProgramRun, copy_in_place, run_in_folder
from testbed.runs.console import console, folding_table, print_folded, say
from testbed.runs.suite_results import (
    MAX_JUNIT_FILES,
    TEST_FAILED,
    TEST_FORMATS,
    TEST_OUTCOMES,
    SuiteRun,
    junit_outcomes,
    printed_outcomes,
    unlike,
)
from testbed.store.names import (
    CAPTURES_FOLDER,
    MACHINE_ERRORS,
    MACHINE_FILES,
    MACHINE_FLOWS,
    MACHINE_OUTPUT,
    NETWORK_SHELL,
)

SYSTEM_PYTHON = "/usr/bin/python3"  # the system's, which has Mininet and matplotlib
MININET_EXAMPLE = "testbed mininet lab.py, or: testbed mininet -- mn --test pingall"
EXEC_EXAMPLE = "testbed exec -- make test"
NETWORK_EXAMPLE = "testbed exec --network FILE --capture all -- COMMAND"
REPEAT_EXAMPLE = "testbed exec --repeat 20 --busy -- go test -v ./..."
CALLS_CLI = re.compile(r"^[^#\n]*\bCLI *\(", re.MULTILINE)
KEPT_ON_TERMINALS = "\n\t\r"
OTHER_OUTPUT = 4  # the status of --repeat, if the first seed printed something else again
FAULTY_LABORATORY = 3  # the status of --check, if the script's is 0
MIN_MEMORY_MB = 64
NO_LIMIT_S = 10**9  # of what somebody works with at a terminal


def mininet(options: argparse.Namespace) -> int:
    """Run `testbed mininet`: a script in its own folder, or after `--` a command such as mn."""
    words = list(options.words)
    if not words:
        raise UsageError("mininet: no script", MININET_EXAMPLE)
    captured = _captured(options)
    if words[0] == "--":
        command = _command(words, MININET_EXAMPLE)
        prompts = command[0] == "mn" and "--test" not in command
        return _run(options, command, Path.cwd(), "mininet", prompts=prompts, captured=captured)
    if is_lab(folder := Path(words[0])):
        return _run_lab(options, folder, words[1:], captured)
    script = existing_script(words[0], MININET_EXAMPLE)
    prompts = bool(CALLS_CLI.search(safe_files.read_text(script)))
    command = script_command(script, words[1:])
    return _run(
        options,
        command,
        script.parent,
        "mininet",
        name=script.stem,
        prompts=prompts,
        captured=captured,
    )


def _run_lab(
    options: argparse.Namespace, folder: Path, words: Sequence[str], captured: Sequence[str]
) -> int:
    """Run a laboratory of Kathará's, and what is to be done in its machines."""
    lab = read_lab(folder)
    for line in lab.left_out:
        _tell(line)
    script = lab_script(lab, words, captured)
    if not words:
        _tell(f"it only starts; what is done there follows its name: {KATHARA_EXAMPLE}")
    name = lab.folder.name
    command = ["/bin/bash", "-c", script, NETWORK_SHELL]
    return _run(options, command, lab.folder, "mininet", name=name, captured=captured)


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


def execute(options: argparse.Namespace) -> int:
    """Run `testbed exec`: any command, in the current folder, with a network if one is named."""
    command = _command(options.words, EXEC_EXAMPLE)
    captured = _captured(options)
    if options.busy and options.repeat is None:
        raise UsageError("--busy is for --repeat", REPEAT_EXAMPLE)
    if options.network is None:
        if captured:
            raise UsageError("--capture has no network to capture", NETWORK_EXAMPLE)
        run = _run if options.repeat is None else _repeat
        return run(options, command, Path.cwd(), "exec")
    if options.repeat is not None:
        raise UsageError("--repeat: of a command without --network", REPEAT_EXAMPLE)
    script = network_script(read_network(options.network), command, captured)
    words = ["/bin/bash", "-c", script, NETWORK_SHELL, *command]
    name = options.network.stem
    return _run(options, words, Path.cwd(), "exec", name=name, captured=captured)


def _captured(options: argparse.Namespace) -> list[str]:
    return [name for name in options.capture.split(",") if name]


def shell(options: argparse.Namespace) -> int:
    """Run `testbed shell`: a shell as root of a guest, at this terminal and in real time."""
    command = list(options.words) or ["/bin/bash", "-l"]
    return _run(options, command, Path.cwd(), "shell", prompts=True)


def _command(words: Sequence[str], example: str) -> list[str]:
    command = list(words[1:] if words and words[0] == "--" else words)
    if not command:
        raise UsageError("no command", example)
    return command


def _run(
    options: argparse.Namespace,
    words: Sequence[str],
    folder: Path,
    verb: str,
    *,
    name: str = "",
    prompts: bool = False,
    captured: Sequence[str] = (),
) -> int:
    """Run a command; at a terminal and in real time if it `prompts` and there is one."""
    kernel = machine_kernel(options.kernel, say)
    out = options.out or Path("results") / verb / (name or Path(words[0]).name)
    at_terminal = prompts and sys.stdin is not None and sys.stdin.isatty()
    variables = {"TERM": os.environ.get("TERM", "dumb")} if at_terminal else {}
    with workplace("input") as place:
        program = machine_program(
            options,
            words,
            folder,
            seed=options.seed,
            captured=captured,
            variables=variables,
            input_file=_input(place / "stdin"),
        )
        if options.check and not at_terminal:
            program = dataclasses.replace(program, judge=JUDGE)
        if at_terminal:
            program = dataclasses.replace(
                program, limit_s=NO_LIMIT_S, patience_s=NO_LIMIT_S, at_terminal=True
            )
            _tell("in real time, at this terminal; with </dev/null in virtual time, without input")
        with (
            _terminal_as_it_was(),
            _passed_on(sys.stdout) as output,
            _passed_on(sys.stderr) as errors,
        ):
            run = run_in_folder(program, kernel, out, output, errors)
    if options.in_place:
        for left_out in copy_in_place(out / MACHINE_FILES, folder):
            _tell(f"{left_out}: not copied: something else is in its place")
    _tell_end(program, run, out)
    return run.end.status or (FAULTY_LABORATORY if options.check and run.findings else 0)


def _repeat(options: argparse.Namespace, words: Sequence[str], folder: Path, verb: str) -> int:
    """Run a command with one seed after the other, and compare the tests that it ran.

    The first seed is run again at the end: its output has to be the same.
    """
    if options.in_place or options.check:
        given = "--in-place" if options.in_place else "--check"
        raise UsageError(f"--repeat and {given} do not go together", REPEAT_EXAMPLE)
    kernel = machine_kernel(options.kernel, say)
    out = options.out or Path("results") / verb / Path(words[0]).name
    seeds = [*range(options.seed, options.seed + options.repeat), options.seed]
    runs, hashes = list[SuiteRun](), list[list[str]]()
    nowhere = Path(os.devnull)
    with workplace("input") as place, nowhere.open("wb") as unheard, busy_cores(options.busy):
        input_file = _input(place / "stdin")
        for number, seed in enumerate(seeds, 1):
            program = machine_program(
                options, words, folder, seed=seed, captured=(), input_file=input_file
            )
            place_of_run = out / f"run-{number}"
            run = run_in_folder(program, kernel, place_of_run, unheard, unheard)
            printed = [place_of_run / name for name in (MACHINE_OUTPUT, MACHINE_ERRORS)]
            hashes.append([hash_of(path) for path in printed])
            texts = (safe_files.tail(path, safe_files.LONG_TAIL_BYTES) for path in printed)
            outcomes = dict(printed_outcomes("\n".join(texts)))
            files = sorted((place_of_run / MACHINE_FILES).rglob("*.xml"))
            for path in files[:MAX_JUNIT_FILES]:
                outcomes.update(junit_outcomes(path))
            runs.append(SuiteRun(seed, run.end.status, run.end.took_s, run.wall_s, outcomes))
            _tell(f"{number}/{len(seeds)}: seed {seed}, exit status {run.end.status}")
            for note in run.notes:
                _tell(note)
    table = folding_table("seed", "status", *TEST_OUTCOMES, "virtual s", "wall s")
    for each in runs:
        counts = [str(each.count(outcome)) if each.outcomes else "" for outcome in TEST_OUTCOMES]
        times = (f"{each.virtual_s:.1f}", f"{each.wall_s:.1f}")
        table.add_row(str(each.seed), str(each.status), *counts, *times)
    console.print(table)
    if not any(each.outcomes for each in runs):
        print_folded(f"no test is named in the output; known are {TEST_FORMATS}")
    same = hashes[0] == hashes[-1]
    for line in unlike(runs[:-1]):
        print_folded(printable(line))
    print_folded(f"seed {options.seed} again: {'the same output' if same else 'another output'}")
    if not same:
        return OTHER_OUTPUT
    failed = any(each.count(TEST_FAILED) for each in runs)
    return next((each.status for each in runs if each.status), int(failed))


@contextlib.contextmanager
def busy_cores(wanted: bool) -> Iterator[None]:
    """Keep every core busy meanwhile, if wanted: in virtual time that must not matter."""
    cores = len(os.sched_getaffinity(0)) if wanted else 0
    with contextlib.ExitStack() as running:
        for _ in range(cores):
            running.callback(end_all, start([sys.executable, "-ISc", "while True: pass"]))
        yield


def machine_program(
    options: argparse.Namespace,
    words: Sequence[str],
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
        words,
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


def _input(copy: Path) -> Path | None:
    """Copy what is piped or redirected to us: in virtual time it is all there from the start."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy


def _tell(line: str) -> None:
    sys.stderr.write(f"testbed: {printable(line)}\n")


def _tell_end(program: MachineProgram, run: ProgramRun, out: Path) -> None:
    end = run.end
    for note in run.notes:
        _tell(note)
    if end.at_limit:
        _tell(f"ended after {program.limit_s} s of virtual time: --limit SECONDS gives it more")
    if end.at_finding:
        _tell(f"ended by --check after {end.took_s:.1f} s, at a finding")
    if end.too_many_processes:
        most = program.most_processes
        _tell(f"ended: it had {most} processes, as a fork bomb has: --memory MB allows more")
    for finding in run.findings:
        _tell(str(finding))
    if program.captured:
        captures = number_of(run.captures, "capture")
        _tell(f"{captures} in {out / CAPTURES_FOLDER}, their flows in {out / MACHINE_FLOWS}")
        _tell(f"`testbed report {out}` makes a page of it")
    files = f"{number_of(end.files, 'file')} in {out / MACHINE_FILES}"
    took = f"{end.took_s:.1f} s"
    virtual = took if program.at_terminal else f"{took} of virtual time in {run.wall_s:.1f} s"
    status = f"exit status {end.status}, " if end.status else ""
    _tell(f"{status}{virtual}; {files}")
