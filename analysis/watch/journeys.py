"""Where each packet was when: its times at the captures along its path, and what became of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analysis.captures.packet_matching import NOWHERE, pairs
from analysis.captures.tcp import ACK, CE, HALF_SEQUENCE_SPACE, PacketArrays, Packets
from analysis.trials.packets import TrialPackets, capture_files, select
from testbed.scenario.network import Graph
from testbed.scenario.queues import DISCIPLINES
from testbed.store.reading import Trial
from testbed.store.records import FlowRecord, QueueRecord

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

UNSEEN = -1  # a time at a capture that a packet did not pass
ARRIVED, LOST_ON_WAY, UNDER_WAY, LOST_PERHAPS = range(4)  # of the column fate
MAX_STREAMS = 100  # of somebody else's capture: those with the most packets
FIELDS = ("frame", "length", "payload", "flags", "window", "marks", "duplicate_ack_number")


@dataclass(frozen=True)
class Place:
    """An interface on a path; packets leave by it, behind its queue, or arrive there."""

    node: str
    interface: str
    leaves: bool


@dataclass(frozen=True)
class FlowPath:
    """A flow's way in one direction: all interfaces that its packets pass."""

    flow: FlowRecord
    is_data: bool  # or acknowledgements
    places: tuple[Place, ...]
    captured: tuple[int, ...]  # the places with a capture, in the order of the path

    @property
    def begins_at_its_host(self) -> bool:
        """Whether packets are captured where they are sent."""
        return bool(self.captured) and self.captured[0] == 0

    @property
    def ends_at_its_host(self) -> bool:
        """Whether packets are captured where they arrive."""
        return bool(self.captured) and self.captured[-1] == len(self.places) - 1


@dataclass(frozen=True)
class Journeys:
    """All packets in the order in which they were first captured; a row of each column is one.

    Columns: `path`, `connection` (of both directions), FIELDS, `seq` and `ack` (relative to the
    connection's first, unwrapped), `ce` (1 + the number of the capture where a mark was first
    seen, 0: none), `fate`, and `gone_ns`, when a lost packet was dropped, if that is known.
    """

    paths: tuple[FlowPath, ...]
    connections: tuple[tuple[int, int, int], ...]  # flow's number, data sender's port, other port
    columns: dict[str, Integers]
    times_ns: Integers  # a row a packet, a column for each capture of its path; UNSEEN
    sacks: Integers  # rows of: packet, left edge, right edge

    def __len__(self) -> int:
        return len(self.times_ns)

    @property
    def first_ns(self) -> Integers:
        """When each packet was first captured."""
        seen = np.where(self.times_ns == UNSEEN, np.iinfo(np.int64).max, self.times_ns)
        return np.asarray(seen.min(axis=1, initial=np.iinfo(np.int64).max))

    def at(self, rows: Booleans) -> Journeys:
        """Return some of the packets."""
        number = np.cumsum(rows) - 1
        kept = self.sacks[rows[self.sacks[:, 0]]]
        kept = np.column_stack((number[kept[:, 0]], kept[:, 1:]))
        columns = {name: column[rows] for name, column in self.columns.items()}
        return replace(self, columns=columns, times_ns=self.times_ns[rows], sacks=kept)

    def within(self, start_ns: int, stop_ns: int) -> Journeys:
        """Return the packets that were on their way in a stretch of time."""
        last = np.maximum(self.times_ns.max(axis=1, initial=UNSEEN), self.columns["gone_ns"])
        return self.at((self.first_ns <= stop_ns) & (last >= start_ns))


def paths_of(trial: Trial) -> Iterator[FlowPath]:
    """Yield the path of each flow's data, and that of its acknowledgements."""
    graph, files = trial.scenario.network, capture_files(trial)
    for flow in trial.record.flows:
        ends = trial.scenario.flow(flow.name)
        for is_data, src, dst in ((True, ends.src, ends.dst), (False, ends.dst, ends.src)):
            places = tuple(_places(graph, src, dst))
            captured = tuple(at for at, place in enumerate(places) if place.interface in files)
            if is_data or flow.protocol == "tcp":
                yield FlowPath(flow, is_data, places, captured)


