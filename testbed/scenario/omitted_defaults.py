"""Fields that dataclasses got after results had been stored.

    @repr_without_defaults
    @dataclass(frozen=True)
    class Flow:
        call: Call | None = field(default=None, repr=False, metadata=ADDED)

Where such a field has its default it is not written: neither in JSON nor in a `repr`. A scenario
without it so keeps its text, its hash and its trial's identity, and what was stored stays valid.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

_MARK = "added"
OMIT_DEFAULT = MappingProxyType({_MARK: True})
Class = TypeVar("Class")


def repr_without_defaults(kind: type[Class]) -> type[Class]:
    """Let a dataclass's `repr` end with its added fields where they have other values."""
    plain_repr: Any = kind.__repr__

    def with_added(self: Any) -> str:
        text = str(plain_repr(self))
        more = [
            f"{name}={getattr(self, name)!r}"
            for name, default in _added(self.__class__).items()
            if getattr(self, name) != default
        ]
        return f"{text[:-1]}, {', '.join(more)})" if more else text

    setattr(kind, "__repr__", with_added)  # noqa: B010  mypy: a method
    return kind


def serialized_names(value: Any) -> Sequence[str]:
    """Return the names of a dataclass's fields that are written."""
    kind: Any = type(value)
    names, values = _names(kind), _added(kind)
    if not values:
        return names
    return [n for n in names if n not in values or getattr(value, n) != values[n]]


def field_names(value: Any) -> Sequence[str]:
    """Return the names of all fields of a dataclass, added ones, too."""
    kind: Any = type(value)
    return _names(kind)


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of a dataclass's fields; there are few types, and many values."""
    return tuple(each.name for each in dataclasses.fields(kind))


@functools.cache
def _added(kind: Any) -> Mapping[str, Any]:
    return {e.name: e.default for e in dataclasses.fields(kind) if _MARK in e.metadata}
