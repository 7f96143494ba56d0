"""Checks of a video flow: as asked for, every file whole, and every byte seen in a packet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analysis.trials.delivery import delivered_bytes
from analysis.trials.packets import FlowPackets
from analysis.trials.video import loads, read_playback, read_sizes
from analysis.verdict.checks import NOT_CAPTURED, Check, compare, same, unknown
from analysis.verdict.evidence import Evidence
from testbed.scenario.model import FlowKind
from testbed.store import FlowRecord

NO_REPORT = "the player left no report"


def videos(evidence: Evidence) -> Iterator[Check]:
    """All checks of every video flow."""
    for flow in evidence.flows:
        wanted = evidence.trial.scenario.flow(flow.name)
        if wanted.kind is not FlowKind.VIDEO or wanted.video is None:
            continue
        playback = read_playback(evidence.trial, flow.name)
        sizes = read_sizes(evidence.trial, flow.name)
        if playback is None or sizes is None:
            for name in ("video", "video bytes", "video capture"):
                yield unknown(name, flow.name, NO_REPORT)
            continue
        expected = f"{wanted.video.transport} {wanted.video.rule}"
        yield same("video", flow.name, f"{playback['transport']} {playback['rule']}", expected)
        yield _whole(evidence, flow.name, playback, sizes)
        yield _captured(evidence, flow, playback)


def _whole(evidence: Evidence, flow: str, playback: dict[str, Any], sizes: dict[str, int]) -> Check:
    """A received file is as long as it is at the server; one still in transfer, no longer."""
    came = expected = off = 0
    for load in loads(playback):
        size = sizes[load["path"]]
        whole = load["last_byte_s"] is not None
        due = size if whole else min(load["bytes"], size)
        came, expected, off = came + load["bytes"], expected + due, off + abs(load["bytes"] - due)
    return compare("video bytes", flow, evidence.virtual_time, came, expected, deviation=off)


def _captured(evidence: Evidence, flow: FlowRecord, playback: dict[str, Any]) -> Check:
    """The bytes that the player reports have arrived in packets, with more for headers and TLS."""
    found = evidence.packets.flow("receiver", flow)
    if found is None:
        return unknown("video capture", flow.name, NOT_CAPTURED)
    came = sum(load["bytes"] for load in loads(playback))
    seen = _payload(found, flow.protocol)
    return compare(
        "video capture", flow.name, evidence.virtual_time, came, seen, deviation=max(0, came - seen)
    )


def _payload(found: FlowPackets, protocol: str) -> int:
    if protocol == "udp":
        return int(found.data["payload"].sum())
    delivered = delivered_bytes(found.data)
    return int(delivered[-1]) if len(delivered) else 0
