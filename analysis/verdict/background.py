"""Did the background traffic do what was asked: its sessions, round trips, windows, variant?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analysis.trials.background import read_report
from analysis.trials.evidence import FRAME_BYTES, Evidence
from analysis.verdict.checks import OLDER, Check, compare, same, unknown
from testbed.scenario.model import Background

NAME = "background"
PRESSURE = "TcpExtTCPMemoryPressures"

Sessions = list[dict[str, Any]]


def background(evidence: Evidence) -> Iterator[Check]:
    """Nothing, where the scenario has none."""
    wanted = evidence.trial.scenario.background
    if wanted is None:
        return
    report, record = read_report(evidence.trial), evidence.trial.record.background
    if report is None or record is None:
        yield unknown("background sessions", NAME, OLDER)
        return
    sessions: Sessions = report["sessions"]
    yield same("variant", NAME, record.variant_seen, record.control)
    yield compare("start", NAME, evidence.engine, record.started_s, record.planned_start_s)
    yield compare("stop", NAME, evidence.engine, record.stopped_s, record.planned_stop_s)
    yield _kinds(evidence, wanted, sessions)
    yield _round_trips(evidence, sessions)
    widest = max(each["window_bytes"] for each in sessions)
    yield compare(
        "background window",
        NAME,
        evidence.engine,
        widest,
        wanted.window_bytes,
        deviation=max(0, widest - wanted.window_bytes),
    )
    failures = sum(each["failures"] + each["resets"] for each in sessions)
    yield compare("background failures", NAME, evidence.engine, failures, 0)
    yield from _memory(evidence)


def _kinds(evidence: Evidence, wanted: Background, sessions: Sessions) -> Check:
    """As many of either kind as asked; sessions that were too few are none of either."""
    long = sum(each["kind"] == "long" for each in sessions)
    asked = round(wanted.sessions * wanted.long_share)
    off = abs(long - asked) + abs(len(sessions) - wanted.sessions)
    note = f"{long} of {len(sessions)} sessions without an end" if off else ""
    return compare(
        "background sessions", NAME, evidence.engine, long, asked, deviation=off, note=note
    )


def _round_trips(evidence: Evidence, sessions: Sessions) -> Check:
    """The shortest that each session's sockets saw: at least what was drawn, and at most that
    and what all queues can hold. The session that is furthest off."""
    held_ms = sum(
        (each.limit * (1 if each.unit == "bytes" else FRAME_BYTES) + FRAME_BYTES)
        * 8e-3
        / each.rate_mbit
        for each in evidence.trial.record.queues
    )
    seen = [
        (_outside(each["rtt_min_ms"] - each["rtt_ms"], held_ms), number)
        for number, each in enumerate(sessions)
        if each["rtt_min_ms"] is not None
    ]
    if not seen:
        return unknown("background RTT", NAME, "no session ever had an answer")
    off, worst = max(seen)
    return compare(
        "background RTT",
        f"session {worst}",
        evidence.engine,
        sessions[worst]["rtt_min_ms"],
        sessions[worst]["rtt_ms"],
        deviation=off,
    )


def _outside(late_ms: float, held_ms: float) -> float:
    return max(0.0, -late_ms, late_ms - held_ms)


def _memory(evidence: Evidence) -> Iterator[Check]:
    counters = evidence.json("samples", "counters.json")
    if counters is None:
        yield unknown("memory", NAME, OLDER)
        return
    times = sum(node.get(PRESSURE, 0) for node in counters.values())
    yield compare("memory", NAME, evidence.engine, times, 0)
