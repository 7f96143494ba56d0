"""The TCP variants: one table, a row each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from testbed.errors import UsageError, nearest


@dataclass(frozen=True)
class Variant:
    """A TCP variant: the congestion control that makes it, and what it is."""

    name: str
    control: str  # as the kernel names it
    about: str


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("reno", "reno", "Linux's reno: additive increase, halving; SACK loss recovery"),
        Variant("cubic", "cubic", "RFC 9438, the default of Linux"),
        Variant("vegas", "vegas", "Brakmo 1994: backs off when packets queue (alpha 2, beta 4)"),
        Variant("veno", "veno", "Fu 2003: Reno that asks Vegas whether a loss was congestion"),
        Variant("bbr", "bbr", "BBR version 1: paced at the estimated bottleneck rate"),
    )
}

# Congestion controls of Linux 6.1: accepted by name wherever the kernel offers them.
LINUX_CONTROLS = frozenset(
    "bbr bic cdg cubic dctcp highspeed htcp hybla illinois lp nv reno scalable vegas veno "
    "westwood yeah".split()
)


def variant(name: str) -> Variant:
    """The row of that name; a name that only the kernel may know becomes a row of its own."""
    if name in VARIANTS:
        return VARIANTS[name]
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,14}", name):
        raise UsageError(
            f"unknown variant {name!r}", nearest(name, VARIANTS.keys() | LINUX_CONTROLS)
        )
    return Variant(name, name, "a congestion control of the kernel, by name")


def spelling_hint(name: str) -> str:
    """For a variant that a kernel does not have: a near name, in case it was mistyped."""
    return nearest(name, VARIANTS.keys() | LINUX_CONTROLS)
