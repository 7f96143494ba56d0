"""The command line with this project's experiments: `testbed`, or an experiment's own file."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit status."""
    _open_standard_streams()
    # until entry.main takes it, ^C ends the process and says nothing
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # which setup.sh blocks
    try:
        from experiments.catalogue import EXPERIMENTS
        from testbed.cli import entry

        return entry.main(arguments, EXPERIMENTS)
    except Exception:
        from testbed.machine.installed_packages import INSTALLS, SITE, why_damaged

        why, hint = why_damaged(SITE), INSTALLS
        if os.statvfs(SITE).f_flag & os.ST_NOEXEC:
            why = f"{SITE}: mounted noexec, so that no library can be loaded from there"
            hint = "install it on another file system: python3 -m venv FOLDER"
        if not why:
            raise
        sys.stderr.write(f"testbed: {why}\n    hint: {hint}\n")
        return 1


def _open_standard_streams() -> None:
    """Open what the caller closed (`testbed … >&-`), so that no other file takes its number.

    What is printed would go into that file.
    """
    null = 0
    while null <= 2:
        null = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    os.close(null)
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115
