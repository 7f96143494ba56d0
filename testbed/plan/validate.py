"""Every fault of a scenario, found before anything is done, each with its field."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import assert_never

from testbed.errors import UsageError, nearest
from testbed.plan import background, network
from testbed.scenario import losses, queues, variants, video
from testbed.scenario.model import (
    Bottleneck,
    Flow,
    FlowKind,
    Path,
    Profile,
    Radio,
    Scenario,
    TopologyKind,
)
from testbed.scenario.video import Player

MAX_HOSTS = 99  # receiver99-eth0 is as long as the name of an interface may be
MAX_RATE_MBIT = 40_000.0
MAX_SECONDS = 24 * 3600.0
MIN_UDP_PACKET = 28 + 16  # IP and UDP headers, and iperf3's own of 16 bytes
MAX_FLOWS = 100
LONGEST_DELAY_MS = 60_000.0
MAX_RTO_MS = 120_000  # TCP_RTO_MAX
MAX_WINDOW_BYTES = 1 << 30  # as far as TCP's window scale goes
MAX_DROPS = 1000
RADIO_LINK = "ap-station"
SIGNALS_DBM = (-82, -20)  # below, 802.11 expects no receiver to understand anything
MOST_BUSY = 0.9


def validate(scenario: Scenario) -> None:
    """Raise one error that lists all faults, if there are any."""
    faults = list(_faults(scenario)) or list(background.rtt_faults(scenario))
    if faults:
        raise UsageError("; ".join(faults), "correct these fields of the scenario")


def _faults(scenario: Scenario) -> Iterator[str]:
    topology = scenario.topology
    yield from _range("duration_s", scenario.duration_s, 0, MAX_SECONDS)
    yield from _bottleneck_faults(scenario, topology.bottleneck)
    if topology.kind is TopologyKind.ACCESS_LINK and topology.hosts != 1:
        yield f"topology.hosts: {topology.hosts}: an access link has one station"
    if not 1 <= topology.hosts <= MAX_HOSTS:
        yield f"topology.hosts: {topology.hosts} is not between 1 and {MAX_HOSTS}"
        return  # what follows needs the nodes
    if scenario.seed < 0:
        yield f"seed: {scenario.seed} is below 0"
    if scenario.snaplen_bytes < 54:
        yield f"snaplen_bytes: {scenario.snaplen_bytes} cuts the headers (at least 54)"
    if not 0 <= scenario.sample_interval_ms <= 60_000:
        yield f"sample_interval_ms: {scenario.sample_interval_ms:g} is not between 0 and 60000"
    if not 0 <= scenario.start_jitter_ms <= 60_000:
        yield f"start_jitter_ms: {scenario.start_jitter_ms:g} is not between 0 and 60000"
    if not 0 <= scenario.measure_from_s < scenario.duration_s:
        yield (
            f"measure_from_s: {scenario.measure_from_s:g} is not within the trial's "
            f"{scenario.duration_s:g} s"
        )
    yield from _path_faults("topology.access", topology.access)
    known_links = network.link_names(topology)
    for name, path in topology.links.items():
        if name not in known_links:
            yield f"topology.links: unknown link {name!r}: {nearest(name, known_links)}"
        yield from _path_faults(f"topology.links.{name}", path)
    yield from _radio_places(scenario)
    yield from _flows_faults(scenario)
    yield from background.faults(scenario)


def _bottleneck_faults(scenario: Scenario, bottleneck: Bottleneck) -> Iterator[str]:
    where = "topology.bottleneck"
    yield from _range(f"{where}.rate_mbit", bottleneck.rate_mbit, 0, MAX_RATE_MBIT)
    yield from _delay(f"{where}.delay_ms", bottleneck.delay_ms)
    for name in ("queue", "back_queue"):
        queue = getattr(bottleneck, name)
        if queue is not None:
            yield from queues.faults(queue, f"{where}.{name}")
            if queue.limit_bdp is not None and not _has_delay(scenario):
                yield f"{where}.{name}.limit_bdp: the path has no delay, so no BDP"
    if bottleneck.back_rate_mbit is not None:
        yield from _range(f"{where}.back_rate_mbit", bottleneck.back_rate_mbit, 0, MAX_RATE_MBIT)
    if not bottleneck.both_directions and (bottleneck.back_rate_mbit or bottleneck.back_queue):
        yield f"{where}: back_rate_mbit and back_queue need both_directions"


def _has_delay(scenario: Scenario) -> bool:
    topology = scenario.topology
    paths = [topology.access, *topology.links.values()]
    return topology.bottleneck.delay_ms > 0 or any(path.delay_ms > 0 for path in paths)


def _range(where: str, value: float, low: float, high: float) -> Iterator[str]:
    if not low < value <= high:
        yield f"{where}: {value:g} is not above {low:g} and at most {high:g}"


def _delay(where: str, delay_ms: float) -> Iterator[str]:
    if not 0 <= delay_ms <= LONGEST_DELAY_MS:
        yield f"{where}: {delay_ms:g} ms is not between 0 and {LONGEST_DELAY_MS:g}"


def _path_faults(where: str, path: Path) -> Iterator[str]:
    yield from _delay(f"{where}.delay_ms", path.delay_ms)
    if path.rate_mbit is not None:
        yield from _range(f"{where}.rate_mbit", path.rate_mbit, 0, MAX_RATE_MBIT)
    if path.queue is not None:
        yield from queues.faults(path.queue, f"{where}.queue")
        if path.rate_mbit is None and path.radio is None:
            yield f"{where}.queue: a queue needs a rate_mbit to wait for"
    if path.back_rate_mbit is not None:
        yield from _range(f"{where}.back_rate_mbit", path.back_rate_mbit, 0, MAX_RATE_MBIT)
        if path.rate_mbit is None:
            yield f"{where}.back_rate_mbit: needs a rate_mbit"
    if not 0 <= path.jitter_ms <= path.delay_ms:
        yield f"{where}.jitter_ms: {path.jitter_ms:g} is not between 0 and delay_ms"
    if path.loss is not None:
        yield from losses.channel_faults(path.loss, f"{where}.loss")
    if path.radio is not None:
        yield from _radio_faults(f"{where}.radio", path, path.radio)


def _radio_faults(where: str, path: Path, radio: Radio) -> Iterator[str]:
    low, high = SIGNALS_DBM
    if not low <= radio.signal_dbm <= high:
        yield f"{where}.signal_dbm: {radio.signal_dbm} is not between {low} and {high}"
    if not 0 <= radio.busy <= MOST_BUSY:
        yield f"{where}.busy: {radio.busy:g} is not between 0 and {MOST_BUSY:g}"
    if path.delay_ms or path.rate_mbit or path.loss:
        yield f"{where}: its delay, rate and losses are the radio's own"
    if path.queue and not (path.queue.discipline == "pfifo" and path.queue.limit_packets):
        yield f"{where}: its queue is a pfifo with limit_packets"


def _radio_places(scenario: Scenario) -> Iterator[str]:
    """Where there is an access point and a station, and nowhere else."""
    topology = scenario.topology
    places = {"topology.access": topology.access} | {
        f"topology.links.{name}": path
        for name, path in topology.links.items()
        if name != RADIO_LINK or topology.kind is not TopologyKind.ACCESS_LINK
    }
    for where, path in places.items():
        if path.radio is not None:
            yield f"{where}.radio: only an access link's {RADIO_LINK} can be a radio"


def _flows_faults(scenario: Scenario) -> Iterator[str]:
    if not 1 <= len(scenario.flows) <= MAX_FLOWS:
        yield f"flows: {len(scenario.flows)} flows; between 1 and {MAX_FLOWS} can run"
    counts = Counter(flow.name for flow in scenario.flows)
    yield from (f"flows: the name {name!r} is used twice" for name in counts if counts[name] > 1)
    nodes = network.node_names(scenario.topology)
    for index, flow in enumerate(scenario.flows):
        where = f"flows[{index}]"
        for end, node in (("src", flow.src), ("dst", flow.dst)):
            if node not in nodes:
                yield f"{where}.{end}: unknown node {node!r}: {nearest(node, nodes)}"
        if flow.src == flow.dst:
            yield f"{where}: goes from {flow.src} to itself"
        yield from _flow_times(scenario, flow, where)
        yield from _kind_faults(scenario, flow, where)
        yield from _loss_faults(scenario, flow, f"{where}.loss")
    yield from _one_variant_a_host(scenario)
    yield from _one_browser_a_host(scenario)
    yield from _one_recipe_a_receiver(scenario)
    yield from _one_route_a_pair(scenario)


def _flow_times(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    latest_s = flow.start_s + scenario.start_jitter_ms / 1e3
    if flow.start_s < 0 or latest_s >= scenario.stop_s(flow):
        length = f"{scenario.duration_s:g} s"
        yield f"{where}.start_s: {flow.start_s:g} is not within the trial's {length}"
    if flow.duration_s is not None:
        yield from _range(f"{where}.duration_s", flow.duration_s, 0, MAX_SECONDS)


def _kind_faults(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    match flow.kind:
        case FlowKind.TCP:
            yield from _tcp_faults(flow, where)
        case FlowKind.CBR:
            yield from _cbr_faults(flow, where)
        case FlowKind.VIDEO:
            yield from _video_faults(scenario, flow, where)
        case _:
            assert_never(flow.kind)


def _variant_faults(name: str | None, where: str) -> Iterator[str]:
    if name is not None:
        try:
            variants.variant(name)
        except UsageError as error:
            yield f"{where}: {error.message}: {error.hint}"


def _tcp_faults(flow: Flow, where: str) -> Iterator[str]:
    if flow.variant is None:
        yield f"{where}.variant: missing for a TCP flow"
    yield from _variant_faults(flow.variant, f"{where}.variant")
    if flow.mss is not None and not 88 <= flow.mss <= 1448:
        yield f"{where}.mss: {flow.mss} is not between 88 and 1448"
    if flow.window_bytes is not None:
        yield from _range(f"{where}.window_bytes", flow.window_bytes, 0, MAX_WINDOW_BYTES)
    if flow.rto_min_ms is not None and not 1 <= flow.rto_min_ms <= MAX_RTO_MS:
        yield f"{where}.rto_min_ms: {flow.rto_min_ms} is not between 1 and {MAX_RTO_MS}"
    yield from _drop_faults(flow, where)
    if not 1 <= flow.parallel <= 64:
        yield f"{where}.parallel: {flow.parallel} is not between 1 and 64"
    if flow.bytes is not None and flow.bytes <= 0:
        yield f"{where}.bytes: must be above 0"
    if flow.rate_mbit is not None or flow.packet_bytes is not None:
        yield f"{where}: rate_mbit and packet_bytes are a CBR flow's"
    if flow.video is not None:
        yield f"{where}.video: a video flow's"


def _drop_faults(flow: Flow, where: str) -> Iterator[str]:
    if list(flow.drops) != sorted(set(flow.drops)) or any(number < 1 for number in flow.drops):
        yield f"{where}.drops: numbers from 1 in rising order, each once"
    if len(flow.drops) > MAX_DROPS:
        yield f"{where}.drops: {len(flow.drops)} drops; at most {MAX_DROPS}"
    if flow.drops and flow.parallel > 1:
        yield f"{where}.drops: which of {flow.parallel} parallel connections is meant?"


def _loss_faults(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    if flow.loss is None:
        return
    yield from losses.faults(flow.loss, where)
    if flow.parallel > 1:
        yield f"{where}: which of {flow.parallel} parallel connections is meant?"
    if flow.drops:
        yield f"{where}: the flow has drops already"
    if network.are_neighbours(scenario.topology, flow.src, flow.dst):
        yield f"{where}: no router between {flow.src} and {flow.dst}"


TCP_ONLY = ("variant", "mss", "bytes", "window_bytes", "rto_min_ms", "drops", "loss")
NO_VIDEOS = (*TCP_ONLY[1:], "rate_mbit", "packet_bytes")


def _video_faults(scenario: Scenario, flow: Flow, where: str) -> Iterator[str]:
    if flow.video is None:
        yield f"{where}.video: missing for a video flow"
        return
    yield from video.faults(flow.video, f"{where}.video")
    yield from _variant_faults(flow.variant, f"{where}.variant")
    yield from _variant_faults(flow.video.viewer_variant, f"{where}.video.viewer_variant")
    if flow.protocol == "tcp" and flow.variant is None:
        yield f"{where}.variant: missing for a video over TCP"
    if flow.protocol == "udp" and flow.variant is not None:
        yield f"{where}.variant: TCP's; QUIC's own is video.control"
    foreign = [name for name in NO_VIDEOS if getattr(flow, name) not in (None, ())]
    if foreign or flow.parallel != 1:
        yield f"{where}: {' and '.join(foreign or ['parallel'])}: not a video flow's"
    if scenario.profile is not Profile.MODERN:
        yield f"{where}: a video's stacks are as the kernel ships them: profile modern"


def _cbr_faults(flow: Flow, where: str) -> Iterator[str]:
    if flow.rate_mbit is None or flow.packet_bytes is None:
        yield f"{where}: a CBR flow needs rate_mbit and packet_bytes"
        return
    yield from _range(f"{where}.rate_mbit", flow.rate_mbit, 0, MAX_RATE_MBIT)
    if not MIN_UDP_PACKET <= flow.packet_bytes <= queues.MTU_BYTES:
        yield (
            f"{where}.packet_bytes: {flow.packet_bytes} is not between {MIN_UDP_PACKET} "
            f"and {queues.MTU_BYTES}"
        )
    if not 0 <= flow.jitter <= 1:
        yield f"{where}.jitter: {flow.jitter:g} is not between 0 and 1"
    foreign = [name for name in TCP_ONLY if getattr(flow, name) not in (None, ())]
    if foreign:
        yield f"{where}: {' and '.join(foreign)}: a TCP flow's"
    if flow.video is not None:
        yield f"{where}.video: a video flow's"


def _one_variant_a_host(scenario: Scenario) -> Iterator[str]:
    """The congestion control is a host's setting (sysctl), so a host has one."""
    seen: dict[str, str | None] = {}
    for flow in scenario.flows:
        wishes = [(flow.src, flow.variant)] if flow.protocol == "tcp" else []
        if flow.video and flow.video.viewer_variant is not None:
            wishes.append((flow.dst, flow.video.viewer_variant))
        for host, wish in wishes:
            if seen.setdefault(host, wish) != wish:
                yield f"flows: {host} sends {seen[host]} and {wish}: one variant a host"


