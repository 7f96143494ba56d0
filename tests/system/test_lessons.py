"""The lessons: their commands run, and their sentences say what the captures show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.watch.excerpt import watched_trial
from analysis.watch.journeys import LOST_ON_WAY, UNSEEN, Booleans, Integers
from analysis.watch.reasons import reasons
from experiments.command import main
from testbed.cli.parser import build_parser
from testbed.store.names import FIGURES, SOCKET_SAMPLES, WATCH_PAGE
from testbed.store.reading import Trial, open_trial
from tests.lesson_pictures import LESSONS, NAMES, moment, ran, text_of

AGAIN, ACROSS = 15, 3  # Wireshark's four marks of data that is sent again; the receiver's capture


@dataclass
class Moved:
    """A lesson's trial: packets with their times in seconds, and samples of its sockets."""

    trial: Trial

    def __post_init__(self) -> None:
        watched = watched_trial(self.trial)
        self.journeys = watched.journeys
        self.paths = watched.journeys.paths
        self.columns = watched.journeys.columns
        times = watched.journeys.times_ns
        self.times = np.where(times == UNSEEN, np.nan, (times - watched.zero_ns) / 1e9)
        self.gone = (self.columns["gone_ns"] - watched.zero_ns) / 1e9
        self.lost: Booleans = self.columns["fate"] == LOST_ON_WAY
        self.samples = pd.read_csv(self.trial.path / SOCKET_SAMPLES.file)

    def data(self, flow: str) -> Booleans:
        """Return a mask of a flow's data."""
        own = [n for n, p in enumerate(self.paths) if p.is_data and p.flow.name == flow]
        mask: Booleans = np.isin(self.columns["path"], own) & (self.columns["payload"] > 0)
        return mask

    def again(self) -> Integers:
        """Return the places of data that is sent again."""
        return np.flatnonzero(self.data("tcp") & (self.columns["marks"] & AGAIN > 0))

    def mbit(self, flow: str, second: int) -> float:
        """Return what arrives in a second."""
        arrived = self.times[:, ACROSS]
        inside = self.data(flow) & (arrived >= second) & (arrived < second + 1)
        return float(self.columns["length"][inside].sum() * 8e-6)


def slow_start(moved: Moved) -> Iterator[str]:
    sent = moved.times[moved.data("tcp"), 0]
    rounds = [int(((sent >= at) & (sent < at + 0.06)).sum()) for at in (0.06, 0.12, 0.18)]
    yield f"so that {rounds[0]}, {rounds[1]} and {rounds[2]} segments leave"
    first = float(moved.gone[moved.lost].min())
    repair = float(moved.times[moved.again()[0], 0])
    later_ms = (repair - first) * 1e3
    yield f"full at {first:.3f} s, but the sender learns of the first drop {later_ms:.0f} ms"
    yield f"{moved.lost.sum()} segments are dropped"


def fast_retransmit(moved: Moved) -> Iterator[str]:
    repairs = moved.times[moved.again(), 0]
    assert (int(moved.lost.sum()), len(repairs)) == (4, 4)
    yield f"With the third of them, at {repairs[0]:.3f} s"
    yield f"all four are sent again within {(repairs[-1] - repairs[0]) * 1e3:.0f} ms"
    (_, sentence), *_ = reasons(moved.journeys, {})
    assert sentence.startswith("Duplicate ACK 3: ") and "are SACKed" in sentence


def timeout(moved: Moved) -> Iterator[str]:
    down = moved.times[:, 0][moved.data("tcp")]
    probe, *fired = np.unique(down[(down > 1.2) & (down < 3.45)]).tolist()
    yield f"The probe at {probe:.3f} s"
    yield "at {:.3f}, {:.3f} and {:.3f} s".format(*fired)
    assert (fired[2] - fired[1]) / (fired[1] - fired[0]) == pytest.approx(2, abs=0.06)
    yield f"for {fired[2] - 2.5:.2f} s more"


def nagle(moved: Moved) -> Iterator[str]:
    halves = np.flatnonzero(moved.data("app"))
    assert (moved.columns["payload"][halves] == 100).all()
    arrived = float(moved.times[halves[2], ACROSS])
    acks = (moved.columns["path"] == 1) & (moved.columns["ack"] == 301)
    yield f"the delayed ACK takes {(np.nanmin(moved.times[acks, 0]) - arrived) * 1e3:.0f} ms"
    printed = (moved.trial.path / "flows" / "app.client.out").read_text().splitlines()
    yield f"So an answer takes {float(printed[-1].split()[2]):.0f} ms"


