"""What to type instead of a scenario's field that has a fault."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

SCENARIO_HINT = "every trial's folder holds a scenario, complete, as an example"
FIELDS_HINT = "correct these fields: `testbed schema` says what each field takes"
SETTING_UNITS = {  # by the end of a field's or an axis's name
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
# a pattern of a fault, and what to type, where \1 is the pattern's first group; the first match
# counts
FIELD_HINTS = (
    (
        r"flows: (\w\S*) sends \S+ and \S+: one variant per host",
        "give each variant a sender of its own",
    ),
    (r"flows: 0 flows", '"flows": [{"kind": "tcp", "variant": "cubic", "src": "h1", "dst": "h2"}]'),
    (
        r"flows: \d+ flows; between",
        "`kind: workload` has up to 30,000 transfers: docs/workloads.md",
    ),
    (r"flows\[\d+\]\.kernel: unknown field", "all nodes of a trial run one kernel: --set kernel=…"),
    (r"\.name: missing", 'each node and flow has a name: "name": "h1"'),
    (r"ends: missing", 'a link has two ends: "ends": ["h1", "r1"]'),
    (
        r"flows\[\d+\]\.loss: expected an object",
        'one packet in 200, each by itself: "loss": {"events": {"rate": 0.005}}',
    ),
    (
        r"\.loss: expected an object",
        'one packet in 200, each by itself: "loss": {"to_bad": 0.005, "to_good": 1}; '
        "longer bursts: a smaller to_good",
    ),
    (
        r"closes a loop of switches",
        "with spanning trees, Mininet itself runs: testbed mininet -- mn --switch lxbr,stp=1 …",
    ),
    (r"give the limit in one unit", '"queue": {"discipline": "pie", "limit_packets": 1000}'),
    (r"did you mean '[^']+'", "correct the spelling"),
    (r"(\w+): missing", r'add "\1": …; `testbed schema` says what it takes'),
    (
        r"(\w+)(?:=[^:]*)?: unknown \w+ '[^']*': known: ([\w-]+)",
        r"choose a known value of \1, such as \2",
    ),
    (r"(\w+): expected '([\w-]+)'(?:,| or) .*, got", r"choose a known value of \1, such as \2"),
    (r"(\w+)(?:=\S+)?: \S+ is not between (\S+) and (\S+)", r"\1 takes numbers from \2 to \3"),
    (
        r"(\w+)(?:=\S+)?: \S+ is not above (\S+) and at most (\S+)",
        r"\1 takes numbers above \2, up to \3",
    ),
    (r"(\w+): \S+ is not within the trial's (\S+) s", r"\1 takes seconds from 0 to \2"),
    (r"^(\S+: )?expected an object, got", SCENARIO_HINT),
    (r": two different nodes", 'a link joins two nodes: "ends": ["h1", "r1"]'),
    (r"goes from (\S+) to itself", r"name two hosts: --flow \1,OTHER, or another dst"),
)
_UNIT_TYPED = re.compile(
    r"(?P<name>\w+): expected a valid (?:number|integer), "
    r"got '(?P<number>[-+.\d]+) ?(?P<unit>[A-Za-z/]+)'"
)


def unit_of_setting(name: str) -> str:
    """Return the unit of a field or an axis by the end of its name; empty if it has none."""
    end = "per_s" if name.endswith("_per_s") else name.rpartition("_")[2]
    return SETTING_UNITS.get(end, "") if "_" in name else ""


def number_hint(name: str, text: str, example: float | str = 30) -> str:
    """Return what to type for an axis that takes numbers, in place of a text that is none."""
    typed = re.fullmatch(r"([-+]?\d+(?:\.\d+)?) ?[A-Za-zµ/%]+", text)
    unit = unit_of_setting(name)
    if typed and unit:
        return f"{name} is in {unit}: --set {name}={typed[1]}"
    if ".." in text:
        first, _, last = text.partition("..")
        return f"list the values: --set {name}={first or 1},{last or 2}"
    shown = example if isinstance(example, str) else f"{example:g}"
    return f"{name} is {f'in {unit}' if unit else 'a number'}: --set {name}={shown}"


def hint_of(faults: Sequence[str]) -> str:
    """Return what to type for the first of the faults that there is an answer to."""
    for fault in faults:
        if unit := _UNIT_TYPED.search(fault):
            return number_hint(unit["name"], f"{unit['number']}{unit['unit']}")
        for pattern, hint in FIELD_HINTS:
            if fits := re.search(pattern, fault):
                return fits.expand(hint)
    return FIELDS_HINT


def of_axes(faults: Sequence[str], axes: Mapping[str, str]) -> list[str]:
    """Return the faults with the axis that was set in place of the fields that it set, each once.

    A fault begins with its field: `network.links[0].forward.rate_mbit: …`. A label is made of the
    values of axes: what is wrong with one of them comes first.
    """
    found = list(dict.fromkeys(_of_axis(fault, axes) for fault in faults))
    return [each for each in found if not each.startswith("label: ")] or found


def _of_axis(fault: str, axes: Mapping[str, str]) -> str:
    place, _, what = fault.partition(": ")
    for name, value in axes.items():
        is_unknown = what.startswith("unknown ") and what.split(":")[0].endswith(f" {value!r}")
        if what and (place.rpartition(".")[2] == name or is_unknown):
            return f"{name}={value}: {what}"
    return fault
