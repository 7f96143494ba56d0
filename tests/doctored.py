"""A recorded trial whose parts are doctored one by one; a verdict has to name each.

The trial is real: linux-reno through 1 Mbit/s and a pfifo of 16 packets, 3.5 s in the guest.
What is bent while a trial runs is in tests/sabotage.py.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from testbed.store.names import LINK_CHANGES, RECORD, SCENARIO
from testbed.store.writing import write_table
from tests.sealing import seal

SOUND = Path(__file__).parent / "golden" / "fidelity" / "trial"
RECORD_HEADER = struct.Struct("<IIII")
ETHERNET = 14
FLAGS = ETHERNET + 20 + 13  # of TCP, behind an IP header without options
ECE = 0x40
Frame = tuple[int, bytes, int]  # nanoseconds, what was captured, bytes on the wire


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Change a JSON file."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def edit_table(path: Path, change: Callable[[pd.DataFrame], object]) -> None:
    """Change a CSV file."""
    table = pd.read_csv(path)
    change(table)
    table.to_csv(path, index=False)


def frames(content: bytes) -> Iterator[Frame]:
    """The frames of a nanosecond pcap."""
    at = 24
    while at < len(content):
        seconds, nanoseconds, kept, size = RECORD_HEADER.unpack_from(content, at)
        at += RECORD_HEADER.size
        yield seconds * 10**9 + nanoseconds, content[at : at + kept], size
        at += kept


def edit_capture(path: Path, interface: str, change: Callable[[int, Frame], Frame | None]) -> None:
    """Change each frame of a capture, or leave it out; the record knows how many there are."""
    file = path / "captures" / f"{interface}.pcap.gz"
    content = gzip.decompress(file.read_bytes())
    kept = [change(i, frame) for i, frame in enumerate(frames(content))]
    out = [content[:24]]
    for frame in kept:
        if frame is not None:
            time_ns, data, size = frame
            out += [RECORD_HEADER.pack(*divmod(time_ns, 10**9), len(data), size), data]
    file.write_bytes(gzip.compress(b"".join(out)))
    count = sum(frame is not None for frame in kept)

    def recount(record: Any) -> None:
        for capture in record["captures"]:
            if capture["interface"] == interface:
                capture["packets"] = count

    edit(path / RECORD, recount)


def without(number: int) -> Callable[[int, Frame], Frame | None]:
    return lambda i, frame: None if i == number else frame


def with_ce(i: int, frame: Frame) -> Frame:
    """A data packet that carries CE."""
    time_ns, data, size = frame
    if not 100 <= i < 110 or size < 1000:
        return frame
    return time_ns, data[: ETHERNET + 1] + b"\x03" + data[ETHERNET + 2 :], size


def _flow(name: str, value: object) -> Callable[[Path], None]:
    return lambda path: edit(path / RECORD, lambda r: r["flows"][0].update({name: value}))


def _sample(file: str, column: str, value: int) -> Callable[[Path], None]:
    def change(table: pd.DataFrame) -> None:
        table[column] = table[column].where(table.index != len(table) // 2, value)

    return lambda path: edit_table(path / "samples" / file, change)


def _counter(node: str, name: str) -> Callable[[Path], None]:
    def change(data: Any) -> None:
        data[node][name] = data[node].get(name, 0) + 1

    return lambda path: edit(path / "samples" / "counters.json", change)


def _last(column: str, more: int) -> Callable[[Path], None]:
    def change(table: pd.DataFrame) -> None:
        table[column] += (table.index == len(table) - 1) * more

    return lambda path: edit_table(path / "samples" / "queues.csv", change)


def _setting(path: Path) -> None:
    def change(data: Any) -> None:
        data["end"]["sender1: sysctl net.ipv4.tcp_sack"] = "0"

    edit(path / "samples" / "configuration.json", change)


def _late(path: Path) -> None:
    def change(table: pd.DataFrame) -> None:
        table["rtt_ms"] += 2

    edit_table(path / "samples" / "idle.csv", change)


def _report(path: Path) -> None:
    def change(data: Any) -> None:
        data["end"]["sum_received"]["bytes"] -= 5000

    edit(path / "flows" / "tcp.server.json", change)


def _interval(path: Path) -> None:
    def change(data: Any) -> None:
        data["intervals"][1]["sum"]["bytes"] += 5000

    edit(path / "flows" / "tcp.server.json", change)


def _retransmits(path: Path) -> None:
    def change(data: Any) -> None:
        data["intervals"][1]["sum"]["retransmits"] += 1

    edit(path / "flows" / "tcp.client.json", change)


def _queue(name: str, value: object) -> Callable[[Path], None]:
    def change(record: Any) -> None:
        next(q for q in record["queues"] if q["interface"] == "router-eth0")[name] = value

    return lambda path: edit(path / RECORD, change)


def _own_queue(path: Path) -> None:
    """As if its own link had been as slow as the bottleneck: two segments an ACK are too many."""
    own = {"node": "sender1", "interface": "sender1-eth0", "rate_mbit": 1, "burst_bytes": 1514}
    own |= {"discipline": "pfifo", "limit": 100, "unit": "packets", "ecn": False, "sampled": False}
    edit(path / RECORD, lambda record: record["queues"].append(own))


def _dropped(path: Path) -> None:
    edit(path / RECORD, lambda r: r["captures"][0].update(dropped=2))


def _fewer(path: Path) -> None:
    edit(path / RECORD, lambda r: r["captures"][0].update(packets=1))


def _samples_gap(path: Path) -> None:
    for name in ("queues.csv", "sockets.csv"):
        file = path / "samples" / name
        table = pd.read_csv(file)
        table[~table["time_s"].between(1, 1.2)].to_csv(file, index=False)


def _cut(path: Path) -> None:
    """As a full disk, or a copy that was ended, may leave it: at a line's end."""
    file = path / "samples" / "sockets.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) // 2]))


