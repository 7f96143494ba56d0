"""A link by radio, planned: two 802.11 radios, the medium between them, the access point.

The kernel's own 802.11 (mac80211) drives the radios and chooses the rates; hostapd is the access
point; the medium (`medium/`, in C) decides what happens to each frame on the air. The network is
open: no keys, no supplicant. Guest only: the medium must answer at once, which needs virtual time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.plan.commands import LEAF, Command
from testbed.plan.network import Interface, Network, radio_of
from testbed.plan.traffic_control import TcObject
from testbed.scenario.discipline import Limit
from testbed.scenario.model import Scenario
from testbed.scenario.network import FRAME_BYTES, PLAIN_QUEUE, Queue, Radio
from testbed.scenario.queues import arguments, resolve, settings

PROGRAM = "testbed-medium"
NETWORK_NAME = "testbed"
CHANNEL_MHZ = 2412
OWN_PACKETS = 32  # in the radio itself, before the stack has to wait (kernel/*/patches/0021)
MIN_MBIT = 3.0  # what the slowest rate leaves, alone on the air
IDLE_MS = 20.0  # an echo's way there and back: turns, and rates that are not yet known


@dataclass(frozen=True)
class RadioPlan:
    """The radio link, with the arguments and configuration of its programs."""

    radio: Radio
    access_point: Interface
    station: Interface
    queue: Queue  # before either radio
    limit: Limit
    medium: tuple[str, ...]
    hostapd: str  # its configuration

    @property
    def ends(self) -> tuple[Interface, Interface]:
        """Both interfaces; a radio is called after its node."""
        return self.access_point, self.station

    @property
    def drain_s(self) -> float:
        """A rough upper bound for the time its queues need to drain."""
        bits = (self.limit.packets + OWN_PACKETS) * FRAME_BYTES * 8
        return bits / (MIN_MBIT * 1e6 * (1 - self.radio.busy))


def plan_radio(scenario: Scenario, network: Network) -> RadioPlan | None:
    """Return the plan of the scenario's radio link, if it has one."""
    for hop, _ in network.hops:
        radio = radio_of(hop.link)
        if radio is not None:
            queue = hop.direction.queue or PLAIN_QUEUE
            ends = [word for end in (hop.out, hop.into) for word in (end.node, end.mac)]
            dice = random.Random(f"{scenario.seed} radio").getrandbits(63)
            air = (str(dice), str(radio.signal_dbm), f"{radio.busy:g}")
            return RadioPlan(
                radio=radio,
                access_point=hop.out,
                station=hop.into,
                queue=queue,
                limit=resolve(queue, MIN_MBIT, 0),
                medium=(PROGRAM, "run", *air, *ends),
                hostapd=_configuration(hop.out.name),
            )
    return None


def _configuration(interface: str) -> str:
    """Return hostapd's configuration: 802.11n on 20 MHz.

    Rates of 802.11b are left out, so that the slowest frames are OFDM's.
    """
    settings = {
        "interface": interface,
        "driver": "nl80211",
        "ssid": NETWORK_NAME,
        "hw_mode": "g",
        "channel": "1",
        "ieee80211n": "1",
        "wmm_enabled": "1",
        "ht_capab": "[SHORT-GI-20]",
        "supported_rates": "60 90 120 180 240 360 480 540",
        "basic_rates": "60 120 240",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def radio_commands(plan: RadioPlan | None) -> Iterator[Command]:
    """Yield the commands that put a queue before each radio."""
    if plan:
        discipline = arguments(plan.queue, plan.limit, MIN_MBIT)
        for end in plan.ends:
            replace = ("tc", "qdisc", "replace", "dev", end.name, "root", "handle", str(LEAF))
            yield Command(end.node, (*replace, *discipline))


def radio_objects(plan: RadioPlan | None) -> Iterator[TcObject]:
    """Yield the queues before the radios, with the limit that the kernel must report."""
    if plan:
        options = tuple(settings(plan.queue, plan.limit, MIN_MBIT))
        for end in plan.ends:
            yield TcObject(*end.place, LEAF, plan.queue.discipline, options)
