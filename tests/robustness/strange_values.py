"""JSON documents with something strange in the place of one of their values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

PLACE = "the place"
MISSING = None


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each value's container with its key."""
    for key in list(data) if isinstance(data, dict) else range(len(data)):
        yield data, key
        if isinstance(data[key], (dict, list)):
            yield from places(data[key])


def as_json(document: Any, strange: str) -> str:
    """Return a document as JSON, with something strange wherever it has PLACE."""
    return json.dumps(document).replace(json.dumps(PLACE), strange)


def with_value(document: Any, number: int, strange: str | None) -> str:
    """Return a document as JSON, with something strange at one of its places, or nothing there."""
    copied = json.loads(json.dumps(document))
    container, key = list(places(copied))[number]
    if strange is MISSING:
        del container[key]
        return json.dumps(copied)
    container[key] = PLACE
    return as_json(copied, strange)
