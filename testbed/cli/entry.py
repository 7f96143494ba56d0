"""From the command line to an exit status: every failure is one line and a hint."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import NoReturn

from testbed.cli.console import errors
from testbed.cli.parser import build_parser
from testbed.errors import TestbedError, UsageError
from testbed.scenario.experiment import Experiment

INTERRUPTED = 130
HINTS = {  # by what the system says
    errno.ENOSPC: "make room, or name a folder on another disk with --out",
    errno.EDQUOT: "your quota is used up: make room, or name another folder with --out",
    errno.EACCES: "it belongs to another user (`ls -l` shows whose it is)",
    errno.EPERM: "only root may do this: call through sudo",
    errno.EROFS: "nothing can be written there: name another folder with --out",
    errno.ENOENT: "is the name spelt right?",
    errno.EMFILE: "too many open files: raise the limit with `ulimit -n`, or use fewer --jobs",
    errno.ENOMEM: "too little memory: run fewer trials side by side, e.g. --jobs 1",
}


def main(
    arguments: Sequence[str] | None = None, experiments: Mapping[str, Experiment] | None = None
) -> int:
    """Run one verb; every failure ends as a line, a hint, and an exit status.

    `experiments` are those that can be named: the command line itself knows none.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    parser = build_parser()
    parser.set_defaults(experiments=experiments or {})
    try:
        options = parser.parse_args(arguments)
        if not options.verb:
            parser.print_help()
            return 2
        status: int = options.act(options)
        return status
    except UsageError as error:
        return _fail(error, 2)
    except TestbedError as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        errors.print("testbed: interrupted; complete trials are kept: repeat the command to go on")
        return INTERRUPTED
    except BrokenPipeError:  # `testbed … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        hint = HINTS.get(error.errno or 0, "`testbed check` shows what this machine lacks")
        return _fail(TestbedError(f"{where}{error.strerror or error}", hint), 1)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _fail(error: TestbedError, status: int) -> int:
    errors.print(f"testbed: {error.message}", markup=False, soft_wrap=True)
    if error.hint:
        errors.print(f"    hint: {error.hint}", markup=False, soft_wrap=True)
    return status
