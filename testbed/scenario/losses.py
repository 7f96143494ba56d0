"""Losses by chance on a flow's way: what may be asked for, and the dice that were thrown for it.

All randomness is thrown before the trial: runs of "let so many pass, lose so many" follow from
the scenario's seed and the flow's name alone. What loses the packets only counts.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from testbed.faults import Fault
from testbed.scenario.limits import Range, Text

MAX_RUNS = 1 << 20  # 8 MiB in the kernel
MAX_LOSSES = 1 << 22  # of a channel: some seconds of throwing
MAX_PACKETS = 1 << 29  # a run's and a flow's: the kernel counts in 32 bits with a sign
MIN_LOSS_CHANCE = (
    1e-6  # netem is told hundredths of it, and a series of throws is half as long again
)
_NO_CHANCE = f"is not a probability from {MIN_LOSS_CHANCE:g} to 1"
LossChance = Annotated[float, Range(MIN_LOSS_CHANCE, 1.0, said=_NO_CHANCE)]
SmallChance = Annotated[
    float, Range(MIN_LOSS_CHANCE, 1.0, or_zero=True, said=f"{_NO_CHANCE}, nor 0")
]
LossCount = Annotated[int, Range(1, 10_000)]
LOSS_HINT = 'one packet in 200, each by itself: "loss": {"events": {"rate": 0.005}}'
MAX_LOSS = 0.2  # of a link's packets, in the long run


@dataclass(frozen=True)
class LossEvents:
    """Events that begin by chance, in which one packet is lost or several at a distance."""

    rate: LossChance
    """The probability with which a packet begins an event, and is lost."""
    losses: LossCount = 1
    """The packets that an event loses."""
    spacing: LossCount = 1
    """From one lost packet of an event to the next."""
    one_at_a_time: bool = True
    """An event's losses are of one window: there are no more of them once anything is sent again,
    and the dice rest until the last one was. Without it they go on behind the last loss."""
    even: bool = False
    """Chance says where the first event begins, and the others follow as evenly as models have it:
    so many packets after the one before as `rate` makes it on average."""


@dataclass(frozen=True)
class GilbertElliott:
    """A channel that is good or bad (Gilbert 1960, Elliott 1963)."""

    to_bad: LossChance
    """The probability that a good channel is bad after a packet."""
    to_good: LossChance
    """The probability that a bad channel is good again after a packet."""
    loss_in_bad: LossChance = 1.0
    """The probability that a bad channel loses a packet."""
    loss_in_good: SmallChance = 0.0
    """The probability that a good channel loses a packet."""

    @property
    def loss_rate(self) -> float:
        """The share of packets lost in the long run."""
        bad = self.to_bad / (self.to_bad + self.to_good)
        return bad * self.loss_in_bad + (1 - bad) * self.loss_in_good


@dataclass(frozen=True)
class Loss:
    """Losses on the receiver's access link, by exactly one of the models.

    What counts there, and may be lost, are the flow's segments of new data; if what was sent
    again is not spared, all its segments of data.
    """

    events: LossEvents | None = None
    """Events that begin by chance."""
    gilbert_elliott: GilbertElliott | None = None
    """A channel that is good or bad."""
    spare_retransmissions: bool = True
    """Whether what is sent again always arrives."""
    dice: Annotated[str, Text()] = ""
    """Flows that name the same dice share one series of throws, so that what they differ in is not
    chance; unless given, each flow has its own."""

    @property
    def spacing(self) -> int:
        """The distance from a lost packet of a run to the next one."""
        return self.events.spacing if self.events else 1

    @property
    def one_at_a_time(self) -> bool:
        """True if a run must be repaired before the next one begins."""
        return self.events is not None and self.events.one_at_a_time


@dataclass(frozen=True)
class Run:
    """A number of packets that pass, and of packets that are then lost."""

    passing: int
    losing: int


def loss_faults(loss: Loss) -> Iterator[Fault]:
    """Yield what the models of a flow's losses cannot be together."""
    if (loss.events is None) == (loss.gilbert_elliott is None):
        yield Fault((), "give one of events and gilbert_elliott", LOSS_HINT)
    if loss.events and loss.events.one_at_a_time and not loss.spare_retransmissions:
        # where the receiver had the data, it is never sent again, and the event never over
        yield Fault(("events", "one_at_a_time"), "needs spare_retransmissions")
    if loss.gilbert_elliott is not None:
        yield from (f.inside("gilbert_elliott") for f in channel_faults(loss.gilbert_elliott))


def link_loss_faults(channel: GilbertElliott) -> Iterator[Fault]:
    """Yield what is wrong with the losses of a link, which handshakes cross, too."""
    yield from channel_faults(channel)
    if channel.loss_rate > MAX_LOSS:
        message = (
            f"loses {channel.loss_rate:.0%} of all packets: with more than {MAX_LOSS:.0%} hardly "
            "any connection opens"
        )
        yield Fault((), message)


def channel_faults(channel: GilbertElliott) -> Iterator[Fault]:
    """Yield a channel that loses more where it is good."""
    if channel.loss_in_good >= channel.loss_in_bad:
        yield Fault(
            ("loss_in_good",),
            f"{channel.loss_in_good:g} is not below loss_in_bad, {channel.loss_in_bad:g}",
        )


def throw(loss: Loss, dice: str, packets: int) -> tuple[Run, ...]:
    """Return the runs for that many packets, at most MAX_RUNS; `dice` is their seed."""
    generator = random.Random(dice)
    if loss.events is not None:
        runs = _events(loss.events, generator, packets)
    else:
        assert loss.gilbert_elliott is not None
        runs = _bursts(loss.gilbert_elliott, generator, packets)
    return tuple(itertools.islice(runs, MAX_RUNS))


def _events(events: LossEvents, dice: random.Random, packets: int) -> Iterator[Run]:
    length = 1 + (events.losses - 1) * events.spacing
    apart = round(1 / events.rate) - 1
    passing = dice.randint(0, apart) if events.even else _passing(dice, events.rate)
    thrown = 0
    while thrown < packets:
        yield Run(passing, events.losses)
        thrown += passing + length
        passing = apart if events.even else _passing(dice, events.rate)


def _bursts(channel: GilbertElliott, dice: random.Random, packets: int) -> Iterator[Run]:
    """Yield runs; consecutive losses are one run, whatever the states in between."""
    run, thrown = Run(0, 0), 0
    for gap in itertools.islice(_gaps(channel, dice, packets), MAX_LOSSES):
        if gap and run.losing:
            yield run
            run = Run(0, 0)
        run = Run(run.passing + gap, run.losing + 1)
        thrown += gap + 1
        if thrown >= packets:
            break
    yield run


def _gaps(channel: GilbertElliott, dice: random.Random, packets: int) -> Iterator[int]:
    """Yield the number of packets that pass before each lost one.

    The last packet is lost after them all.
    """
    bad = dice.random() < channel.to_bad / (channel.to_bad + channel.to_good)
    since, at = 0, 0  # packets since the last loss, and before this state
    while at < packets:
        left = 1 + _passing(dice, channel.to_good if bad else channel.to_bad)  # of this state
        lose = channel.loss_in_bad if bad else channel.loss_in_good
        at += left
        while lose and (passing := _passing(dice, lose)) < left:
            yield since + passing
            left -= passing + 1
            since = 0
        since += left
        bad = not bad
    yield since


def _passing(dice: random.Random, chance: float) -> int:
    """Draw the number of failures before the first success (a geometric distribution)."""
    if chance == 1:
        return 0
    return min(MAX_PACKETS, int(math.log(1 - dice.random()) / math.log1p(-chance)))
