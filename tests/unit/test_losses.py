"""Losses by chance: the dice thrown before a trial, and the kernel's program that follows them."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.plan.check import validate
from testbed.plan.ebpf_plans import LossPlan, loss_plans
from testbed.plan.network import build_network
from testbed.plan.plan import make_plan
from testbed.runner import bpf
from testbed.scenario import losses
from testbed.scenario.losses import GilbertElliott, Loss, LossEvents, Run, throw
from testbed.scenario.network import Link
from testbed.scenario.reading import read_scenario
from testbed.store.names import DROPS_FILE
from testbed.store.records import Record, Status
from testbed.trial.parts.losses import REPORTED, STATE, DeliberateLosses, listing, rules_of
from testbed.trial.parts.part import PlannedTrial
from tests.loss_model import LossModel
from tests.obeyed import made_up
from tests.pcap_writer import Endpoints, tcp
from tests.program import Program, Table, loaded, loads_programs
from tests.scenarios import dumbbell, router, with_loss

EVENTS = Loss(LossEvents(0.01, 4))
CHANNEL = Loss(gilbert_elliott=GilbertElliott(0.01, 0.2, 0.7, 0.001))


@pytest.mark.parametrize("loss", [EVENTS, CHANNEL], ids=["events", "channel"])
def test_the_seed_alone_decides(loss: Loss) -> None:
    one, again, other = (
        throw(loss, dice, 100_000) for dice in ("1 a loss", "1 a loss", "2 a loss")
    )
    assert one == again != other
    longer = throw(loss, "1 a loss", 200_000)
    assert longer[: len(one) - 1] == one[:-1]  # a longer trial begins as a shorter one does


@pytest.mark.parametrize("rate", [0.0005, 0.05, 1.0])
def test_events_begin_with_their_probability(rate: float) -> None:
    """A gap and the packet that begins the event are 1 / rate packets in the mean."""
    runs = throw(Loss(LossEvents(rate, 3)), "dice", round(20_000 / rate))
    mean = sum(run.passing + 1 for run in runs) / len(runs)
    assert mean == pytest.approx(1 / rate, rel=4 / len(runs) ** 0.5)
    assert {run.losing for run in runs} == {3}


def test_even_events_are_equally_far_apart() -> None:
    """Only where the first one begins is chance; on average they are as frequent."""
    first, second = (throw(Loss(LossEvents(0.01, 3, even=True)), dice, 10_000) for dice in "ab")
    assert {run.passing for run in (*first[1:], *second[1:])} == {99}
    assert first[0].passing != second[0].passing
    assert all(0 <= runs[0].passing <= 99 for runs in (first, second))


def test_runs_reach_to_the_last_packet_and_not_much_further() -> None:
    spaced = Loss(LossEvents(0.01, 4, spacing=5))
    for loss, length in ((EVENTS, 4), (spaced, 16)):
        runs = throw(loss, "dice", 10_000)
        spans = [run.passing + length for run in runs]
        assert sum(spans[:-1]) < 10_000 <= sum(spans)


@pytest.mark.parametrize(
    "channel",
    [
        GilbertElliott(0.01, 0.2),
        GilbertElliott(0.01, 0.2, 0.7, 0.001),
        GilbertElliott(0.3, 1.0, 0.5),
        GilbertElliott(1.0, 1.0, 1.0),
    ],
)
def test_a_channel_loses_at_its_rate(channel: GilbertElliott) -> None:
    packets = 400_000
    runs = throw(Loss(gilbert_elliott=channel), "dice", packets)
    lost = sum(run.losing for run in runs)
    assert sum(run.passing + run.losing for run in runs) >= packets
    assert lost / packets == pytest.approx(channel.loss_rate, rel=0.03)


def test_bursts_of_a_channel_last_as_long_as_its_bad_state() -> None:
    runs = throw(Loss(gilbert_elliott=GilbertElliott(0.001, 0.1)), "dice", 2_000_000)
    mean = sum(run.losing for run in runs) / len(runs)
    assert mean == pytest.approx(10, rel=0.1)
    assert all(run.passing for run in runs[1:])
    passing = sum(run.passing for run in runs) / len(runs)
    assert passing == pytest.approx(1000, rel=0.1)


def test_a_channel_that_is_never_bad_still_has_runs_to_the_end() -> None:
    assert throw(Loss(gilbert_elliott=GilbertElliott(1e-12, 1.0)), "dice", 1000)[0].passing >= 999


def test_what_is_thrown_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "MAX_RUNS", 50)
    monkeypatch.setattr(losses, "MAX_LOSSES", 70)
    assert len(throw(EVENTS, "dice", 10**6)) == 50
    assert len(throw(CHANNEL, "dice", 10**6)) <= 50
    (run,) = throw(Loss(gilbert_elliott=GilbertElliott(1.0, 1e-12)), "dice", 10**6)
    assert run.losing == 70


def test_the_dropper_is_on_the_receivers_access_link() -> None:
    scenario = with_loss(dumbbell(), EVENTS)
    (plan,) = make_plan(scenario).losses
    assert (plan.node, plan.interface) == ("right", "right-eth1")
    assert plan.dice == "1 one loss"
    # 5 s at 10 Mbit/s are 4128 frames of 1514 bytes, and there are a few more
    assert 4128 * 1.1 <= plan.packets <= 4129 * 1.1 + 1001


def test_without_a_shaped_way_the_dice_are_thrown_for_a_fast_machine() -> None:
    scenario = with_loss(router(), EVENTS)
    links = tuple(Link(link.ends, ports=link.ports) for link in scenario.network.links)
    bare = build_network(dataclasses.replace(scenario.network, links=links))
    (plan,) = loss_plans(scenario, bare, make_plan(scenario).flows)
    assert plan.packets > 10**7


def test_two_flows_share_an_interface() -> None:
    scenario = with_loss(router(cbr_mbit=0.1), EVENTS)
    second = dataclasses.replace(scenario.flows[0], name="second", src="sender2")
    plan = make_plan(dataclasses.replace(scenario, flows=(scenario.flows[0], second)))
    assert len({each.dice for each in plan.losses}) == 2
    clsacts = [c for c in plan.setup if c.argv[-1] == "clsact" and c.node == "router"]
    assert len(clsacts) == 1


def test_flows_that_name_the_same_dice_share_them() -> None:
    scenario = with_loss(router(cbr_mbit=0.1), dataclasses.replace(EVENTS, dice="both"))
    second = dataclasses.replace(scenario.flows[0], name="second", src="sender2")
    both = make_plan(dataclasses.replace(scenario, flows=(scenario.flows[0], second))).losses
    one, other = (throw(each.loss, each.dice, 9000) for each in both)
    assert one == other


def test_losses_travel_as_json() -> None:
    for loss in (EVENTS, CHANNEL):
        scenario = with_loss(router(), loss)
        assert read_scenario(scenario.to_json()) == scenario
        validate(scenario)
    assert with_loss(router(), EVENTS).name != router().name


@pytest.mark.parametrize(
    ("loss", "changes", "said"),
    [
        (Loss(), {}, "flows[0].loss: give one of events and gilbert_elliott"),
        (Loss(EVENTS.events, CHANNEL.gilbert_elliott), {}, "flows[0].loss: give one of"),
        (Loss(LossEvents(0.0)), {}, "flows[0].loss.events.rate: 0 is not a probability"),
        (Loss(LossEvents(1.5)), {}, "flows[0].loss.events.rate: 1.5"),
        (Loss(LossEvents(0.1, 0)), {}, "flows[0].loss.events.losses: 0 is not between"),
        (Loss(LossEvents(0.1, 1, 0)), {}, "flows[0].loss.events.spacing: 0 is not between"),
        (Loss(None, GilbertElliott(0.0, 1)), {}, "gilbert_elliott.to_bad: 0 is no"),
        (Loss(None, GilbertElliott(0.1, 2)), {}, "gilbert_elliott.to_good: 2 is no"),
        (Loss(None, GilbertElliott(0.1, 1, 0.0)), {}, "gilbert_elliott.loss_in_bad: 0 is no"),
        (
            Loss(None, GilbertElliott(0.1, 1, 0.5, 0.5)),
            {},
            "loss_in_good: 0.5 is not below loss_in_bad, 0.5",
        ),
        (Loss(LossEvents(0.1), None, False), {}, "one_at_a_time: needs spare_retransmissions"),
        (EVENTS, {"parallel": 2}, "flows[0].loss: which of 2 parallel connections"),
        (EVENTS, {"drops": (3,)}, "flows[0].loss: the flow has drops already"),
        (EVENTS, {"dst": "router"}, "flows[0].loss: no router between sender1 and router"),
    ],
)
def test_faults_of_losses(loss: Loss, changes: dict[str, object], said: str) -> None:
    from testbed.errors import UsageError

    with pytest.raises(UsageError) as caught:
        validate(with_loss(router(), loss, **changes))
    assert said in caught.value.message


ENDS = Endpoints("10.0.1.2", 40001, "192.168.0.2", 5201)
HERE = ("tcp", "right", "right-eth1", ENDS.src, ENDS.src_port, ENDS.dst, ENDS.dst_port)
LOSSES = [
    Loss(LossEvents(0.1, count, spacing, once), spare_retransmissions=spare)
    for count, spacing, (once, spare) in itertools.product(
        (1, 3), (1, 4), ((True, True), (False, True), (False, False))
    )
]


class Dropper(Program):
    """The program of some losses, with its counters."""

    def __init__(self, loss: Loss, runs: tuple[Run, ...]) -> None:
        pairs = [number for run in runs for number in (run.passing, run.losing)]
        tables = [
            Table(4 * len(STATE), bytes(4 * len(STATE))),
            Table(8, struct.pack(f"={len(pairs)}I", *pairs)),
        ]
        super().__init__(
            listing(
                LossPlan(*HERE, loss, "dice", 0), rules_of(LossPlan(*HERE, loss, "dice", 0)), 0, 1
            ),
            tables,
        )

    def loses(self, seq: int, size: int, ends: Endpoints = ENDS) -> bool:
        said = self.run(tcp(ends, 0, seq=seq, ack=1, payload=size, flags="PA").data)
        assert said in (bpf.PASS, bpf.DROP)
        return said == bpf.DROP

    @property
    def counts(self) -> dict[str, int]:
        found = struct.unpack(f"={len(STATE)}I", self.tables[0].first())
        return dict(zip(STATE[: len(REPORTED)], found, strict=False))


@pytest.fixture
def dropper(request: pytest.FixtureRequest) -> Iterator[tuple[Dropper, LossModel]]:
    """The program and the reference, with the same losses."""
    loss, runs = request.param
    for made in loaded(lambda: Dropper(loss, runs)):
        yield made, LossModel(loss, runs)


class Sender:
    """Sends as one might: new segments, old ones, some of them put together, and what was lost."""

    def __init__(self, isn: int) -> None:
        self._dice = random.Random(isn)
        self._at = isn
        self._sent: list[tuple[int, int]] = []
        self.lost: list[tuple[int, int]] = []

    def next(self) -> tuple[int, int]:
        """A segment's sequence number and size."""
        kind = self._dice.random()
        if self.lost and kind < 0.15:
            return self.lost.pop(self._dice.randrange(len(self.lost)))
        if len(self._sent) < 2 or kind < 0.8:
            size = self._dice.choice((1, 100, 1448))
            self._sent.append((self._at, size))
            self._at = (self._at + size) % 2**32
            return self._sent[-1]
        if kind < 0.85:
            (start, size), (_, more) = self._sent[-2:]
            return start, size + more
        return self._dice.choice(self._sent[-20:])


