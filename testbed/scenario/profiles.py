"""The profiles: the TCP settings that all hosts of a scenario share, a row for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.scenario.model import Profile
from testbed.scenario.variants import PERIOD


@dataclass(frozen=True)
class ProfileSettings:
    """A profile: settings of every host with flows, and attributes of the routes between them."""

    about: str
    sysctls: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by control
    mss: int | None = None  # of flows that do not say
    sender_route: Mapping[str, int] = field(default_factory=dict)
    receiver_route: Mapping[str, int] = field(default_factory=dict)


PROFILE_SETTINGS = {
    Profile.MODERN: ProfileSettings("the kernel as shipped"),
    Profile.NS2: ProfileSettings(
        "the loss recovery of the period for every variant (SACK for the one of that name alone; "
        "no RACK, tail loss probe, F-RTO, timestamps or ECN), 1000-byte segments, an ACK for each, "
        "initial window 1, no HyStart, Vegas with alpha 1 and beta 3, a receiver whose window "
        "never grows into the way",
        sysctls={
            **{f"net.ipv4.{name}": value for name, value in PERIOD.items()},
            "net.ipv4.tcp_moderate_rcvbuf": "0",
            "net.ipv4.tcp_rmem": "4096\t6291456\t6291456",
        },
        parameters={"cubic": {"hystart": 0}, "vegas": {"alpha": 1, "beta": 3}},
        mss=1000,
        sender_route={"initcwnd": 1},
        receiver_route={"quickack": 1},
    ),
}
