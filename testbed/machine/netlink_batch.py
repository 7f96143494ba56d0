"""The same questions to several netlink sockets, again and again.

The guest's kernel takes them, and gives the answers, by one system call (kernel/patches/0022).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from testbed.machine.netlink import BUFFER_BYTES, Netlink

_libc = ctypes.CDLL(None, use_errno=True)
_BATCH = 4096  # the system call, in the guest
_SENDTO, _RECVFROM = 44, 45  # system calls of x86-64, the guest's only architecture
_MOST = 2**62


class _Call(ctypes.Structure):
    """struct batched_call of the patch: it goes on after a result from `least` to `most`."""

    _fields_ = (
        ("number", ctypes.c_long),
        ("arguments", ctypes.c_long * 6),
        ("least", ctypes.c_long),
        ("most", ctypes.c_long),
        ("result", ctypes.c_long),
    )


@dataclass(frozen=True)
class Question:
    """A request with a single answer, and the socket that it is sent by."""

    netlink: Netlink
    message: bytes

    def ask(self) -> bytes | None:
        """The answer; None if the object does not exist."""
        self.netlink.send(self.message)
        self.netlink.receive()
        return self.netlink.answer()


class Batch:
    """Questions that are asked together."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self._questions = questions
        self._kept = [ctypes.create_string_buffer(each.message) for each in questions]
        calls = [call for each in zip(questions, self._kept, strict=True) for call in _pair(*each)]
        self._calls = (_Call * len(calls))(*calls)
        self._alone = not calls

    def answers(self) -> Iterator[bytes | None]:
        """Ask all; None is the answer where the object does not exist."""
        for index in range(self._made_at_once(), len(self._calls)):
            question = self._questions[index // 2]
            if index % 2:
                question.netlink.receive()
            else:
                question.netlink.send(question.message)
        return (each.netlink.answer() for each in self._questions)

    def _made_at_once(self) -> int:
        """How many of the calls one system call made: not all, if a signal came."""
        if self._alone:
            return 0
        made: int = _libc.syscall(_BATCH, self._calls, len(self._calls))
        if made < 0 and ctypes.get_errno() == errno.ENOSYS:
            self._alone = True  # no kernel of ours
        elif made > 0 and (result := self._calls[made - 1].result) < 0:
            raise OSError(-result, os.strerror(-result))
        return max(made, 0)


def _pair(question: Question, message: ctypes.Array[ctypes.c_char]) -> tuple[_Call, _Call]:
    """Sending a question, and receiving its answer."""
    netlink, size = question.netlink, len(question.message)
    sent = (netlink.descriptor, ctypes.addressof(message), size, 0, 0, 0)
    received = (netlink.descriptor, netlink.buffer_address, BUFFER_BYTES, 0, 0, 0)
    return (
        _Call(_SENDTO, (ctypes.c_long * 6)(*sent), size, size),
        _Call(_RECVFROM, (ctypes.c_long * 6)(*received), 1, _MOST),
    )
