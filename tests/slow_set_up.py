"""A trial whose set-up takes longer, and draws random numbers."""

from __future__ import annotations

import os
import runpy
import time
from collections.abc import Callable

from testbed.scenario.video import write_site
from testbed.traffic.video import video_flow
from testbed.trial import build, session

LONGER_S = 0.0123  # the network: less than the processes' grid of 0.1 s
LOADING_S = 0.2123  # a video's programs: more than that
DRAWS = 3000


def slowly(step: Callable[..., None], longer_s: float) -> Callable[..., None]:
    """A step of the set-up that takes longer."""

    def slow(*args: object) -> None:
        time.sleep(longer_s)
        step(*args)
        for _ in range(DRAWS):
            os.urandom(16)

    return slow


if __name__ == "__main__":
    vars(session)["apply"] = slowly(build.apply, LONGER_S)
    vars(video_flow)["write_site"] = slowly(write_site, LOADING_S)
    video_flow.VideoServer.wait_until_ready = slowly(  # type: ignore[method-assign]
        video_flow.VideoServer.wait_until_ready, LOADING_S
    )
    runpy.run_module("testbed.guest.main", run_name="__main__")
