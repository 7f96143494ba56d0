"""The places of a flow's captures, and the shaped queues that it crosses between them."""

from __future__ import annotations

from pathlib import Path

from analysis.trials.labels import by_number
from testbed.store import QUEUE_ROLE, FlowRecord, QueueRecord, Trial

BEFORE, BEHIND = "-in", "-out"  # of a queue, in the roles of its captures


def capture_interface(trial: Trial, role: str, flow: FlowRecord) -> str:
    """The interface of a flow's capture with this role; empty if it was not taken."""
    for capture in trial.record.captures:
        if f"{role}:{flow.name}" in capture.roles and capture.file:
            return capture.interface
    return ""


def capture_files(trial: Trial) -> dict[str, Path]:
    """The capture file of each interface."""
    return {each.interface: trial.path / each.file for each in trial.record.captures if each.file}


def queue_roles(trial: Trial, flow: FlowRecord) -> tuple[str, ...]:
    """A flow's captured queues in the order of its path, by what their captures' roles begin with:
    `bottleneck`, or `queue1`, `queue2`, … where there are several."""
    end = f"{BEHIND}:{flow.name}"
    roles = [role for capture in trial.record.captures for role in capture.roles]
    found = [role.removesuffix(end) for role in roles if role.endswith(end)]
    numbered = [name for name in found if name.startswith(QUEUE_ROLE)]
    return tuple(sorted(numbered, key=by_number)) or tuple(found)


def captured_queues(trial: Trial) -> tuple[QueueRecord, ...]:
    """The shaped queues at the captured ends of observed links."""
    names = {
        capture.interface
        for capture in trial.record.captures
        if capture.file and any("-in:" in role or "-out:" in role for role in capture.roles)
    }
    return tuple(queue for queue in trial.record.queues if queue.interface in names)


def sender_queue(trial: Trial, flow: FlowRecord) -> QueueRecord | None:
    """The sender's own shaped queue, if it has one: TCP has sent the packets waiting in it, but
    the capture behind it has not seen them yet."""
    name = capture_interface(trial, "sender", flow)
    return next((queue for queue in trial.record.queues if queue.interface == name), None)
