"""An LRU cache for functions of one frozen value whose `repr` tells all of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

_Value = TypeVar("_Value")
_Result = TypeVar("_Result")
_Function = Callable[[_Value], _Result]


@dataclass(frozen=True)
class _ReprKey:
    """A value compared by its text.

    10 and 10.0 are equal, but not as a command's words; a dataclass with a mapping has no hash.
    """

    text: str
    value: Any = field(compare=False)


def cached_by_repr(size: int) -> Callable[[_Function[_Value, _Result]], _Function[_Value, _Result]]:
    """Cache the last `size` results of a one-argument function by the `repr` of its argument."""

    def decorate(function: _Function[_Value, _Result]) -> _Function[_Value, _Result]:
        @functools.lru_cache(maxsize=size)
        def cached(key: _ReprKey) -> _Result:
            return function(key.value)

        @functools.wraps(function)
        def wrapper(value: _Value) -> _Result:
            return cached(_ReprKey(repr(value), value))

        return wrapper

    return decorate