def bufferbloat(moved: Moved) -> Iterator[str]:
    assert not moved.lost.any()
    at_7 = moved.samples[moved.samples["time_s"] >= 7.0].iloc[0]
    yield f"there are {at_7['cwnd']:.0f} segments in its window"
    call = moved.data("call")
    delays = (moved.times[call, ACROSS] - moved.times[call, 0]) * 1e3
    yield f"takes {delays[0]:.0f} ms in the beginning, and {np.nanmax(delays):.0f} ms in the end"


def codel(moved: Moved) -> Iterator[str]:
    gaps = np.diff(np.sort(moved.gone[moved.lost]))[:4] * 1e3
    yield "The gaps are {:.0f}, {:.0f}, {:.0f} and {:.0f} ms, not 100, 71, 58 and 50".format(*gaps)


def convergence(moved: Moved) -> Iterator[str]:
    first, last = ([moved.mbit(flow, at) for flow in ("first", "second")] for at in (8, 19))
    yield f"At second 8 they have {first[0]:.1f} and {first[1]:.1f} Mbit/s"
    yield f"and at second 19 {last[0]:.1f} and {last[1]:.1f}."
    assert moved.mbit("first", 3) > 9.9


def bbr(moved: Moved) -> Iterator[str]:
    cruising = moved.samples[(moved.samples["time_s"] > 3) & (moved.samples["time_s"] < 4)]
    rates = cruising["pacing_mbps"]
    yield f"{rates.max():.1f} Mbit/s, and then 25 % slower, {rates.min():.1f}"
    assert rates.max() / rates.min() == pytest.approx(5 / 3, abs=0.01)
    few = moved.samples[(moved.samples["cwnd"] == 4) & (moved.samples["time_s"] > 1)]["time_s"]
    yield f"At {few.min():.2f} s it has seen no shorter round trip for ten seconds"
    yield f"for {few.max() - few.min():.1f} s it lets only 4 segments"


def ecn(moved: Moved) -> Iterator[str]:
    marked = moved.columns["ce"] > 0
    yield f"{marked.sum()} packets leave it with CE, the first of which entered the network at"
    yield f"at {np.nanmin(moved.times[marked, 0]):.3f} s"
    cut = moved.samples[moved.samples["ca_state"] == "cwr"].iloc[0]
    yield f"at {cut['time_s']:.2f} s the sender's window is multiplied by"
    assert cut["ssthresh"] / cut["cwnd"] == pytest.approx(0.7, abs=0.01)
    assert not moved.lost.any() and not len(moved.again())


def head_of_line(moved: Moved) -> Iterator[str]:
    lost = [moved.paths[moved.columns["path"][i]].flow.name for i in np.flatnonzero(moved.lost)]
    assert lost == ["h2", "h3"]
    printed = ((moved.trial.path / "flows" / f"{flow}.client.out").read_text() for flow in lost)
    over_tcp, over_quic = (sorted(map(int, re.findall(r": (\d+) ms", text))) for text in printed)
    assert len(over_tcp) == len(over_quic) == 4
    yield f"all four streams get no data for {over_tcp[0]} to {over_tcp[-1]} ms"
    yield f"one stream, which gets no data for {over_quic[-1]} ms"
    yield f"no other waits for more than {over_quic[-2]} ms"


SENTENCES = {
    "slow-start": slow_start,
    "fast-retransmit": fast_retransmit,
    "timeout": timeout,
    "nagle": nagle,
    "bufferbloat": bufferbloat,
    "codel": codel,
    "convergence": convergence,
    "bbr": bbr,
    "ecn": ecn,
    "head-of-line": head_of_line,
}


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("name", NAMES)
def test_what_a_lesson_says_is_what_happens(name: str, tmp_path: Path) -> None:
    trial = ran(name, tmp_path)
    for phrase in SENTENCES[name](Moved(open_trial(trial))):
        assert phrase in text_of(name)
    assert (trial / FIGURES / WATCH_PAGE).stat().st_size < 1_000_000


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_has_a_picture_a_moment_and_a_question(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(LESSONS)
    text = text_of(name)
    assert (LESSONS / f"{name}.png").stat().st_size < 120_000 and f"({name}.png)" in text
    assert moment(name).startswith("#t=") and f"({name}.md)" in text_of("README")
    commands = re.findall(r"^    testbed (.+)$", text, re.M)
    assert len(commands) == 3 and re.search(r"^\*\*[^*]+\?\*\*$", text, re.M)
    for command in commands:
        words = shlex.split(command)
        if words[0] == "run":
            assert main(["plan", *words[1:]]) == 0
        else:
            build_parser().parse_args(words)
