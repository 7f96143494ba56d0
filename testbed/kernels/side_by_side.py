"""Many guests at once, whose results come in the order in which they were asked for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
End = TypeVar("End")


def side_by_side(
    items: Sequence[Item],
    work: Callable[[Item, threading.Event], End],
    jobs: int | None,
) -> Iterator[End]:
    """Yield what becomes of each item, `jobs` at once, or one for each core.

    The event is set when nobody waits for the results any more.
    """
    stopped = threading.Event()
    with ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
        try:
            yield from pool.map(lambda item: work(item, stopped), items)
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
