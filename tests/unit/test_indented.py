"""JSON on lines: character by character what Python's json writes."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from testbed.indented import indented
from testbed.store.records import Status


class Pair(NamedTuple):
    """A tuple with names."""

    first: int
    second: str


@dataclass(frozen=True)
class Nested:
    """A value with others in it."""

    name: str
    status: Status
    parts: tuple[Any, ...] = ()


VALUES: tuple[Any, ...] = (
    *({}, [], (), "", "a\n\t\"'é€𝄞\\", 0, -1, 10**30, 0.1, 1e300, -0.0, math.inf, -math.inf),
    *(None, True, False, Status.OK, np.float64(0.25)),
    {"a": {}, "b": [], "c": [[]], "d": [{}], "é": {"x": [1, 2.5, [None, True, {"y": "z"}]]}},
    {1: "a", 2.5: "b", None: "c"},
    OrderedDict(b=1, a=Pair(1, "x")),
)


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("spaces", [1, 2])
def test_it_is_what_json_writes(value: object, spaces: int) -> None:
    assert indented(value, spaces) == json.dumps(value, indent=spaces)


def test_dataclasses_are_objects() -> None:
    value = Nested("a", Status.FAILED, (Nested("b", Status.OK), 1.5))
    assert indented(value, 2) == json.dumps(dataclasses.asdict(value), indent=2)


def test_what_json_cannot_hold_is_an_error() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        indented({"a": {1, 2}}, 2)
