"""Damage of a trial's files: what was cut, changed or taken away since the trial recorded it."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.store.names import CAPTURES_FOLDER, COMMANDS, COVERAGE_FOLDER, KERNEL_LOG
from testbed.store.reading import Trial

# No number or verdict depends on these files.
UNUSED_FILES = (COMMANDS, KERNEL_LOG)
UNUSED_FOLDERS = (f"{COVERAGE_FOLDER}/",)
UNUSED_ENDS = (".out", ".datagrams")


def damage(trial: Trial, *, is_fresh: bool = False) -> Iterator[str]:
    """Yield the faults of all files that numbers and verdicts depend on.

    The captures of a trial that has just run are taken to be as they were hashed a moment ago.
    """
    captures = sorted({capture.file for capture in trial.record.captures if capture.file})
    plain = (name for name in trial.record.files if _is_used(name))
    for name in (*plain, *(() if is_fresh else captures)):
        if fault := trial.file_fault(name):
            yield f"{name}: {fault}"


def _is_used(name: str) -> bool:
    return not (
        name.startswith((f"{CAPTURES_FOLDER}/", *UNUSED_FOLDERS))
        or name in UNUSED_FILES
        or name.endswith(UNUSED_ENDS)
    )