def _scaled(column: str, factor: float) -> Callable[[Path], None]:
    def change(table: pd.DataFrame) -> None:
        table[column] = (table[column] * factor).astype(table[column].dtype)

    return lambda path: edit_table(path / "samples" / "sockets.csv", change)


def _filled(column: str, value: str | float) -> Callable[[Path], None]:
    """The samples of the second half say this."""

    def change(table: pd.DataFrame) -> None:
        table.loc[table["time_s"] > 1.75, column] = value

    return lambda path: edit_table(path / "samples" / "sockets.csv", change)


def _larger(i: int, frame: Frame) -> Frame:
    return (*frame[:2], 1600) if i == 100 else frame


def _uneven(i: int, frame: Frame) -> Frame:
    """Each second one 2 ms early, of 12 that it takes: the rate stays what it was."""
    time_ns, data, size = frame
    return time_ns - 2_000_000 * (i % 2), data, size


def _together(i: int, frame: Frame) -> Frame:
    """Some leave nearly at once: two take 24 ms, and there is an acknowledgement for them."""
    time_ns, data, size = frame
    early = size > 1000 and 100 < i < 110
    return time_ns - 8_000_000 * (i - 100) * early, data, size


def _offered(path: Path) -> None:
    """As if the scenario had set a window, which the receiver does not keep to."""
    edit(path / SCENARIO, lambda scenario: scenario["flows"][0].update(window_bytes=10_000))


def _echoing(i: int, frame: Frame) -> Frame:
    """Acknowledgements say ECE, and nothing had CE."""
    time_ns, data, size = frame
    if i < 100 or size > 100:
        return frame
    return time_ns, data[:FLAGS] + bytes([data[FLAGS] | ECE]) + data[FLAGS + 1 :], size


def _foreign(path: Path) -> None:
    """A frame from another port, behind all others at the receiver."""
    file = path / "captures" / "receiver-eth0.pcap.gz"
    content = gzip.decompress(file.read_bytes())
    time_ns, data, size = list(frames(content))[-1]
    data = data[: ETHERNET + 20] + b"\x27\x0f" + data[ETHERNET + 22 :]
    head = RECORD_HEADER.pack(*divmod(time_ns, 10**9), len(data), size)
    file.write_bytes(gzip.compress(content + head + data))
    edit_capture(path, "receiver-eth0", lambda _i, frame: frame)


