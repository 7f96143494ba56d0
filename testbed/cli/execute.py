"""`testbed exec`: any command in the guest; with --repeat and --explore, a suite of tests."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed.cli.programs import (
    captured_interfaces,
    command_of,
    input_file,
    machine_program,
    run_command,
    tell,
)
from testbed.errors import UsageError, printable
from testbed.guest.machine import machine_kernel
from testbed.machine import atomic, safe_files
from testbed.machine.atomic import workplace
from testbed.machine.file_hashes import hash_of
from testbed.machine.process import end_all, start
from testbed.programs.exploration import (
    Perturbation,
    PerturbedRun,
    drawn,
    perturbation_text,
    read_perturbation,
    read_rests,
    smallest,
)
from testbed.programs.network_script import network_script, read_network
from testbed.programs.perturbed import RESTS_FILE
from testbed.programs.program_runs import run_in_folder
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
from testbed.store.names import MACHINE_ERRORS, MACHINE_FILES, MACHINE_OUTPUT, NETWORK_SHELL

OTHER_OUTPUT = 4  # the status if a seed printed something else again
PERTURBATION_FILE = "perturbation.json"
EXEC_EXAMPLE = "testbed exec -- make test"
NETWORK_EXAMPLE = "testbed exec --network FILE --capture all -- COMMAND"
REPEAT_EXAMPLE = "testbed exec --repeat 20 --busy -- go test -v ./..."


def execute(options: argparse.Namespace) -> int:
    """Run `testbed exec`: any command, in the current folder, with a network if one is named."""
    command = command_of(options.words, EXEC_EXAMPLE)
    captured = captured_interfaces(options)
    is_suite = options.repeat is not None or options.explore is not None
    if options.busy and not is_suite:
        raise UsageError("--busy is for --repeat and --explore", REPEAT_EXAMPLE)
    if options.network is None:
        if captured:
            raise UsageError("--capture has no network to capture", NETWORK_EXAMPLE)
        if is_suite:
            return (explore if options.repeat is None else repeat)(options, command)
        name = Path(command[0]).name
        if options.perturb is not None:
            perturbation = read_perturbation(options.perturb)
            options.seed, command = perturbation.seed, perturbation.words(command)
        return run_command(options, command, Path.cwd(), "exec", name=name)
    if is_suite or options.perturb is not None:
        raise UsageError("a suite is a command without --network", REPEAT_EXAMPLE)
    script = network_script(read_network(options.network), command, captured)
    argv = ["/bin/bash", "-c", script, NETWORK_SHELL, *command]
    name = options.network.stem
    return run_command(options, argv, Path.cwd(), "exec", name=name, captured=captured)


class _Suite:
    """A command whose tests are to be compared, and where its runs are kept."""

    def __init__(self, options: argparse.Namespace, command: Sequence[str], verb: str) -> None:
        if options.in_place or options.check:
            given = "--in-place" if options.in_place else "--check"
            raise UsageError(f"{given} is not for several runs", REPEAT_EXAMPLE)
        self._options, self.words = options, command
        self._kernel = machine_kernel(options.kernel, say)
        self.out: Path = options.out or Path("results") / verb / Path(command[0]).name

    def run(
        self, seed: int, command: Sequence[str], place: Path, standard_input: Path | None
    ) -> tuple[SuiteRun, list[str]]:
        """Run a command with a seed; return its tests' outcomes, and hashes of what it printed."""
        program = machine_program(
            self._options, command, Path.cwd(), seed=seed, captured=(), input_file=standard_input
        )
        with Path(os.devnull).open("wb") as unheard:
            run = run_in_folder(program, self._kernel, place, unheard, unheard)
        printed = [place / name for name in (MACHINE_OUTPUT, MACHINE_ERRORS)]
        texts = (safe_files.tail(path, safe_files.LONG_TAIL_BYTES) for path in printed)
        outcomes = dict(printed_outcomes("\n".join(texts)))
        for path in sorted((place / MACHINE_FILES).rglob("*.xml"))[:MAX_JUNIT_FILES]:
            outcomes.update(junit_outcomes(path))
        for note in run.notes:
            tell(note)
        suite = SuiteRun(seed, run.end.status, run.end.took_s, run.wall_s, outcomes)
        return suite, [hash_of(path) for path in printed]