def _places(graph: Graph, src: str, dst: str) -> Iterator[Place]:
    for index, end in graph.steps_from(src).get(dst, ()):
        for side in (end, 1 - end):
            node = graph.links[index].ends[side]
            number = graph.interface_numbers[(index, side)]
            yield Place(node, f"{node}-eth{number}", side == end)


def trial_journeys(trial: Trial, packets: TrialPackets) -> Journeys:
    """Match each flow's packets at all captures of its path."""
    files = capture_files(trial)
    parts = []
    for path in paths_of(trial):
        if path.captured:
            names = [path.places[at].interface for at in path.captured]
            at_flow = [packets.part_at(files[name], path.flow) for name in names]
            seen = [each.data if path.is_data else each.acks for each in at_flow]
            whole = [packets.read(files[name]) for name in names]
            parts.append(_Travelled(path, seen, whole))
    queues = {queue.interface: queue for queue in trial.record.queues}
    return _together(parts, queues)


def capture_journeys(packets: Packets) -> Journeys:
    """Return the packets of somebody's capture, each at that one place."""
    whole = packets.part
    names = [np.asarray(whole[name]) for name in ("protocol", "stream")]
    keys = np.char.add(np.char.add(names[0].astype(str), " "), names[1].astype(str))
    streams, first, number, count = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    parts = []
    for stream in sorted(np.argsort(-count, kind="stable")[:MAX_STREAMS], key=lambda s: first[s]):
        flow = _flow_of_stream(streams[stream], whole[number == stream])
        seen = select(whole[number == stream], flow)
        for is_data, part in ((True, seen.data), (False, seen.acks)):
            end = flow.src_address if is_data else flow.dst_address
            place = Place(end, "", True)
            parts.append(_Travelled(FlowPath(flow, is_data, (place,), (0,)), [part], [packets]))
    return _together(parts, {})


def _flow_of_stream(stream: str, part: PacketArrays) -> FlowRecord:
    """Describe a conversation; its data comes from the end that sent the most of it."""
    columns = (part[name].tolist() for name in ("src", "dst", "src_port", "dst_port"))
    ways = [*zip(*columns, strict=True)]
    sent = dict.fromkeys(ways, 0)
    for way, payload in zip(ways, part["payload"].tolist(), strict=True):
        sent[way] += payload
    src, dst, src_port, dst_port = max(sent, key=lambda way: sent[way])
    name = f"{src}:{src_port} → {dst}:{dst_port}"
    protocol = stream.split()[0]
    return FlowRecord(name, protocol, str(src), str(dst), (int(src_port),), int(dst_port), 0.0, 0.0)


@dataclass(frozen=True)
class _Travelled:
    """A flow's packets of one direction at each capture of their path."""

    path: FlowPath
    parts: Sequence[PacketArrays]
    whole: Sequence[Packets]


