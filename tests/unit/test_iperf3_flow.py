"""The commands of an iperf3 flow."""

from __future__ import annotations

import pytest

from testbed.plan.plan import make_plan
from tests.scenarios import router

OPTION = "--rcv-timeout"


@pytest.mark.parametrize(("duration_s", "patience"), [(60, ()), (500, (OPTION, "510000"))])
def test_a_server_is_as_patient_as_its_flow_is_long(
    duration_s: int, patience: tuple[str, ...]
) -> None:
    """By itself it gives up after two minutes without data, which a back-off may take."""
    (flow,) = make_plan(router(duration_s=duration_s)).flows
    words = flow.server.argv
    assert words[words.index(OPTION) :] == patience if patience else OPTION not in words
