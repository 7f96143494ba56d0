"""What `testbed run incast` says of a request: it is complete with its last flow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from experiments import incast
from experiments.incast_results import draw, requests_table
from testbed.errors import UsageError


def rows(trial: str, completions_s: list[float | None]) -> pd.DataFrame:
    """Four flows of 2500 bytes each, the last of which starts 1 ms late."""
    return pd.DataFrame(
        {
            "trial": trial,
            "verdict": "valid",
            "seed": 1 if trial == "a" else 2,
            "variant": "cubic",
            "axis_queue": "droptail",
            "axis_senders": 4.0,
            "axis_request_bytes": 10_000.0,
            "flow": ["s1", "s2", "s3", "s4"],
            "start_s": [0.0, 0.0, 0.0, 0.001],
            "completion_s": pd.Series(completions_s, dtype=float),
            "retransmitted": [0, 1, 0, 2],
            "timeouts_seen": [0, 0, 0, 1],
        }
    )


def test_a_request_is_complete_with_its_last_flow() -> None:
    good = pd.concat(
        [rows("a", [0.002, 0.003, 0.004, 0.009]), rows("b", [0.002, 0.003, 0.1, None])]
    )
    results = cast(
        Any,
        SimpleNamespace(
            good=good.reset_index(drop=True),
            varied=lambda _rows: ["queue", "senders"],
            engine="guest",
            trials=[],
        ),
    )
    (line,) = requests_table(results).rows
    # 10 ms from the first start, 8 Mbit/s; the second trial's request is not complete
    assert line[:3] == ("cubic", "droptail", "4")
    assert float(line[3]) == 10 and float(line[5]) == 8
    assert line[-2:] == ("1", "2")
    (figure,) = draw(results)
    assert figure.stem == "incast"
    assert figure.title == "A request to 4 senders takes 10 ms with Cubic behind droptail."
    assert figure.foot.startswith("n = 2 seeds per point")


def test_the_parts_of_a_request_are_all_of_it() -> None:
    for scenario in incast.EXPERIMENT.scenarios({}, 1, quick=False):
        assert sum(flow.bytes or 0 for flow in scenario.flows) >= 1e6
        assert {flow.dst for flow in scenario.flows} == {"receiver"}


@pytest.mark.parametrize(("axis", "value"), [("queue", "codle"), ("senders", "0")])
def test_a_request_that_cannot_be_is_refused_by_its_axis(axis: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^{axis}: "):
        incast.EXPERIMENT.scenarios({axis: [value]}, 1, quick=False)