@pytest.mark.parametrize("isn", [1000, 2**32 - 50_000])
@pytest.mark.parametrize(
    "dropper",
    [(loss, throw(loss, "dice", 500)) for loss in LOSSES],
    ids=[str(number) for number in range(len(LOSSES))],
    indirect=True,
)
@loads_programs
def test_the_program_does_what_the_reference_does(
    dropper: tuple[Dropper, LossModel], isn: int
) -> None:
    """Every candidate, over random segments that outlast the runs."""
    program, model = dropper
    sender = Sender(isn)
    for _ in range(5000):
        seq, size = sender.next()
        lost = program.loses(seq, size)
        assert lost == model.loses(seq, size)
        if lost:
            sender.lost.append((seq, size))
        if model.counts["undecided"] > 50:
            break
    assert model.counts["undecided"] > 50
    assert program.counts == model.counts
    assert model.counts["dropped"] > 20


@pytest.mark.parametrize(
    "dropper", [(Loss(LossEvents(0.5, 2, 3)), (Run(2, 2), Run(0, 2)))], indirect=True
)
@loads_programs
def test_one_event_at_a_time_and_then_the_next(dropper: tuple[Dropper, LossModel]) -> None:
    """Segments 3 and 6 are lost; the next event waits until 6 was sent again, and spares 3."""
    program, _ = dropper
    sent = (1, 2, 3, 4, 5, 6, 7, 3, 8, 6, 9, 10, 11, 12, 13)
    lost = [number for number in sent if program.loses(1000 * number, 1000)]
    assert lost == [3, 6, 9, 12]
    assert program.counts == {
        "seen": 15, "segments": 13, "events": 2, "dropped": 4, "undecided": 0
    }  # fmt: skip


