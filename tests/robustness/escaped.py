"""Run where the guest's kernel runs, as if a program had taken it over: native code in confinement.

    python3 escaped.py DIRECTORY PID

Prints a line for each way to the host: `NAME: done` or `NAME: refused`.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import os
import signal
import socket
import stat
import struct
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

FCHMODAT2 = 452
SET_UID, SET_GID = 0o4755, 0o2755
NEWNS, NEWUSER, NEWNET = 0x20000, 0x10000000, 0x40000000
PTRACE_ATTACH = 16
PR_SET_PDEATHSIG, MEMBARRIER, MEMBARRIER_GLOBAL, N_TTY = 1, 324, 1, 0
REMOUNT_BIND = 32 | 4096
libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *words: object) -> None:
    """A function of libc; an error is raised."""
    if getattr(libc, name)(*words) < 0:
        raise OSError(ctypes.get_errno(), name)


def ways(folder: Path, pid: int) -> Iterator[tuple[str, Callable[[], object]]]:
    file = folder / "file"
    yield "use a descriptor of who started it", lambda: os.fstat(3)
    yield "write a file", lambda: (folder / "new").write_text("evil")
    yield "overwrite a file", lambda: file.write_text("evil")
    yield "remove a file", file.unlink
    yield "change a file's mode", lambda: file.chmod(0o777)
    yield "change a file's owner", lambda: os.chown(file, 1, 1)
    yield "change a file's times", lambda: os.utime(file)
    yield "signal a process", lambda: os.kill(pid, signal.SIGTERM)
    yield "trace a process", lambda: call("ptrace", PTRACE_ATTACH, pid, 0, 0)
    yield "see a process", Path(f"/proc/{pid}").stat
    yield "open a socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    yield "reach a local daemon", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    yield "remount /", lambda: call("mount", None, b"/", None, REMOUNT_BIND, None)
    yield "mount a file system", lambda: call("mount", b"tmpfs", b"/mnt", b"tmpfs", 0, None)
    yield "a mount namespace", lambda: call("unshare", NEWNS)
    yield "a user namespace", lambda: call("unshare", NEWUSER)
    yield "a network namespace", lambda: call("unshare", NEWNET)
    yield "a setting of the host", lambda: Path("/proc/sys/kernel/hostname").write_text("evil")
    yield "its own memory by /proc", lambda: Path("/proc/self/mem").write_bytes(b"evil")
    yield "make a device", lambda: os.mknod("device", 0o60600, os.makedev(8, 0))
    yield "become another user", lambda: os.setuid(1)
    yield "write in a named pipe", lambda: os.open(folder / "pipe", os.O_RDWR | os.O_NONBLOCK)
    yield "lock a file", lambda: fcntl.flock(file.open(), fcntl.LOCK_SH)
    yield "lock a part of a file", lambda: fcntl.lockf(file.open(), fcntl.LOCK_SH)
    yield "lease a file", lambda: fcntl.fcntl(file.open(), fcntl.F_SETLEASE, fcntl.F_RDLCK)
    yield "watch a directory", lambda: call("inotify_init")
    yield "flush the host's disks", lambda: call("syncfs", os.open(folder, os.O_RDONLY))
    yield "use other processors", lambda: os.sched_setaffinity(0, range(1024))
    yield from socket_ways(str(folder / "socket"))
    yield from argument_ways()
    yield from set_uid_ways(Path("own"))
    yield "write in its own folder", lambda: Path("own").write_text("fine")


def socket_ways(friend: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Sockets that need neither socket() nor connect(), and what could leave by them."""
    ours = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", 0))]
    datagram, packet = socket.SOCK_DGRAM, socket.SOCK_SEQPACKET

    def one(kind: int) -> socket.socket:
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        other.detach()
        return one

    yield "a pair of datagram sockets", lambda: one(datagram)
    yield "a pair of packet sockets", lambda: one(packet)
    yield "a datagram to a path", lambda: one(datagram).sendto(b"secret", friend)
    yield "descriptors to a path", lambda: one(datagram).sendmsg([b"secret"], ours, 0, friend)
    # a stream that is connected takes no address
    yield "a stream to a path", lambda: one(socket.SOCK_STREAM).sendto(b"secret", friend)
    stream = functools.partial(one, socket.SOCK_STREAM)
    yield "descriptors by a stream", lambda: stream().sendmsg([b"secret"], ours, 0, friend)


def argument_ways() -> Iterator[tuple[str, Callable[[], object]]]:
    """Calls that a guest needs, with arguments that it does not, and calls that it does not."""
    line = struct.pack("i", N_TTY)
    yield "outlive who waits for it", lambda: call("prctl", PR_SET_PDEATHSIG, 0, 0, 0, 0)
    yield "signal its process group", lambda: os.kill(0, signal.SIGCONT)
    yield (
        "a line discipline",
        lambda: fcntl.ioctl(os.open("/dev/ptmx", os.O_RDWR), termios.TIOCSETD, line),
    )
    yield (
        "reserve room on the disk",
        lambda: os.posix_fallocate(os.open("room", os.O_RDWR | os.O_CREAT), 0, 1),
    )
    yield "empty the page cache", lambda: os.posix_fadvise(0, 0, 0, os.POSIX_FADV_DONTNEED)
    yield "pages for a pipe", lambda: fcntl.fcntl(os.pipe()[0], fcntl.F_SETPIPE_SZ, 1 << 16)
    yield "interrupt all processors", lambda: call("syscall", MEMBARRIER, MEMBARRIER_GLOBAL, 0, 0)


def set_uid_ways(own: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every call that gives a file of ours a mode."""
    new = os.O_WRONLY | os.O_CREAT
    own.touch()
    where = own.name.encode()
    here = os.open(".", os.O_RDONLY)
    yield "set-uid by chmod", lambda: own.chmod(SET_UID)
    yield "set-gid by chmod", lambda: own.chmod(SET_GID)
    yield "set-uid by fchmod", lambda: os.fchmod(os.open(own, os.O_WRONLY), SET_UID)
    yield "set-uid by fchmodat", lambda: os.chmod(own.name, SET_UID, dir_fd=here)
    yield "set-uid by fchmodat2", lambda: call("syscall", FCHMODAT2, here, where, SET_UID, 0)
    yield "set-uid by open", lambda: os.open("opened", new, SET_UID)
    yield "set-uid by openat", lambda: os.open("opened", new, SET_UID, dir_fd=here)
    yield "set-uid by O_TMPFILE", lambda: os.open(".", os.O_WRONLY | os.O_TMPFILE, SET_UID)
    yield "set-uid by creat", lambda: call("creat", b"created", SET_UID)
    yield "set-uid by mknod", lambda: os.mknod("made", stat.S_IFREG | SET_UID)
    yield "set-gid by mknodat", lambda: os.mknod("made", stat.S_IFREG | SET_GID, dir_fd=here)


def main(folder: Path, pid: int) -> None:
    for name, way in ways(folder, pid):
        try:
            way()
        except OSError:
            print(f"{name}: refused")
        else:
            print(f"{name}: done")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
