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


def lines_of(compared: KernelComparison, kernels: tuple[str, str], form: str) -> Iterator[str]:
    """Yield the answer's lines; `kernels` are what A and B are."""
    if form == "json":
        yield json.dumps(_plain(compared, kernels), indent=2)
        return
    make = _markdown if form == "md" else _mail
    yield from make(compared, kernels)


def summary(compared: KernelComparison) -> str:
    """Return the answer in a sentence."""
    if compared.divergences:
        return f"other packets in {len(compared.divergences)} of {compared.trials} trials"
    if compared.failed:
        part = f"{compared.same} of {compared.trials} trials"
        return f"the same packets in {part}, the others did not run"
    return f"the same packets in all {compared.trials} trials"


def _mail(compared: KernelComparison, kernels: tuple[str, str]) -> Iterator[str]:
    yield f"Subject: {summary(compared)}"
    yield ""
    yield from (f"{side}: {kernel}" for side, kernel in zip(SIDES, kernels, strict=True))
    yield ""
    yield from textwrap.wrap(_about(compared), COLUMNS)
    yield from _failures(compared)
    if not compared.divergences:
        return
    yield ""
    yield "The first packet that differs, by trial:"
    yield ""
    for each in compared.divergences[:MAX_LISTED_TRIALS]:
        yield (
            f"  {each.first.earliest_s:9.6f} s  {each.condition:28} "
            f"packet {each.first.number} of {each.first.interface}"
        )
    yield from _left_out(compared)
    for each in _explained(compared):
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
    yield from _effect_lines(compared.effects)


def _markdown(compared: KernelComparison, kernels: tuple[str, str]) -> Iterator[str]:
    yield f"### {summary(compared).capitalize()}"
    yield ""
    yield from (f"- {side}: `{kernel}`" for side, kernel in zip(SIDES, kernels, strict=True))
    yield ""
    yield _about(compared)
    yield from _failures(compared)
    if not compared.divergences:
        return
    yield ""
    yield "| second | trial | first packet that differs |"
    yield "|---|---|---|"
    for each in compared.divergences[:MAX_LISTED_TRIALS]:
        where = f"{each.first.number} of `{each.first.interface}`"
        yield f"| {each.first.earliest_s:.6f} | {each.condition} | {where} |"
    yield from _left_out(compared)
    for each in _explained(compared):
        yield ""
        yield f"**{each.condition}**, packet {each.first.number} of `{each.first.interface}`:"
        yield ""
        for side, packet in enumerate(each.packets or ()):
            yield f"- {SIDES[side]}, {_time(each, side)}: `{_text(packet)}`"
            yield from (f"  - {line}" for line in _origin(packet))
    yield from _effect_lines(compared.effects)


def _plain(compared: KernelComparison, kernels: tuple[str, str]) -> dict[str, Any]:
    """Return the answer in JSON's types."""
    return {
        **dict(zip(("a", "b"), kernels, strict=True)),
        "summary": summary(compared),
        "trials": compared.trials,
        "same": compared.same,
        "conditions": list(compared.conditions),
        "failed": Counter(each.reason for each in compared.failed),
        "failed_conditions": {each.condition: each.reason for each in compared.failed},
        "differing": [_plain_divergence(each) for each in compared.divergences],
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
            for each in compared.effects
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


def _about(compared: KernelComparison) -> str:
    text = f"{compared.trials} short trials in virtual time with the same seed: in {compared.same} "
    text += "all packets are the same to the byte"
    return (
        f"{text}, in {len(compared.divergences)} they are not."
        if compared.divergences
        else f"{text}."
    )


def _failures(compared: KernelComparison) -> Iterator[str]:
    for reason, count in Counter(each.reason for each in compared.failed).items():
        yield ""
        yield f"{count} trials were not compared: {reason}"


def _left_out(compared: KernelComparison) -> Iterator[str]:
    if (more := len(compared.divergences) - MAX_LISTED_TRIALS) > 0:
        yield ""
        yield f"and {more} more."


def _explained(compared: KernelComparison) -> Sequence[Divergence]:
    return [each for each in compared.divergences if each.packets]


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
        effect, unit = each.comparison, f" {each.unit}" if each.unit else ""
        yield (
            f"- {each.group}: {each.what} {effect.difference:+.3g}{unit} "
            f"[{effect.low:+.3g}, {effect.high:+.3g}], A has {each.mean_a:.3g} "
            f"({effect.n_a} trials)"
        )
