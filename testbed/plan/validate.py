"""All faults of a scenario are found before anything is done, each with its field."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.errors import UsageError, listed, nearest, quoted
from testbed.plan import network
from testbed.plan.addresses import port_faults
from testbed.plan.control_network import CONTROL
from testbed.plan.flow_faults import MAX_SECONDS, flows_faults, in_range, rate_faults
from testbed.plan.sessions import session_rtt_faults
from testbed.plan.traffic_control import longest_queue_s
from testbed.scenario import losses, names, queues
from testbed.scenario.builders import longest_rtt_ms
from testbed.scenario.drawn_network import MOST as MOST_JITTER
from testbed.scenario.graph_faults import form_faults, way_faults
from testbed.scenario.links.schedule import order_faults, rates
from testbed.scenario.links.trace import faults as trace_faults
from testbed.scenario.links.trace import shown
from testbed.scenario.model import (
    Bottleneck,
    Direction,
    Flow,
    FlowKind,
    Graph,
    Path,
    Radio,
    Scenario,
    Topology,
    TopologyKind,
)
from testbed.scenario.planned.planned_transfers import transfer_faults
from testbed.store import WIRES

MAX_HOSTS = 99  # receiver99-eth0 is as long as the name of an interface may be
MAX_NECKS = 20  # in a row
ROWS = (TopologyKind.PARKING_LOT, TopologyKind.CHAIN)
LONGEST_DELAY_MS = 60_000.0
RADIO_LINK = "ap-station"
SIGNALS_DBM = (-82, -20)  # below, 802.11 expects no receiver to understand anything
MOST_BUSY = 0.9
MOST_LOSS = 0.2  # of a link's packets, in the long run
MAX_SEED = (1 << 32) - 1  # pace.c reads a thousand times it as a double
SNAPLENS = (54, 262_144)  # Ethernet, IP and TCP without options; MAXIMUM_SNAPLEN in tcpdump
LEAST_INTERVAL_MS = 0.1
MOST_SAMPLES = 300_000  # rows of sockets: kept until the end in the 256 MB that a guest has
WHOLE = 1e-3  # so near is a whole number
LONGEST_RTT_S = 60.0  # a listener forgets a SYN after 63 s (tcp_synack_retries)
HANDSHAKES = 2  # round trips before a flow can send


def validate(scenario: Scenario) -> None:
    """Raise one error that lists all faults, if there are any."""
    if found := listed(faults(scenario)):
        raise UsageError(found, "correct these fields of the scenario")


def faults(scenario: Scenario) -> Iterator[str]:
    """Every fault, each with its field; those of the whole network if there are no others."""
    sound = True
    for fault in _faults(scenario):
        sound = False
        yield fault
    if sound:
        yield from _network_faults(scenario)


def _faults(scenario: Scenario) -> Iterator[str]:
    topology = scenario.topology
    yield from names.scenario_faults(scenario)
    yield from in_range("duration_s", scenario.duration_s, 0, MAX_SECONDS)
    if isinstance(topology, Graph):
        unsound = listed(_graph_faults(scenario, topology))
    else:
        yield from _bottleneck_faults(topology, topology.bottleneck)
        yield from _neck_change_faults(topology.bottleneck, scenario.duration_s)
        unsound = listed(_hosts_faults(topology))
    if unsound:
        yield unsound
        return  # what follows needs the nodes
    yield from _trial_faults(scenario)
    if isinstance(topology, Topology):
        yield from _access_faults(topology)
    yield from flows_faults(scenario)


def _trial_faults(scenario: Scenario) -> Iterator[str]:
    """What is wrong with the numbers of the whole trial."""
    if not 0 <= scenario.seed <= MAX_SEED:
        yield f"seed: {scenario.seed} is not between 0 and {MAX_SEED}"
    low, high = SNAPLENS
    if not low <= scenario.snaplen_bytes <= high:
        yield (
            f"snaplen_bytes: {scenario.snaplen_bytes} is not between {low}, which holds the "
            f"headers, and {high}, tcpdump's most"
        )
    if len(set(scenario.captures)) < len(scenario.captures):
        yield "captures: a point is named twice"
    interval_ms = scenario.sample_interval_ms
    if interval_ms and not LEAST_INTERVAL_MS <= interval_ms <= 60_000:
        yield (
            f"sample_interval_ms: {interval_ms:g} is neither 0 nor between {LEAST_INTERVAL_MS:g} "
            "and 60000"
        )
    if not 0 <= scenario.start_jitter_ms <= 60_000:
        yield f"start_jitter_ms: {scenario.start_jitter_ms:g} is not between 0 and 60000"
    if not 0 <= scenario.network_jitter <= MOST_JITTER:
        yield f"network_jitter: {scenario.network_jitter:g} is not between 0 and {MOST_JITTER}"
    if not 0 <= scenario.measure_from_s < scenario.duration_s:
        yield (
            f"measure_from_s: {scenario.measure_from_s:g} is not within the trial's "
            f"{scenario.duration_s:g} s"
        )


def _hosts_faults(topology: Topology) -> Iterator[str]:
    most = MAX_NECKS if topology.kind in ROWS else MAX_HOSTS
    if topology.kind is TopologyKind.ACCESS_LINK and topology.hosts != 1:
        yield f"topology.hosts: {topology.hosts}: an access link has one station"
    elif not 1 <= topology.hosts <= most:
        yield f"topology.hosts: {topology.hosts} is not between 1 and {most}"
    if topology.rtts_ms and topology.kind is not TopologyKind.DUMBBELL:
        yield f"topology.rtts_ms: a dumbbell's; {topology.kind} has links"
    for rtt_ms in topology.rtts_ms:
        if not 2 * topology.bottleneck.delay_ms <= rtt_ms <= LONGEST_DELAY_MS:
            yield (
                f"topology.rtts_ms: {rtt_ms:g} is not between the bottleneck's own, "
                f"{2 * topology.bottleneck.delay_ms:g}, and {LONGEST_DELAY_MS:g}"
            )


def _access_faults(topology: Topology) -> Iterator[str]:
    """What is wrong with the links other than the bottleneck."""
    yield from _path_faults("topology.access", topology.access)
    known_links = network.link_names(topology)
    for name, path in topology.links.items():
        if name not in known_links:
            yield f"topology.links: unknown link {quoted(name)}: {nearest(name, known_links)}"
            continue
        yield from _path_faults(f"topology.links.{name}", path)
    yield from _radio_places(topology)


def _graph_faults(scenario: Scenario, graph: Graph) -> Iterator[str]:
    found = listed(form_faults(graph, (WIRES, CONTROL)))
    if found:
        yield found
        return
    duration_s = scenario.duration_s
    if graph.rtt_ms is not None:
        yield from in_range("topology.rtt_ms", graph.rtt_ms, 0, LONGEST_DELAY_MS)
    for index, link in enumerate(graph.links):
        for name, way in (("there", link.there), ("back", link.back)):
            if way is not None:
                path = Path(
                    *(way.delay_ms, way.rate_mbit, way.queue, None, way.jitter_ms, way.loss),
                    reorder=way.reorder,
                )
                yield from _path_faults(f"topology.links[{index}].{name}", path)
                yield from _change_faults(f"topology.links[{index}].{name}", way, duration_s)
                if way.queue and way.queue.limit_bdp is not None and not longest_rtt_ms(graph):
                    yield f"topology.links[{index}].{name}.queue.limit_bdp: no path has a delay"
    ways = listed(way_faults(scenario, graph))
    if ways:
        yield ways
    else:
        yield from port_faults(graph)


def _bottleneck_faults(topology: Topology, bottleneck: Bottleneck) -> Iterator[str]:
    where = "topology.bottleneck"
    yield from rate_faults(f"{where}.rate_mbit", bottleneck.rate_mbit)
    yield from _delay(f"{where}.delay_ms", bottleneck.delay_ms)
    for name in ("queue", "back_queue"):
        queue = getattr(bottleneck, name)
        if queue is not None:
            yield from queues.faults(queue, f"{where}.{name}")
            if queue.limit_bdp is not None and not _has_delay(topology):
                yield f"{where}.{name}.limit_bdp: the path has no delay, so no BDP"
    if bottleneck.back_rate_mbit is not None:
        yield from rate_faults(f"{where}.back_rate_mbit", bottleneck.back_rate_mbit)
    if not bottleneck.both_directions and (bottleneck.back_rate_mbit or bottleneck.back_queue):
        yield f"{where}: back_rate_mbit and back_queue need both_directions"


def _neck_change_faults(neck: Bottleneck, duration_s: float) -> Iterator[str]:
    """What is wrong with the traces and schedules of both directions."""
    where = "topology.bottleneck"
    there = Direction(neck.rate_mbit, neck.delay_ms, trace=neck.trace, schedule=neck.schedule)
    yield from _change_faults(where, there, duration_s)
    rate_mbit = (neck.back_rate_mbit or neck.rate_mbit) if neck.both_directions else None
    back = Direction(
        rate_mbit, neck.delay_ms, trace=neck.back_trace, schedule=neck.back_schedule or ()
    )
    yield from _change_faults(where, back, duration_s, "back_")


def _change_faults(
    where: str, way: Direction, duration_s: float, prefix: str = ""
) -> Iterator[str]:
    """What is wrong with a direction's trace, its schedule, or with both together."""
    speeds = [each.rate_mbit for each in way.schedule if each.rate_mbit is not None]
    if way.trace is not None:
        yield from trace_faults(way.trace, f"{where}.{prefix}trace")
        if way.rate_mbit is None:
            yield f"{where}.{prefix}trace: needs a rate_mbit, which limits in BDP are of"
        if speeds:
            yield f"{where}.{prefix}schedule: a rate_mbit beside a trace, which is the rate"
    if speeds and way.rate_mbit is None:
        yield f"{where}.{prefix}schedule: there is no rate_mbit to change"
    yield from order_faults(way.schedule, f"{where}.{prefix}schedule", duration_s)
    for index, each in enumerate(way.schedule):
        place = f"{where}.{prefix}schedule[{index}]"
        if each.rate_mbit is not None:
            yield from rate_faults(f"{place}.rate_mbit", each.rate_mbit)
        if each.delay_ms is not None:
            yield from _delay(f"{place}.delay_ms", each.delay_ms)
            if each.delay_ms < way.jitter_ms:
                yield f"{place}.delay_ms: {each.delay_ms:g} is less than the jitter_ms"
        if each.loss is not None and way.loss is not None:
            yield f"{place}.loss: the link has a loss of its own: give one of them"


