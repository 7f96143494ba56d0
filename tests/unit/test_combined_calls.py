"""The calls that a preloaded iperf3 does not make, and those that it has to make."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from testbed.traffic.iperf3.iperf3_flow import PRELOAD
from tests.lab import PATIENCE_S

# `ask` reads as C programs do: by libc's read(), which is the preloaded one
PRELUDE = """
import ctypes, errno, fcntl, os, socket
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(100)
def ask(reader, size, offset=0):
    got = libc.read(reader.fileno(), ctypes.byref(buffer, offset), size)
    return got if got >= 0 else errno.errorcode[ctypes.get_errno()]
def pair(flags=os.O_NONBLOCK):
    reader, writer = socket.socketpair()
    assert libc.fcntl(reader.fileno(), fcntl.F_SETFL, flags) == 0
    return reader, writer
reader, writer = pair()
writer.send(b"ten bytes.")
"""


def preloaded(script: str) -> list[str]:
    env = {**os.environ, "LD_PRELOAD": str(PRELOAD)}
    argv = [sys.executable, "-c", PRELUDE + script]
    done = subprocess.run(
        argv, capture_output=True, text=True, env=env, check=True, timeout=PATIENCE_S
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("script", "answers"),
    [
        # the rest of a block is not asked for, even if it has come; the next block is
        (
            "print(ask(reader, 100)); writer.send(b'more'); "
            "print(ask(reader, 90, 10), ask(reader, 100), ask(reader, 96, 4))",
            ["10", "EAGAIN", "4", "EAGAIN"],
        ),
        # a block that is full says nothing about what is left
        ("print(ask(reader, 4), ask(reader, 6, 4))", ["4", "6"]),
        # another place in memory is another block
        ("print(ask(reader, 50)); writer.send(b'more'); print(ask(reader, 40))", ["10", "4"]),
        # nor is one of another connection the rest
        (
            "other, peer = pair(); peer.send(b'more'); print(ask(reader, 100), ask(other, 90, 10))",
            ["10", "4"],
        ),
        # the end of a connection is an answer that only the kernel has
        (
            "print(ask(reader, 100)); writer.close(); print(ask(reader, 90, 10), ask(reader, 100))",
            ["10", "EAGAIN", "0"],
        ),
        # a program that waits for the rest gets it
        (
            "reader, writer = pair(0); writer.send(b'part'); print(ask(reader, 100)); "
            "writer.send(b'rest'); print(ask(reader, 96, 4))",
            ["4", "4"],
        ),
    ],
)
def test_only_known_answers_are_given(script: str, answers: list[str]) -> None:
    assert preloaded(script) == answers


def test_a_closed_descriptors_mode_is_forgotten() -> None:
    script = """
number = reader.fileno()
assert libc.close(number) == 0
reader.detach()
reader, writer = socket.socketpair()
assert reader.fileno() == number
writer.send(b"part")
print(ask(reader, 100))
writer.send(b"rest")
print(ask(reader, 96, 4))
"""
    assert preloaded(script) == ["4", "4"]


FILLING = (
    PRELUDE
    + """
block = bytes(1 << 20)
def put(size=len(block)):
    sent = libc.write(writer.fileno(), block, size)
    return sent if sent >= 0 else errno.errorcode[ctypes.get_errno()]
def filled():
    sent = put()
    assert 0 < sent < len(block)
    while len(reader.recv(1 << 20)) == 1 << 20:
        pass
def choose():
    chosen = (ctypes.c_ulong * 16)(1 << writer.fileno())
    return libc.select(64, None, chosen, None, None)
"""
)


@pytest.mark.parametrize(
    ("script", "answers"),
    [
        # a stream that took less than it was given takes no more until select() says so
        ("filled(); print(put(1), choose(), put(1))", ["EAGAIN", "1", "1"]),
        # a program that asks again and again, and not select(), gets an answer of the kernel
        ("filled(); print(*(put(1) for _ in range(17)))", [*(["EAGAIN"] * 16), "1"]),
        # a stream that takes all may take more
        ("print(put(1), put(1))", ["1", "1"]),
    ],
)
def test_only_a_full_stream_refuses(script: str, answers: list[str]) -> None:
    asking = FILLING + "assert libc.fcntl(writer.fileno(), fcntl.F_SETFL, os.O_NONBLOCK) == 0\n"
    assert preloaded(asking + script) == answers


# what select() says, what it leaves in the kernel, and what is read then
SELECTING = (
    PRELUDE
    + """
import array, termios
def choose(*sockets):
    chosen = (ctypes.c_ulong * 16)()
    for each in sockets:
        chosen[0] |= 1 << each.fileno()
    ready = libc.select(64, chosen, None, None, (ctypes.c_long * 2)(1, 0))
    left = array.array("i", [0])
    fcntl.ioctl(reader.fileno(), termios.FIONREAD, left)
    return f"{ready}:{chosen[0] >> reader.fileno() & 1}:{left[0]}"
other, peer = pair()
print(ask(reader, 100), ask(reader, 90, 10))
writer.send(b"one is ready")
print(choose(reader, other), ask(reader, 100))
writer.send(b"both"); peer.send(b"both")
print(choose(reader, other), ask(reader, 100))
print(choose(reader, other), ask(other, 4), ask(reader, 100))
writer.send(b"one")
print(choose(reader), choose(reader), ask(reader, 2), ask(reader, 100))
print(choose(reader), libc.close(other.detach()))
writer.close()
print(choose(reader), ask(reader, 100), ask(reader, 100))
"""
)


def selected(left: int) -> list[str]:
    """The answers, where `left` says whether select() leaves in the kernel what came alone."""
    return [
        *("10", "EAGAIN"),
        *(f"1:1:{12 * left}", "12"),
        *("2:1:4", "4"),
        *("1:0:0", "4", "EAGAIN"),
        *(f"1:1:{3 * left}", f"1:1:{3 * left}", "2", "1"),
        *("0:0:0", "0"),
        *("1:1:0", "0", "0"),
    ]


# what select() says of a reader and a writer, with a timeout of 0.1 s
OFFERING = """
def offered():
    chosen = [(ctypes.c_ulong * 16)() for _ in "rw"]
    chosen[0][0] = 1 << other.fileno()
    chosen[1][0] = 1 << writer.fileno()
    ready = libc.select(64, *chosen, None, (ctypes.c_long * 2)(0, 100_000))
    return "r" * bool(chosen[0][0]) + "w" * bool(chosen[1][0]) if ready else "nobody"
other, peer = pair()
"""


@pytest.mark.parametrize(
    ("between", "answers"),
    [
        ("", ["w", "nobody", "w"]),  # by a timer it is asked in earnest again
        ("libc.write(writer.fileno(), b'data', 4)", ["w", "w", "w"]),
        ("ask(other, 1)", ["w", "w", "w"]),  # which may have been the word to begin
    ],
)
def test_a_writer_is_not_offered_twice_for_nothing(between: str, answers: list[str]) -> None:
    script = f"""
found = []
for _ in range(3):
    found.append(offered())
    {between or "pass"}
print(*found)
"""
    assert preloaded(OFFERING + script) == answers


def test_a_writer_that_was_left_out_comes_after_what_was_waited_for() -> None:
    script = """
found = [offered()]
peer.send(b"go")
print(*found, offered(), ask(other, 2), offered())
"""
    assert preloaded(OFFERING + script) == ["w", "r", "2", "w"]


def test_a_kernel_without_batches_is_asked_twice() -> None:
    script = SELECTING.removeprefix(PRELUDE)
    assert preloaded(script) == selected(left=1)
