"""A guest on a cluster's worker: the standard library and `trees.py`, which the head sends there.

A worker has Python with dask, the guest's kernel, the programs in C, and the programs that make
traffic (docs/cluster.md). It needs none of the testbed's Python.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pickle
import pwd
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Self

from testbed.machine.trees import GuestFolder, Rule, remove

KERNEL_POINTS = "tcp_testbed.kernels"  # the entry points of wheels that bring a kernel
PROBLEM = "problem"  # the only key of the equipment of a machine that cannot run trials
POLL_MS, MAX_POLL_MS = 20, 100  # longer as the guest takes longer
FULL_DISK_BYTES = 1_000_000
MAX_PACKED_BYTES = 1 << 31  # of a trial's files, which are sent in one piece
GUEST_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
WORKER_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
START_TOPIC = "testbed-started"  # dask's topic for the workers' messages that a trial starts
# where the guest mounts its own file systems; required host folders there are bind-mounted
HIDDEN = ("/tmp", "/run", "/dev/shm")

# A file's content without the zeros at its end, its size, its mode, and its age in seconds. What
# head and worker exchange is of types that Python has: a worker does not know ours.
File = tuple[bytes, int, int, float]


class Exchanged:
    """Values that head and worker exchange, as bytes that dask does not look into."""

    def packed(self) -> bytes:
        """Return the values as bytes."""
        return pickle.dumps(vars(self))

    @classmethod
    def unpacked(cls, packed: bytes) -> Self:
        """Rebuild the object from the bytes of `packed`."""
        return cls(**pickle.loads(packed))


@dataclass(frozen=True)
class Requirements(Exchanged):
    """What must be the same on head and worker."""

    kernels: Mapping[str, str]  # name → folder: by its name in a wheel, or below the cache's
    commands: Mapping[str, Sequence[str]]  # program → the command that prints its version
    packages: Sequence[str]  # Python's
    programs: Sequence[str]  # of any version
    files: Sequence[str]  # the user's own programs and files


@dataclass(frozen=True)
class Shipment(Exchanged):
    """A folder with a programme, and the guest that obeys it."""

    trial: str
    folders: Sequence[str]
    files: Mapping[str, File]
    commands: Sequence[str]  # the files that name programs by the head's prefix
    paths: str  # the file that names the folders that the guest's own mounts would hide
    memory: str  # the folder for the guest's memory
    console: str
    programs: str  # the head's folder of the programs in C
    kernel: str  # its folder, as above
    options: Sequence[str]  # of the kernel
    patience_s: float
    confined_only: bool  # not on a worker that cannot confine it
    rules: Sequence[tuple[str, int, int]]  # for what the guest may leave, each as a Rule


@dataclass(frozen=True)
class GuestReport(Exchanged):
    """What a guest on a worker left, or the worker's problem."""

    where: str = ""
    problem: str = ""
    folders: Sequence[str] = ()
    files: Mapping[str, File] = field(default_factory=dict)
    taken: tuple[int, int, int, int, tuple[str, ...]] = (0, 0, 0, 0, ())  # a Taken
    status: int = 0
    peak_mb: float = 0.0
    hung: bool = False
    took_s: float = 0.0
    why_not_confined: str = ""
    addresses_fixed: bool = True


def programs_folder() -> Path:
    """Return the folder of the programs and libraries in C: that of a wheel, or of a clone."""
    of_wheel = _package_folder("testbed") / "compiled"
    return of_wheel if of_wheel.is_dir() else Path(sys.prefix) / "lib"


def _package_folder(name: str) -> Path:
    package = None
    with contextlib.suppress(ImportError):  # a worker may lack it, or the package it is in
        package = importlib.util.find_spec(name)
    return Path(package.origin).parent if package and package.origin else Path(os.devnull)


def cache_folder() -> Path:
    """Return the folder of the guest's kernels."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tcp-testbed" / "kernel"


def installed_kernels() -> dict[str, Path]:
    """Return the folders of the kernels that wheels have brought, by name."""
    points = importlib.metadata.entry_points(group=KERNEL_POINTS)
    folders = {point.name: _package_folder(point.value) for point in points}
    return {name: folder for name, folder in folders.items() if (folder / "linux").exists()}


def where_is(kernel: Path) -> str:
    """Return by what another machine finds a kernel's folder."""
    names = {folder: name for name, folder in installed_kernels().items()}
    return names.get(kernel) or str(kernel.relative_to(cache_folder()))


def kernel_folder(where: str) -> Path:
    """Return the folder of a kernel: where a wheel has it, or else in the cache."""
    return installed_kernels().get(where) or cache_folder() / where


