"""A trial made by hand: two flows through one bottleneck, every number of it known.

Both flows run from second 1 to second 11. Times below are seconds of the trial's clock.

`tcp` sends ten packets of 1000 bytes, 10 ms apart, and a last one that arrives after the
flow's stop. The way there takes 50 ms and so does the way back. The fourth packet is
lost; six duplicate ACKs later it is repeated. At 3 s the tenth packet is sent again for
nothing, takes 70 ms, and is answered by one more duplicate ACK.

`cbr` sends five packets of 972 bytes, whose IP identification passes 65535; the second
is lost. The way takes 50 ms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.scenario.model import Scenario
from testbed.scenario.named_networks import LinkSettings, router_bottleneck
from testbed.scenario.network import Direction, Queue
from testbed.store.names import RECORD, SAMPLES_FOLDER, SCENARIO
from testbed.store.records import CaptureRecord, FlowRecord, QueueRecord, Record, Status
from tests.pcap_writer import Endpoints, Frame, tcp, udp, write_pcap
from tests.scenarios import router
from tests.sealing import seal

EPOCH_S = 1_700_000_000.9  # not a whole second
START_S, STOP_S = 1.0, 11.0
TCP = Endpoints("10.0.1.2", 40001, "10.0.0.2", 5201)
CBR = Endpoints("10.0.2.2", 40065, "10.0.0.2", 5202)
ISN = 2**32 - 2500  # so that the sequence numbers wrap within the third packet
SIZE = 1000
SNAPLEN = 144
LOST = 3  # of the TCP packets, from 0


def ns(time_s: float) -> int:
    """A time of the trial's clock as the captures have it."""
    return round(EPOCH_S * 1e6) * 1000 + round(time_s * 1e9)


@dataclass(frozen=True)
class Sent:
    """A packet on its way, from when it is sent on; `lost` ones end at the bottleneck."""

    frame: Frame
    delay_s: float = 0.05
    lost: bool = False

    def after(self, delay_s: float) -> Frame:
        """The packet further on."""
        return self.frame.at(self.frame.time_ns + round(delay_s * 1e9))


def _data(time_s: float, number: int, ip_id: int) -> Frame:
    seq = ISN + 1 + SIZE * number
    return tcp(TCP, ns(time_s), seq=seq, ack=1, payload=SIZE, flags="PA", ip_id=ip_id)


def _ack(time_s: float, number: int) -> Frame:
    """What the receiver sends when it expects the packet of this number."""
    return tcp(TCP.back, ns(time_s), seq=1, ack=ISN + 1 + SIZE * number)


def tcp_there() -> list[Sent]:
    """The TCP flow's packets, as they leave the sender."""
    return [
        Sent(tcp(TCP, ns(1.0), seq=ISN, flags="S", ip_id=100)),
        Sent(tcp(TCP, ns(1.101), seq=ISN + 1, ack=1, ip_id=101)),
        *(Sent(_data(2 + 0.01 * i, i, 102 + i), lost=i == LOST) for i in range(10)),
        Sent(_data(2.165, LOST, 112)),
        Sent(_data(3.0, 9, 113), delay_s=0.07),
        Sent(_data(10.97, 10, 114)),
    ]


def tcp_back() -> list[Sent]:
    """The receiver's acknowledgements, as they leave it."""
    return [
        Sent(tcp(TCP.back, ns(1.05), seq=0, ack=ISN + 1, flags="SA")),
        *(Sent(_ack(2.05 + 0.01 * i, min(i + 1, LOST))) for i in range(10) if i != LOST),
        Sent(_ack(2.215, 10)),
        Sent(_ack(3.07, 10)),
    ]


def cbr_there() -> list[Sent]:
    """The UDP packets, as they leave the sender."""
    return [
        Sent(udp(CBR, ns(2.005 + i), payload=972, ip_id=65534 + i), lost=i == 1) for i in range(5)
    ]


def _in_order(frames: Iterable[Frame]) -> list[Frame]:
    return sorted(frames, key=lambda frame: frame.time_ns)


def captures() -> dict[str, list[Frame]]:
    """What is seen where: one capture a host, and both sides of the router."""
    there, back, cbr = tcp_there(), tcp_back(), cbr_there()
    arrived = [sent for sent in (*there, *cbr) if not sent.lost]
    answers = [sent.frame for sent in back]
    heard = [sent.after(sent.delay_s) for sent in back]
    return {
        "sender1-eth0": _in_order([*(sent.frame for sent in there), *heard]),
        "sender2-eth0": _in_order(sent.frame for sent in cbr),
        "router-eth1": _in_order([*(sent.after(0.001) for sent in there), *heard]),
        "router-eth2": _in_order(sent.after(0.001) for sent in cbr),
        "router-eth0": _in_order([*(sent.after(sent.delay_s - 0.01) for sent in arrived), *heard]),
        "receiver-eth0": _in_order([*(sent.after(sent.delay_s) for sent in arrived), *answers]),
    }


