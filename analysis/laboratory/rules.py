"""The table of what can be wrong with a laboratory, and the judgement by it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.laboratory.observation import ExecutedCommand, Observation, ObservedDevice
from analysis.laboratory.paths import IDLE_BYTES, Device, Handshake, Paths, handshakes
from analysis.laboratory.settings import (
    MOST_COUNTED,
    SETTERS,
    QueueCommand,
    control_option,
    control_set,
    is_client,
    is_udp,
    port_of,
    queue_commands,
    rate_of,
    server_of,
    time_ms,
)
from analysis.laboratory.silent_settings import with_silent_settings
from testbed.scenario.queues import FRAME_BYTES

SMALL_NUMBER = 1000  # who writes a delay of more without a unit knows that they are µs
IDLE_PACKETS = 20  # neighbour discovery and the like
UNLIMITED_QUEUES = frozenset(("noqueue", "pfifo_fast", "mq"))  # that a device has by itself
DATA_BYTES = 200_000
SHAPERS = frozenset(("htb", "tbf", "hfsc", "cake", "ingress", "clsact"))
ACKNOWLEDGEMENT_BYTES = 120  # the mean of a direction in which no data go
ONE_WAY = 20  # times as many bytes as in the other direction
RTT_SHARE = 0.8  # of the delays of the links, below which a handshake's RTT is too short
CLOCK_MS = 0.2
ABOVE_MS, ABOVE_SHARE = 5.0, 0.25  # above the links' RTT, from which it is too long
REPEATED_MS = 990.0  # from here on a SYN was lost and sent again
UNUSED_CONTROL = "a congestion control that is not used"
KEPT_QUEUES = "add the queue below the link's (`parent 5:1` or `parent 10:1`), or on another device"


@dataclass(frozen=True)
class LaboratoryFinding:
    """Something that is wrong with a laboratory."""

    rule: str
    place: str  # the script's file and line, or the command line that is no Python script's
    happened: str
    instead: str
    times: int = 1

    def __str__(self) -> str:
        more = f" ({self.times} times)" if self.times > 1 else ""
        return f"{self.place}: {self.happened}{more}; {self.instead}"


Wrong = tuple[ExecutedCommand, str, str]  # the command, what happened, what to write in its place


@dataclass(frozen=True)
class LaboratoryRule:
    """One thing that can be wrong, and what finds it."""

    name: str
    find: Callable[[Observation], Iterable[Wrong]]
    # whether nothing that comes later changes the judgement, once the command has ended
    at_once: bool = False


def _delays_without_units(observation: Observation) -> Iterator[Wrong]:
    for queue in queue_commands(observation):
        amounts = {name: queue.after(name) for name in ("delay", "rate", "latency")}
        for name, said in {**amounts, "jitter": queue.jitter}.items():
            try:
                small = 0 < float(said) < SMALL_NUMBER
            except ValueError:
                continue
            if small and name == "rate":
                happened = f"'rate {said}' has no unit, and tc reads it as {said} bit/s"
                yield queue.command, happened, f"write 'rate {said}mbit'"
            elif small:
                happened = f"'{name} {said}' has no unit, and tc reads it as {said} µs"
                link = f"{name}='{said}ms'" if queue.by_mininet else f"'{name} {said}ms'"
                yield queue.command, happened, f"write {link}"


def _queues_and_devices(observation: Observation) -> Iterator[tuple[QueueCommand, ObservedDevice]]:
    """Yield the commands that gave a device a queue, with the device as it was afterwards."""
    for queue in queue_commands(observation):
        if device := observation.device(queue.command, queue.device):
            yield queue, device


def _delay_lines_that_drop(observation: Observation) -> Iterator[Wrong]:
    for queue, limit, drops, needed in _limited_delays(observation):
        if drops and needed >= limit / 2:
            happened = (
                f"netem's limit of {limit} packets also counts those on their way: "
                f"{needed:.0f} at {rate_of(queue, observation):g} Mbit/s in {queue.delay_ms:g} ms; "
                f"it dropped {drops}"
            )
            larger = f"{needed + limit:.0f}"
            instead = f"max_queue_size={larger}" if queue.by_mininet else f"'limit {larger}'"
            yield queue.command, happened, f"write {instead}, or delay packets on another interface"


def _limited_delays(
    observation: Observation,
) -> Iterator[tuple[QueueCommand, int, int, float]]:
    """Yield delays with their limits, what these dropped, and the packets on their way."""
    for queue, device in _queues_and_devices(observation):
        rate = rate_of(queue, observation)
        for seen in device.queues if queue.delay_ms and rate else ():
            if seen.kind == "netem" and seen.limit:
                needed = rate * 1e3 * queue.delay_ms / 8 / FRAME_BYTES
                yield queue, seen.limit, seen.drops, needed


def _queues_that_nothing_passes(observation: Observation) -> Iterator[Wrong]:
    devices = observation.last_seen()
    busiest = max(devices.items(), key=lambda each: each[1].sent_bytes, default=None)
    if busiest is None or busiest[1].sent_bytes < DATA_BYTES:
        return
    for queue, device in _queues_and_devices(observation):
        if queue.by_mininet:
            continue
        packets = sum(each.packets for each in device.queues if each.kind == queue.kind)
        if packets <= IDLE_PACKETS and device.sent_packets <= IDLE_PACKETS:
            (inode, name), _busy = busiest
            happened = f"{packets} packets passed the queue of {queue.device}"
            instead = f"most passed {name} of {observation.label(inode)}: put it where the data go"
            yield queue.command, happened, instead


def _queues_for_acknowledgements(observation: Observation) -> Iterator[Wrong]:
    paths = Paths(observation)
    queues = list(_queues_and_devices(observation))
    of_senders = {queue.discipline for queue, device in queues if device.sent_bytes >= DATA_BYTES}
    for queue, device in queues:
        if queue.by_mininet or not queue.shapes or not device.sent_packets:
            continue
        if queue.discipline in of_senders:
            continue  # hosts that send have it, too
        key = (queue.command.namespace, queue.device)
        mean = device.sent_bytes / device.sent_packets
        one_way = device.received_bytes > max(DATA_BYTES, ONE_WAY * device.sent_bytes)
        other = paths.peer(key) if key in paths.devices else None
        kinds = {each.kind for each in paths.devices[other].queues} if other else set()
        if mean < ACKNOWLEDGEMENT_BYTES and one_way and kinds <= UNLIMITED_QUEUES:
            happened = (
                f"only acknowledgements passed the queue of {queue.device}: {device.sent_bytes} "
                f"bytes, where {device.received_bytes} came in"
            )
            name = f"{other[1]} of {observation.label(other[0])}" if other else "the other end"
            yield queue.command, happened, f"a queue is for what leaves a device: put it on {name}"


def _segments_counted_as_packets(observation: Observation) -> Iterator[Wrong]:
    senders = list(_segment_senders(observation))
    for queue, device in _queues_and_devices(observation):
        if not queue.limit or queue.limit >= MOST_COUNTED:
            continue
        for (inode, name), sent in senders:
            passed = sum(each.sent_bytes for each in device.queues if each.kind == queue.kind)
            if passed >= sent.sent_bytes / 2:
                where = observation.label(inode)
                happened = (
                    f"the queue of {queue.limit} packets counts segments of up to 64 KB as one: "
                    f"{name} of {where} has TSO on"
                )
                yield queue.command, happened, f"before traffic: ethtool -K {name} tso off gso off"
                break


def _segment_senders(observation: Observation) -> Iterator[tuple[Device, ObservedDevice]]:
    """Yield the devices that sent TCP's data from an address of theirs, with TSO."""
    sources = {each.source[0] for each in observation.sockets if each.new == "ESTABLISHED"}
    for key, device in observation.last_seen().items():
        sends = device.sent_bytes >= DATA_BYTES and sources & set(device.addresses)
        if sends and device.segments_later:
            yield key, device