def equipment(requirements: bytes) -> dict[str, str]:
    """Return what determines this machine's results: kernels, programs, libraries and files."""
    needed = Requirements.unpacked(requirements)
    try:
        return {
            **_sources(),
            **{f"kernel {name}": _kernel(name, where) for name, where in needed.kernels.items()},
            **{name: _version(command) for name, command in needed.commands.items()},
            **{name: importlib.metadata.version(name) for name in needed.packages},
            **{name: _installed(name) for name in needed.programs},
            **{name: _digest(Path(name)) for name in needed.files},
        }
    except importlib.metadata.PackageNotFoundError as error:
        return {PROBLEM: f"Python's {error.name} is not installed"}
    except OSError as error:
        return {PROBLEM: f"{error.strerror}: {error.filename}" if error.filename else str(error)}


def _sources() -> dict[str, str]:
    """Return the sha256 of each source of the programs in C, as the Makefile noted them."""
    path = programs_folder() / "testbed-sources"
    if not path.exists():
        raise OSError(f"{path.parent} has no programs of the testbed")
    lines = path.read_text().splitlines()
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}


def _kernel(name: str, where: str) -> str:
    folder = kernel_folder(where)
    if not (folder / "base").exists():
        raise OSError(f"kernel {name} is not built")
    owner = (folder / "linux").stat()
    if os.geteuid() == 0 and (owner.st_uid or owner.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise OSError(f"root does not run kernel {name}: others may change it")
    return " ".join((folder / part).read_text().strip() for part in ("version", "base"))


def _installed(name: str) -> str:
    if shutil.which(name, path=WORKER_PATH) is None:
        raise OSError(f"{name} is not installed")
    return "installed"


def _version(command: Sequence[str]) -> str:
    program = programs_folder() / command[0]
    if not program.exists():
        _installed(command[0])
        program = Path(shutil.which(command[0], path=WORKER_PATH) or "")
    done = subprocess.run([str(program), *command[1:]], capture_output=True, text=True, check=False)
    number = re.search(r"\d+\.\d[\w.+-]*", done.stdout + done.stderr)
    return number[0] if number else "unknown"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def pack(folder: Path) -> tuple[list[str], dict[str, File]]:
    """Return the names of a folder's folders, and its plain files, by their paths in it.

    Raise a ValueError if they are larger than the memory of a worker can be expected to be.
    """
    folders, files, now = [], {}, time.time()
    left = MAX_PACKED_BYTES
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode):
            folders.append(name)
        elif stat.S_ISREG(status.st_mode):
            left -= status.st_size
            if left < 0:
                raise ValueError(f"more than {MAX_PACKED_BYTES >> 30} GiB of files in a trial")
            with path.open("rb") as file:
                content = file.read(status.st_size)
            mode, age_s = stat.S_IMODE(status.st_mode), now - status.st_mtime
            files[name] = content.rstrip(b"\0"), len(content), mode, age_s
    return folders, files


def unpack(folder: Path, files: Mapping[str, File]) -> None:
    """Write files, and leave holes for the zeros at their ends."""
    now = time.time()
    for name, (content, size, mode, age_s) in files.items():
        path = folder / name
        path.write_bytes(content)
        os.truncate(path, size)
        path.chmod(mode & 0o777)
        os.utime(path, (now - age_s,) * 2)


def run_guest(packed: bytes) -> bytes:
    """Run a guest on this worker, and return what it left, as a packed answer."""
    from distributed import get_worker

    worker, shipment = get_worker(), Shipment.unpacked(packed)
    worker.log_event(START_TOPIC, {"trial": shipment.trial, "where": str(worker.name)})
    started = time.monotonic()
    try:
        # below the worker's own folder: dask removes what a killed worker leaves there
        with (
            _temporary_folder(Path(worker.local_directory)) as name,
            reserve_core(_core_locks()) as core,
        ):
            answer = _run(shipment, name, core)
            if shutil.disk_usage(name).free < FULL_DISK_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        full = error.errno == errno.ENOSPC
        problem = "its disk is full" if full else f"{error.strerror or error}"
        return GuestReport(worker.address, problem).packed()
    except subprocess.SubprocessError as error:
        return GuestReport(worker.address, str(error)).packed()
    return replace(answer, where=worker.address, took_s=time.monotonic() - started).packed()


@contextlib.contextmanager
def _temporary_folder(above: Path) -> Iterator[Path]:
    """Make a folder for the duration of a block; what a guest left in it may lie very deep."""
    name = tempfile.mkdtemp(prefix="trial-", dir=above)
    try:
        yield Path(name)
    finally:
        parent = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            remove(parent, Path(name).name)
        finally:
            os.close(parent)


