"""A trial whose set-up takes longer, and draws random numbers."""

from __future__ import annotations

import os
import runpy
import time
from collections.abc import Callable

from testbed.scenario.video_content import write_site
from testbed.traffic.video import server
from testbed.trial import build, session

LONGER_S = 0.2123
DRAWS = 3000


def slowly(step: Callable[..., None]) -> Callable[..., None]:
    """A step of the set-up that takes longer."""

    def slow(*args: object) -> None:
        step(*args)
        time.sleep(LONGER_S)
        for _ in range(DRAWS):
            os.urandom(16)

    return slow


if __name__ == "__main__":
    vars(session)["apply"] = slowly(build.apply)
    vars(server)["write_site"] = slowly(write_site)
    server.VideoServer.wait_until_ready = slowly(  # type: ignore[method-assign]
        server.VideoServer.wait_until_ready
    )
    runpy.run_module("testbed.engines.inside", run_name="__main__")
