"""The only module that starts processes: argv lists, checked statuses, a log of every command."""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from testbed.errors import TestbedError
from testbed.machine.compiled import LIBRARIES, as_started, require_built
from testbed.machine.netns import inside
from testbed.machine.timer import SETUP_CLOCK

Process = subprocess.Popen[bytes]

PACKAGES = {  # program → Debian package, for the hint when it is missing
    "ethtool": "ethtool",
    "hostapd": "hostapd",
    "ip": "iproute2",
    "iperf3": "iperf3",
    "iw": "iw",
    "mnexec": "mininet",
    "modprobe": "kmod",
    "setarch": "util-linux",
    "setpriv": "util-linux",
    "taskset": "util-linux",
    "tc": "iproute2",
    "tcpdump": "tcpdump",
    "tshark": "tshark",
    "wireshark": "wireshark",
}


GUARD = LIBRARIES / "testbed-guard"  # built from guard.c by the Makefile
CHROMIUM = "chromium-headless-shell"  # Debian's headless Chromium

# required by every trial
TOOLS = ("mnexec", "ip", "tc", "ethtool", "iperf3", "tcpdump", "tshark", "taskset")


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Treat SIGTERM like ^C, so that everything is taken down; only the main thread can."""

    def raise_interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, raise_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class Completed:
    """A completed command with its output."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str


class CommandLog:
    """Every command with its node, exit status and output, as it happened."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._file = path.open("a")

    def write(self, node: str, argv: Sequence[str], stdin: str, outcome: str, output: str) -> None:
        """Append one command; the input and output lines are indented below it."""
        lines = [f"[{node}] {shlex.join(argv)}  → {outcome}"]
        lines += [f"    < {line}" for line in stdin.splitlines()]
        lines += [f"    | {line}" for line in output.splitlines()]
        self._file.write("\n".join(lines) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(frozen=True)
class Place:
    """A network namespace to run commands in: a name for the log, and a process inside it."""

    name: str = "host"
    pid: int | None = None
    log: CommandLog | None = None

    def note(self, argv: Sequence[str], stdin: str, outcome: str, output: str) -> None:
        """Write the command to the log, if there is one."""
        if self.log:
            self.log.write(self.name, argv, stdin, outcome, output)


ON_HOST = Place()


@dataclass(frozen=True)
class User:
    """The user behind sudo, who owns the files we write and the screen for our windows."""

    uid: int
    gid: int

    @property
    def options(self) -> tuple[str, ...]:
        """The options of setpriv that run a command as this user."""
        return ("--reuid", f"{self.uid}", "--regid", f"{self.gid}", "--init-groups")

    @property
    def home(self) -> dict[str, str]:
        """The environment variables that sudo has set to root's values."""
        entry = pwd.getpwuid(self.uid)
        return {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}


def sudo_user() -> User | None:
    """Return the user behind sudo; None if not root, or root without sudo."""
    uid, gid = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if os.geteuid() != 0 or uid is None or gid is None:
        return None
    return User(int(uid), int(gid))


def require(program: str) -> str:
    """Return a program's path; raise an error that names its package if it is missing."""
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if path is None:
        package = PACKAGES.get(program, program)
        raise TestbedError(
            f"{program} is not installed", f"apt install {package} (./setup.sh does it)"
        )
    return path


def run(
    argv: Sequence[str],
    *,
    place: Place = ON_HOST,
    stdin: str = "",
    check: bool = True,
    timeout_s: float | None = None,
    cwd: Path | None = None,
) -> Completed:
    """Run a command to its end; raise an error that quotes its output on failure."""
    require(argv[0])
    SETUP_CLOCK.wait_for_start()
    try:
        with inside(place.pid):
            done = subprocess.run(
                list(argv),
                input=stdin,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
                cwd=cwd,
            )
    except subprocess.TimeoutExpired as error:
        place.note(argv, stdin, "timeout", "")
        raise TestbedError(f"{shlex.join(argv)}: no end after {timeout_s} s") from error
    place.note(argv, stdin, f"{done.returncode}", done.stdout + done.stderr)
    if check and done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["(no output)"]
        raise TestbedError(
            f"{place.name}: {shlex.join(argv)}: exit status {done.returncode}: {said[0]}",
            f"{place.log.name} in the trial's folder has the full output" if place.log else "",
        )
    return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)


def run_told(argv: Sequence[str], tell: Callable[[str], None]) -> Completed:
    """Run a long command to its end, and pass on each line of its stderr as it comes.

    It is a session of its own, which ends with all that it started if this process gives up.
    """
    require(argv[0])
    lines = []
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            for line in process.stderr:
                lines.append(line)
                tell(line.rstrip())
            output = process.stdout.read()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            raise
    return Completed(tuple(argv), process.returncode, output, "".join(lines))


def start(
    argv: Sequence[str],
    *,
    place: Place = ON_HOST,
    stdout: Path | None = None,
    stderr: Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: User | None = None,
) -> Process:
    """Start a command in the background; the kernel kills it if this process dies first.

    `env` is the whole environment; by default it is inherited. With `user` the command runs as that
    user instead of root. Ctrl-C on the terminal does not reach it: the caller decides when it ends.
    """
    require(argv[0])
    require_built(GUARD)
    # the guard last: who becomes another user is no longer killed with us
    become = ("setpriv", *user.options, "--") if user else ()
    SETUP_CLOCK.wait_for_start()
    guarded = [*become, as_started(GUARD), *argv]
    with contextlib.ExitStack() as files, inside(place.pid):
        process = subprocess.Popen(
            guarded,
            stdin=subprocess.DEVNULL,
            stdout=_output(files, stdout),
            stderr=_output(files, stderr),
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    place.note(argv, "", f"started, pid {process.pid}", "")
    return process


def _output(files: contextlib.ExitStack, path: Path | None) -> IO[bytes] | int:
    return files.enter_context(path.open("wb")) if path else subprocess.DEVNULL


def has_ended(process: Process, within_s: float) -> bool:
    """Wait for a process's end and return whether it came within that time."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(within_s)
    return process.returncode is not None


def end(process: Process, first: int = signal.SIGTERM, patience_s: float = 5.0) -> int:
    """End a process with the signal `first`, and with SIGKILL if it does not react."""
    if process.poll() is None:
        process.send_signal(first)
    try:
        return process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def end_all(process: Process) -> None:
    """Kill a session leader and everything that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def start_held(argv: Sequence[str]) -> subprocess.Popen[str]:
    """Start a command that ends when the pipe to its stdin is closed, or this process ends."""
    require(argv[0])
    SETUP_CLOCK.wait_for_start()
    return subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def start_told(argv: Sequence[str], env: Mapping[str, str]) -> Process:
    """Start a command that reads descriptor 3 and writes descriptor 4.

    They are the `stdin` and `stdout` of the returned process, which the kernel kills if this one
    dies first.
    """
    require(argv[0])
    require_built(GUARD)
    SETUP_CLOCK.wait_for_start()
    moved = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'
    return subprocess.Popen(
        [as_started(GUARD), "sh", "-c", moved, "sh", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
        start_new_session=True,
    )


@contextlib.contextmanager
def stream(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a command whose output is read as it comes; it is killed when the block ends."""
    require(argv[0])
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