def _run(shipment: Shipment, folder: Path, core: int) -> GuestReport:
    for name in shipment.folders:
        (folder / name).mkdir()
    unpack(folder, shipment.files)
    for name in shipment.commands:
        text = (folder / name).read_bytes()
        (folder / name).write_bytes(
            text.replace(shipment.programs.encode(), bytes(programs_folder()))
        )
    (folder / shipment.memory).mkdir()
    prefix = Path(sys.prefix).resolve()
    hidden = [prefix] if any(prefix.is_relative_to(place) for place in HIDDEN) else []
    (folder / shipment.paths).write_text("".join(f"{path}\n" for path in hidden))
    lib = programs_folder()
    confine = [str(lib / "testbed-confine"), shipment.memory]
    environment = {"PATH": GUEST_PATH, "TMPDIR": shipment.memory}
    why_not = _refusal([*confine, "true"], folder).removeprefix("testbed-confine: ")
    if why_not and shipment.confined_only:
        return GuestReport(problem=f"it cannot confine programs of yours: {why_not}")
    fixed = not _refusal(["setarch", "-R", "true"], folder)
    command = guest_command(
        kernel_folder(shipment.kernel), core, shipment.options, () if why_not else confine, fixed
    )
    with GuestFolder(folder) as place:
        with (folder / shipment.console).open("wb") as console:
            process = subprocess.Popen(
                [str(lib / "testbed-guard"), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=console,
                env=environment,
                cwd=place.start_path,
                start_new_session=True,
            )
        peak_mb, reason = wait_for_guest(process, shipment.patience_s, lambda: False)
        taken = place.take([Rule(*rule) for rule in shipment.rules])
    folders, files = pack(folder)
    return GuestReport(
        folders=folders,
        files=files,
        taken=astuple(taken),
        status=process.returncode,
        peak_mb=peak_mb,
        hung=bool(reason),
        why_not_confined=why_not,
        addresses_fixed=fixed,
    )


def _refusal(argv: Sequence[str], folder: Path) -> str:
    """Return what a command says if it fails, or nothing."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    return (done.stderr.strip() or "refused") if done.returncode else ""


def guest_command(
    kernel: Path,
    core: int,
    options: Sequence[str],
    confine: Sequence[str],
    fixed: bool,
    launcher: Sequence[str] = (),
) -> list[str]:
    """Return the guest's command line; `confine` begins it unless the host allows no confinement.

    A process that takes turns with the kernel can reach its memory, so processes are traced where
    the guest as a whole is not confined. `launcher` begins a command that runs the kernel.
    """
    # when its first process ends, a PID namespace kills the rest; without one, the guard does
    holder = confine or (str(programs_folder() / "testbed-guard"), "--all")
    return [
        *("taskset", "-c", str(core)),  # before the confinement, which holds it there
        *holder,
        *(("setarch", "-R") if fixed else ()),
        *launcher,
        *(str(kernel / "linux"), *options),
        *(() if confine else ("stubs=ptrace",)),
    ]


def wait_for_guest(
    process: subprocess.Popen[bytes],
    patience_s: float,
    cancelled: Callable[[], bool],
) -> tuple[float, str]:
    """Wait for a guest's end; return its peak memory in MB, and why it was ended, or nothing.

    A guest is a child of the started process, which leads its own session.
    """
    peak_kb, pid, reason = 0, 0, ""
    deadline = time.monotonic() + patience_s
    ending = os.pidfd_open(process.pid)
    try:
        poller = select.poll()
        poller.register(ending, select.POLLIN)
        poll_ms = POLL_MS
        while not poller.poll(poll_ms):
            poll_ms = min(poll_ms + 1, MAX_POLL_MS)
            pid = pid or child_of(process.pid)
            peak_kb = max(peak_kb, _resident_kb(pid))
            if cancelled():
                reason = "cancelled"
            elif time.monotonic() > deadline:
                reason = "hung"
            if reason:
                process.send_signal(signal.SIGTERM)
                poller.poll(5000)
                break
    finally:
        os.close(ending)
        if process.returncode is None:  # its number is still its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return peak_kb / 1024, reason


def child_of(pid: int) -> int:
    """Return the id of a process's only child, or 0 while it has none."""
    try:
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    except (OSError, IndexError):
        return 0


def _resident_kb(pid: int) -> int:
    """Return the peak resident memory of the guest's main process, which maps all of its memory.

    It is read many times a second, so the bytes are not decoded.
    """
    try:
        with Path(f"/proc/{pid}/status").open("rb", buffering=0) as file:
            peak = re.search(rb"VmHWM:\s+(\d+)", file.read())
    except OSError:
        return 0
    return int(peak[1]) if peak else 0


def _core_locks() -> Path:
    """Return the folder of the locks by which a worker's guests share its processors.

    Root's is in root's own home: that of the environment may be another user's, with a link there.
    """
    root = os.geteuid() == 0
    given = "" if root else os.environ.get("XDG_STATE_HOME")
    home = Path(pwd.getpwuid(0).pw_dir) if root else Path.home()
    return Path(given or home / ".local" / "state") / "tcp-testbed" / "cores"


@contextlib.contextmanager
def reserve_core(locks: Path) -> Iterator[int]:
    """Reserve a processor for the duration of the block; shared if there are too few.

    Parallel sweeps and cluster workers coordinate by file locks, which the kernel releases when
    their owner dies.
    """
    usable = sorted(os.sched_getaffinity(0))
    locks.mkdir(parents=True, exist_ok=True)
    for core in usable:
        descriptor = os.open(locks / str(core), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        try:
            yield core
        finally:
            os.close(descriptor)
        return
    yield usable[os.getpid() % len(usable)]
