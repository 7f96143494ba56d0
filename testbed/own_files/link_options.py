"""A Mininet link's options (TCLink's) as what a link does to packets here.

Mininet puts htb and netem on the interface at each end, both with the link's options: each end's
are of the direction that leaves there. netem's limit is its queue's; here packets that wait for
their delay do not count in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from testbed.errors import UsageError, nearest, quoted
from testbed.own_files.topo_class import settings
from testbed.scenario.losses import GilbertElliott
from testbed.scenario.network import Direction, Queue

SHAPING = ("bw", "delay", "jitter", "loss", "max_queue_size")
# of the link itself: who it joins, and how its interfaces are called
PLACES = (
    *("node1", "node2", "port1", "port2", "intfName1", "intfName2", "addr1", "addr2"),
    *("params1", "params2", "key", "cls", "cls1", "cls2", "intf", "fast", "ip", "mac", "up"),
)
WITHOUT_EFFECT = ("use_htb", "txo", "rxo", "disable_gro")  # htb shapes anyway, offloads are off
REFUSED = {
    "use_hfsc": "rates are shaped by htb",
    "use_tbf": "rates are shaped by htb",
    "latency_ms": "a tbf's, and rates are shaped by htb; max_queue_size is the queue's limit",
    "enable_red": 'Mininet\'s has probability 1, of which tc makes 0: a scenario has `"queue"`',
    "enable_ecn": 'Mininet\'s has probability 1, of which tc makes 0: a scenario has `"queue"`',
    "speedup": "a link has one rate",
    "gro": "a queue would count packets of 64 KB",
}
KNOWN = (*SHAPING, *PLACES, *WITHOUT_EFFECT, *REFUSED)
LINK_CLASSES = ("Link", "TCLink", "TCULink")
_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(s|secs?|ms|msecs?|us|usecs?)")
_MS = {"s": 1e3, "m": 1.0, "u": 1e-3}  # by the unit's first letter

Options = Mapping[str, Any]


def parse(text: str) -> Options:
    """`bw=10,delay=5ms`, with `tc,` before it as `mn --link` has it."""
    words = text.split(",") if text else []
    found = settings([word for word in words if word != "tc"])
    if found.positional or any(
        key not in (*SHAPING, *WITHOUT_EFFECT, *REFUSED) for key in found.named
    ):
        raise UsageError(f"--link {text}: not options of a TCLink", "--link bw=10,delay=5ms")
    return found.named


def directions(where: str, options: Options) -> tuple[Direction, Direction]:
    """Return the forward and the reverse direction, by the options of both ends."""
    _check_class(where, options)
    ends = ({**options, **(options.get(f"params{end}") or {})} for end in (1, 2))
    forward, reverse = (_direction(where, each) for each in ends)
    return forward, reverse


def _check_class(where: str, options: Options) -> None:
    name = getattr(options.get("cls"), "__name__", None)
    if options.get("cls") is not None and name not in LINK_CLASSES:
        raise UsageError(
            f"{where}: links of class {quoted(str(name))} are not known here",
            "a Link or a TCLink can be emulated",
        )


def _direction(where: str, options: Options) -> Direction:
    for key, value in options.items():
        if key not in KNOWN:
            raise UsageError(f"{where}: unknown option {quoted(key)}", nearest(key, SHAPING))
        if key in REFUSED and value:
            raise UsageError(f"{where}: {key}={value!r}: {REFUSED[key]}", "leave it out")
    rate, limit = _number(where, options, "bw"), _number(where, options, "max_queue_size")
    if limit is not None and rate is None:
        raise UsageError(f"{where}: max_queue_size without bw: nothing would queue", "give it a bw")
    return Direction(
        rate,
        _time_ms(where, options, "delay"),
        None if limit is None else Queue("pfifo", limit_packets=round(limit)),
        _time_ms(where, options, "jitter"),
        _loss(where, options),
    )


def _number(where: str, options: Options, key: str) -> float | None:
    value = options.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{where}: {key}={value!r} is not a number", f"like {key}=10")
    return float(value)


def _time_ms(where: str, options: Options, key: str) -> float:
    """A time as tc writes it; one without a unit means another one in every version of tc."""
    value = options.get(key)
    if value is None:
        return 0.0
    match = _TIME.fullmatch(str(value).strip().lower())
    if match is None:
        raise UsageError(f"{where}: {key}={value!r} is not a time", f"with its unit: {key}='5ms'")
    return round(float(match[1]) * _MS[match[2][0]], 6)


def _loss(where: str, options: Options) -> GilbertElliott | None:
    """Return a loss of this percentage of packets, each by itself: a bad state lasts for one."""
    percent = _number(where, options, "loss")
    if not percent:
        return None
    if not 0 < percent < 100:
        raise UsageError(f"{where}: loss={percent:g} is not a percentage below 100", "like loss=1")
    chance = round(percent / 100, 9)
    return GilbertElliott(to_bad=chance, to_good=round(1 - chance, 9))
