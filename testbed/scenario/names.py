"""The rule for names: whatever becomes part of a path, or stands in tables and figures.

It is checked when a scenario is validated, again where a path is made (`testbed/store.py`), and
when a trial's directory is read, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from testbed.errors import TestbedError, quoted
from testbed.scenario.model import Scenario

LONGEST_NAME = 64
NAME_RULE = f"letters, digits, `.`, `_` and `-`, not beginning with a dot, at most {LONGEST_NAME}"
_NAME = re.compile(rf"(?!\.)[A-Za-z0-9._-]{{1,{LONGEST_NAME}}}")


def is_name(value: object) -> bool:
    """Return whether a value is a valid name."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def checked_name(text: str) -> str:
    """Return a name that a path can be made of; raise if it is not valid."""
    if not is_name(text):
        raise TestbedError(f"{quoted(text)}: not a name for a file", f"names are {NAME_RULE}")
    return text


def name_faults(where: str, text: str) -> Iterator[str]:
    """Yield a fault unless the text is a valid name."""
    if not is_name(text):
        yield f"{where}: {quoted(text)}: not a name: {NAME_RULE}"


def text_faults(where: str, text: str) -> Iterator[str]:
    """Yield a fault unless tables and figures can show the text as it is."""
    if not text.isprintable() or set(";$") & set(text) or len(text) > LONGEST_NAME:
        most = f"at most {LONGEST_NAME} printable characters"
        yield f"{where}: {quoted(text)}: {most}, no `;` and no `$`"


def scenario_faults(scenario: Scenario) -> Iterator[str]:
    """Yield the faults of names in paths, and of texts in tables and figures."""
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
