"""Objects with the attributes that a test needs."""

from __future__ import annotations

from typing import Any


class StandIn:
    """One that is itself alone, as results and trials are: what is computed from it is kept."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
