"""Work in other processes: Python does one thing at a time in a process.

Where trials run on many processors, those that reduction would keep busy are not to wait for it;
and what is done trial by trial for a page of thousands takes all processors.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, TypeVar

from testbed.errors import TestbedError
from testbed.machine.process import Process, start_told

Item = TypeVar("Item")
Result = TypeVar("Result")

TRIES = 2  # a process can be killed, e.g. for its memory
FROM_PARENT, TO_PARENT = 3, 4  # descriptors
KILLED = (EOFError, OSError, pickle.UnpicklingError)
MANY_ITEMS = 400  # trials, from which on processes are worth their start when a page is made
ITEMS_AT_ONCE = 25


class Workers:
    """A process for each thread that has something to do; without `apart`, this one does it.

    Threads do not share them: the kernel kills a process when the thread that started it ends.
    """

    def __init__(self, *, apart: bool) -> None:
        self._apart = apart
        self._all = list[_Worker]()
        self._of_thread = threading.local()

    def do(self, task: str, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do it; `about` names it in errors.

        The function is one of a module's; what goes to it and comes back is pickled.
        """
        if not self._apart:
            return work(*arguments)
        if not hasattr(self._of_thread, "worker"):
            self._of_thread.worker = _Worker()
            self._all.append(self._of_thread.worker)
        result: Result = self._of_thread.worker.do(task, work, arguments)
        return result

    def close(self) -> None:
        """Wait until all processes have ended; nothing more is to be done."""
        for worker in self._all:
            worker.close()


def shared_out(
    task: str, work: Callable[[Sequence[Item], int], Result], items: Sequence[Item]
) -> Iterator[Result]:
    """Yield what the work makes of some items at a time, in their order; many are shared out.

    The work gets the number of processors that it has for itself.
    """
    some = [items[n : n + ITEMS_AT_ONCE] for n in range(0, len(items), ITEMS_AT_ONCE)]
    processors = len(os.sched_getaffinity(0))
    if len(items) < MANY_ITEMS or processors < 2:
        yield from (work(each, processors) for each in some)
        return
    with (
        contextlib.closing(Workers(apart=True)) as workers,
        ThreadPoolExecutor(processors) as pool,
    ):
        yield from pool.map(lambda each: workers.do(task, work, each, 1), some)


class _Worker:
    """A process that is started when it is needed."""

    def __init__(self) -> None:
        self._process: Process | None = None

    def do(self, task: str, work: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """Have it done, once more if the process is killed meanwhile."""
        for _ in range(TRIES):
            try:
                result, error = self._exchange((task, work, arguments))
            except KILLED:
                self.close()
                continue
            if error is not None:
                raise error
            return result
        raise TestbedError(
            f"{task}: the process that works on it was killed",
            "is there too little memory? `testbed reduce` reduces trials again",
        )

    def _exchange(self, request: tuple[str, Callable[..., Any], Sequence[Any]]) -> tuple[Any, Any]:
        if self._process is None:
            self._process = start_told([sys.executable, "-P", "-m", __name__], dict(os.environ))
        assert self._process.stdin is not None and self._process.stdout is not None
        pickle.dump(request, self._process.stdin)
        self._process.stdin.flush()
        answer: tuple[Any, Any] = pickle.load(self._process.stdout)
        return answer

    def close(self) -> None:
        """Let the process end, which it does when its input is closed."""
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()
            self._process.wait()
            self._process = None


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Do what is requested until the requests end."""
    while True:
        try:
            task, work, arguments = pickle.load(requests)
        except EOFError:
            return
        answer: tuple[Any, Exception | None]
        try:
            answer = work(*arguments), None
        except Exception as error:  # whoever requested it raises it
            answer = None, error if _can_be_sent(error) else TestbedError(f"{task}: {error!r}")
        pickle.dump(answer, answers)
        answers.flush()


def _can_be_sent(error: Exception) -> bool:
    try:
        pickle.load(io.BytesIO(pickle.dumps(error)))
    except Exception:
        return False
    return True


if __name__ == "__main__":
    serve(os.fdopen(FROM_PARENT, "rb"), os.fdopen(TO_PARENT, "wb"))
