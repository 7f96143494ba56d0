"""The units of fields and axes, by the end of their names, and what to type for a number."""

from __future__ import annotations

import re

SETTING_UNITS = {
    "mbit": "Mbit/s",
    "ms": "ms",
    "s": "s",
    "us": "µs",
    "bytes": "bytes",
    "packets": "packets",
    "bdp": "bandwidth–delay products",
    "dbm": "dBm",
    "per_s": "1/s",
}


def unit_of_setting(name: str) -> str:
    """Return the unit of a field or an axis by the end of its name; empty if it has none."""
    end = "per_s" if name.endswith("_per_s") else name.rpartition("_")[2]
    return SETTING_UNITS.get(end, "") if "_" in name else ""


def typed_unit(text: str) -> str:
    """Return the number of a text that is a number with a unit, such as `20ms`, or empty."""
    typed = re.fullmatch(r"([-+]?\d+(?:\.\d+)?) ?[A-Za-zµ/%]+", text)
    return typed[1] if typed else ""


def number_hint(name: str, text: str, example: float | str = 30) -> str:
    """Return what to type in place of a text, for an axis that takes numbers."""
    unit = unit_of_setting(name)
    if unit and (number := typed_unit(text)):
        return f"{name} is in {unit}: --set {name}={number}"
    if ".." in text:
        first, _, last = text.partition("..")
        return f"list the values: --set {name}={first or 1},{last or 2}"
    shown = example if isinstance(example, str) else f"{example:g}"
    return f"{name} is {f'in {unit}' if unit else 'a number'}: --set {name}={shown}"
