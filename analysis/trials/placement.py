"""The places of a flow's captures, and the shaped queues that it crosses between them."""

from __future__ import annotations

from pathlib import Path

from testbed.store import FlowRecord, QueueRecord, Trial


def capture_interface(trial: Trial, role: str, flow: FlowRecord) -> str:
    """The interface of a flow's capture with this role; empty if it was not taken."""
    for capture in trial.record.captures:
        if f"{role}:{flow.name}" in capture.roles and capture.file:
            return capture.interface
    return ""


def capture_files(trial: Trial) -> dict[str, Path]:
    """The capture file of each interface."""
    return {each.interface: trial.path / each.file for each in trial.record.captures if each.file}


def bottleneck_queues(trial: Trial) -> tuple[QueueRecord, ...]:
    """The shaped queues at the captured ends of a bottleneck."""
    names = {
        capture.interface
        for capture in trial.record.captures
        if capture.file and any(role.startswith("bottleneck-") for role in capture.roles)
    }
    return tuple(queue for queue in trial.record.queues if queue.interface in names)


def sender_queue(trial: Trial, flow: FlowRecord) -> QueueRecord | None:
    """The sender's own shaped queue, if it has one: TCP has sent the packets waiting in it, but
    the capture behind it has not seen them yet."""
    name = capture_interface(trial, "sender", flow)
    return next((queue for queue in trial.record.queues if queue.interface == name), None)