def _together(parts: Sequence[_Travelled], queues: dict[str, QueueRecord]) -> Journeys:
    """Join the packets of all paths, by time."""
    most = max((len(each.parts) for each in parts), default=1)
    ends = dict[tuple[int, int, int], int]()
    flows = list(dict.fromkeys(each.path.flow.name for each in parts))
    journeys = [
        _journeys(each, number, flows.index(each.path.flow.name), ends, most)
        for number, each in enumerate(parts)
    ]
    times = np.concatenate([np.full((0, most), UNSEEN), *(times for times, _, _ in journeys)])
    names = ("path", "connection", *FIELDS, "seq", "ack", "ce", "fate", "gone_ns")
    nothing = np.zeros(0, dtype=np.int64)
    columns = {
        name: np.concatenate([nothing, *(fields[name] for _, fields, _ in journeys)])
        for name in names
    }
    befores = np.cumsum([0, *(len(times) for times, _, _ in journeys)])
    sacks = np.concatenate(
        [np.zeros((0, 3), dtype=np.int64)]
        + [fields + [at, 0, 0] for (_, _, fields), at in zip(journeys, befores[:-1], strict=True)]
    )
    paths, connections = tuple(each.path for each in parts), tuple(ends)
    whole = Journeys(paths, connections, columns, times, sacks)
    order = np.argsort(whole.first_ns, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    sacks = np.column_stack((place[sacks[:, 0]], sacks[:, 1:]))
    columns = {name: column[order] for name, column in columns.items()}
    ordered = Journeys(paths, connections, columns, times[order], sacks[np.argsort(sacks[:, 0])])
    end_ns = int(times.max(initial=0))
    for number, each in enumerate(parts):
        _judge(ordered, number, each, queues, end_ns)
    return ordered


def _journeys(
    each: _Travelled, number: int, flow: int, ends: dict[tuple[int, int, int], int], most: int
) -> tuple[Integers, dict[str, Integers], Integers]:
    """Return the times, the columns and the SACK blocks of the packets of one path."""
    path, parts = each.path, each.parts
    rows, fate = _rows(parts)
    count = len(fate)
    times = np.full((count, most), UNSEEN, dtype=np.int64)
    columns = {name: np.zeros(count, dtype=np.int64) for name in (*FIELDS, "seq", "ack", "ce")}
    ports = np.zeros((count, 2), dtype=np.int64)
    judges = 0 if path.is_data else len(parts) - 1  # the data's sender, as Wireshark judges there
    for at in sorted(range(len(parts)), reverse=True):
        part, places = parts[at], rows[at]
        times[places, at] = part["time_ns"]
        for name in FIELDS:
            columns[name][places] = part[name]
        columns["ce"][places[part["ecn"] == CE]] = at + 1
        columns["seq"][places], columns["ack"][places] = part["relative_seq"], part["relative_ack"]
        ports[places] = np.column_stack((part["src_port"], part["dst_port"]))
    for name in ("marks", "duplicate_ack_number"):
        columns[name][rows[judges]] = parts[judges][name]
    ports = ports if path.is_data else ports[:, ::-1]
    pairs_of_ports, where = np.unique(ports, axis=0, return_inverse=True)
    known = [ends.setdefault((flow, int(src), int(dst)), len(ends)) for src, dst in pairs_of_ports]
    connection = np.array(known, dtype=np.int64)[where.reshape(-1)]
    for name in ("seq", "ack"):
        columns[name] = _unwrapped(columns[name], connection)
    columns["ack"][(columns["flags"] & ACK) == 0] = 0
    columns |= {"path": np.full(count, number), "connection": connection}
    columns |= {"fate": fate, "gone_ns": np.full(count, UNSEEN)}
    return times, columns, _sacks(each, judges, rows[judges], columns["ack"])


def _rows(parts: Sequence[PacketArrays]) -> tuple[list[Integers], Integers]:
    """Give each packet a number, the same at all captures; and say where it is a guess.

    Return also which packets may have passed a capture that others passed which look alike.
    """
    rows: list[Integers] = [np.arange(len(parts[0]))]
    count = len(parts[0])
    alike = []
    for before, after in itertools.pairwise(parts):
        matched = pairs(before, after)
        place, unsure = matched.latest, matched.may_have_passed.copy()
        known = place != NOWHERE
        unsure[place[known]] = False
        alike.append(rows[-1][unsure])
        numbers = np.empty(len(after), dtype=np.int64)
        numbers[known] = rows[-1][place[known]]
        numbers[~known] = count + np.arange(int((~known).sum()))
        count += int((~known).sum())
        rows.append(numbers)
    fate = np.full(count, ARRIVED)
    fate[np.concatenate([rows[0][:0], *alike])] = LOST_PERHAPS
    return rows, fate


def _unwrapped(values: Integers, group: Integers) -> Integers:
    """Continue 32-bit numbers past 2³², those of each group by themselves."""
    order = np.argsort(group, kind="stable")
    ordered = values[order]
    begins = np.diff(group[order], prepend=-1) != 0
    steps = np.diff(ordered, prepend=0)
    steps = (steps + HALF_SEQUENCE_SPACE) % (2 * HALF_SEQUENCE_SPACE) - HALF_SEQUENCE_SPACE
    total = np.cumsum(steps)
    base = (ordered - total)[begins]
    unwrapped = np.empty_like(values)
    unwrapped[order] = total + base[np.cumsum(begins) - 1] if len(base) else total
    return unwrapped


def _sacks(each: _Travelled, at: int, rows: Integers, ack: Integers) -> Integers:
    """Return the blocks of the packets at one capture, their edges near what is acknowledged."""
    blocks = each.whole[at].sacks
    frame = np.asarray(each.parts[at]["frame"], dtype=np.int64)
    order = np.argsort(frame)
    sought = blocks["frame"].to_numpy(dtype=np.int64)
    place = np.searchsorted(frame[order], sought)
    inside = place < len(frame)
    inside[inside] = frame[order][place[inside]] == sought[inside]
    row = rows[order[place[inside]]]
    edges = blocks[["left", "right"]].to_numpy(dtype=np.int64)[inside] - ack[row][:, None]
    edges = (edges + HALF_SEQUENCE_SPACE) % (2 * HALF_SEQUENCE_SPACE) - HALF_SEQUENCE_SPACE
    return np.column_stack((row, edges + ack[row][:, None]))


def _judge(
    journeys: Journeys, number: int, each: _Travelled, queues: dict[str, QueueRecord], end_ns: int
) -> None:
    """Say which packets of a path were lost, and when, as far as captures show it."""
    chosen = np.flatnonzero(journeys.columns["path"] == number)
    times, most = journeys.times_ns[chosen], len(each.parts)
    last = most - 1 - np.argmax(times[:, :most][:, ::-1] != UNSEEN, axis=1)
    fate, gone = np.full(len(chosen), ARRIVED), np.full(len(chosen), UNSEEN)
    for at in range(most - 1):
        passed = (times[:, at] != UNSEEN) & (times[:, at + 1] != UNSEEN)
        longest = int((times[passed, at + 1] - times[passed, at]).max(initial=0))
        stopped = last == at
        lost = stopped & (times[:, at] + longest < end_ns)
        fate[stopped], fate[lost] = UNDER_WAY, LOST_ON_WAY
        gone[lost] = times[lost, at]
        here, there = (each.path.places[each.path.captured[at + step]] for step in (0, 1))
        queue = queues.get(there.interface)
        row = DISCIPLINES.get(queue.discipline) if queue else None
        if here.node == there.node and row and row.drops_old:
            gone[lost] = _when_next_left(journeys, chosen, at, lost)
        fate[lost & (journeys.columns["fate"][chosen] == LOST_PERHAPS)] = LOST_PERHAPS
    journeys.columns["fate"][chosen], journeys.columns["gone_ns"][chosen] = fate, gone


def _when_next_left(journeys: Journeys, chosen: Integers, at: int, lost: Booleans) -> Integers:
    """Return when the next packet of each lost one's connection left the queue: it went then."""
    times, gone = journeys.times_ns[chosen], journeys.times_ns[chosen, at].copy()
    connection = journeys.columns["connection"][chosen]
    passed = (times[:, at] != UNSEEN) & (times[:, at + 1] != UNSEEN)
    for each in np.unique(connection[lost]):
        here = np.flatnonzero((connection == each) & passed)
        if not len(here):
            continue
        mine = np.flatnonzero((connection == each) & lost)
        follows = np.searchsorted(here, mine)
        known = follows < len(here)
        gone[mine[known]] = times[here[follows[known]], at + 1]
    return np.asarray(gone[lost])
