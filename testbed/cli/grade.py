"""`testbed grade`: a script's runs with some seeds, held to the numbers that it has to show."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.cli.programs import existing_script, machine_program, script_command
from testbed.cli.run_output import Printed, print_table
from testbed.errors import UsageError, number_of, printable_lines, quoted
from testbed.guest.machine import MachineProgram, machine_kernel
from testbed.machine import safe_files
from testbed.machine.atomic import replace
from testbed.programs.expectations import Expectations, MeasuredNumber, measure, read_expectations
from testbed.programs.program_runs import ProgramRun, record_text, run_in_folder
from testbed.runs.console import console, say
from testbed.store.names import GRADE_RECORD, MACHINE_ERRORS, MACHINE_OUTPUT

GRADE_EXAMPLE = "testbed grade lab.py --seeds 1,2,3 --expect lab.toml"
SHOWN_LINES = 10  # of what a script printed that ended with another status


@dataclass(frozen=True)
class GradedRun:
    """A script's run with one seed."""

    seed: int
    run: ProgramRun
    numbers: Sequence[MeasuredNumber]
    status_holds: bool
    is_checked: bool  # whether it fails if something is wrong with the laboratory

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong with the laboratory, or that does not matter."""
        return not (self.is_checked and self.run.findings)

    @property
    def holds(self) -> bool:
        """Whether all is as it has to be."""
        return self.status_holds and self.is_sound and all(each.holds for each in self.numbers)


def grade(options: argparse.Namespace) -> int:
    """Run `testbed grade`; the exit status is 0 if every number of every seed is in its range."""
    script = existing_script(options.script, GRADE_EXAMPLE)
    expectations = read_expectations(options.expect or script.with_suffix(".toml"))
    seeds = _seeds(options.seeds)
    kernel = machine_kernel(options.kernel, say)
    out = options.out or Path("results/grade") / script.stem
    command = script_command(script, expectations.arguments)
    count = number_of(len(seeds), "seed")
    say(f"{script.name} with {count}: {number_of(len(expectations.expect), 'number')} to hold")
    runs = []
    for seed in seeds:
        program = machine_program(
            options, command, script.parent, seed=seed, captured=expectations.captures
        )
        place = out / f"seed-{seed}"
        runs.append(_graded(program, kernel, place, expectations, is_checked=options.check))
    replace(out / GRADE_RECORD, lambda path: path.write_text(_record(options, runs)))
    _print(expectations, runs)
    failed = [each.seed for each in runs if not each.holds]
    place = out / f"seed-{(failed or seeds)[0]}"
    console.print(f"{'failed' if failed else 'passed'}; output: {place}", soft_wrap=True)
    if expectations.captures:
        console.print(f"next: testbed report {place}", soft_wrap=True)
    return 1 if failed else 0


def _seeds(text: str) -> list[int]:
    numbers = text.split(",")
    if not all(word.isascii() and word.isdigit() for word in numbers):
        raise UsageError(f"--seeds: expected whole numbers, got {quoted(text)}", "--seeds 1,2,3")
    return list(dict.fromkeys(map(int, numbers)))


def _graded(
    program: MachineProgram,
    kernel: Path,
    out: Path,
    expectations: Expectations,
    *,
    is_checked: bool,
) -> GradedRun:
    run = run_in_folder(program, kernel, out, io.BytesIO(), io.BytesIO())
    numbers = [measure(each, out) for each in expectations.expect]
    status_holds = run.end.status == expectations.status
    graded = GradedRun(program.seed, run, numbers, status_holds, is_checked)
    end = f"{run.end.took_s:.1f} s of virtual time in {run.wall_s:.1f} s"
    say(f"seed {program.seed}: exit status {run.end.status} after {end}; {out}")
    for note in (*run.notes, *map(str, run.findings)):
        say(f"    {printable_lines(note)}")
    if not graded.status_holds:
        for line in _last_lines(out):
            say(f"    {printable_lines(line)}")
    return graded


def _last_lines(out: Path) -> list[str]:
    texts = (safe_files.tail(out / name) for name in (MACHINE_OUTPUT, MACHINE_ERRORS))
    return [line for text in texts for line in text.splitlines()[-SHOWN_LINES:]]


def _record(options: argparse.Namespace, runs: Sequence[GradedRun]) -> str:
    facts = {
        "script": options.script,
        "holds": all(each.holds for each in runs),
        "seeds": [
            {
                "seed": each.seed,
                "holds": each.holds,
                "status": each.run.end.status,
                "findings": len(each.run.findings),
                "took_s": each.run.end.took_s,
                "numbers": [_number_facts(number) for number in each.numbers],
            }
            for each in runs
        ],
    }
    return record_text(facts)


def _number_facts(number: MeasuredNumber) -> dict[str, object]:
    value = {"missing": number.missing} if number.missing else {"value": number.value}
    return {"what": number.expectation.what, "holds": number.holds, **value}


def _print(expectations: Expectations, runs: Sequence[GradedRun]) -> None:
    """Print a row for each number and a column for each seed."""
    from analysis.statistics.text_tables import TextTable

    status = ["exit status", f"{expectations.status}", *(f"{each.run.end.status}" for each in runs)]
    rows = [(*status, _word(all(each.status_holds for each in runs)))]
    if any(each.is_checked for each in runs):
        counts = (f"{len(each.run.findings)}" for each in runs)
        sound = _word(all(each.is_sound for each in runs))
        rows.append(("wrong with the laboratory", "0", *counts, sound))
    for index, each in enumerate(expectations.expect):
        numbers = [run.numbers[index] for run in runs]
        passed = _word(all(number.holds for number in numbers))
        rows.append((each.what, each.wanted, *map(_cell, numbers), passed))
    heading = ("number", "expected", *(f"seed {each.seed}" for each in runs), "grade")
    print_table(TextTable(heading, tuple(rows), "\n".join(_reasons(runs))), Printed("table", None))


def _word(holds: bool) -> str:
    return "passed" if holds else "failed"


def _cell(number: MeasuredNumber) -> str:
    if number.missing:
        return "none"
    beyond = " low" if number.too_low else " high" if number.too_high else ""
    return f"{number.value:.4g}{beyond}"


def _reasons(runs: Sequence[GradedRun]) -> Iterator[str]:
    """Yield a line for each number that is missing, once for seeds that lack it alike."""
    seeds: dict[str, list[str]] = {}
    for run in runs:
        for number in run.numbers:
            if number.missing:
                line = f"{number.expectation.what}: {number.missing}"
                seeds.setdefault(line, []).append(str(run.seed))
    for line, lacking in seeds.items():
        yield f"{line} (seed {', '.join(lacking)})"
