"""What a hostile program in the guest can do to the host: nothing but write in its own folder."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pytest

from testbed.engine import Job
from testbed.guest.boot import CONFINE, Boot, _last_error_line, guest_options, refused_calls
from testbed.guest.engine import GuestEngine
from testbed.guest.worker import guest_command
from testbed.scenario.model import Flow, FlowKind
from testbed.scenario.programs import Programs
from testbed.store.names import GUEST_COMMAND, GUEST_CONSOLE
from testbed.store.names import GUEST_MEMORY as MEMORY
from tests.lab import PATIENCE_S, alive, run_trials, wait_until
from tests.scenarios import router

HERE = Path(__file__).parent
TESTBED = (sys.executable, "-m", "experiments")
NOBODY = 65534
USERS = (
    pytest.param(0, id="root", marks=pytest.mark.root("attacks a guest of root's")),
    pytest.param(os.geteuid() or NOBODY, id="ordinary-user"),
)


@dataclass(frozen=True)
class Target:
    """What is attacked: a directory and a process of the user who starts the guest."""

    user: int
    folder: Path  # where the guest runs
    victim: Path
    pid: int
    kernel: Path
    friend: socket.socket  # listens in the directory, to all who send

    def run(self, *argv: str, errors: BinaryIO | int = subprocess.STDOUT) -> subprocess.Popen[str]:
        """A command as the user, in the folder."""
        return subprocess.Popen(
            ["setpriv", "--reuid", f"{self.user}", "--clear-groups", "--", *argv]
            if os.geteuid() == 0
            else list(argv),
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "TMPDIR": MEMORY},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

    def confined(self, *argv: str) -> dict[str, str]:
        """What a confined command says of each way that it tried."""
        start = ("taskset", "-c", "0", str(self.confine), MEMORY)
        said, _ = self.run(*start, *argv).communicate(timeout=PATIENCE_S)
        return answers(said)

    @property
    def confine(self) -> Path:
        return self.kernel.with_name("confine")


def answers(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


@pytest.fixture(params=USERS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """In a folder that others can reach: pytest's own is closed to them."""
    user = int(request.param)
    engine = GuestEngine()
    assert engine.kernel is not None
    with tempfile.TemporaryDirectory(prefix="testbed-hostile-") as name:
        root = Path(name)
        for part in ("trial", f"trial/{MEMORY}", "victim", "programs"):
            (root / part).mkdir()
        (root / "victim" / "file").write_text("untouched")
        os.mkfifo(root / "victim" / "pipe")
        friend = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        friend.bind(str(root / "victim" / "socket"))
        (root / "victim" / "socket").chmod(0o777)
        kernel = root / "programs" / "linux"
        shutil.copy(engine.kernel / "linux", kernel)
        shutil.copy(CONFINE, kernel.with_name("confine"))
        shutil.copy(HERE / "hostile_guest.sh", root / "trial" / "attack.sh")
        shutil.copy(HERE / "escaped.py", root / "trial")
        if os.geteuid() == 0:
            for path in (root, *root.rglob("*")):
                os.chown(path, user, user)
        bystander = subprocess.Popen(
            ["sleep", "600"], user=user if os.geteuid() == 0 else None, start_new_session=True
        )
        try:
            yield Target(user, root / "trial", root / "victim", bystander.pid, kernel, friend)
            assert bystander.poll() is None
        finally:
            bystander.kill()
            bystander.wait()
            friend.close()


def untouched(target: Target, before: os.stat_result) -> None:
    victim = target.victim
    assert sorted(path.name for path in victim.iterdir()) == ["file", "pipe", "socket"]
    with pytest.raises(BlockingIOError):
        target.friend.recv(1)
    assert (victim / "file").read_text() == "untouched"
    after = (victim / "file").stat()
    assert (after.st_mode, after.st_uid, after.st_mtime_ns) == (
        before.st_mode,
        before.st_uid,
        before.st_mtime_ns,
    )


def boot(target: Target, *argv: str) -> subprocess.Popen[str]:
    (target.folder / GUEST_COMMAND).write_text("".join(f"{word}\n" for word in argv))
    confine = (str(target.confine), MEMORY)
    return target.run(*guest_command(target.kernel.parent, 0, guest_options(1, 128), confine, True))


def boot_until_it_computes(target: Target) -> subprocess.Popen[str]:
    """A guest that starts no more processes: its first one waits, the other never ends."""
    started = target.folder / "started"
    guest = boot(target, "/bin/sh", "-c", ": > /run/trial/started; while :; do :; done")
    wait_until(started.exists)
    return guest


