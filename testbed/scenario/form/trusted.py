"""JSON that we wrote ourselves, into the dataclasses that it came from: nothing is checked.

The guest reads its scenario so: a library that checks would be as large as the rest of the trial.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any

_hints = functools.cache(typing.get_type_hints)


def rebuilt(kind: Any, data: Any) -> Any:
    """The value of that type whose JSON this is."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        if data is None:
            return None
        forms = [each for each in inner if each is not types.NoneType]
        likest = max(forms, key=lambda form: _alike(form, data)) if len(forms) > 1 else forms[0]
        return rebuilt(likest, data)
    if origin is tuple:
        return tuple(rebuilt(inner[0], each) for each in data)
    if origin is Mapping:
        return {key: rebuilt(inner[1], each) for key, each in data.items()}
    if not dataclasses.is_dataclass(kind):
        return kind(data)
    form: Any = kind  # which mypy no longer knows to be a class
    return form(**{key: rebuilt(_hints(form)[key], each) for key, each in data.items()})


def _alike(form: Any, data: Any) -> int:
    """How many of a dataclass's fields there are."""
    return len({f.name for f in dataclasses.fields(form)} & data.keys())