ROLES = {
    "sender1-eth0": ("sender:tcp",),
    "sender2-eth0": ("sender:cbr",),
    "router-eth1": ("bottleneck-in:tcp",),
    "router-eth2": ("bottleneck-in:cbr",),
    "router-eth0": ("bottleneck-out:tcp", "bottleneck-out:cbr"),
    "receiver-eth0": ("receiver:tcp", "receiver:cbr"),
}


SOCKETS = """\
time_s,flow,state,ca_state,cwnd,ssthresh,srtt_ms,rttvar_ms,rto_ms,backoff,min_rtt_ms,retrans,\
total_retrans,lost,pacing_mbps,delivery_mbps,unacked,bytes_acked,busy_ms,rwnd_limited_ms,\
sndbuf_limited_ms,starved_by
2.000000,tcp,established,open,10,,100.0,50.0,300.0,0,100.0,0,0,0,,0.1,1,0,900.0,0.0,0.0,
2.010000,tcp,established,open,12,,100.0,50.0,300.0,0,100.0,0,0,0,,0.1,2,1000,910.0,0.0,0.0,
3.000000,tcp,established,recovery,5,5,100.0,50.0,360.0,0,100.0,0,1,0,,0.1,0,9000,1900.0,40.0,0.0,\
send-buffer
"""
QUEUES = """\
time_s,node,interface,backlog_bytes,backlog_packets,drops,marks,overlimits,sent_bytes,sent_packets
2.000000,router,router-eth0,0,0,0,0,0,0,0
2.040000,router,router-eth0,3000,3,1,0,0,3000,3
3.000000,router,router-eth0,1000,1,1,0,0,16812,18
"""
COUNTERS = '{"sender1": {"TcpExtTCPTimeouts": 3}, "receiver": {"TcpExtTCPTimeouts": 1}}'


# It drops before it is full, as CoDel may.
QUEUE = Queue("codel", limit_packets=66)
BOTTLENECK = QueueRecord("router", "router-eth0", 1, 1514, "codel", 66, "packets", False, True)


def written_scenario(variant: str = "reno") -> Scenario:
    """What the trial was made of."""
    plain = router(variant=variant, cbr_mbit=0.1, duration_s=STOP_S + 1)
    network = router_bottleneck(
        LinkSettings(1, queue=QUEUE, delay_ms=10, reverse=Direction(delay_ms=50)),
        senders=2,
        access=LinkSettings(delay_ms=1, reverse=Direction()),
    )
    flows = tuple(
        replace(flow, start_s=START_S, duration_s=STOP_S - START_S) for flow in plain.flows
    )
    return replace(plain, network=network, flows=flows)


def flow_record(name: str, ends: Endpoints, protocol: str, variant: str = "") -> FlowRecord:
    """A flow that ran for the whole interval."""
    return FlowRecord(
        name=name,
        protocol=protocol,
        src_address=ends.src,
        dst_address=ends.dst,
        src_ports=(ends.src_port,),
        dst_port=ends.dst_port,
        started_s=START_S,
        stopped_s=STOP_S,
        planned_start_s=START_S,
        planned_stop_s=STOP_S,
        control=variant,
        variant_seen=variant,
    )


def write_trial(
    folder: Path,
    *,
    scenario: Scenario | None = None,
    record: Record | None = None,
    without: tuple[str, ...] = (),
    samples: bool = False,
) -> Path:
    """Write the trial; `without` names interfaces that are not captured."""
    folder.mkdir(parents=True)
    (folder / "captures").mkdir()
    kept = {name: frames for name, frames in captures().items() if name not in without}
    for name, frames in kept.items():
        write_pcap(folder / "captures" / f"{name}.pcap", frames, SNAPLEN)
    ran = record or Record(
        status=Status.OK,
        engine="guest",
        virtual_time=True,
        seed=1,
        epoch_s=EPOCH_S,
        flows=(flow_record("tcp", TCP, "tcp", "reno1990"), flow_record("cbr", CBR, "udp")),
        queues=(BOTTLENECK,),
    )
    records = tuple(
        CaptureRecord(
            f"captures/{name}.pcap", name.split("-")[0], name, ROLES[name], SNAPLEN, len(frames), 0
        )
        for name, frames in kept.items()
    )
    if samples:
        (folder / SAMPLES_FOLDER).mkdir()
        (folder / SAMPLES_FOLDER / "counters.json").write_text(COUNTERS)
        (folder / SAMPLES_FOLDER / "sockets.csv").write_text(SOCKETS)
        (folder / SAMPLES_FOLDER / "queues.csv").write_text(QUEUES)
    (folder / SCENARIO).write_text((scenario or written_scenario()).to_json())
    (folder / RECORD).write_text(replace(ran, captures=ran.captures or records).to_json())
    return seal(folder)