def repeat(options: argparse.Namespace, command: Sequence[str]) -> int:
    """Run a command with one seed after the other, and compare the tests that it ran.

    The first seed is run again at the end: its output has to be the same.
    """
    suite = _Suite(options, command, "exec")
    seeds = [*range(options.seed, options.seed + options.repeat), options.seed]
    runs, hashes = list[SuiteRun](), list[list[str]]()
    with workplace("input") as place, busy_cores(options.busy):
        standard_input = input_file(place / "stdin")
        for number, seed in enumerate(seeds, 1):
            run, printed = suite.run(seed, command, suite.out / f"run-{number}", standard_input)
            runs.append(run)
            hashes.append(printed)
            tell(f"{number}/{len(seeds)}: seed {seed}, exit status {run.status}")
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


def explore(options: argparse.Namespace, command: Sequence[str]) -> int:
    """Run a command on machines that are slow in other ways, until a test fails; say why."""
    suite = _Suite(options, command, "explore")
    hashes = dict[Perturbation, list[str]]()
    with workplace("input") as place, busy_cores(options.busy):
        standard_input = input_file(place / "stdin")

        def run(perturbation: Perturbation, name: str = "last") -> PerturbedRun:
            seed, folder = perturbation.seed, suite.out / name
            done, printed = suite.run(seed, perturbation.words(command), folder, standard_input)
            if hashes.setdefault(perturbation, printed) != printed:
                tell("the same perturbation printed something else: a loop charged by the host?")
            ended = PerturbedRun(
                perturbation, done, read_rests(folder / MACHINE_FILES / RESTS_FILE)
            )
            tell(f"seed {seed}: {perturbation}: {ended.failure or 'nothing failed'}")
            return ended

        if plain := run(Perturbation(options.seed)).failure:
            raise UsageError(
                f"{plain} although nothing is slow",
                f"mend that first, or leave the test out; its output is in {suite.out}",
            )
        seeds = range(options.seed, options.seed + options.explore)
        failed = next((each for seed in seeds if (each := run(drawn(seed))).failure), None)
        if failed is None:
            print_folded(f"nothing failed with {options.explore} perturbations")
            return 0
        tell("making it smaller")
        least = smallest(failed, run)
        again = run(least.perturbation, "least")
    same = len({tuple(each.suite.outcomes.items()) for each in (least, again)}) == 1
    file = suite.out / PERTURBATION_FILE
    atomic.replace_all(suite.out, {PERTURBATION_FILE: perturbation_text(least.perturbation)})
    for line in explained(failed, least):
        print_folded(printable(line))
    print_folded(f"twice: {'the same tests ended alike' if same else 'another end'}")
    print_folded(f"again: testbed exec --perturb {file} -- {shlex.join(command)}")
    return 1 if same else OTHER_OUTPUT


def explained(failed: PerturbedRun, least: PerturbedRun) -> Iterator[str]:
    """Yield what failed, and what it takes."""
    yield f"fails: {failed.failure}"
    yield f"with seed {failed.perturbation.seed}: {failed.perturbation}"
    packets = dataclasses.replace(least.perturbation, rest_ms=0.0, rests=None)
    rests = least.rests if least.perturbation.rests else ()
    takes = [packets, *rests] if packets.is_slow else [*rests]
    yield from (
        f"it takes: {condition}" for condition in (takes if rests else [least.perturbation])
    )


@contextlib.contextmanager
def busy_cores(wanted: bool) -> Iterator[None]:
    """Keep every core busy meanwhile, if wanted: in virtual time that must not matter."""
    cores = len(os.sched_getaffinity(0)) if wanted else 0
    with contextlib.ExitStack() as running:
        for _ in range(cores):
            running.callback(end_all, start([sys.executable, "-ISc", "while True: pass"]))
        yield
