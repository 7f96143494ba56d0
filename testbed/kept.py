"""What was made of a value is kept, for those that ask for the same again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

_Value = TypeVar("_Value")
_Made = TypeVar("_Made")
_Function = Callable[[_Value], _Made]


@dataclass(frozen=True)
class _Exactly:
    """A value as a key: by its text, as 10 and 10.0 are equal but not in a command's words, and
    as a dataclass with a mapping is no key itself."""

    text: str
    value: Any = field(compare=False)


def kept(most: int) -> Callable[[_Function[_Value, _Made]], _Function[_Value, _Made]]:
    """Of a function of one frozen value, whose text tells all of it: the last results."""

    def keeping(made: _Function[_Value, _Made]) -> _Function[_Value, _Made]:
        @functools.lru_cache(maxsize=most)
        def found(key: _Exactly) -> _Made:
            return made(key.value)

        @functools.wraps(made)
        def asked(value: _Value) -> _Made:
            return found(_Exactly(repr(value), value))

        return asked

    return keeping
