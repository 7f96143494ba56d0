"""A link by radio: air times and chances, whose turn it is, its plan, and what may not be asked."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.report.network_drawing import drawing
from analysis.verdict.checks import Grade
from analysis.verdict.links import radio
from testbed.errors import UsageError
from testbed.host.engine import HostEngine
from testbed.machine.process import run
from testbed.plan.check import validate
from testbed.plan.plan import make_plan
from testbed.scenario.model import Scenario
from testbed.scenario.network import Direction, Queue, Radio
from testbed.trial.parts.part import PlannedTrial
from testbed.trial.parts.radio import MEDIUM, RadioLink
from tests.obeyed import obeyed
from tests.scenarios import access, with_link
from tests.sealing import file_in
from tests.unit.test_graph import graph
from tests.unit.test_graph import scenario as graph_scenario

# IEEE 802.11-2016, table 19-23: the signal that a receiver has to understand, MCS by MCS, 20 MHz
SENSITIVITY_DBM = (-82, -79, -77, -74, -70, -66, -65, -64)
AIFS_US, SLOT_US, MEAN_SLOTS = 37, 9, 7.5


def rates(signal_dbm: float, size: int = 1534) -> list[dict[str, float]]:
    found: list[dict[str, float]] = json.loads(
        run((str(MEDIUM), "rates", f"{signal_dbm:g}", str(size))).stdout
    )
    return found


def test_air_times_are_the_standards() -> None:
    """36 µs of preamble, symbols of 4 µs, 6 µs after it; SIFS; an ACK at 6, 12 or 24 Mbit/s."""
    table = rates(-40)
    # 16 + 8 × 1538 + 6 bits in symbols of 26 and of 260
    assert table[0]["air_us"] == 36 + 475 * 4 + 6
    assert table[7]["air_us"] == 36 + 48 * 4 + 6
    # 16 + 8 × 14 + 6 bits in symbols of 24 and of 96
    assert table[0]["exchange_us"] == table[0]["air_us"] + 10 + 20 + 6 * 4 + 6
    assert table[7]["exchange_us"] == table[7]["air_us"] + 10 + 20 + 2 * 4 + 6


def test_a_receiver_is_as_good_as_the_standard_asks_for() -> None:
    for mcs, signal_dbm in enumerate(SENSITIVITY_DBM):
        assert rates(signal_dbm + 3)[mcs]["chance"] > 0.9
        assert rates(signal_dbm - 3)[mcs]["chance"] < 0.1


def test_chances_fall_with_the_signal_the_rate_and_the_length() -> None:
    for signal_dbm in range(-82, -56):
        chances = [row["chance"] for row in rates(signal_dbm)]
        assert chances == sorted(chances, reverse=True)
        better = [row["chance"] for row in rates(signal_dbm + 1)]
        assert all(one <= other for one, other in zip(chances, better, strict=True))
    assert rates(-80, 100)[1]["chance"] > rates(-80, 1500)[1]["chance"]


Turns = Callable[..., tuple[list[list[int]], float]]


@pytest.fixture(scope="module")
def turns(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Turns:
    """The medium's turns, without a kernel: counts of each sender, and the others' share."""
    program = tmp_path_factory.mktemp("medium") / "medium"
    source = root / "testbed" / "trial" / "medium"
    files = (root / "tests" / "medium.c", source / "access.c", source / "phy.c")
    words = ("-O2", "-Wall", "-Wextra", "-Werror", f"-I{source}", "-o", program, *files, "-lm")
    run(("gcc", *map(str, words)))

    def counted(
        *, seed: int = 1, signal_dbm: int = -40, busy: float = 0, senders: int = 1, joined: int = 0
    ) -> tuple[list[list[int]], float]:
        words = (seed, signal_dbm, busy, 20, senders, 1534, joined)
        *lines, share = run((str(program), *map(str, words))).stdout.splitlines()
        return [[int(number) for number in line.split()] for line in lines], float(share)

    return counted


def test_one_sender_takes_as_long_as_the_standard_says(turns: Turns) -> None:
    ((came, lost, exchanges, collisions),), others = turns()
    assert (lost, collisions, others) == (0, 0, 0)
    mean_us = AIFS_US + MEAN_SLOTS * SLOT_US + rates(-40)[7]["exchange_us"]
    assert came == exchanges == pytest.approx(20e6 / mean_us, rel=0.01)


def test_frames_that_may_travel_together_save_preambles_and_turns(turns: Turns) -> None:
    ((alone, *_),), _ = turns()
    ((together, _, exchanges, _),), _ = turns(joined=1)
    fitting = int((4000 - 42) / (1544 * 8 / 65))  # into 4 ms of air, with preamble
    assert together / exchanges == pytest.approx(fitting, abs=0.1)
    assert 1.5 * alone < together < 2.2 * alone


def test_two_senders_share_and_collide(turns: Turns) -> None:
    (one, other), _ = turns(senders=2)
    assert one[0] == pytest.approx(other[0], rel=0.05)
    assert one[3] == other[3]  # a collision is both's
    # Bianchi's two saturated stations: 2 / (window + 1) = 1/8.5, less as windows double
    assert 0.08 < one[3] / one[2] < 0.12


@pytest.mark.parametrize("busy", [0.2, 0.5, 0.8])
def test_other_stations_take_their_share(turns: Turns, busy: float) -> None:
    ((came, *_),), others = turns(busy=busy)
    ((alone, *_),), _ = turns()
    assert others == pytest.approx(busy, abs=0.02)
    assert came < (1 - busy) * alone


def test_a_weak_signal_loses_for_good(turns: Turns) -> None:
    """Four tries at a rate that is too fast by half a decibel or so."""
    ((came, lost, _, _),), _ = turns(signal_dbm=-63)
    chance = rates(-63)[7]["chance"]
    assert 0 < chance < 0.9
    assert lost / (came + lost) == pytest.approx((1 - chance) ** 4, rel=0.1)


def test_the_dice_are_the_seeds(turns: Turns) -> None:
    one, again, other = (turns(seed=seed, busy=0.5, senders=2) for seed in (1, 1, 2))
    assert one == again != other


def test_the_plan() -> None:
    plan = make_plan(access("wifi-congested"))
    assert plan.radio is not None
    assert [end.name for end in plan.radio.ends] == ["ap-wlan1", "station-wlan0"]
    assert {"ap", "station"} not in [{veth.node1, veth.node2} for veth in plan.veths]
    assert plan.radio.medium[3:5] == ("-80", "0.5")
    other = make_plan(access("wifi-congested", seed=2))
    assert other.radio and other.radio.medium[2] != plan.radio.medium[2]
    assert make_plan(access("ethernet")).radio is None


def test_the_host_says_that_it_cannot() -> None:
    needs = [need for need in make_plan(access("wifi-weak")).needs if need.kind == "radio"]
    (missing,) = HostEngine().missing(needs)
    assert str(missing) == "radio mac80211_hwsim"
    assert "virtual time" in missing.remedy


def with_radio(where: str = "ap-station", **settings: Any) -> Scenario:
    plain = with_link(access("ethernet"), where, delay_ms=0)
    return with_link(plain, where, **{"radio": Radio(-60), **settings})


def with_radio_one_way() -> Scenario:
    scenario = with_radio()
    *others, last = scenario.network.links
    links = (*others, dataclasses.replace(last, reverse=Direction()))
    return dataclasses.replace(scenario, network=dataclasses.replace(scenario.network, links=links))


def with_two_radios() -> Scenario:
    """One of a network without a name, whose second router has a station, too."""
    air = Direction(radio=Radio(-60))
    made = graph("a b r=router", ("r-a", air), ("r-b", air))
    return graph_scenario(made, "a-b")


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (with_radio(radio=Radio(-83)), "radio.signal_dbm: -83 is not between -82 and -20"),
        (with_radio(radio=Radio(-60, busy=0.95)), "radio.busy: 0.95 is not between 0 and 0.9"),
        (with_radio(delay_ms=1.0), "radio: its delay, rate and losses are the radio's own"),
        (with_radio(rate_mbit=1.0), "radio: its delay, rate and losses are the radio's own"),
        (with_radio(queue=Queue("codel", limit_packets=9)), "radio: its queue is a pfifo"),
        (with_radio(queue=Queue("pfifo", limit_bytes=9000)), "radio: its queue is a pfifo"),
        (
            with_radio("server-isp"),
            "links[0].forward.radio: a radio link is from a router to a host",
        ),
        (with_radio_one_way(), "links[2].forward.radio: a radio link is the same in both"),
        (with_two_radios(), "network.links: 2 radio links; at most one"),
    ],
)
def test_faults(scenario: Scenario, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(scenario)
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [Grade.VALID, Grade.VALID]),
        ({"joined": False}, [Grade.INVALID, Grade.VALID]),
        ({"signal_dbm": -70}, [Grade.INVALID, Grade.VALID]),
        ({"seconds": 12.0}, [Grade.VALID, Grade.SUSPECT]),
        ({"seconds": 100.0}, [Grade.VALID, Grade.INVALID]),
    ],
)
def test_what_the_medium_counted_is_judged(
    tmp_path: Path, changes: dict[str, object], expected: list[Grade]
) -> None:
    report: dict[str, object] = {"signal_dbm": -80, "joined": True, "seconds": 10.0, "radios": []}
    report["others"] = {"air_s": 4.9}
    path = tmp_path / "samples" / "radio.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**report, **changes}))
    evidence: Any = SimpleNamespace(
        trial=SimpleNamespace(scenario=access("wifi-congested"), file=file_in(tmp_path)),
        virtual_time=True,
    )
    assert [check.verdict for check in radio(evidence)] == expected
    path.unlink()
    assert [check.verdict for check in radio(evidence)] == [Grade.SUSPECT] * 2


def test_how_it_is_shown() -> None:
    drawn = drawing([access("wifi-congested")])
    assert ">-80 dBm<" in drawn
    assert ">50 % others'<" in drawn or ">50 % others&#x27;<" in drawn


def test_a_medium_that_cannot_start_says_why(tmp_path: Path) -> None:
    """Outside of the guest there are no radios of this kernel's."""
    scenario = access("wifi-weak")
    plan = make_plan(scenario)
    assert plan.radio is not None
    radio = dataclasses.replace(plan.radio, medium=("testbed-medium", "nonsense"))
    plan = dataclasses.replace(plan, radio=radio)
    trial = PlannedTrial(scenario, plan, tmp_path, virtual_time=True)
    link = RadioLink(trial)
    link.place()
    answers = obeyed(tmp_path, trial.programme)
    fault = trial.programme.fault(answers, tmp_path)
    said = (tmp_path / "radio/medium-errors").read_text().strip().splitlines()[-1]
    assert fault and said
    assert fault.message == f"the medium did not start: ended with status 2: {said}"
    link.clean_up(tmp_path)
    assert not (tmp_path / "radio").exists()