def _queues_below_bdp(observation: Observation) -> Iterator[Wrong]:
    rtts = map(Paths(observation).rtt_ms, handshakes(observation.sockets))
    shortest = min(rtts, default=0.0)
    on_the_way = {
        queue.command.order: needed for queue, _l, _d, needed in _limited_delays(observation)
    }
    for queue, device in _queues_and_devices(observation):
        rate = rate_of(queue, observation)
        if not queue.limit or not rate:
            continue
        needed = rate * 1e3 * shortest / 8 / FRAME_BYTES
        drops = sum(each.drops for each in device.queues if each.kind == queue.kind)
        if (
            drops
            and queue.limit < int(needed)
            and on_the_way.get(queue.command.order, 0) < queue.limit / 2
        ):
            happened = (
                f"the queue of {queue.limit} packets is below the bandwidth-delay product, "
                f"{needed:.0f} at {rate:g} Mbit/s and {shortest:.1f} ms; it dropped {drops}"
            )
            instead = f"one flow does not fill the link: {needed:.0f} packets would do"
            yield queue.command, happened, instead


def _rtts_below_the_links(observation: Observation) -> Iterator[Wrong]:
    paths = Paths(observation)
    for each in handshakes(observation.sockets):
        forward = paths.between(each.source, each.destination, each.begun_ns)
        back = paths.between(each.destination, each.source, each.begun_ns)
        said_ms, said_forward_ms = _least_ms([*forward, *back]), _least_ms(forward)
        enough = each.took_ms >= RTT_SHARE * said_ms - CLOCK_MS
        enough_forward = each.forward_ms >= RTT_SHARE * said_forward_ms - CLOCK_MS
        if enough and enough_forward:
            continue
        ends = f"from {each.source} to {each.destination}"
        measured = f"the RTT {ends} was {each.took_ms:.2f} ms, where its links say {said_ms:g} ms"
        if enough:
            measured = f"packets took {each.forward_ms:.2f} ms {ends}, where the links say "
            measured += f"{said_forward_ms:g} ms"
        for queue in (*forward, *back):
            for command in observation.of("tc"):
                if _displaces(command, queue) and command.time_ns <= each.begun_ns:
                    happened = f"{measured}: '{command}' removed the delay of {queue.device}"
                    yield command, happened, KEPT_QUEUES


