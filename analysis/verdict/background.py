"""Checks of the background traffic: its sessions, round trips, windows and variant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analysis.trials.background import read_report
from analysis.trials.capacity import capacity_of
from analysis.trials.samples import total_counter
from analysis.verdict.checks import NOT_RECORDED, Check, compare, same, unknown
from analysis.verdict.configuration import another_variant
from analysis.verdict.evidence import Evidence
from analysis.verdict.sender_queue import longest_wait_ns
from testbed.scenario.model import Background

NAME = "background"
PRESSURE = "TcpExtTCPMemoryPressures"

Sessions = list[dict[str, Any]]


def background(evidence: Evidence) -> Iterator[Check]:
    """All checks of the background sessions; none if the scenario has no background."""
    wanted = evidence.trial.scenario.background
    if wanted is None:
        return
    report, record = read_report(evidence.trial), evidence.trial.record.background
    if report is None or record is None:
        yield unknown("background sessions", NAME, NOT_RECORDED)
        return
    sessions: Sessions = report["sessions"]
    note = another_variant(record.variant_seen, record.control)
    yield same("variant", NAME, record.variant_seen, record.control, note)
    yield compare("start", NAME, evidence.virtual_time, record.started_s, record.planned_start_s)
    yield compare("stop", NAME, evidence.virtual_time, record.stopped_s, record.planned_stop_s)
    yield _kinds(evidence, wanted, sessions)
    yield _round_trips(evidence, sessions)
    widest = max(each["window_bytes"] for each in sessions)
    yield compare(
        "background window",
        NAME,
        evidence.virtual_time,
        widest,
        wanted.window_bytes,
        deviation=max(0, widest - wanted.window_bytes),
    )
    failures = sum(each["failures"] + each["resets"] for each in sessions)
    yield compare("background failures", NAME, evidence.virtual_time, failures, 0)
    yield from _memory(evidence)


def _kinds(evidence: Evidence, wanted: Background, sessions: Sessions) -> Check:
    """As many sessions of each kind as asked for; missing sessions count as well."""
    long = sum(each["kind"] == "long" for each in sessions)
    wanted_long = round(wanted.sessions * wanted.long_share)
    off = abs(long - wanted_long) + abs(len(sessions) - wanted.sessions)
    note = f"{long} of {len(sessions)} sessions without an end" if off else ""
    return compare(
        "background sessions",
        NAME,
        evidence.virtual_time,
        long,
        wanted_long,
        deviation=off,
        note=note,
    )


def _round_trips(evidence: Evidence, sessions: Sessions) -> Check:
    """The minimum RTT of the session that is furthest off: at least the RTT drawn for it, and at
    most that plus the wait in all queues when they are full."""
    trial = evidence.trial
    waits_ns = (longest_wait_ns(each, capacity_of(trial, each)) for each in trial.record.queues)
    queued_ms = sum(waits_ns) / 1e6
    seen = [
        (_outside(each["rtt_min_ms"] - each["rtt_ms"], queued_ms), number)
        for number, each in enumerate(sessions)
        if each["rtt_min_ms"] is not None
    ]
    if not seen:
        return unknown("background RTT", NAME, "no session ever had an answer")
    off, worst = max(seen)
    return compare(
        "background RTT",
        f"session {worst}",
        evidence.virtual_time,
        sessions[worst]["rtt_min_ms"],
        sessions[worst]["rtt_ms"],
        deviation=off,
    )


def _outside(late_ms: float, queued_ms: float) -> float:
    return max(0.0, -late_ms, late_ms - queued_ms)


def _memory(evidence: Evidence) -> Iterator[Check]:
    times = total_counter(evidence.trial, PRESSURE)
    if times is None:
        yield unknown("memory", NAME, NOT_RECORDED)
        return
    yield compare("memory", NAME, evidence.virtual_time, times, 0)
