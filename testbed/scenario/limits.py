"""Limits of single fields, declared where the field is: `Annotated[float, Range(0, 60_000)]`.

pydantic holds values to them when it reads a document, and writes them into its JSON Schema; a
dataclass's values, its `repr` and its JSON know nothing of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.errors import near, nearest, quoted
from testbed.faults import FIELD, SPELLING

BEYOND_LIMIT = "limit"  # pydantic's name of the fault of a value beyond its field's limit
WHOLE_MICROSECOND = 1e-3  # so near is a whole number


class FieldLimit:
    """What a field's value must be beside its type."""

    def wrong(self, value: Any) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        raise NotImplementedError

    def hint(self, value: Any) -> str:
        """Return what to type instead."""
        return ""

    @property
    def schema(self) -> Mapping[str, Any]:
        """The limit in words of JSON Schema."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Have pydantic call `_checked` once the type is right."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """Add the limit to the schema of the type."""
        return {**handler(core_schema), **self.schema}

    def _checked(self, value: Any) -> Any:
        if words := self.wrong(value):
            from pydantic_core import PydanticCustomError

            context = {"words": words, "hint": self.hint(value), "limit": self}
            raise PydanticCustomError(BEYOND_LIMIT, "{words}", context)
        return value


@dataclass(frozen=True)
class Range(FieldLimit):
    """The numbers between two limits; `above`: the lower one is not among them."""

    low: float
    high: float
    low_is: str = ""  # what the limits are, as in `54, which holds the headers`
    high_is: str = ""
    above: bool = False
    or_zero: bool = False
    said: str = ""  # what is wrong with a number beyond them, in other words
    says: str = ""  # what to type instead, in other words

    def wrong(self, value: float) -> str:
        """Return that a number is beyond a limit."""
        is_in = (self.low < value if self.above else self.low <= value) and value <= self.high
        if is_in or (self.or_zero and value == 0):
            return ""
        if self.said:
            return f"{_number(value)} {self.said}"
        low, high = _number(self.low), _number(self.high)
        if self.above:
            return f"{_number(value)} is not above {low} and at most {high}{_clause(self.high_is)}"
        low += _clause(self.low_is) + ("," if self.low_is else "")
        neither = "neither 0 nor" if self.or_zero else "not"
        return f"{_number(value)} is {neither} between {low} and {high}{_clause(self.high_is)}"

    def hint(self, value: Any) -> str:
        """Return both limits."""
        if self.says:
            return self.says
        low, high = _number(self.low), _number(self.high)
        if self.above:
            return f"{FIELD} takes numbers above {low}, up to {high}"
        return f"{FIELD} takes {'0, or ' if self.or_zero else ''}numbers from {low} to {high}"

    @property
    def schema(self) -> Mapping[str, Any]:
        """Both limits."""
        low = {"exclusiveMinimum" if self.above else "minimum": self.low}
        if self.or_zero:
            return {"maximum": self.high, "anyOf": [{"const": 0}, low]}
        return {**low, "maximum": self.high}


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _clause(text: str) -> str:
    return f", {text}" if text else ""


@dataclass(frozen=True)
class Microseconds(FieldLimit):
    """Times in ms that netem can be told: tc cuts them to microseconds."""

    def wrong(self, value: float) -> str:
        """Return that a time is no whole number of microseconds."""
        us = value * 1000
        if abs((us + 0.5) % 1 - 0.5) <= WHOLE_MICROSECOND:
            return ""
        return f"{value:.12g} ms is not a whole number of microseconds, tc's unit"

    def hint(self, value: Any) -> str:
        """Return the most digits."""
        return f"{FIELD} takes three digits after the point"

    @property
    def schema(self) -> Mapping[str, Any]:
        """Nothing: multiples of a fraction are beyond the arithmetic of validators."""
        return {}


@dataclass(frozen=True)
class Length(FieldLimit):
    """How many items a list has."""

    low: int
    high: int
    items: str
    why: str = ""
    none: str = ""  # what is wrong with an empty one
    few: str = ""  # what to type in place of too few, and of too many
    many: str = ""

    def wrong(self, value: tuple[Any, ...]) -> str:
        """Return that there are too few or too many."""
        if self.low <= len(value) <= self.high:
            return ""
        if self.none and not value:
            return self.none
        if self.low == self.high:
            return f"{len(value)} {self.items}, not {self.low}"
        span = f"between {self.low} and {self.high}" if self.low else f"at most {self.high}"
        return f"{len(value)} {self.items}; {span}{self.why}"

    def hint(self, value: Any) -> str:
        """Return what is said of too few, or of too many."""
        return self.few if len(value) < self.low else self.many

    @property
    def schema(self) -> Mapping[str, Any]:
        """Both numbers."""
        return {"minItems": self.low, "maxItems": self.high}


@dataclass(frozen=True)
class OneOf(FieldLimit):
    """One of some values; of names a fault says which one is near."""

    what: str
    values: tuple[Any, ...]

    def wrong(self, value: Any) -> str:
        """Return that a value is none of them."""
        if value in self.values:
            return ""
        if isinstance(value, str):
            return f"unknown {self.what} {quoted(value)}: {nearest(value, self.values)}"
        return f"{value}: {' or '.join(map(str, self.values))}"

    def hint(self, value: Any) -> str:
        """Return all of them, unless the fault names a near one."""
        if isinstance(value, str) and near(value, self.values):
            return SPELLING
        return f"{FIELD} is {' or '.join(map(str, self.values))}"

    @property
    def schema(self) -> Mapping[str, Any]:
        """All of them."""
        return {"enum": list(self.values)}


@dataclass(frozen=True)
class Unique(FieldLimit):
    """A list in which nothing is twice."""

    said: str

    def wrong(self, value: tuple[Any, ...]) -> str:
        """Return that something is twice."""
        return self.said if len(set(value)) < len(value) else ""

    @property
    def schema(self) -> Mapping[str, Any]:
        """The same."""
        return {"uniqueItems": True}


@dataclass(frozen=True)
class Pattern(FieldLimit):
    """Texts that a regular expression fits."""

    pattern: str  # in what Python's expressions and JSON Schema's have in common
    said: str

    def wrong(self, value: str) -> str:
        """Return that a text does not fit."""
        return "" if re.fullmatch(self.pattern, value) else f"{quoted(value)}: {self.said}"

    @property
    def schema(self) -> Mapping[str, Any]:
        """The expression, which a validator looks for anywhere in a text."""
        return {"pattern": f"^(?:{self.pattern})$"}


MAX_NAME = 64
NAME_RULE = f"letters, digits, `.`, `_` and `-`, not beginning with a dot, at most {MAX_NAME}"
SAFE_NAME = Pattern(rf"[A-Za-z0-9_-][A-Za-z0-9._-]{{0,{MAX_NAME - 1}}}", f"not a name: {NAME_RULE}")
NAME_OR_NONE = Pattern(f"(?:{SAFE_NAME.pattern})?", SAFE_NAME.said)


@dataclass(frozen=True)
class Text(FieldLimit):
    """Texts that tables and figures can show as they are."""

    def wrong(self, value: str) -> str:
        """Return that a text is too long, or has signs that mean something there."""
        if value.isprintable() and not set(";$") & set(value) and len(value) <= MAX_NAME:
            return ""
        most = f"at most {MAX_NAME} printable characters"
        return f"{quoted(value)}: {most}, no `;` and no `$`"

    @property
    def schema(self) -> Mapping[str, Any]:
        """The length, and the signs."""
        return {"maxLength": MAX_NAME, "pattern": r"^[^;$\x00-\x1f\x7f]*$"}