def _one_browser_a_host(scenario: Scenario) -> Iterator[str]:
    """Its connection's port is a setting of the host."""
    viewers = [f.dst for f in scenario.flows if f.video and f.video.player is Player.CHROMIUM]
    for host in {host for host in viewers if viewers.count(host) > 1}:
        yield f"flows: {host} has several browsers: one a host"


def _one_recipe_a_receiver(scenario: Scenario) -> Iterator[str]:
    """What a variant asks of its receiver is that host's setting, for all flows to it."""
    wishes: dict[tuple[str, str], tuple[str, str]] = {}
    for flow, recipe in _recipes(scenario):
        others = [other for other, _ in _recipes(scenario) if other.dst == flow.dst]
        for name, value in recipe.receiver.items():
            for other in others:
                theirs = variants.variant(other.variant or "")
                sacks = theirs.sender.get("tcp_sack", "1") == "1"
                if sacks and theirs.receiver.get(name) != value:
                    wishes[(flow.dst, name)] = (flow.name, other.name)
    for (host, name), (one, another) in wishes.items():
        yield (
            f"flows: {one} needs another {name} at {host} than {another}: "
            "give them receivers of their own"
        )


def _recipes(scenario: Scenario) -> list[tuple[Flow, variants.Variant]]:
    found = []
    for flow in scenario.flows:
        with contextlib.suppress(UsageError):  # told of above
            if flow.protocol == "tcp" and flow.variant is not None:
                found.append((flow, variants.variant(flow.variant)))
    return found


def _one_route_a_pair(scenario: Scenario) -> Iterator[str]:
    """A window and a least timer are attributes of the route between two hosts."""
    firsts: dict[tuple[str, str], Flow] = {}
    for flow in scenario.flows:
        if flow.protocol == "tcp":
            first = firsts.setdefault((flow.src, flow.dst), flow)
            for name in ("window_bytes", "rto_min_ms"):
                if getattr(first, name) != getattr(flow, name):
                    yield f"flows: {first.name} and {flow.name}: one {name} a pair of hosts"