@pytest.mark.parametrize(
    "dropper", [(Loss(LossEvents(0.5, 5)), (Run(1, 5), Run(0, 2)))], indirect=True
)
@loads_programs
def test_an_events_losses_are_of_one_window(dropper: tuple[Dropper, LossModel]) -> None:
    """Of five losses three are sent before the first is sent again; the rest is spared."""
    program, _ = dropper
    sent = (1, 2, 3, 4, 2, 5, 6, 3, 4, 7, 8)
    lost = [number for number in sent if program.loses(1000 * number, 1000)]
    assert lost == [2, 3, 4, 7, 8]
    assert program.counts["events"] == 2


@pytest.mark.parametrize("dropper", [(EVENTS, (Run(0, 3),))], indirect=True)
@loads_programs
def test_a_stranger_is_neither_lost_nor_counted(dropper: tuple[Dropper, LossModel]) -> None:
    program, _ = dropper
    stranger = Endpoints(ENDS.src, 40002, ENDS.dst, ENDS.dst_port)
    assert not program.loses(1, 100, stranger) and not program.loses(1, 0)
    assert program.counts["seen"] == 0
    assert program.loses(1, 100)


def test_runs_that_run_out_are_told(tmp_path: Path) -> None:
    """The counters are those that the programme reads at the trial's end."""
    scenario = with_loss(router(), Loss(LossEvents(1.0, 2, one_at_a_time=False)))
    plan = make_plan(scenario)
    losses = dataclasses.replace(plan.losses[0], packets=3)
    trial = PlannedTrial(scenario, dataclasses.replace(plan, losses=(losses,)), tmp_path, False)
    part = DeliberateLosses(trial)
    part.open()
    part.close()
    last = trial.programme.length - 1
    (tmp_path / "samples").mkdir()
    for undecided, said in ((0, ()), (1, ("tcp: its 2 runs of losses had run out: 1 segments",))):
        counts = (5, 5, 2, 4, undecided)
        answers = made_up({last: struct.pack(f"={len(STATE)}I", *counts, *range(7, 14))})
        record = part.describe(Record(Status.OK), answers)
        assert len(record.warnings) == len(said)
        assert all(map(str.startswith, record.warnings, said))
        part.write(tmp_path, answers)
        (written,) = json.loads((tmp_path / DROPS_FILE).read_text()).values()
        interface = written.pop("interface")
        assert interface == losses.interface
        assert written == dict(zip(REPORTED, counts, strict=True))