def _standing(path: Path) -> None:
    def change(data: Any) -> None:
        data["intervals"][1]["sum"]["end"] += 0.3

    edit(path / "flows" / "tcp.client.json", change)


def _early(_i: int, frame: Frame) -> Frame:
    time_ns, data, size = frame
    return time_ns - 50_000, data, size


def _unplanned(path: Path) -> None:
    sysctls = {host: {"net.ipv4.tcp_frto": each} for host, each in (("a", "2"), ("b", "0"))}
    edit(path / RECORD, lambda record: record.update(sysctls=sysctls))


def _stopped(path: Path) -> None:
    """As if the server had not run since its first second."""

    def change(data: Any) -> None:
        del data["intervals"][1:-1]

    edit(path / "flows" / "tcp.server.json", change)


def _damaged(path: Path) -> None:
    counters = {"TcpInCsumErrors": 2}
    edit(path / "samples" / "counters.json", lambda data: data["receiver"].update(counters))


def _jittered(path: Path) -> None:
    netem = {"kind": "netem", "handle": "2:", "dev": "w0a", "root": True}
    netem |= dict.fromkeys(("packets", "drops", "requeues", "bytes", "overlimits"), 0)
    netem["options"] = {"delay": {"delay": 0.01, "jitter": 0.0005}}
    edit(path / "samples" / "qdiscs.json", lambda data: data.update(wires=[netem]))


def _changed(path: Path) -> None:
    rows = [("1.0", "1.0", "router-eth0", "rate 1 Mbit/s")]
    write_table(path, LINK_CHANGES, rows)


def _bytes(path: Path) -> None:
    edit(path / SCENARIO, lambda scenario: scenario["flows"][0].update(bytes=100_000))


def _segments(path: Path) -> None:
    edit(path / SCENARIO, lambda scenario: scenario["flows"][0].update(mss=1000))


def _host(column: str, values: list[float]) -> Callable[[Path], None]:
    """As if it had run in real time, on a busy host."""

    def act(path: Path) -> None:
        edit(path / RECORD, lambda record: record.update(engine="host", virtual_time=False))
        load = {"time_s": [1, 2, 3], "busiest": 0.4, "softirq": 0.1, "steal": 0.0}
        waits = {"name": ["iperf3", "tcpdump"], "node": "sender1", "run_s": 1.0}
        waits |= {"wait_s": 0.1, "slices": [1000, 1000]}
        (load if column in load else waits)[column] = values
        pd.DataFrame(load).to_csv(path / "samples" / "load.csv", index=False)
        pd.DataFrame(waits).to_csv(path / "samples" / "processes.csv", index=False)

    return act


