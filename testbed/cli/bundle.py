"""`testbed bundle` and `testbed verify`: results that prove themselves to others."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from pathlib import Path

from testbed.errors import UsageError, number_of
from testbed.runs.console import console, errors
from testbed.runs.progress import ConsoleListener

MAX_DIFFERENCES = 20  # of what differs
SHOWN_OF_FINGERPRINT = 16


def bundle(options: argparse.Namespace) -> int:
    """Run `testbed bundle`."""
    from testbed.bundles.make import About, make_bundle
    from testbed.bundles.opened import SUFFIX, is_bundle

    out: Path = options.out
    if out.suffix != SUFFIX:
        raise UsageError(f"--out {out}: a bundle is a {SUFFIX}", f"--out {out}{SUFFIX}")
    for folder in options.results:
        if is_bundle(folder):
            raise UsageError(f"{folder}: a bundle already", "name results folders")
    title_page = About(options.title, tuple(options.author), options.license, options.captures)
    made = make_bundle(options.results, out, title_page, options.experiments, console.print)
    for warning in made.warnings:
        errors.print(f"testbed: warning: {warning}", soft_wrap=True)
    manifest = made.manifest
    captures = f"{made.captures} captures" if manifest.has_captures else "no captures"
    counts = f"{number_of(made.trials, 'trial')}, {captures}, {len(manifest.tables)} tables, "
    counts += f"{len(manifest.figures)} figures"
    console.print(f"bundle: {out} ({out.stat().st_size / 1e6:.1f} MB): {counts}", soft_wrap=True)
    console.print(f"fingerprint: {made.fingerprint}", soft_wrap=True)
    console.print(f"whoever gets it: testbed verify {shlex.quote(out.name)} --nonce WORD")
    return 0


def verify(options: argparse.Namespace) -> int:
    """Run `testbed verify`: the exit status is 1 unless all that was chosen is the same."""
    from testbed.bundles.opened import unpacked
    from testbed.bundles.verify import DEFAULT_TRIALS, chosen, random_word, repeatable
    from testbed.bundles.verify import verify as run_again

    if options.all and (options.trials or options.nonce):
        raise UsageError("--all: nothing is chosen", "leave out --trials and --nonce")
    with unpacked(options.bundle) as opened:
        manifest = opened.manifest
        console.print(f"{options.bundle}: {manifest.title}", soft_wrap=True)
        console.print(f"fingerprint: {opened.fingerprint}", soft_wrap=True)
        if opened.faults:
            _print_some(f"{name}: {why}" for name, why in opened.faults.items())
            count = len(opened.faults)
            are = f"{count} files are" if count > 1 else "1 file is"
            errors.print(f"testbed: {are} not what the bundle lists: nothing was run")
            return 1
        console.print(f"files: all {len(manifest.files):,} have the hashes that it lists")
        nonce = options.nonce or random_word()
        number = None if options.all else options.trials or DEFAULT_TRIALS
        trials = chosen(opened, nonce, number)
        word = "all" if options.all else f"the word {nonce!r} chooses {len(trials)}"
        console.print(f"trials: {word} of {len(repeatable(opened))} that can run again")
        done = run_again(opened, trials, options.experiments, ConsoleListener(), options.jobs)
    for each in done.compared:
        _print_some(each.differences)
    _print_some(done.not_repeated)
    if done.machine:
        console.print("this machine and that of the bundle differ:")
        for line in done.machine[:MAX_DIFFERENCES]:
            console.print(f"    {line}", soft_wrap=True)
    first, *rest = [each for each in done.compared if each.total]
    console.print(f"same bytes: {', '.join(map(str, (first, *rest)))}", soft_wrap=True)
    if any(each.random for each in done.compared):
        count = sum(each.random for each in done.compared)
        console.print(f"{count} more have the same times and lengths: only ciphertext differs")
    if done.not_compared:
        files = number_of(len(done.not_compared), "file")
        console.print(f"not compared: {files} of figures that need captures of all trials: --all")
    return 0 if done.agrees else 1


def _print_some(lines: Iterable[str]) -> None:
    every = list(lines)
    for line in every[:MAX_DIFFERENCES]:
        errors.print(f"testbed: {line}", soft_wrap=True)
    if more := len(every) - MAX_DIFFERENCES if len(every) > MAX_DIFFERENCES else 0:
        errors.print(f"testbed: and {more} more")
