"""Faults of what users write, as values: where, what is wrong, and what to type instead."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from testbed.errors import (
    FAULT_BREAK,
    MAX_FAULTS,
    MAX_QUOTE,
    MAX_READ_FAULTS,
    UsageError,
    near,
    nearest,
    quoted,
)

FIELDS_HINT = "correct these fields: `testbed schema` says what each field takes"
SPELLING = "correct the spelling"
FIELD = "{field}"  # stands in a hint for the field's name, or the axis's that set it

Keys = tuple[str | int, ...]  # that lead to a field: ("flows", 0, "rate_mbit")


@dataclass(frozen=True)
class Fault:
    """One fault of a document."""

    keys: Keys
    """Where it is."""
    words: str
    """What is wrong there."""
    hint: str = ""
    """What to type instead; empty if there is nothing more to say."""
    value: object = field(default=None, compare=False)
    """What was found, where that alone is wrong."""

    @property
    def name(self) -> str:
        """The last name on the way to the field."""
        return next((key for key in reversed(self.keys) if isinstance(key, str)), "")

    def inside(self, *outer: str | int) -> Fault:
        """Return the fault of a part as one of the whole that holds the part there."""
        return replace(self, keys=(*outer, *self.keys))

    def __str__(self) -> str:
        return f"{field_name(self.keys)}: {self.words}" if self.keys else self.words


def field_name(keys: Keys) -> str:
    """Return what messages call the field that the keys lead to: `flows[0].rate_mbit`."""
    texts = (f"[{key}]" if isinstance(key, int) else f".{_printable(key)}" for key in keys)
    return "".join(texts).removeprefix(".")


def _printable(key: str) -> str:
    return key if key.isprintable() and len(key) <= MAX_QUOTE else quoted(key)


def unknown(keys: Keys, what: str, value: str, known: Iterable[str]) -> Fault:
    """Return the fault of an unknown name."""
    names = sorted(known)
    hint = f"choose a known value of {FIELD}, such as {names[0]}" if names else ""
    if near(value, names):
        hint = SPELLING
    return Fault(keys, f"unknown {what} {quoted(value)}: {nearest(value, names)}", hint, value)


def refusal(*keys: str | int, message: str, hint: str = "") -> UsageError:
    """Return the error of a value that a function was called with, or that a document has."""
    fault = Fault(keys, message, hint)
    error = UsageError(str(fault), hint)
    error.faults = (fault,)
    return error


def usage_error(faults: Sequence[Fault], where: str = "", hint: str = "") -> UsageError:
    """Return the error that lists all faults of what stands in a file or on the command line.

    Unless a hint is given, it is that of the first fault that has one.
    """
    first, *others = _lines(faults)
    lines = (f"{where}: {first}" if where else first, *others)
    error = UsageError(FAULT_BREAK.join(lines), hint or hint_of(faults))
    error.faults, error.lines = tuple(faults), lines
    return error


@contextlib.contextmanager
def collected(faults: list[Fault], *holder: str | int) -> Iterator[None]:
    """Append the faults of an error raised inside, as those of a part of what the keys lead to."""
    try:
        yield
    except UsageError as error:
        raised = error.faults or [Fault((), error.message, error.hint)]
        faults += [fault.inside(*holder) for fault in raised]


def hint_of(faults: Iterable[Fault]) -> str:
    """Return what to type for the first of the faults that there is an answer to."""
    hints = (fault.hint.replace(FIELD, fault.name.partition("=")[0]) for fault in faults)
    return next(filter(None, hints), FIELDS_HINT)


def listed(faults: Iterable[Fault]) -> str:
    """Join the first faults into one line."""
    return FAULT_BREAK.join(_lines(faults))


def _lines(faults: Iterable[Fault]) -> list[str]:
    """Return the first faults, a line each; those that differ in an index alone count once."""
    alike: dict[tuple[Keys, str], list[Fault]] = {}
    for fault in itertools.islice(faults, MAX_READ_FAULTS):
        keys = tuple("" if isinstance(key, int) else key for key in fault.keys)
        alike.setdefault((keys, fault.words), []).append(fault)
    lines = [_grouped(group) for group in itertools.islice(alike.values(), MAX_FAULTS)]
    return [*lines, *(["and more"] if len(alike) > MAX_FAULTS else [])]


def _grouped(faults: Sequence[Fault]) -> str:
    """Return the first of faults that differ in an index alone, with the place of the last."""
    first, last = faults[0], faults[-1]
    if first is last:
        return str(first)
    return f"{field_name(first.keys)} to {field_name(last.keys)} ({len(faults)}): {first.words}"


def of_axes(faults: Iterable[Fault], axes: Mapping[str, str]) -> list[Fault]:
    """Return the faults with the axis that was set in place of the fields that it set, each once.

    A label is made of the values of axes: what is wrong with one of them comes first.
    """
    named = list(dict.fromkeys(_of_axis(fault, axes) for fault in faults))
    return [fault for fault in named if fault.keys != ("label",)] or named


def _of_axis(fault: Fault, axes: Mapping[str, str]) -> Fault:
    for name, value in axes.items() if fault.keys[:1] != ("axes",) else ():
        if fault.keys and (fault.keys[-1] == name or (value and fault.value == value)):
            return replace(fault, keys=(f"{name}={value}",), value=None)
    return fault


def without_consequences(faults: Iterable[Fault], causes: Sequence[Fault]) -> list[Fault]:
    """Return the faults that do not only follow from a fault of a single field.

    Such are those at the field itself, at what holds it, and at the other fields of its object.
    """
    return [fault for fault in faults if not any(_may_follow(fault, each) for each in causes)]


def _may_follow(fault: Fault, cause: Fault) -> bool:
    holder = list(cause.keys[:-1])
    while holder and isinstance(holder[-1], int):
        holder.pop()
    # the fields of the document, of its network and of a flow are sound one by one
    is_beside = len(holder) > 1 and list(fault.keys[: len(holder)]) == holder
    return is_beside or fault.keys == cause.keys[: len(fault.keys)]