def _has_delay(topology: Topology) -> bool:
    paths = [topology.access, *topology.links.values()]
    return topology.bottleneck.delay_ms > 0 or any(
        delay_ms > 0 for delay_ms in (*topology.rtts_ms, *(path.delay_ms for path in paths))
    )


def _delay(where: str, delay_ms: float) -> Iterator[str]:
    if not 0 <= delay_ms <= LONGEST_DELAY_MS:
        yield f"{where}: {delay_ms:g} ms is not between 0 and {LONGEST_DELAY_MS:g}"
    yield from _microseconds(where, delay_ms)


def _microseconds(where: str, time_ms: float) -> Iterator[str]:
    """A fault unless netem can be told the time: tc cuts it to microseconds."""
    us = time_ms * 1000  # infinite for what is out of bounds anyway
    if abs((us + 0.5) % 1 - 0.5) > WHOLE:
        yield f"{where}: {time_ms:.12g} ms is not a whole number of microseconds, tc's unit"


def _path_faults(where: str, path: Path) -> Iterator[str]:
    yield from _delay(f"{where}.delay_ms", path.delay_ms)
    if path.rate_mbit is not None:
        yield from rate_faults(f"{where}.rate_mbit", path.rate_mbit)
    if path.queue is not None:
        yield from queues.faults(path.queue, f"{where}.queue")
        if path.rate_mbit is None and path.radio is None:
            yield f"{where}.queue: a queue needs a rate_mbit to wait for"
    if path.back_rate_mbit is not None:
        yield from rate_faults(f"{where}.back_rate_mbit", path.back_rate_mbit)
        if path.rate_mbit is None:
            yield f"{where}.back_rate_mbit: needs a rate_mbit"
    if not 0 <= path.jitter_ms <= path.delay_ms:
        yield f"{where}.jitter_ms: {path.jitter_ms:g} is not between 0 and delay_ms"
    yield from _microseconds(f"{where}.jitter_ms", path.jitter_ms)
    yield from _reorder_faults(where, path)
    if path.loss is not None:
        found = list(losses.channel_faults(path.loss, f"{where}.loss"))
        yield from found
        if not found and path.loss.loss_rate > MOST_LOSS:
            yield (
                f"{where}.loss: loses {path.loss.loss_rate:.0%} of all packets, either way: with "
                f"more than {MOST_LOSS:.0%} hardly any connection opens"
            )
    if path.radio is not None:
        yield from _radio_faults(f"{where}.radio", path, path.radio)