def _rtts_above_the_links(observation: Observation) -> Iterator[Wrong]:
    """Judge the shortest handshake between two ends, of those that met empty queues."""
    paths = Paths(observation)
    shortest: dict[tuple[str, str], tuple[float, Handshake, list[QueueCommand]]] = {}
    answered: set[tuple[str, str]] = set()
    for each in handshakes(observation.sockets) if paths.says_all_delays() else ():
        ends = (each.source, each.destination)
        delays = paths.between(*ends, each.begun_ns) + paths.between(*ends[::-1], each.begun_ns)
        trips = 1 if ends in answered else 2  # a first one waits for the answer to ARP, too
        answered.add(ends)
        if delays and paths.is_only_way(*ends) and paths.is_idle(each):
            above_ms = each.took_ms - trips * sum(_most_ms(d, observation) for d in delays)
            if ends not in shortest or above_ms < shortest[ends][0]:
                shortest[ends] = (above_ms, each, delays)
    for above_ms, each, delays in shortest.values():
        said_ms = sum(delay.delay_ms for delay in delays)
        if max(ABOVE_MS, ABOVE_SHARE * said_ms) < above_ms < REPEATED_MS:
            happened = (
                f"the RTT from {each.source} to {each.destination} was {each.took_ms:.2f} ms with "
                f"empty queues, where its links say {said_ms:g} ms"
            )
            longest = max(delays, key=lambda delay: delay.delay_ms)
            yield longest.command, happened, "`tc -s qdisc` on its way shows what else delays"


def _most_ms(delay: QueueCommand, observation: Observation) -> float:
    """Return the longest that a small packet takes, with a jitter that is normally distributed."""
    rate = rate_of(delay, observation)
    sending_ms = (IDLE_BYTES + ACKNOWLEDGEMENT_BYTES) * 8 / 1e3 / rate if rate else 0.0
    return delay.delay_ms + 4 * time_ms(delay.jitter) + sending_ms


def _least_ms(delays: Iterable[QueueCommand]) -> float:
    return sum(max(0.0, each.delay_ms - time_ms(each.jitter)) for each in delays)


