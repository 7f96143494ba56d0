"""All faults of a scenario are found before anything is done, each with its field."""

from __future__ import annotations

from collections.abc import Iterator

from testbed.errors import UsageError, nearest
from testbed.plan import background, network
from testbed.plan.flow_faults import MAX_RATE_MBIT, MAX_SECONDS, flows_faults, in_range
from testbed.scenario import losses, names, queues
from testbed.scenario.model import Bottleneck, Path, Radio, Scenario, TopologyKind

MAX_HOSTS = 99  # receiver99-eth0 is as long as the name of an interface may be
LONGEST_DELAY_MS = 60_000.0
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
    yield from names.scenario_faults(scenario)
    yield from in_range("duration_s", scenario.duration_s, 0, MAX_SECONDS)
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
    yield from flows_faults(scenario)
    yield from background.faults(scenario)


def _bottleneck_faults(scenario: Scenario, bottleneck: Bottleneck) -> Iterator[str]:
    where = "topology.bottleneck"
    yield from in_range(f"{where}.rate_mbit", bottleneck.rate_mbit, 0, MAX_RATE_MBIT)
    yield from _delay(f"{where}.delay_ms", bottleneck.delay_ms)
    for name in ("queue", "back_queue"):
        queue = getattr(bottleneck, name)
        if queue is not None:
            yield from queues.faults(queue, f"{where}.{name}")
            if queue.limit_bdp is not None and not _has_delay(scenario):
                yield f"{where}.{name}.limit_bdp: the path has no delay, so no BDP"
    if bottleneck.back_rate_mbit is not None:
        yield from in_range(f"{where}.back_rate_mbit", bottleneck.back_rate_mbit, 0, MAX_RATE_MBIT)
    if not bottleneck.both_directions and (bottleneck.back_rate_mbit or bottleneck.back_queue):
        yield f"{where}: back_rate_mbit and back_queue need both_directions"


def _has_delay(scenario: Scenario) -> bool:
    topology = scenario.topology
    paths = [topology.access, *topology.links.values()]
    return topology.bottleneck.delay_ms > 0 or any(path.delay_ms > 0 for path in paths)


def _delay(where: str, delay_ms: float) -> Iterator[str]:
    if not 0 <= delay_ms <= LONGEST_DELAY_MS:
        yield f"{where}: {delay_ms:g} ms is not between 0 and {LONGEST_DELAY_MS:g}"


def _path_faults(where: str, path: Path) -> Iterator[str]:
    yield from _delay(f"{where}.delay_ms", path.delay_ms)
    if path.rate_mbit is not None:
        yield from in_range(f"{where}.rate_mbit", path.rate_mbit, 0, MAX_RATE_MBIT)
    if path.queue is not None:
        yield from queues.faults(path.queue, f"{where}.queue")
        if path.rate_mbit is None and path.radio is None:
            yield f"{where}.queue: a queue needs a rate_mbit to wait for"
    if path.back_rate_mbit is not None:
        yield from in_range(f"{where}.back_rate_mbit", path.back_rate_mbit, 0, MAX_RATE_MBIT)
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
    """Only the link between an access point and its station can be a radio link."""
    topology = scenario.topology
    places = {"topology.access": topology.access} | {
        f"topology.links.{name}": path
        for name, path in topology.links.items()
        if name != RADIO_LINK or topology.kind is not TopologyKind.ACCESS_LINK
    }
    for where, path in places.items():
        if path.radio is not None:
            yield f"{where}.radio: only an access link's {RADIO_LINK} can be a radio"