def _reorder_faults(where: str, path: Path) -> Iterator[str]:
    if not 0 <= path.reorder <= 1:
        yield f"{where}.reorder: {path.reorder:g} is no chance between 0 and 1"
    elif 0 < path.reorder < losses.LEAST_CHANCE:
        yield f"{where}.reorder: {path.reorder:g} is less than {losses.LEAST_CHANCE:g}"
    elif path.reorder and not path.delay_ms:
        yield f"{where}.reorder: without a delay_ms there is no packet to overtake"
    elif path.reorder and path.jitter_ms:
        yield f"{where}.reorder: beside jitter_ms, with which none overtakes: give one of them"


def _radio_faults(where: str, path: Path, radio: Radio) -> Iterator[str]:
    low, high = SIGNALS_DBM
    if not low <= radio.signal_dbm <= high:
        yield f"{where}.signal_dbm: {radio.signal_dbm} is not between {low} and {high}"
    if not 0 <= radio.busy <= MOST_BUSY:
        yield f"{where}.busy: {radio.busy:g} is not between 0 and {MOST_BUSY:g}"
    if path.delay_ms or path.rate_mbit or path.loss or path.reorder:
        yield f"{where}: its delay, rate and losses are the radio's own"
    if path.queue and not (path.queue.discipline == "pfifo" and path.queue.limit_packets):
        yield f"{where}: its queue is a pfifo with limit_packets"