_DOCTORED: dict[str, tuple[Callable[[Path], None], str]] = {
    "tcpdump lost packets": (_dropped, "capture drops"),
    "a file with other packets": (_fewer, "capture file"),
    "another kernel": (
        lambda path: edit(path / RECORD, lambda r: r.update(kernel="Linux 6.12.117-testbed #1")),
        "kernel",
    ),
    "another variant": (_flow("variant_seen", "cubic"), "variant"),
    "an option missing": (_flow("options_seen", ["timestamps"]), "options"),
    "a setting changed": (_setting, "configuration"),
    "a packet beyond the MTU": (
        lambda path: edit_capture(path, "sender1-eth0", _larger),
        "offloads",
    ),
    "a late start": (_flow("planned_start_s", -0.05), "start"),
    "a late stop": (_flow("planned_stop_s", 3.4), "stop"),
    "samples missing": (_samples_gap, "sampling"),
    "a socket's samples that end early": (_cut, "sampling"),
    "a longer path": (_late, "idle RTT"),
    "a rate 3 % off": (_queue("rate_mbit", 1.03), "rate"),
    "gaps of another length": (
        lambda path: edit_capture(path, "router-eth0", _uneven),
        "gaps",
    ),
    "segments that leave as one": (_own_queue, "gaps"),
    "a few packets at once": (lambda path: edit_capture(path, "router-eth0", _together), "windows"),
    "packets that take no time": (_queue("burst_bytes", 0), "sending"),
    "a large bucket": (_queue("burst_bytes", 6000), "bucket"),
    "a window that does not hold": (_offered, "window offered"),
    "a larger buffer than asked": (_queue("limit", 15), "buffer"),
    "a smaller buffer than asked": (_queue("limit", 30), "tail drop"),
    "a packet missing at the sender": (
        lambda path: edit_capture(path, "sender1-eth0", without(200)),
        "capture gaps",
    ),
    "a packet missing at the receiver": (
        lambda path: edit_capture(path, "receiver-eth0", without(201)),
        "loss",
    ),
    "a packet missing behind the queue": (
        lambda path: edit_capture(path, "router-eth0", without(200)),
        "capture gaps",
    ),
    "a drop too many": (_last("drops", 1), "conservation"),
    "a packet too many": (_last("sent_packets", 1), "queue counters"),
    "other bytes": (_last("sent_bytes", 1), "queue counters"),
    "a mark too many": (_last("marks", 1), "ECN"),
    "a CE that the kernel did not count": (
        lambda path: edit_capture(path, "receiver-eth0", with_ce),
        "ECN",
    ),
    "echoes without a mark": (
        lambda path: edit_capture(path, "receiver-eth0", _echoing),
        "ECN echo",
    ),
    "TCP_INFO's retransmissions": (
        _sample("sockets.csv", "total_retrans", 99),
        "retransmissions",
    ),
    "the kernel's retransmissions": (_counter("sender1", "TcpRetransSegs"), "retransmissions"),
    "iperf3's retransmissions": (_retransmits, "retransmissions"),
    "TCP_INFO's unacked": (_sample("sockets.csv", "unacked", 99), "outstanding"),
    "a small window": (_scaled("cwnd", 1 / 3), "window"),
    "another srtt": (_scaled("srtt_ms", 1.1), "RTT"),
    "a receiver short of memory": (_counter("receiver", "TcpExtOfoPruned"), "receive buffer"),
    "a window too small for the path": (_filled("rwnd_limited_ms", 1750.0), "receive window"),
    "a full send buffer": (_filled("starved_by", "send-buffer"), "send buffer"),
    "iperf3's sum": (_report, "goodput"),
    "an interval of iperf3's": (_interval, "iperf3 intervals"),
    "a connection that is no flow's": (_foreign, "other connections"),
    "iperf3 that stood still": (_standing, "iperf3 seconds"),
    "an iperf3 that was stopped": (_stopped, "iperf3 seconds"),
    "packets that were damaged": (_damaged, "checksums"),
    "a jitter that nobody asked for": (_jittered, "scenario"),
    "a change that nobody asked for": (_changed, "scenario"),
    "more bytes than were asked for": (_bytes, "bytes"),
    "a capture whose clock is behind": (
        lambda path: edit_capture(path, "receiver-eth0", _early),
        "delay",
    ),
    "a setting of one host": (_unplanned, "configuration"),
    "segments of another size": (_segments, "packets"),
    "a queue that marks": (_queue("ecn", True), "scenario"),
    "a core that was always busy": (_host("busiest", [0.4, 0.99, 1.0]), "cpu"),
    "softirqs all the time": (_host("softirq", [0.2, 0.5, 0.5]), "softirq"),
    "a hypervisor that took time": (_host("steal", [0.0, 0.1, 0.2]), "steal"),
    "a process that waited": (_host("wait_s", [0.1, 5.0]), "scheduling delay"),
}


def _sealed(act: Callable[[Path], None]) -> Callable[[Path], None]:
    """As if the trial itself had left what was doctored."""

    def both(path: Path) -> None:
        act(path)
        seal(path)

    return both


SABOTAGES = {
    "samples cut at a line's end": (_cut, "files"),
    **{name: (_sealed(act), check) for name, (act, check) in _DOCTORED.items()},
}