def _displaces(command: ExecutedCommand, queue: QueueCommand) -> bool:
    """Tell whether a command removes a delay or a rate that a script may have meant to keep."""
    after = command.order > queue.command.order
    there = command.namespace == queue.command.namespace and command.after("dev") == queue.device
    verbs = {"add", "replace"} | ({"del", "delete"} if queue.by_mininet else set())
    root = "root" in command.words and "qdisc" in command.words
    return after and there and root and command.status == 0 and bool(verbs & set(command.words))


def _rates_removed(observation: Observation) -> Iterator[Wrong]:
    queues = list(queue_commands(observation))
    for shaped in queues:
        if not shaped.by_mininet or shaped.kind not in ("htb", "tbf", "hfsc"):
            continue
        for queue in queues:
            later = observation.device(queue.command, queue.device)
            if queue.by_mininet or not _displaces(queue.command, shaped) or later is None:
                continue
            if not SHAPERS & {each.kind for each in later.queues} and not any(
                each.rate_mbit for each in later.queues
            ):
                happened = f"'{queue.command}' removed the rate of {queue.device}'s link"
                yield queue.command, happened, KEPT_QUEUES


def _unknown_controls(observation: Observation) -> Iterator[Wrong]:
    for command in observation.commands:
        control = ""
        if command.program == "sysctl":
            control = control_set(command)
        elif is_client(command):
            control = control_option(command)
        if control and control not in observation.controls:
            happened = (
                f"{control} was asked for, which this kernel does not have; "
                f"'{command}' did not use it"
            )
            yield command, happened, f"it has {' '.join(observation.controls)}"


def _controls_of_other_namespaces(observation: Observation) -> Iterator[Wrong]:
    clients = [each for each in observation.commands if is_client(each)]
    setters = [each for each in observation.of("sysctl") if control_set(each)]
    for command in setters:
        control = control_set(command)
        if control not in observation.controls:
            continue
        for client in clients:
            elsewhere = client.namespace != command.namespace and client.control != control
            without_own = client.namespace not in {each.namespace for each in setters}
            unused = command.namespace not in {each.namespace for each in clients}
            by_namespace = without_own and unused and not control_option(client)
            if client.order > command.order and elsewhere and by_namespace:
                where, there = map(observation.label, (command.namespace, client.namespace))
                happened = f"{control} is set in {where}, but '{client}' in {there} used "
                happened += client.control
                instead = f"each namespace has its own: run sysctl in {there}, "
                yield command, happened, instead + "or before the hosts are made"
                break


def _clients_without_servers(observation: Observation) -> Iterator[Wrong]:
    for client in observation.commands:
        if not is_client(client):
            continue
        until = client.ended_ns if client.ended_ns is not None else math.inf
        port = port_of(client)
        if client.program == "iperf" and is_udp(client):
            served = any(
                "-s" in each.words
                and port_of(each) == port
                and each.time_ns <= until
                and (each.ended_ns or until) >= client.time_ns
                for each in observation.of("iperf")
            )
        else:
            served = not observation.sockets_complete or any(
                each.new == "ESTABLISHED"
                and str(each.destination[1]) == port
                and client.time_ns <= each.time_ns <= until
                for each in observation.sockets
            )
        if not served:
            listens = [
                (each.time_ns - client.time_ns) / 1e6
                for each in observation.sockets
                if each.new == "LISTEN" and str(each.source[1]) == port
            ]
            instead = f"start `{client.program} -s` on {server_of(client)} before it"
            if late := [each for each in listens if each >= 0]:
                instead = f"a server listened {late[0]:.1f} ms after it began: wait for the server"
            yield client, f"'{client}' reached no server on port {port}", instead


def _throughputs_without_a_rate(observation: Observation) -> Iterator[Wrong]:
    paths = Paths(observation)
    for client in observation.commands:
        if not is_client(client) or is_udp(client):
            continue
        sources = [
            address
            for (inode, _name), device in paths.devices.items()
            if inode == client.namespace
            for address in device.addresses
        ]
        ways = (paths.way(source, server_of(client)) for source in sources)
        way = next((each for each in ways if each), [])
        devices = observation.seen_after(client) if way else {}
        queues = [queue for device in way for queue in devices[device].queues]
        if way and not any(each.rate_mbit or each.kind in SHAPERS for each in queues):
            names = ", ".join(name for _inode, name in way)
            happened = f"'{client}' measured links without a rate ({names})"
            yield client, happened, "its throughput means nothing: give a link a rate (`bw=10`)"


