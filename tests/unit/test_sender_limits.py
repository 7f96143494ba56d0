"""What kept a sender from sending more, by the samples of its sockets."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from analysis.trials.limits import SenderLimits, sender_limits
from analysis.trials.packets import Interval
from testbed.store.reading import Trial, open_trial
from tests.trial_writer import ns, write_trial

WHOLE = Interval(ns(0), ns(10))


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return open_trial(write_trial(tmp_path / "trial"))


def samples(*rows: tuple[float, float, str]) -> pd.DataFrame:
    """Return samples: their second, the time limited by the window by then, and what starved."""
    return pd.DataFrame(rows, columns=["time_s", "rwnd_limited_ms", "starved_by"])


def test_shares_of_several_connections_are_the_mean_of_theirs(trial: Trial) -> None:
    of_two = samples((2, 0, ""), (2, 0, "application"), (10, 4000, "send-buffer"), (10, 0, ""))
    assert sender_limits(trial, of_two, WHOLE) == SenderLimits(0.2, 0.25, 0.25)
    of_one = samples((2, 0, ""), (10, 4000, ""))
    assert sender_limits(trial, of_one, WHOLE) == SenderLimits(0.4, 0, 0)


def test_without_samples_nothing_is_known(trial: Trial) -> None:
    assert sender_limits(trial, None, WHOLE) is None
    assert sender_limits(trial, samples((20, 0, "")), WHOLE) is None
