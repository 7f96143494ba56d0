"""The folders in which a command flow's programs start, with copies of its files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from testbed.errors import UsageError
from testbed.machine.process import User
from testbed.scenario.model import Flow
from testbed.store import program_folder

ROLES = ("server", "client")


def require_files(flows: Iterable[Flow]) -> None:
    """Raise for the first file that a command flow has and that is not there."""
    for flow in flows:
        for name in flow.command.files if flow.command else ():
            if not Path(name).is_file():
                why = "not a file" if Path(name).exists() else "no such file"
                raise UsageError(f"flow {flow.name}: {name}: {why}", "correct its `files`")


def lay_out(flows: Iterable[Flow], trial: Path) -> None:
    """Make the folders of all command flows in a trial's directory; the guest sees no others'."""
    for flow in flows:
        if flow.command is not None:
            for role in ROLES:
                own = trial / program_folder(flow.name, role)
                own.mkdir(parents=True)
                for name in flow.command.files:
                    shutil.copy(name, own)


def hand_over(folder: Path, user: User) -> None:
    """Make a folder that we have filled its user's."""
    for path in (folder, *folder.iterdir()):
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def remove(flow: Flow, trial: Path) -> None:
    """What the programs left there is not kept: their output is."""
    for role in ROLES:
        shutil.rmtree(trial / program_folder(flow.name, role), ignore_errors=True)
