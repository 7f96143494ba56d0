"""Checks of the configuration: the sockets' variant and options, every setting, offloads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from analysis.verdict.checks import (
    NEVER_CONNECTED,
    NOT_CAPTURED,
    NOT_RECORDED,
    Check,
    Grade,
    compare,
    same,
    unknown,
)
from analysis.verdict.evidence import Evidence
from testbed.scenario.model import FRAME_OVERHEAD_BYTES
from testbed.store import CONFIGURATION, FlowRecord, read_json

MTU_BYTES = 1500
OWN_SOCKETS = "a program's sockets come and go between the samples"
# what the guest says: the local version of a kernel of one's own ends with its name (own.sh)
RELEASE = re.compile(r"Linux (?P<version>\d+\.\d+)\S*?-testbed(?:-(?P<name>\S+))?(?=\s|$)")
SHOWN = 60  # characters of a setting


def kernel(evidence: Evidence) -> Iterator[Check]:
    """The version of Linux in the guest, or the name of the user's own kernel."""
    if not evidence.virtual_time:
        return
    ran = RELEASE.match(evidence.trial.record.kernel)
    if ran is None:
        yield unknown("kernel", "guest", NOT_RECORDED)
        return
    asked = evidence.trial.scenario.kernel
    yield same("kernel", "guest", ran["name"] or ran["version"], asked, "run it with --rerun")


def sockets(evidence: Evidence) -> Iterator[Check]:
    """Congestion control and options of every TCP flow's sockets."""
    for flow in evidence.tcp:
        if evidence.trial.scenario.flow(flow.name).command is not None:
            yield unknown("variant", flow.name, OWN_SOCKETS)
            yield unknown("options", flow.name, OWN_SOCKETS)
            continue
        note = another_variant(flow.variant_seen, flow.control)
        yield same("variant", flow.name, flow.variant_seen, flow.control, note)
        if _never_answered(evidence, flow):
            yield unknown("options", flow.name, NEVER_CONNECTED)
        else:
            yield same("options", flow.name, _names(flow.options_seen), _names(flow.options))


def _never_answered(evidence: Evidence, flow: FlowRecord) -> bool:
    """True for a flow whose SYNs all got lost: options are agreed on in the answer to one."""
    found = evidence.packets.flow("sender", flow)
    return found is not None and not len(found.acks)


def another_variant(seen: str, control: str) -> str:
    """Why a socket ran another congestion control than the one requested, and what to do."""
    if not seen:
        return "no connection of the flow was seen: did its packets get through?"
    if seen == f"{control}-reno":  # the kernel's own name for it
        return (
            f"the kernel runs Reno in place of {control} on a connection without ECN: run it "
            "again with --rerun, so that both hosts ask for ECN"
        )
    return "a program or a route chose it: run it again with --rerun"


def _names(options: tuple[str, ...]) -> str:
    return " and ".join(sorted(options)) or "none"


def settings(evidence: Evidence) -> Iterator[Check]:
    """Everything verified before the flows is unchanged after them."""
    found = read_json(evidence.trial.path, CONFIGURATION)
    if found is None:
        yield unknown("configuration", "settings", NOT_RECORDED)
        return
    begin, end = found["begin"], found["end"]
    changed = [key for key in {**begin, **end} if begin.get(key) != end.get(key)]
    note = ""
    if changed:
        key = changed[0]
        note = f"{_short(begin.get(key))} became {_short(end.get(key))}"
    subject = changed[0] if changed else "settings"
    yield compare("configuration", subject, evidence.virtual_time, len(changed), 0, note=note)


def _short(text: str | None) -> str:
    if text is None:
        return "nothing"
    line = " ".join(text.split())
    return repr(line if len(line) <= SHOWN else line[: SHOWN - 1] + "…")


def offloads(evidence: Evidence) -> Iterator[Check]:
    """No packet is larger than the MTU of its link; one check each for bad captures, else one."""
    found = read_json(evidence.trial.path, CONFIGURATION) or {}
    begin = found.get("begin", {})
    checks = []
    for capture in evidence.trial.record.captures:
        if not capture.file:
            continue
        lengths = evidence.packets.read(evidence.trial.path / capture.file).rows["length"]
        longest = int(lengths.max()) if len(lengths) else 0
        mtu = begin.get(f"{capture.node}: mtu of {capture.interface}", "")
        most = (int(mtu) if mtu.isdigit() else MTU_BYTES) + FRAME_OVERHEAD_BYTES
        over = max(0, longest - most)
        checks.append(
            compare(
                "offloads",
                capture.interface,
                evidence.virtual_time,
                longest,
                most,
                deviation=over,
            )
        )
    bad = [check for check in checks if check.verdict is not Grade.VALID]
    if not checks:
        yield unknown("offloads", "captures", NOT_CAPTURED)
    yield from bad or checks[:1]
