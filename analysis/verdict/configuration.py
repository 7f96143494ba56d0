"""Checks of the configuration: the sockets' variant and options, every setting, offloads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from analysis.captures.tcp import RST, SYN
from analysis.trials.documents import Configuration, read_trial_document
from analysis.verdict.checks import (
    NEVER_CONNECTED,
    NOT_CAPTURED,
    NOT_RECORDED,
    Check,
    Grade,
    make_check,
    same,
    unknown,
    unverified,
)
from analysis.verdict.evidence import Evidence
from testbed.scenario.network import FRAME_OVERHEAD_BYTES, MTU_BYTES
from testbed.store.names import CONFIGURATION_FILE
from testbed.store.records import FlowRecord

OWN_SOCKETS = "the program's sockets came and went between the samples"
# the local version of a user's own kernel ends with its name (own.sh); that of an image of Debian's
# that looks for errors with `+debug` (kernel/debug/)
RELEASE = re.compile(
    r"Linux (?P<version>\d+\.\d++)(?>\S*?-testbed)"
    r"(?:-(?P<name>\S+)|\+(?P<flavour>debug))?(?=\s|$)"
)
CHOSEN = "its program chose it: let the flow's variant say so"
PACED_OPTION = "paced"  # of a flow's options, which only a program sets
PACES = "its program paces by itself (SO_MAX_PACING_RATE), whatever its congestion control does"
DRAWN_BY_KERNEL = {"net.ipv4.tcp_fastopen_key"}  # for each namespace, when a program first needs it
SETTING_CHARACTERS = 60  # in a message


def kernel(evidence: Evidence) -> Iterator[Check]:
    """Check the version of Linux in the guest, or the name of the user's own kernel."""
    if not evidence.virtual_time:
        return
    ran = RELEASE.match(evidence.trial.record.kernel)
    if ran is None:
        yield unverified("kernel", "guest", NOT_RECORDED)
        return
    of_debian = "-".join(filter(None, (ran["version"], ran["flavour"])))
    wanted = evidence.trial.scenario.kernel
    yield same("kernel", "guest", ran["name"] or of_debian, wanted, "run it with --rerun")


def sockets(evidence: Evidence) -> Iterator[Check]:
    """Check congestion control and options of every TCP flow's sockets."""
    for flow in evidence.tcp:
        of_program = evidence.trial.scenario.flow(flow.name).command is not None
        if of_program and not flow.variant_seen:
            yield unverified("variant", flow.name, OWN_SOCKETS)
            yield unknown("options", flow.name, OWN_SOCKETS)
            continue
        if not flow.variant_seen and _never_connected(evidence, flow):
            yield unknown("variant", flow.name, NEVER_CONNECTED)
            yield unknown("options", flow.name, NEVER_CONNECTED)
            continue
        scenario = evidence.trial.scenario
        control = scenario.flow(flow.name).control_at(flow.stopped_s, flow.control)
        note = CHOSEN if of_program else another_variant(flow.variant_seen, control)
        yield same("variant", flow.name, flow.variant_seen, control, note)
        if _never_answered(evidence, flow):
            yield unknown("options", flow.name, NEVER_CONNECTED)
            continue
        agreed = tuple(name for name in flow.options_seen if name != PACED_OPTION)
        check = same("options", flow.name, _names(agreed), _names(flow.options))
        if PACED_OPTION in flow.options_seen and check.verdict is Grade.VALID:
            check = replace(check, verdict=Grade.SUSPECT, why=f"options of {flow.name}: {PACES}")
        yield check


def _never_connected(evidence: Evidence, flow: FlowRecord) -> bool:
    """Return whether a flow's sender saw nothing but connections that begin, or are reset."""
    packets = evidence.packets.part("sender", flow)
    if packets is None:
        return False
    flags = np.concatenate((packets.data["flags"], packets.acks["flags"]))
    return bool(len(flags) and ((flags & (SYN | RST)) > 0).all())


def _never_answered(evidence: Evidence, flow: FlowRecord) -> bool:
    """Return whether a flow's SYNs all got lost: options are agreed on in the answer to one."""
    ends = (evidence.packets.part(side, flow) for side in ("sender", "receiver"))
    return any(packets is not None and not len(packets.acks) for packets in ends)


def another_variant(observed: str, control: str) -> str:
    """Explain why a socket ran another congestion control, and say what to do."""
    if not observed:
        return "no connection of the flow was seen: did its packets get through?"
    if observed == f"{control}-reno":  # the kernel's own name for it
        return (
            f"the kernel runs Reno in place of {control} on a connection without ECN: run it "
            "again with --rerun, so that both hosts ask for ECN"
        )
    return "a program or a route chose it: run it again with --rerun"


def _names(options: tuple[str, ...]) -> str:
    return " and ".join(sorted(options)) or "none"


def settings(evidence: Evidence) -> Iterator[Check]:
    """Check that everything verified before the flows is unchanged after them.

    Settings of TCP's that nobody planned are read afterwards alone: all hosts have the same.
    """
    states = read_trial_document(evidence.trial, CONFIGURATION_FILE, Configuration)
    if states is None:
        yield unverified("configuration", "settings", NOT_RECORDED)
        return
    begin, end = states["begin"], states["end"]
    changed = {
        key: f"{_short(begin.get(key))} became {_short(end.get(key))}"
        for key in {**begin, **end}
        if begin.get(key) != end.get(key)
    }
    changed |= dict(_unlike_other_hosts(evidence, begin))
    subject, note = next(iter(changed.items()), ("settings", ""))
    yield make_check("configuration", subject, evidence.virtual_time, len(changed), 0, note=note)


def _unlike_other_hosts(
    evidence: Evidence, planned: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the unplanned settings that a host has another value of than most, with a note."""
    hosts = evidence.trial.record.sysctls
    for name in sorted({name for each in hosts.values() for name in each} - DRAWN_BY_KERNEL):
        keys = {
            f"{node}: sysctl {name}": each[name] for node, each in hosts.items() if name in each
        }
        values = {key: text for key, text in keys.items() if key not in planned}
        ((usual, _),) = Counter(values.values()).most_common(1) or [("", 0)]
        for key, text in values.items():
            if text != usual:
                yield key, f"{_short(text)}, where other hosts have {_short(usual)}"


def _short(text: str | None) -> str:
    if text is None:
        return "nothing"
    line = " ".join(text.split())
    return repr(line if len(line) <= SETTING_CHARACTERS else line[: SETTING_CHARACTERS - 1] + "…")


def offloads(evidence: Evidence) -> Iterator[Check]:
    """Check that no packet is larger than its link's MTU; yields each bad capture, or one."""
    states = read_trial_document(evidence.trial, CONFIGURATION_FILE, Configuration)
    begin = states["begin"] if states else {}
    checks = []
    for capture in evidence.trial.record.captures:
        if not capture.file:
            continue
        lengths = evidence.packets.read(evidence.trial.path / capture.file).part["length"]
        longest = int(lengths.max()) if len(lengths) else 0
        mtu = begin.get(f"{capture.node}: mtu of {capture.interface}", "")
        most = (int(mtu) if mtu.isdigit() else MTU_BYTES) + FRAME_OVERHEAD_BYTES
        over = max(0, longest - most)
        checks.append(
            make_check(
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
