"""The only module that starts processes on the host: argv lists, checked statuses."""

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
from testbed.machine.compiled import LIBRARIES, require_built

Process = subprocess.Popen[bytes]

CHROMIUM = "chromium-headless-shell"  # Debian's headless Chromium
PACKAGES = {  # program → Debian package, for the hint when it is missing; else of the same name
    "ip": "iproute2",
    "mnexec": "mininet",
    "modprobe": "kmod",
    "setarch": "util-linux",
    "setpriv": "util-linux",
    "taskset": "util-linux",
    "tc": "iproute2",
}
MANAGERS = {  # of packages: how they install, and the names that are not Debian's
    "apt-get": ("apt install", {}),
    "dnf": ("dnf install", {"ip": "iproute", "tc": "iproute-tc", "tshark": "wireshark-cli"}),
    "pacman": ("pacman -S", {"tshark": "wireshark-cli", "wireshark": "wireshark-qt"}),
}


CLEANING_S = 60.0  # for what a long command removes when it is interrupted
GUARD = LIBRARIES / "testbed-guard"  # built from guard.c by the Makefile

# what a wheel does not have, and every trial needs, on each engine
TOOLS = {"guest": ("setarch", "taskset"), "host": ("ip", "mnexec", "tc", "tcpdump", "unshare")}


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
    def groups(self) -> list[int]:
        """The user's groups, the main one first."""
        others = os.getgrouplist(pwd.getpwuid(self.uid).pw_name, self.gid)
        return [self.gid, *(group for group in others if group != self.gid)]

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
    if (built := LIBRARIES / program).is_file():
        return str(built)
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if path is None:
        raise TestbedError(f"{program} is not installed", how_to_install(program))
    return path


def how_to_install(program: str) -> str:
    """Return the command that installs a program, by this machine's manager of packages."""
    package = PACKAGES.get(program, program)
    for manager, (command, others) in MANAGERS.items():
        if shutil.which(manager):
            return f"{command} {others.get(program, package)}"
    return f"install {package}, as Debian calls it"


def run(
    argv: Sequence[str],
    *,
    stdin: str = "",
    check: bool = True,
    timeout_s: float | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    descriptors: Sequence[int] = (),
) -> Completed:
    """Run a command to its end; raise an error that quotes its output on failure.

    `env` is the whole environment; by default it is inherited, as are these descriptors.
    """
    require(argv[0])
    try:
        done = subprocess.run(
            list(argv),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            cwd=cwd,
            env=env,
            pass_fds=descriptors,
        )
    except subprocess.TimeoutExpired as error:
        raise TestbedError(f"{shlex.join(argv)}: no end after {timeout_s} s") from error
    if check and done.returncode:
        output = (done.stderr or done.stdout).strip().splitlines() or ["(no output)"]
        raise TestbedError(f"{shlex.join(argv)}: exit status {done.returncode}: {output[0]}")
    return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)


def run_told(argv: Sequence[str], tell: Callable[[str], None], env: Mapping[str, str]) -> Completed:
    """Run a long command to its end, and pass on each line of its stderr as it comes.

    It runs in a new session. If this call is interrupted, every process of that session is asked to
    end, and gets time to clean up. `env` is the whole environment.
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
        env=env,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            for line in process.stderr:
                lines.append(line)
                tell(line.rstrip())
            output = process.stdout.read()
        except BaseException:
            _end_session(process)
            raise
    return Completed(tuple(argv), process.returncode, output, "".join(lines))


def _end_session(leader: subprocess.Popen[str]) -> None:
    """Ask all of a session to end, wait for its leader, and kill what is left."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(leader.pid, signal.SIGTERM)
        leader.wait(CLEANING_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)


def start(
    argv: Sequence[str],
    *,
    stdout: Path | None = None,
    stderr: Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: User | None = None,
    at_terminal: bool = False,
) -> Process:
    """Start a command in the background; the kernel kills it if this process dies first.

    `env` is the whole environment; by default it is inherited. With `user` the command runs as that
    user instead of root. Ctrl-C on the terminal does not reach it: the caller decides when it ends;
    `at_terminal` it has our input and output all the same.
    """
    require(argv[0])
    require_built(GUARD)
    # the guard last: who becomes another user is no longer killed with us
    become = ("setpriv", *user.options, "--") if user else ()
    with contextlib.ExitStack() as files:
        return subprocess.Popen(
            [*become, str(GUARD), *argv],
            stdin=None if at_terminal else subprocess.DEVNULL,
            stdout=None if at_terminal else _output(files, stdout),
            stderr=_output(files, stderr),
            env=env,
            cwd=cwd,
            start_new_session=True,
        )


def _output(files: contextlib.ExitStack, path: Path | None) -> IO[bytes] | int:
    return files.enter_context(path.open("wb")) if path else subprocess.DEVNULL


def run_on_terminal(argv: Sequence[str], env: Mapping[str, str], output: Path | None = None) -> int:
    """Run a program with our terminal as its own, and return its exit status.

    With `output`, what it prints goes to that file. The kernel kills it if this process dies first.
    """
    require(argv[0])
    require_built(GUARD)
    with contextlib.ExitStack() as files:
        stdout = files.enter_context(output.open("wb")) if output else None
        whole = [str(GUARD), *argv]
        return subprocess.run(whole, env=dict(env), stdout=stdout, check=False).returncode


@contextlib.contextmanager
def interrupts_for_programs() -> Iterator[None]:
    """Leave ^C to the programs that run on our terminal; only the main thread can."""
    # a handler, which programs do not inherit, as they would SIG_IGN
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    moved = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'
    return subprocess.Popen(
        [str(GUARD), "sh", "-c", moved, "sh", *argv],
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
