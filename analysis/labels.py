"""Parts of a scenario in a few words, as tables and figures show them."""

from __future__ import annotations

from testbed.scenario import Queue

# The order in which people name them; others follow by the alphabet.
VARIANT_ORDER = ("tahoe", "reno", "newreno", "sack", "cubic", "vegas", "veno", "westwood", "bbr")


def queue_label(queue: Queue) -> str:
    """The queue: `bfifo 100000 B`, `codel 100 packets ecn`."""
    if queue.limit_bytes is not None:
        size = f"{queue.limit_bytes} B"
    elif queue.limit_packets is not None:
        size = f"{queue.limit_packets} packets"
    else:
        size = f"{queue.limit_bdp:g} BDP"
    options = [f"{name}={value:g}" for name, value in sorted(queue.options.items())]
    return " ".join([queue.discipline, size, *(["ecn"] if queue.ecn else []), *options])


def variant_key(name: str) -> tuple[int, str]:
    """Sorts variants in their usual order."""
    known = VARIANT_ORDER.index(name) if name in VARIANT_ORDER else len(VARIANT_ORDER)
    return known, name