def test_programs_in_the_guest_cannot_write_to_the_host(target: Target) -> None:
    before = (target.victim / "file").stat()
    guest = boot(target, "/bin/sh", "/run/trial/attack.sh", str(target.victim), str(target.pid))
    said, _ = guest.communicate(timeout=PATIENCE_S)
    assert guest.returncode == 0, said
    found = answers((target.folder / "guest.out").read_text())
    assert len(found) > 20, found
    # hostfs does not report that the host refused to change a file's times; modes are the guest's
    told = {"write in the trial", "change a file's times"}
    told |= {"make a set-uid program", "make a set-gid program"}
    assert {name for name, answer in found.items() if answer == "done"} == told
    assert not [path for path in target.folder.rglob("*") if path.lstat().st_mode & 0o6000]
    untouched(target, before)
    assert not list(target.folder.parent.glob("beside"))


def test_a_guest_that_was_taken_over_is_confined(target: Target) -> None:
    before = (target.victim / "file").stat()
    found = target.confined("/usr/bin/python3", "escaped.py", str(target.victim), str(target.pid))
    assert len(found) > 20, found
    own = {"write in its own folder"}
    assert {name for name, answer in found.items() if answer == "done"} == own
    untouched(target, before)


REFUSED_CALLS = """
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
for number in (41, 41, 165, 191, 460, 1000):
    print("call:", number, libc.syscall(number, 0, 0, 0), ctypes.get_errno())
print("call: 39", libc.syscall(39) > 0)
"""


def test_a_system_call_that_is_not_on_the_list_is_refused_and_named(target: Target) -> None:
    """Each once, by its number, and by its name if it is one of those that reach the host."""
    # its site would look for the name of the user, which may ask a service
    start = (str(target.confine), MEMORY, "/usr/bin/python3", "-S", "-c", REFUSED_CALLS)
    said, _ = target.run(*start).communicate(timeout=PATIENCE_S)
    lines = said.splitlines()
    told = sorted(line for line in lines if line.startswith("testbed-confine: "))
    numbers = ("1000", "165 mount", "191", "41 socket", "460")
    assert told == [f"testbed-confine: refused system call {each}" for each in numbers]
    called = [line for line in lines if line.startswith("call:")]
    refused = [f"call: {number} -1 1" for number in (41, 41, 165, 191, 460, 1000)]
    assert called == [*refused, "call: 39 True"]


HIDES = """
import ctypes, os
os.write(2, b"no end of a line")
ctypes.CDLL(None).syscall(41, 2, 1, 0)
try: {}
except OSError: pass
os.write(2, b"the end")
"""


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("None", id="in-a-line"),
        pytest.param("os.ftruncate(2, 0)", id="cut"),
        pytest.param("os.ftruncate(2, 1 << 40)", id="before-a-hole"),
        pytest.param("os.open('/proc/self/fd/2', os.O_WRONLY | os.O_TRUNC)", id="opened-again"),
        pytest.param("os.writev(2, [b'x' * 1000000 + b'\\n'] * 20)", id="before-a-flood"),
    ],
)
def test_a_refused_system_call_cannot_be_hidden(target: Target, how: str) -> None:
    console = target.folder / GUEST_CONSOLE
    start = (str(target.confine), MEMORY, "/usr/bin/python3", "-S", "-c", HIDES.format(how))
    with console.open("wb") as errors:
        assert target.run(*start, errors=errors).wait(PATIENCE_S) == 0
    assert [*refused_calls(target.folder)] == [
        "the guest's kernel was refused system call 41 socket"
    ]
    assert console.stat().st_size < 1 << 25
    if how != "os.ftruncate(2, 0)":
        assert _last_error_line(target.folder).endswith("the end")


LOCKS_FIRST = """
import ctypes, os, sys
ctypes.CDLL(None).syscall(73, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_refused_system_call_is_a_warning_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = GuestEngine._guest

    def locks_first(engine: GuestEngine, job: Job, patience_s: float, memory_mb: int) -> Boot:
        launcher = ("/usr/bin/python3", "-c", LOCKS_FIRST)
        return dataclasses.replace(usual(engine, job, patience_s, memory_mb), launcher=launcher)

    monkeypatch.setattr(GuestEngine, "_guest", locks_first)
    (trial,) = run_trials([router(duration_s=1)], tmp_path)
    assert "the guest's kernel was refused system call 73 flock" in trial.record.warnings


WITH_A_LISTENER = """
import ctypes, os, struct, sys
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000), 8)
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
listener = libc.syscall(317, 1, 8, ctypes.byref(Program(1, ctypes.addressof(allow))))
os.set_inheritable(listener, True)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_calls_are_refused_too_where_a_container_listens_to_its_own(target: Target) -> None:
    """There can be but one listener, so that nobody names them."""
    start = ("/usr/bin/python3", "-c", WITH_A_LISTENER, str(target.confine), MEMORY)
    said, _ = target.run(*start, "/usr/bin/python3", "-c", REFUSED_CALLS).communicate(
        timeout=PATIENCE_S
    )
    refused = [f"call: {number} -1 1" for number in (41, 41, 165, 191, 460, 1000)]
    assert said.splitlines() == [*refused, "call: 39 True"]


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_guest_leaves_nothing(target: Target, by: signal.Signals) -> None:
    guest = boot_until_it_computes(target)
    left = descendants(guest.pid)
    assert len(left) > 2
    guest.send_signal(by)
    guest.wait(PATIENCE_S)
    wait_until(lambda: not any(map(alive, left)))
    assert not list((target.folder / MEMORY).iterdir())


