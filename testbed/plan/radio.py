"""A link by radio, planned: two 802.11 radios, the medium between them, the access point.

The kernel's own 802.11 (mac80211) drives the radios and chooses the rates; hostapd is the access
point; what the air does with each frame is the medium's (`medium/`, in C). An open network: no
keys, no supplicant. Guest only: the medium answers at once, which it can where time is virtual.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.plan.commands import Command
from testbed.plan.network import Interface, Network
from testbed.scenario.model import Radio, Scenario
from testbed.scenario.queues import FRAME_BYTES
from testbed.store import LEAF_HANDLE

PROGRAM = "testbed-medium"
NETWORK_NAME = "testbed"
CHANNEL_MHZ = 2412
DEFAULT_PACKETS = 1000  # as long as Linux's own txqueuelen
OWN_PACKETS = 32  # in the radio itself, before the stack has to wait (kernel/patches/0021)
LEAST_MBIT = 3.0  # what the slowest rate leaves, alone on the air
IDLE_MS = 20.0  # an echo's way there and back: turns, and rates that are not yet known


@dataclass(frozen=True)
class RadioPlan:
    """The radio link, and what its programs are told."""

    radio: Radio
    access_point: Interface
    station: Interface
    packets: int  # of the queue before either radio
    medium: tuple[str, ...]
    hostapd: str  # its configuration

    @property
    def ends(self) -> tuple[Interface, Interface]:
        """Both interfaces; a radio is called after its node."""
        return self.access_point, self.station

    @property
    def drain_s(self) -> float:
        """How long its queues may take to be empty, roughly."""
        bits = (self.packets + OWN_PACKETS) * FRAME_BYTES * 8
        return bits / (LEAST_MBIT * 1e6 * (1 - self.radio.busy))


def plan_radio(scenario: Scenario, network: Network) -> RadioPlan | None:
    """Its plan, if a link of the scenario is one."""
    for link in network.links:
        if link.radio is not None:
            path = scenario.topology.links[link.name]
            packets = path.queue.limit_packets if path.queue else None
            ends = [word for end in link.ends for word in (end.node, end.mac)]
            dice = random.Random(f"{scenario.seed} radio").getrandbits(63)
            air = (str(dice), str(link.radio.signal_dbm), f"{link.radio.busy:g}")
            return RadioPlan(
                radio=link.radio,
                access_point=link.ends[0],
                station=link.ends[1],
                packets=packets or DEFAULT_PACKETS,
                medium=(PROGRAM, "run", *air, *ends),
                hostapd=_configuration(link.ends[0].name),
            )
    return None


def _configuration(interface: str) -> str:
    """802.11n, 20 MHz, nothing of 802.11b: so that the slowest frames are OFDM's."""
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
    """The queue before either radio."""
    for end in plan.ends if plan else ():
        words = ("handle", LEAF_HANDLE, "pfifo", "limit", str(plan.packets)) if plan else ()
        yield Command(end.node, ("tc", "qdisc", "replace", "dev", end.name, "root", *words))
