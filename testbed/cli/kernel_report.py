"""The answer of `testbed kernel compare`, as text for a mail or as Markdown."""

from __future__ import annotations

import dataclasses
import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from testbed.kernels.kernel_comparison import ComparedPacket, Divergence, Effect, KernelComparison

COLUMNS = 75  # of a mail
MAX_LISTED_TRIALS = 20  # trials; of the others their number
SIDES = ("A", "B")


def lines_of(found: KernelComparison, kernels: tuple[str, str], form: str) -> Iterator[str]:
    """Yield the answer's lines; `kernels` are what A and B are."""
    if form == "json":
        yield json.dumps(_plain(found, kernels), indent=2)
        return
    make = _markdown if form == "md" else _mail
    yield from make(found, kernels)


def summary(found: KernelComparison) -> str:
    """Return the answer in a sentence."""
    if found.divergences:
        return f"other packets in {len(found.divergences)} of {found.trials} trials"
    if found.failed:
        return f"the same packets in {found.same} of {found.trials} trials, the others did not run"
    return f"the same packets in all {found.trials} trials"


def _mail(found: KernelComparison, kernels: tuple[str, str]) -> Iterator[str]:
    yield f"Subject: {summary(found)}"
    yield ""
    yield from (f"{side}: {kernel}" for side, kernel in zip(SIDES, kernels, strict=True))
    yield ""
    yield from textwrap.wrap(_about(found), COLUMNS)
    yield from _failures(found)
    if not found.divergences:
        return
    yield ""
    yield "The first packet that differs, by trial:"
    yield ""
    for each in found.divergences[:MAX_LISTED_TRIALS]:
        yield (
            f"  {each.first.earliest_s:9.6f} s  {each.condition:28} "
            f"packet {each.first.number} of {each.first.interface}"
        )
    yield from _left_out(found)
    for each in _explained(found):
        yield ""
        yield f"{each.condition}, packet {each.first.number} of {each.first.interface}:"
        for side, packet in enumerate(each.packets or ()):
            yield ""
            yield from textwrap.wrap(
                f"{SIDES[side]}, {_time(each, side)}: {_text(packet)}",
                COLUMNS,
                initial_indent="  ",
                subsequent_indent="     ",
            )
            for line in _origin(packet):
                yield from textwrap.wrap(
                    line, COLUMNS, initial_indent="     ", subsequent_indent="       "
                )
    yield from _effect_lines(found.effects)


def _markdown(found: KernelComparison, kernels: tuple[str, str]) -> Iterator[str]:
    yield f"### {summary(found).capitalize()}"
    yield ""
    yield from (f"- {side}: `{kernel}`" for side, kernel in zip(SIDES, kernels, strict=True))
    yield ""
    yield _about(found)
    yield from _failures(found)
    if not found.divergences:
        return
    yield ""
    yield "| second | trial | first packet that differs |"
    yield "|---|---|---|"
    for each in found.divergences[:MAX_LISTED_TRIALS]:
        where = f"{each.first.number} of `{each.first.interface}`"
        yield f"| {each.first.earliest_s:.6f} | {each.condition} | {where} |"
    yield from _left_out(found)
    for each in _explained(found):
        yield ""
        yield f"**{each.condition}**, packet {each.first.number} of `{each.first.interface}`:"
        yield ""
        for side, packet in enumerate(each.packets or ()):
            yield f"- {SIDES[side]}, {_time(each, side)}: `{_text(packet)}`"
            yield from (f"  - {line}" for line in _origin(packet))
    yield from _effect_lines(found.effects)


def _plain(found: KernelComparison, kernels: tuple[str, str]) -> dict[str, Any]:
    """Return the answer in JSON's types."""
    return {
        **dict(zip(("a", "b"), kernels, strict=True)),
        "summary": summary(found),
        "trials": found.trials,
        "same": found.same,
        "conditions": list(found.conditions),
        "failed": Counter(each.reason for each in found.failed),
        "failed_conditions": {each.condition: each.reason for each in found.failed},
        "differing": [_plain_divergence(each) for each in found.divergences],
        "effects": [
            {
                "variant": each.group,
                "what": each.what,
                "unit": each.unit,
                "a": each.mean_a,
                "difference": each.comparison.difference,
                "low": each.comparison.low,
                "high": each.comparison.high,
                "trials": each.comparison.n_a,
            }
            for each in found.effects
        ],
    }


def _plain_divergence(each: Divergence) -> dict[str, Any]:
    axes, first = each.trials[0].scenario.axes, each.first
    return {
        **{name: axes.get(name, "") for name in ("condition", "variant")},
        "interface": first.interface,
        "packet": first.number,
        "seconds": [None if math.isnan(time) else time for time in first.time_s],
        "versions": [dataclasses.asdict(packet) for packet in each.packets or ()],
    }


def _about(found: KernelComparison) -> str:
    text = f"{found.trials} short trials in virtual time with the same seed: in {found.same} all "
    text += "packets are the same to the byte"
    return f"{text}, in {len(found.divergences)} they are not." if found.divergences else f"{text}."


def _failures(found: KernelComparison) -> Iterator[str]:
    for reason, count in Counter(each.reason for each in found.failed).items():
        yield ""
        yield f"{count} trials were not compared: {reason}"


def _left_out(found: KernelComparison) -> Iterator[str]:
    if (more := len(found.divergences) - MAX_LISTED_TRIALS) > 0:
        yield ""
        yield f"and {more} more."


def _explained(found: KernelComparison) -> Sequence[Divergence]:
    return [each for each in found.divergences if each.packets]


def _time(divergence: Divergence, side: int) -> str:
    time_s = divergence.first.time_s[side]
    return "at no time" if math.isnan(time_s) else f"{time_s:.9f} s"


def _text(packet: ComparedPacket) -> str:
    return packet.text or "no such packet: the capture ends before"


def _origin(packet: ComparedPacket) -> Iterator[str]:
    """Yield whose packet it is, what sent it, and what its socket knew."""
    if packet.flow:
        yield f"of flow {packet.flow}"
    if packet.why_not:
        yield f"sent by: not known ({packet.why_not})"
    if packet.functions:
        yield f"sent by {' < '.join(packet.functions)}"
    if packet.socket:
        yield "; ".join(packet.socket)


def _effect_lines(effects: Sequence[Effect]) -> Iterator[str]:
    if not effects:
        return
    yield ""
    yield "Effects, B − A, mean of the trials that differ with its 95 % interval:"
    yield ""
    for each in effects:
        found, unit = each.comparison, f" {each.unit}" if each.unit else ""
        yield (
            f"- {each.group}: {each.what} {found.difference:+.3g}{unit} "
            f"[{found.low:+.3g}, {found.high:+.3g}], A has {each.mean_a:.3g} ({found.n_a} trials)"
        )
