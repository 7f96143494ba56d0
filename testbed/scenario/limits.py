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
MAX_NAME = 64
NAME_RULE = f"letters, digits, `.`, `_` and `-`, not beginning with a dot, at most {MAX_NAME}"


class FieldLimit:
    """A limit of a field's values beside their type."""

    def wrong(self, value: Any) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        raise NotImplementedError

    def _hint(self, _value: Any) -> str:
        return ""

    def _schema(self) -> Mapping[str, Any]:
        return {}

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Have pydantic call `_checked` once the type is right."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """Add the limit to the schema of the type."""
        return {**handler(core_schema), **self._schema()}

    def _checked(self, value: Any) -> Any:
        if message := self.wrong(value):
            from pydantic_core import PydanticCustomError

            context = {"words": message, "hint": self._hint(value), "limit": self}
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

    @property
    def middle(self) -> float:
        """A number between the limits: a whole one where these are."""
        both = self.low + self.high
        return both // 2 if isinstance(both, int) else both / 2

    def wrong(self, value: float) -> str:
        """Return that a number is beyond a limit."""
        is_in = (self.low < value if self.above else self.low <= value) and value <= self.high
        if is_in or (self.or_zero and value == 0):
            return ""
        number, low, high = map(_number, (value, self.low, self.high))
        high += f", {self.high_is}" if self.high_is else ""
        if self.said:
            return f"{number} {self.said}"
        if self.above:
            return f"{number} is not above {low} and at most {high}"
        low += f", {self.low_is}," if self.low_is else ""
        return f"{number} is {'neither 0 nor' if self.or_zero else 'not'} between {low} and {high}"

    def _hint(self, _value: float) -> str:
        low, high = _number(self.low), _number(self.high)
        if self.above:
            return self.says or f"{FIELD} takes numbers above {low}, up to {high}"
        zero = "0, or " if self.or_zero else ""
        return self.says or f"{FIELD} takes {zero}numbers from {low} to {high}"

    def _schema(self) -> Mapping[str, Any]:
        low = {"exclusiveMinimum" if self.above else "minimum": self.low}
        if self.or_zero:
            return {"maximum": self.high, "anyOf": [{"const": 0}, low]}
        return {**low, "maximum": self.high}


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Length(FieldLimit):
    """The limits of a list's length."""

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

    def _hint(self, value: tuple[Any, ...]) -> str:
        return self.few if len(value) < self.low else self.many

    def _schema(self) -> Mapping[str, Any]:
        return {"minItems": self.low, "maxItems": self.high}


@dataclass(frozen=True)
class OneOf(FieldLimit):
    """One of some values; of names a fault says which one is near."""

    what: str
    values: tuple[Any, ...]

    def wrong(self, value: Any) -> str:
        """Return the words of the fault: the value is not one of the choices."""
        if value in self.values:
            return ""
        if isinstance(value, str):
            return f"unknown {self.what} {quoted(value)}: {nearest(value, self.values)}"
        return f"{value}: {' or '.join(map(str, self.values))}"

    def _hint(self, value: Any) -> str:
        if isinstance(value, str) and near(value, self.values):
            return SPELLING
        return f"{FIELD} is {' or '.join(map(str, self.values))}"

    def _schema(self) -> Mapping[str, Any]:
        return {"enum": list(self.values)}


@dataclass(frozen=True)
class Pattern(FieldLimit):
    """Texts that a regular expression fits, in what Python's and JSON Schema's have in common."""

    pattern: str
    said: str

    def wrong(self, value: str) -> str:
        """Return that a text does not fit."""
        return "" if re.fullmatch(self.pattern, value) else f"{quoted(value)}: {self.said}"

    def _schema(self) -> Mapping[str, Any]:
        return {"pattern": f"^(?:{self.pattern})$"}


SAFE_NAME = Pattern(rf"[A-Za-z0-9_-][A-Za-z0-9._-]{{0,{MAX_NAME - 1}}}", f"not a name: {NAME_RULE}")
NAME_OR_NONE = Pattern(f"(?:{SAFE_NAME.pattern})?", SAFE_NAME.said)


class Text(FieldLimit):
    """Texts that tables and figures can show as they are."""

    def wrong(self, value: str) -> str:
        """Return that a text is too long, or has signs that mean something there."""
        if value.isprintable() and not set(";$") & set(value) and len(value) <= MAX_NAME:
            return ""
        return f"{quoted(value)}: at most {MAX_NAME} printable characters, no `;` and no `$`"

    def _schema(self) -> Mapping[str, Any]:
        return {"maxLength": MAX_NAME, "pattern": r"^[^;$\x00-\x1f\x7f]*$"}


class Microseconds(FieldLimit):
    """Times in ms that netem can be told: tc cuts them to microseconds.

    The schema does not say so: multiples of a fraction are beyond the arithmetic of validators.
    """

    def wrong(self, value: float) -> str:
        """Return that a time is no whole number of microseconds."""
        if abs((value * 1000 + 0.5) % 1 - 0.5) <= WHOLE_MICROSECOND:
            return ""
        return f"{value:.12g} ms is not a whole number of microseconds, tc's unit"

    def _hint(self, _value: float) -> str:
        return f"{FIELD} takes three digits after the point"


class Unique(FieldLimit):
    """A list in which nothing is twice."""

    def wrong(self, value: tuple[Any, ...]) -> str:
        """Return that something is twice."""
        return "" if len(set(value)) == len(value) else "a point is named twice"

    def _schema(self) -> Mapping[str, Any]:
        return {"uniqueItems": True}
