"""The table of what can be wrong with a laboratory, and the judgement by it."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.laboratory.observation import (
    SOCKET_CLOCK_NS,
    ExecutedCommand,
    Observation,
    ObservedDevice,
)
from analysis.laboratory.paths import IDLE_BYTES, MAX_ALIKE, Device, Handshake, handshakes, paths_of
from analysis.laboratory.settings import (
    MIN_UNLIMITED_PACKETS,
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
from analysis.laboratory.uncommanded_settings import with_silent_settings
from testbed.scenario.network import FRAME_BYTES

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
MAX_FINDINGS = 100  # places that a rule names; the others are counted
MAX_PLACED = 1000  # commands whose places are looked for
MAX_COUNTED = 1_000_000
MORE_PLACES = "further commands"
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
        for name, amount in {**amounts, "jitter": queue.jitter}.items():
            try:
                small = 0 < float(amount) < SMALL_NUMBER
            except ValueError:
                continue
            if small and name == "rate":
                happened = f"'rate {amount}' has no unit, and tc reads it as {amount} bit/s"
                yield queue.command, happened, f"write 'rate {amount}mbit'"
            elif small:
                happened = f"'{name} {amount}' has no unit, and tc reads it as {amount} µs"
                link = f"{name}='{amount}ms'" if queue.by_mininet else f"'{name} {amount}ms'"
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
    paths = paths_of(observation)
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
    senders = list(itertools.islice(_segment_senders(observation), MAX_FINDINGS))
    for queue, device in _queues_and_devices(observation):
        if not queue.limit or queue.limit >= MIN_UNLIMITED_PACKETS:
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
    rtts = map(paths_of(observation).rtt_ms, handshakes(observation.sockets))
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
    paths = paths_of(observation)
    displacing = defaultdict(list)
    for command in observation.of("tc"):
        if {"root", "qdisc"} <= set(command.words) and command.status == 0:
            displacing[command.namespace, command.after("dev")].append(command)
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
            key = (queue.command.namespace, queue.device)
            for command in displacing.get(key, ()):
                if _displaces(command, queue) and command.time_ns <= each.begun_ns:
                    happened = f"{measured}: '{command}' removed the delay of {queue.device}"
                    yield command, happened, KEPT_QUEUES


def _rtts_above_the_links(observation: Observation) -> Iterator[Wrong]:
    """Judge the shortest handshake between two ends, of those that met empty queues."""
    paths = paths_of(observation)
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
    shaped: dict[tuple[int, str], QueueCommand] = {}
    for queue in queue_commands(observation):
        key = (queue.command.namespace, queue.device)
        if queue.by_mininet and queue.kind in ("htb", "tbf", "hfsc"):
            shaped.setdefault(key, queue)
        if queue.by_mininet or key not in shaped or not _displaces(queue.command, shaped[key]):
            continue
        later = observation.device(queue.command, queue.device)
        if later and not any(each.rate_mbit or each.kind in SHAPERS for each in later.queues):
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
    with_own = {each.namespace for each in setters}
    of_clients = {each.namespace for each in clients}
    without = [c for c in clients if c.namespace not in with_own and not control_option(c)]
    for command in setters:
        control = control_set(command)
        if control not in observation.controls or command.namespace in of_clients:
            continue
        later = bisect.bisect_right(without, command.order, key=lambda client: client.order)
        for client in without[later : later + MAX_FINDINGS]:
            if client.control != control:
                where, there = map(observation.label, (command.namespace, client.namespace))
                happened = f"{control} is set in {where}, but '{client}' in {there} used "
                happened += client.control
                instead = f"each namespace has its own: run sysctl in {there}, "
                yield command, happened, instead + "or before the hosts are made"
                break


def _clients_without_servers(observation: Observation) -> Iterator[Wrong]:
    established, listening = defaultdict(list), defaultdict(list)
    for each in observation.sockets:
        if each.new == "ESTABLISHED":
            established[str(each.destination[1])].append(each.time_ns)
        elif each.new == "LISTEN":
            listening[str(each.source[1])].append(each.time_ns)
    for times in (*established.values(), *listening.values()):
        times.sort()
    servers = defaultdict(list)  # of UDP, by port
    for command in observation.of("iperf"):
        if "-s" in command.words:
            servers[port_of(command)].append(command)
    for client in observation.commands:
        if not is_client(client):
            continue
        until = client.ended_ns if client.ended_ns is not None else math.inf
        port = port_of(client)
        if client.program == "iperf" and is_udp(client):
            served = any(
                each.time_ns <= until and (each.ended_ns or until) >= client.time_ns
                for each in servers[port][:MAX_FINDINGS]
            )
        else:
            begun_ns = client.time_ns - client.time_ns % SOCKET_CLOCK_NS
            first = _first_since(established[port], begun_ns)
            served = not observation.sockets_complete or (first <= until and first < math.inf)
        if not served:
            instead = f"start `{client.program} -s` on {server_of(client)} before it"
            late_ms = (_first_since(listening[port], client.time_ns) - client.time_ns) / 1e6
            if late_ms < math.inf:
                instead = f"a server listened {late_ms:.1f} ms after it began: wait for the server"
            yield client, f"'{client}' reached no server on port {port}", instead


def _first_since(times: Sequence[int], time_ns: int) -> float:
    """Return the first of ordered times from an instant on, or infinity."""
    place = bisect.bisect_left(times, time_ns)
    return times[place] if place < len(times) else math.inf


def _throughputs_without_a_rate(observation: Observation) -> Iterator[Wrong]:
    paths = paths_of(observation)
    for client in observation.commands:
        if not is_client(client) or is_udp(client):
            continue
        sources = paths.addresses[client.namespace][:MAX_FINDINGS]
        ways = (paths.way(source, server_of(client)) for source in sources)
        way = next((each for each in ways if each), [])
        seen = (observation.seen_after(client, device) for device in way)
        queues = [queue for device in seen for queue in device.queues]
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
    holders = defaultdict(list)  # namespaces by the name of a device in them
    for inode, device in observation.last_seen():
        holders[device].append(inode)
    for command in observation.of(*SETTERS):
        arguments = set(command.words)
        sets = {"add", "replace", "change", "set", "-w", "-K", "-G", "-L"} & arguments
        if not command.status or not sets or control_set(command):
            continue
        name = command.after("dev") or command.after("-K")
        there = holders.get(name, ())[:MAX_ALIKE]
        elsewhere = [observation.label(inode) for inode in there if inode != command.namespace]
        here = command.namespace in there
        instead = "run it by hand in `testbed shell` to see why"
        if elsewhere and not here:
            instead = f"{name} is in {elsewhere[0]}: run it there"
        elif command.program == "tc" and {"add", "root"} <= arguments and here:
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
    findings = []
    for rule in LABORATORY_RULES:
        if rule.at_once or not at_once:
            findings += _findings(rule, observation)
    return findings


def _findings(rule: LaboratoryRule, observation: Observation) -> list[LaboratoryFinding]:
    """Return what a rule finds, by place; what it finds beyond its limit is one more."""
    firsts: dict[str, LaboratoryFinding] = {}
    times: Counter[str] = Counter()
    wrong = iter(rule.find(observation))
    for command, happened, instead in itertools.islice(wrong, MAX_PLACED):
        place = observation.place(command) or str(command)
        if place not in firsts and len(firsts) >= MAX_FINDINGS:
            place = MORE_PLACES
        times[place] += 1
        firsts.setdefault(place, LaboratoryFinding(rule.name, place, happened, instead))
    if rest := sum(1 for _ in itertools.islice(wrong, MAX_COUNTED)):
        times[MORE_PLACES] += rest
        firsts.setdefault(MORE_PLACES, LaboratoryFinding(rule.name, MORE_PLACES, happened, instead))
    return [replace(first, times=times[place]) for place, first in firsts.items()]
