"""The rule for names: whatever becomes part of a path, or stands in tables and figures.

It is checked when a scenario is validated, again where a path is made (`testbed/store.py`), and
when a trial's directory is read, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from testbed.errors import TestbedError, quoted
from testbed.scenario.model import Scenario

LONGEST = 64
RULE = f"letters, digits, `.`, `_` and `-`, not beginning with a dot, at most {LONGEST}"
_NAME = re.compile(rf"(?!\.)[A-Za-z0-9._-]{{1,{LONGEST}}}")


def is_name(value: object) -> bool:
    """Whether a value is a name by the rule."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def checked(text: str) -> str:
    """The name, for a path to be made of it; an error if it is none."""
    if not is_name(text):
        raise TestbedError(f"{quoted(text)} cannot be part of a file's name", f"names are {RULE}")
    return text


def name_faults(where: str, text: str) -> Iterator[str]:
    """A fault unless the text is a name."""
    if not is_name(text):
        yield f"{where}: {quoted(text)} is no name: {RULE}"


def text_faults(where: str, text: str) -> Iterator[str]:
    """A fault unless the text is short and printable: what tables and figures show as it is."""
    if not text.isprintable() or set(";$") & set(text) or len(text) > LONGEST:
        yield f"{where}: {quoted(text)}: at most {LONGEST} printable characters, no `;` and no `$`"


def scenario_faults(scenario: Scenario) -> Iterator[str]:
    """Yield what becomes part of a path, or stands in tables and figures, and is not fit for it."""
    yield from name_faults("experiment", scenario.experiment)
    yield from name_faults("network.name", scenario.network.name)
    if scenario.label:
        yield from name_faults("label", scenario.label)
    yield from name_faults("kernel", scenario.kernel)
    if not any(link.observed and link.forward.rate_mbit for link in scenario.network.links):
        yield "network.links: no observed link has a rate_mbit forward: nothing would ever queue"
    for index, flow in enumerate(scenario.flows):
        yield from name_faults(f"flows[{index}].name", flow.name)
        if flow.loss is not None:
            yield from text_faults(f"flows[{index}].loss.dice", flow.loss.dice)
    for axis, value in scenario.axes.items():
        yield from name_faults("axes", axis)
        yield from text_faults(f"axes.{quoted(axis)}", value)