def test_a_guest_whose_kernel_panics_ends(target: Target) -> None:
    """Its first process has one on the host, as all others have; without it, the kernel panics."""
    guest = boot_until_it_computes(target)
    (kernel,) = children(guest.pid)
    processes = children(kernel)
    assert len(processes) > 1
    for pid in processes:
        os.kill(pid, signal.SIGKILL)
    assert guest.wait(PATIENCE_S)


@pytest.mark.root("acts as two users")
def test_others_cannot_run_what_a_guest_makes_while_it_runs() -> None:
    """As another user on the host, who looks at the trial's folder during a run."""
    script = "cp /bin/true ./shell; chmod 4755 ./shell; touch ready; while :; do :; done"
    programs = Programs(("/bin/sh", "-c", script))
    flow = Flow("web", FlowKind.COMMAND, "sender1", "receiver", variant="cubic", command=programs)
    scenario = dataclasses.replace(router(variant="cubic", duration_s=5), flows=(flow,))
    with tempfile.TemporaryDirectory(prefix="testbed-during-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "asked.json").write_text(scenario.to_json())
        run = subprocess.Popen(
            [*TESTBED, "run", "asked.json", "--engine", "guest", "--out", "out"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            made = "out/.*/.guest.*/guest/flows/*"
            wait_until(lambda: list(folder.glob(f"{made}/ready")) or run.poll() is not None)
            (shell,) = folder.glob(f"{made}/shell")
            assert not shell.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
            shell.chmod(0o4755)  # as on a host that cannot confine guests
            other = ["setpriv", "--reuid", f"{NOBODY}", "--clear-groups", "--"]
            looked = subprocess.run([*other, "test", "-d", folder / "out"], check=False)
            assert looked.returncode == 0
            for way in ('exec "$0"', 'test -e "$0"'):  # setpriv itself has root's capabilities
                assert subprocess.run([*other, "sh", "-c", way, shell], check=False).returncode
        finally:
            run.terminate()
            run.wait(PATIENCE_S)
        assert list((folder / "out").iterdir()) == []


@pytest.mark.slow
def test_no_variable_of_the_caller_reaches_the_programs_of_a_guest(tmp_path: Path) -> None:
    """Neither those of the loader nor those of shells; and what they print is not for others."""
    names = ("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PYTHONPATH", "BASH_ENV", "ENV")
    hostile = dict.fromkeys((*names, "GCONV_PATH", "OPENSSL_CONF", "IFS"), "/hostile")
    said = Programs(("/bin/sh", "-c", "tr '\\0' '\\n' </proc/self/environ"))
    flow = Flow("web", FlowKind.COMMAND, "sender1", "receiver", variant="cubic", command=said)
    scenario = dataclasses.replace(router(variant="cubic", duration_s=1), flows=(flow,))
    (tmp_path / "asked.json").write_text(scenario.to_json())
    subprocess.run(
        [*TESTBED, "run", "asked.json", "--engine", "guest", "--out", "out"],
        cwd=tmp_path,
        env=os.environ | hostile,
        check=True,
        capture_output=True,
    )
    (output,) = tmp_path.glob("out/*-guest/flows/web.client.out")
    assert "PATH=" in output.read_text()
    (trial,) = tmp_path.glob("out/*-guest")
    # a program may have read, and sent, what others may not read
    made = (trial, *trial.glob("flows/**/*"), *trial.glob("captures/*"))
    assert len(made) > 5
    assert not [path for path in made if path.stat().st_mode & 0o077]
    assert "hostile" not in output.read_text()


def children(pid: int) -> list[int]:
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    """The processes below one."""
    return [below for child in children(pid) for below in (child, *descendants(child))]


def test_without_room_to_confine_it_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(CONFINE), "missing", sys.executable],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 125
    assert done.stderr.startswith("testbed-confine: cannot mount missing: ")
