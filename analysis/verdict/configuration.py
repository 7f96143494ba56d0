"""Did the stacks and the network run as they were asked to?"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.trials.evidence import Evidence
from analysis.verdict.checks import NOT_CAPTURED, OLDER, Check, Grade, compare, same, unknown
from testbed.scenario.model import FRAME_OVERHEAD_BYTES
from testbed.store import SAMPLES

MTU_BYTES = 1500
SHOWN = 60  # characters of a setting


def sockets(evidence: Evidence) -> Iterator[Check]:
    """Congestion control and options of every TCP flow's sockets."""
    for flow in evidence.tcp:
        if not flow.control:
            yield unknown("variant", flow.name, OLDER)
            yield unknown("options", flow.name, OLDER)
            continue
        yield same("variant", flow.name, flow.variant_seen, flow.control)
        yield same("options", flow.name, _names(flow.options_seen), _names(flow.options))


def _names(options: tuple[str, ...]) -> str:
    return " and ".join(sorted(options)) or "none"


def settings(evidence: Evidence) -> Iterator[Check]:
    """What was verified before the flows is as it was after them."""
    found = evidence.json(SAMPLES, "configuration.json")
    if found is None:
        yield unknown("configuration", "settings", OLDER)
        return
    begin, end = found["begin"], found["end"]
    changed = [key for key in {**begin, **end} if begin.get(key) != end.get(key)]
    note = ""
    if changed:
        key = changed[0]
        note = f"{_short(begin.get(key))} became {_short(end.get(key))}"
    subject = changed[0] if changed else "settings"
    yield compare("configuration", subject, evidence.engine, len(changed), 0, note=note)


def _short(text: str | None) -> str:
    if text is None:
        return "nothing"
    line = " ".join(text.split())
    return repr(line if len(line) <= SHOWN else line[: SHOWN - 1] + "…")


def offloads(evidence: Evidence) -> Iterator[Check]:
    """No packet is larger than its link takes; one check, of the worst capture."""
    begin = (evidence.json(SAMPLES, "configuration.json") or {}).get("begin", {})
    checks = []
    for capture in evidence.trial.record.captures:
        if not capture.file:
            continue
        lengths = evidence.packets.read(evidence.trial.path / capture.file).rows["length"]
        longest = int(lengths.max()) if len(lengths) else 0
        mtu = begin.get(f"{capture.node}: mtu of {capture.interface}", "")
        most = (int(mtu) if mtu.isdigit() else MTU_BYTES) + FRAME_OVERHEAD_BYTES
        over = max(0, longest - most)
        name, engine = capture.interface, evidence.engine
        checks.append(compare("offloads", name, engine, longest, most, deviation=over))
    bad = [check for check in checks if check.verdict is not Grade.VALID]
    if not checks:
        yield unknown("offloads", "captures", NOT_CAPTURED)
    yield from bad or checks[:1]
