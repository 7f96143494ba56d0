"""Objects with the attributes that a test needs."""

from __future__ import annotations

from typing import Any


class StandIn:
    """Equal by identity, as results and trials' views are: functions of them are cached."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
