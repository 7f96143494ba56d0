"""Scenarios, and other JSON, made wrong or odd at random: one to three changes of sound ones."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import random
from typing import Any

from testbed.scenario.losses import GilbertElliott, Loss, LossEvents
from testbed.scenario.network import Queue, Radio
from testbed.scenario.queues import DISCIPLINES
from testbed.scenario.variants import VARIANTS
from testbed.scenario.video import Viewing
from testbed.scenario.workload import Sessions
from testbed.video_site import Transport
from tests import scenarios

HUGE = "@huge@"  # a number of 5000 digits, which no program of ours should have to write
DEEP = "@deep@"  # lists in lists
NUMBERS = (
    *(0, -1, 1, 2, 3, 0.5, 1.5, -0.5, 53, 54, 64, 65, 99, 100, 101, 1000, 1448, 1514, 60_000),
    *(65_536, 1e-300, 1e-9, 1e-6, 1e-3, 1e3, 1e5, 1e6, 1e9, 1e12, 1e300, 1e308),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63)),
    *(10**25, 10**400, HUGE, float("nan"), float("inf"), float("-inf")),
)
TEXTS = (
    *("", ".", "..", ".x", "../../x", "/tmp/x", "a b", "[/]", "[red]", "$\\frac{$", "<b>&"),
    *("x" * 65, "x" * 5000, "\ud800", "\x00", "\n", "\u202e", "é", "tcp", "tcp.client"),
    *("background", "%s"),
)
OTHERS: tuple[object, ...] = (None, True, False, [], {}, [[]], {"": None}, DEEP)
FACTORS = (0, -1, 1e-9, 1e-3, 0.1, 0.5, 0.999, 1.001, 2, 10, 1e3, 1e6, 1e9)


@functools.cache
def sound_scenarios() -> tuple[str, ...]:
    """Sound scenarios of every kind, as JSON."""
    made = (
        scenarios.router(cbr_mbit=0.5, delay_ms=20),
        scenarios.dumbbell(),
        scenarios.access("wifi-good"),
        scenarios.access("netem-congested"),
        scenarios.video(),
        scenarios.video(Transport.QUIC),
        scenarios.background(),
        scenarios.with_loss(scenarios.router(delay_ms=5), Loss(LossEvents(0.01))),
    )
    return tuple(scenario.to_json() for scenario in made)


def _pieces(dice: random.Random) -> tuple[object, ...]:
    """Parts that a scenario may have, with numbers of their own."""
    options = {
        name: dice.choice((0.001, 0.5, 1, 10, 300, 1e4, 1e7, 2**32))
        for row in DISCIPLINES.values()
        for name in row.options
        if dice.random() < 0.3
    }
    discipline = dice.choice([*DISCIPLINES, "bfido"])
    limit = {dice.choice(("limit_bytes", "limit_packets")): dice.choice((1, 100, 10**5, 2**32))}
    chances = [dice.choice((1e-12, 1e-6, 0.01, 0.5, 1, 2)) for _ in range(4)]
    parts = (
        Queue(discipline, ecn=dice.random() < 0.5, options=options, **limit),
        Queue(discipline, limit_bdp=dice.choice((1e-9, 0.5, 1, 1e4, 1e308))),
        Radio(dice.choice((-90, -60, -20, 0)), dice.choice((0, 0.5, 0.9, 1))),
        GilbertElliott(*chances),
        Loss(LossEvents(chances[0], dice.choice((0, 1, 9, 10**5)), even=dice.random() < 0.5)),
        Loss(gilbert_elliott=GilbertElliott(*chances), spare_retransmissions=dice.random() < 0.5),
        Sessions(dice.choice((0, 1, 400, 401)), rtt_min_ms=20, rtt_max_ms=460),
        Viewing(dice.choice(list(Transport)), length_s=dice.choice((0, 1, 1e5))),
    )
    return tuple(dataclasses.asdict(part) for part in parts)


def _odd_value(dice: random.Random, value: object) -> object:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(value, int | float) and abs(value) < 1e200 and dice.random() < 0.5:
        return value * dice.choice(FACTORS)
    if isinstance(value, str) and dice.random() < 0.5:
        return dice.choice([*VARIANTS, *DISCIPLINES, "sender1", "receiver", "left", "tcp", "cbr"])
    pools = (NUMBERS, TEXTS, OTHERS, _pieces(dice))
    weights = (6, 1, 1, 1) if number else (1, 3, 1, 1) if isinstance(value, str) else (2, 1, 1, 4)
    return copy.deepcopy(dice.choice(dice.choices(pools, weights)[0]))


def _change(dice: random.Random, data: Any) -> None:
    """Change one place of the JSON."""
    here = data
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = dice.choice(keys)
        inside = here[key]
        if not isinstance(inside, dict | list) or not inside or dice.random() < 0.1:
            break
        here = inside
    act = dice.random()
    if act < 0.04:
        del here[key]
    elif act < 0.08 and isinstance(here, dict):
        here[dice.choice(TEXTS)] = inside
    elif act < 0.12 and isinstance(here, list):
        here.extend([inside] * dice.choice((1, 99, 10_000)))
    else:
        here[key] = _odd_value(dice, inside)


def garbled(dice: random.Random, text: bytes) -> bytes:
    """Some bytes changed, whatever they mean."""
    at = dice.randrange(len(text))
    return dice.choice(
        (
            text[:at],
            text[:at] + bytes([dice.randrange(256)]) + text[at:],
            text[:at] + text[at + dice.randrange(1, 30) :],
            text[:at] + dice.choice((b"[", b'{"a":')) * 100_000 + text[at:],
            text.replace(b"1", b"1" * 5000, 1),
            text.decode(errors="replace").encode("utf-16"),
        )
    )


def mutated(seed: object) -> bytes:
    """The file that this seed stands for."""
    dice = random.Random(f"{seed}")
    return mutated_json(dice, dice.choice(sound_scenarios()))


def mutated_json(dice: random.Random, document: str | bytes) -> bytes:
    """A document with one to three changes, of which few are of its bytes."""
    data = json.loads(document)
    for _ in range(dice.choice((1, 1, 2, 3))):
        if data:
            _change(dice, data)
    text = json.dumps(data).replace(f'"{HUGE}"', "9" * 5000)
    text = text.replace(f'"{DEEP}"', "[" * 3000 + "]" * 3000)
    raw = text.encode()
    return garbled(dice, raw) if dice.random() < 0.05 else raw
