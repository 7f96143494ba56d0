"""Memory of programs in the guest: what a process maps, copies and protects."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.system.test_machine import execute

MEMORY = """
import ctypes, mmap, os, sys

PAGE = 4096
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
READ, WRITE, SHARED, PRIVATE, FIXED, ANONYMOUS, DENYWRITE = 1, 2, 1, 2, 16, 32, 0x800


def area(pages, protection, flags, fd=-1, at=None):
    return libc.mmap(at, pages * PAGE, protection, flags, fd, 0)


def read(address):
    return ctypes.c_ubyte.from_address(address).value


def write(address, value):
    ctypes.c_ubyte.from_address(address).value = value


def fate(act, *arguments):
    child = os.fork()
    if not child:
        act(*arguments)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def copies(at, pages):
    ours, theirs = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        for page in range(0, pages, 3):
            write(at + page * PAGE, 7)
        os.write(ours[1], b"x")
        os.read(theirs[0], 1)
        os._exit(sum(read(at + page * PAGE) for page in range(pages)) % 251)
    os.read(ours[0], 1)
    before = sum(read(at + page * PAGE) for page in range(pages))
    for page in range(pages):
        write(at + page * PAGE, 9)
    os.write(theirs[1], b"x")
    status = os.waitpid(child, 0)[1]
    return before, status, sum(read(at + page * PAGE) for page in range(pages))


def file_of(name, byte, pages):
    with open(name, "wb") as file:
        file.write(bytes([byte]) * PAGE * pages)
    return os.open(name, os.O_RDWR)


for pages in (4, 16, 17, 300):
    at = area(pages, READ | WRITE, PRIVATE | ANONYMOUS)
    print(pages, "fresh", sum(read(at + page * PAGE) for page in range(pages)))
    for page in range(pages):
        write(at + page * PAGE, 1 + page % 5)
    print("forked", copies(at, pages))
    libc.mprotect(at + PAGE, PAGE, READ)
    print("protected", read(at + PAGE), fate(write, at + PAGE, 1), fate(write, at + 2 * PAGE, 1))
    libc.mprotect(at + PAGE, PAGE, READ | WRITE)
    print("writable again", fate(write, at + PAGE, 1))
    libc.munmap(at + 2 * PAGE, PAGE)
    print("unmapped", fate(read, at + 2 * PAGE), fate(read, at + PAGE), fate(read, at + 3 * PAGE))

    for flags in (PRIVATE, PRIVATE | DENYWRITE):
        fd, other = file_of("one", 3, pages), file_of("two", 5, pages)
        at = area(pages, READ | WRITE, flags | FIXED, fd, area(pages, 0, PRIVATE | ANONYMOUS))
        shared = area(pages, READ | WRITE, SHARED, fd)
        for page in (0, 1, 3):
            write(at + page * PAGE, 4)
        print("file", read(at), read(at + 2 * PAGE), read(shared), os.pread(fd, 1, PAGE))
        write(shared + 3 * PAGE, 6)
        print("shared", os.pread(fd, 1, 3 * PAGE), fate(write, shared, 8), read(shared))
        if flags == PRIVATE:
            write(shared + 2 * PAGE, 10)
        print("private", read(at), read(at + 2 * PAGE), read(at + 3 * PAGE))
        print("forked", copies(at, pages))
        os.truncate("one", PAGE)
        print("short", fate(read, at), fate(read, at + PAGE), fate(write, at + 3 * PAGE, 1))
        area(pages, READ, flags | FIXED, other, at)
        print("replaced", read(at), read(at + 3 * PAGE), fate(write, at, 1))
        libc.munmap(at, pages * PAGE)
        print("unmapped", fate(read, at), fate(read, at + 3 * PAGE))


def deep(depth):
    return depth and 1 + deep(depth - 1)


sys.setrecursionlimit(30000)
print("stack", deep(9000), fate(deep, 20000))
"""


def test_memory_is_what_the_host_would_have(tmp_path: Path) -> None:
    """Copies after a fork, protection, files' ends, what replaces what: as Linux has it."""
    (tmp_path / "plain").mkdir()
    argv = ["/usr/bin/python3", "-c", MEMORY]
    plain = subprocess.run(argv, cwd=tmp_path / "plain", capture_output=True, text=True, check=True)
    done = execute(tmp_path, *argv)
    assert done.status == 0 and done.printed == plain.stdout
