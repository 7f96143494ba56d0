"""Settings that no command made: by netlink, or by a write into /proc/sys.

They are found in what was observed of the network, as commands that would have made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from analysis.laboratory.observation import (
    ExecutedCommand,
    Observation,
    ObservedNamespace,
    ObservedQueue,
)
from analysis.laboratory.settings import control_set

LIMITING = frozenset(("netem", "tbf", "pfifo", "bfifo"))  # that no device has by itself
CONTROL_SYSCTL = "net.ipv4.tcp_congestion_control"


def with_silent_settings(observation: Observation) -> Observation:
    """Add to an observation's commands those that stand for settings that no command made."""
    silent = [*_queues(observation), *_controls(observation)]
    commands = sorted([*observation.commands, *silent], key=lambda command: command.order)
    return replace(observation, commands=commands) if silent else observation


def _queues(observation: Observation) -> Iterator[ExecutedCommand]:
    made = {
        (command.namespace, command.after("dev"), word)
        for command in observation.of("tc")
        for word in command.words
    }
    for seen in observation.namespaces:
        for device in seen.devices.values():
            for queue in device.queues:
                key = (seen.inode, device.name, queue.kind)
                if queue.kind in LIMITING and key not in made:
                    made.add(key)
                    argv = ["tc", "qdisc", "add", "dev", device.name, *_arguments(queue)]
                    what = f"{queue.kind} at {device.name} of {observation.label(seen.inode)}"
                    yield _setting(observation, seen, argv, what)


def _arguments(queue: ObservedQueue) -> list[str]:
    """Return the words with which tc makes a queue, as far as they are observed."""
    arguments = [*(["root"] if queue.is_root else ["parent", "?"]), queue.kind]
    arguments += ["delay", f"{queue.delay_ms:g}ms"] if queue.delay_ms else []
    arguments += ["rate", f"{queue.rate_mbit:g}mbit"] if queue.rate_mbit else []
    return arguments + (["limit", f"{queue.limit}"] if queue.limit is not None else [])


def _controls(observation: Observation) -> Iterator[ExecutedCommand]:
    """Yield what changed the congestion controls of namespaces without sysctl.

    A new namespace has that of the machine itself.
    """
    if not observation.namespaces:
        return
    first_inode = observation.namespaces[0].inode
    set_there = {
        (command.namespace, control)
        for command in observation.of("sysctl")
        if (control := control_set(command))
    }
    last: dict[int, str] = {}
    inherited = {control for namespace, control in set_there if namespace == first_inode}
    for seen in observation.namespaces:
        if not seen.control:
            continue
        before = last.get(seen.inode)
        is_new = before is None and (seen.inode == first_inode or seen.control in inherited)
        if not is_new and seen.control != before and (seen.inode, seen.control) not in set_there:
            argv = ["sysctl", "-w", f"{CONTROL_SYSCTL}={seen.control}"]
            what = f"{seen.control} in {observation.label(seen.inode)}"
            name = CONTROL_SYSCTL.rpartition(".")[2]
            yield _setting(observation, seen, argv, what, observation.last_line(name, seen.time_ns))
        last[seen.inode] = seen.control
        if seen.inode == first_inode:
            inherited.add(seen.control)


def _setting(
    observation: Observation,
    seen: ObservedNamespace,
    command: Sequence[str],
    what: str,
    place: str = "",
) -> ExecutedCommand:
    """Return a command that stands for a setting that was seen."""
    seconds = (seen.time_ns - observation.began_ns) / 1e9
    return ExecutedCommand(
        seen.order,
        seen.time_ns,
        seen.inode,
        seen.control,
        command,
        ended_ns=seen.time_ns,
        status=0,
        origin=place or f"{what}, set without a command in the first {seconds:.1f} s",
    )