def _lost_pings(observation: Observation) -> Iterator[Wrong]:
    held = {address for each in observation.last_seen().values() for address in each.addresses}
    pings = list(observation.of("ping", "ping6"))
    answered = {(p.namespace, p.words[-1]): p.order for p in pings if p.status == 0}
    for ping in pings:
        target = ping.words[-1]
        if ping.status == 1 and answered.get((ping.namespace, target), 0) < ping.order:
            happened = f"'{ping}' in {observation.label(ping.namespace)} got no answer"
            instead = "check routes, links that are down, and that the controller runs"
            if target.count(".") == 3 and target not in held:
                instead = f"no device has {target}"
            yield ping, happened, instead


def _refused_settings(observation: Observation) -> Iterator[Wrong]:
    devices = observation.last_seen()
    for command in observation.of(*SETTERS):
        words = set(command.words)
        sets = {"add", "replace", "change", "set", "-w", "-K", "-G", "-L"} & words
        if not command.status or not sets or control_set(command):
            continue
        name = command.after("dev") or command.after("-K")
        elsewhere = [
            observation.label(inode)
            for (inode, device) in devices
            if device == name and inode != command.namespace
        ]
        here = (command.namespace, name) in devices
        instead = "run it by hand in `testbed shell` to see why"
        if elsewhere and not here:
            instead = f"{name} is in {elsewhere[0]}: run it there"
        elif command.program == "tc" and {"add", "root"} <= words and here:
            instead = f"{name} has a root queue already: set it where the link is added"
        happened = f"'{command}' failed with status {command.status} and changed nothing"
        yield command, happened, instead


LABORATORY_RULES: Sequence[LaboratoryRule] = (
    LaboratoryRule("a number without a unit", _delays_without_units, at_once=True),
    LaboratoryRule("a command that failed", _refused_settings, at_once=True),
    LaboratoryRule("a delay whose limit drops", _delay_lines_that_drop, at_once=True),
    LaboratoryRule("a queue that nothing passes", _queues_that_nothing_passes),
    LaboratoryRule("a queue in the other direction", _queues_for_acknowledgements),
    LaboratoryRule("segments counted as packets", _segments_counted_as_packets),
    LaboratoryRule("a queue below the bandwidth-delay product", _queues_below_bdp),
    LaboratoryRule("an RTT below that of the links", _rtts_below_the_links),
    LaboratoryRule("an RTT above that of the links", _rtts_above_the_links),
    LaboratoryRule("a rate that was removed", _rates_removed),
    LaboratoryRule(UNUSED_CONTROL, _unknown_controls, at_once=True),
    LaboratoryRule(UNUSED_CONTROL, _controls_of_other_namespaces),
    LaboratoryRule("a client without a server", _clients_without_servers, at_once=True),
    LaboratoryRule("a throughput without a rate", _throughputs_without_a_rate, at_once=True),
    LaboratoryRule("a ping without an answer", _lost_pings),
)


def laboratory_findings(
    observation: Observation, *, at_once: bool = False
) -> list[LaboratoryFinding]:
    """Judge a laboratory by all rules, or by those that need not wait for the program's end.

    What one line does again and again is one finding.
    """
    observation = with_silent_settings(observation)
    if at_once:  # who has not ended may still reach its server
        over = [c for c in observation.commands if c.ended_ns is not None or not is_client(c)]
        observation = replace(observation, commands=over)
    firsts: dict[tuple[str, str], LaboratoryFinding] = {}
    times: Counter[tuple[str, str]] = Counter()
    for rule in LABORATORY_RULES:
        if at_once and not rule.at_once:
            continue
        for command, happened, instead in rule.find(observation):
            place = observation.place(command) or str(command)
            key = (rule.name, place)
            times[key] += 1
            firsts.setdefault(key, LaboratoryFinding(rule.name, place, happened, instead))
    return [replace(first, times=times[key]) for key, first in firsts.items()]