def _radio_places(topology: Topology) -> Iterator[str]:
    """Only the link between an access point and its station can be a radio link."""
    places = {"topology.access": topology.access} | {
        f"topology.links.{name}": path
        for name, path in topology.links.items()
        if name != RADIO_LINK or topology.kind is not TopologyKind.ACCESS_LINK
    }
    for where, path in places.items():
        if path.radio is not None:
            yield f"{where}.radio: only an access link's {RADIO_LINK} can be a radio"


def _network_faults(scenario: Scenario) -> Iterator[str]:
    """What only the whole network shows: limits in bytes, drain times, round trips, samples.

    Looked for when every number is sound by itself, as what is computed here needs that.
    """
    built = network.build_network(scenario.topology)
    for link in built.links:
        for end, shaper in zip(link.ends, link.shapers, strict=True):
            if shaper is not None:
                yield from (f"{end.name}: {fault}" for fault in _queue_faults(shaper))
    for index, flow in enumerate(scenario.flows):
        yield from _round_trip_faults(scenario, built, flow, f"flows[{index}]")
    yield from _sample_faults(scenario, longest_queue_s(built))
    yield from session_rtt_faults(scenario, built)
    yield from transfer_faults(scenario)


def _queue_faults(shaper: network.Shaper) -> Iterator[str]:
    yield from queues.refusals(shaper.queue, shaper.limit, shaper.rate_mbit)
    drain_s = shaper.drain_s
    if drain_s > MAX_SECONDS:
        yield (
            f"its queue of {shaper.limit.bytes} B would take {drain_s:.3g} s to drain at "
            f"{_speed(shaper)}, and a trial waits for it; at most {MAX_SECONDS:g}"
        )


def _speed(shaper: network.Shaper) -> str:
    if shaper.trace is not None:
        return shown(shaper.trace)
    return f"{min(rate for _, rate in rates(shaper.schedule, shaper.rate_mbit)):g} Mbit/s"


def _round_trip_faults(
    scenario: Scenario, built: network.Network, flow: Flow, where: str
) -> Iterator[str]:
    """A flow whose connection would not be open before its end."""
    if flow.kind is FlowKind.CBR:
        return
    rtt_s = built.path_rtt_ms(flow.src, flow.dst) / 1e3
    if rtt_s > LONGEST_RTT_S:
        yield f"{where}: no connection opens over a round trip of {rtt_s:g} s ({LONGEST_RTT_S:g})"
    time_s = scenario.stop_s(flow) - flow.start_s - scenario.start_jitter_ms / 1e3
    if HANDSHAKES * rtt_s > time_s:
        yield (
            f"{where}: {time_s:g} s are too short for a round trip of {rtt_s:g} s: "
            f"at least {HANDSHAKES * rtt_s:g} s"
        )


def _sample_faults(scenario: Scenario, drain_s: float) -> Iterator[str]:
    if not scenario.sample_interval_ms:
        return
    connections = sum(flow.parallel for flow in scenario.flows)
    sampled_s = scenario.duration_s + drain_s
    rows = sampled_s * 1e3 / scenario.sample_interval_ms * connections
    if rows > MOST_SAMPLES:
        yield (
            f"sample_interval_ms: {scenario.sample_interval_ms:g} makes {rows:.3g} rows of "
            f"{connections} connections in {sampled_s:.6g} s, drained queues included; at most "
            f"{MOST_SAMPLES}: take a longer interval"
        )
