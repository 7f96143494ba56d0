"""From the command line to an exit status: every failure is one line and a hint."""

from __future__ import annotations

import argparse
import errno
import io
import os
import re
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from testbed.cli.completion import ASKED_BY_SHELL, answer_shell
from testbed.cli.parser import build_parser
from testbed.errors import HINTS, TestbedError, UsageError, hint_for
from testbed.machine.journal import STATE_HINT, leave_homes_of_others, state_folder
from testbed.machine.safe_files import head
from testbed.runs.console import errors, print_error
from testbed.scenario.programs import PROGRAM_PATH

if TYPE_CHECKING:
    from testbed.scenario.experiment import Experiment

INTERRUPTED = 130
# NumPy, SciPy and Arrow take many addresses, and Arrow ends the process where it gets none
VERBS_WITH_LIBRARIES = {
    *("run", "report", "watch", "reduce", "compare", "evaluate", "grade", "export"),
    *("demo", "whatif", "explore", "bundle", "verify", "stack"),
}
PROCESSORS = Path("/proc/cpuinfo")
MAX_DESCRIPTION = 1 << 14  # of the first of them
NEEDED_OF_PROCESSORS = {"ssse3", "sse4_2", "popcnt"}  # x86-64-v2, which NumPy is compiled for
VERBS_OF_PROGRAMS = {"mininet", "exec", "shell", "grade", "packetdrill"}
MIN_ADDRESSES = 1 << 30


def main(
    arguments: Sequence[str] | None = None, experiments: Mapping[str, Experiment] | None = None
) -> int:
    """Run one verb; every failure ends as a line, a hint, and an exit status.

    `experiments` are those that can be named: the command line itself knows none.
    """
    options = argparse.Namespace(verb="")
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # from here on ^C is a line
            signal.signal(signal.SIGINT, _interrupt)
        _let_streams_take_all()
        _find_system_programs()
        leave_homes_of_others()
        if ASKED_BY_SHELL in os.environ:
            answer_shell(build_parser(), experiments or {})
        argv = sys.argv[1:] if arguments is None else list(arguments)
        parser = build_parser(argv)
        parser.set_defaults(experiments=experiments or {}, parser=parser, arguments=argv)
        options = parser.parse_args(argv)
        if not options.verb:
            parser.print_help()
            return 2
        if options.verb in VERBS_WITH_LIBRARIES:
            _refuse_few_addresses()
            _refuse_old_processor()
        _ask_for_confinement(options)
        status: int = options.act(options)
        return status
    except UsageError as error:
        return print_error(error, 2)
    except TestbedError as error:
        return print_error(error, 1)
    except KeyboardInterrupt:
        errors.print(f"testbed: interrupted{_what_remains(options)}")
        return INTERRUPTED
    except BrokenPipeError:  # `testbed … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        limits = "raise the limits of memory and processes (`ulimit -v`, `ulimit -u`)"
        return print_error(TestbedError("no other thread can be started", limits), 1)
    except MemoryError:
        return print_error(TestbedError("too little memory", HINTS[errno.ENOMEM]), 1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return print_error(TestbedError(f"{where}{error.strerror or error}", _hint(error)), 1)


def _ask_for_confinement(options: argparse.Namespace) -> None:
    """Refuse verbs that run programs on a host that cannot confine them, unless told otherwise."""
    unconfined = getattr(options, "unconfined", False)
    if not unconfined and options.verb not in VERBS_OF_PROGRAMS:
        return
    from testbed.guest.boot import do_without_confinement, require_confined

    (do_without_confinement if unconfined else require_confined)()


def _refuse_few_addresses() -> None:
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY and most < MIN_ADDRESSES:
        raise TestbedError(
            f"too little memory: the process may have {most >> 20} MiB of addresses",
            f"raise the limit to {MIN_ADDRESSES >> 10} or more (`ulimit -v`)",
        )


def _refuse_old_processor() -> None:
    """Raise where libraries would end the process by an illegal instruction."""
    described = re.search(r"^flags\s*:(.*)$", head(PROCESSORS, MAX_DESCRIPTION), re.MULTILINE)
    lacks = NEEDED_OF_PROCESSORS - set(described[1].split()) if described else set()
    if lacks:
        names = ", ".join(sorted(lacks))
        raise TestbedError(
            f"this processor has no {names}, which NumPy and Arrow are compiled for",
            "in a virtual machine choose another than qemu64 or kvm64, such as QEMU's -cpu max",
        )


def _hint(error: OSError) -> str:
    """Return the hint for a system error; the state folder and its parents have their own."""
    if isinstance(error.filename, str) and error.errno in (errno.ENOSPC, errno.EROFS, errno.EACCES):
        path, state = Path(error.filename), state_folder()
        if path in state.parents or path.is_relative_to(state):
            return STATE_HINT
    return hint_for(error)


def _let_streams_take_all() -> None:
    """Let text that an output cannot encode lose signs, and text to a closed output be lost."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 until the end
            setattr(sys, name, nowhere)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _find_system_programs() -> None:
    """Look for programs in the system's folders, too: a user's PATH has no sbin."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *PROGRAM_PATH.split(os.pathsep)]
    os.environ["PATH"] = os.pathsep.join(dict.fromkeys(filter(None, folders)))


def _what_remains(options: argparse.Namespace) -> str:
    """Return what an interrupted run leaves, which its repetition goes on from."""
    kept = "; complete trials are kept: repeat the command to continue"
    return kept if options.verb == "run" else ""


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
