"""The short trials that tests/same_bytes.py runs: of every experiment, part, queue and variant."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

# An experiment and its settings, a line a trial. What is not set has one value by itself.
EXPERIMENTS = """
video-players network=shaped rule=240p transport=https player=chromium length_s=4
video-players network=wifi-good rule=1080p transport=quic player=chromium length_s=3
video-players network=shaped rule=720p transport=quic player=model length_s=4
video-players network=wifi-weak rule=720p transport=https player=model length_s=3
video-access network=ethernet transport=https variant=cubic setting=sender rule=240p duration_s=3
video-access network=shaped transport=https variant=veno setting=receiver rule=240p duration_s=6
video-access network=shaped transport=https variant=cubic setting=sender rule=buffer duration_s=6
video-access network=wifi-good transport=quic variant=cubic setting=receiver rule=240p duration_s=3
video-access network=wifi-congested transport=https variant=vegas setting=sender rule=240p \
duration_s=4
video-access network=wifi-weak transport=quic variant=reno setting=sender rule=throughput \
duration_s=4
video-access network=wifi-strong transport=https variant=bbr setting=sender rule=240p duration_s=3
video-access network=netem-congested transport=https variant=veno setting=sender rule=240p \
duration_s=5
video-access network=netem-weak transport=quic variant=reno setting=sender rule=240p duration_s=4
newreno-background queue=droptail sessions=16 duration_s=4
newreno-background queue=droptail sessions=256 duration_s=3
newreno-background queue=red sessions=96 duration_s=4
newreno-models p_percent=1 m=3 dropper=consecutive timer=ns2 duration_s=4
newreno-models p_percent=1 m=2 dropper=even timer=linux duration_s=4
newreno-models p_percent=0.5 m=5 dropper=spaced timer=ns2 duration_s=4
newreno-models p_percent=1 m=4 dropper=any-time timer=ns2 duration_s=4
router-bottleneck variant=linux-reno queue=bfifo path=receiver duration_s=4
router-bottleneck variant=cubic queue=codel path=receiver duration_s=4
router-bottleneck variant=bbr queue=codel path=router duration_s=1
router-bottleneck variant=vegas queue=bfifo path=router duration_s=1
router-bottleneck variant=veno queue=red path=receiver duration_s=4
router-bottleneck variant=cubic queue=pie path=receiver delay_ms=20 duration_s=4
router-fairness queue=bfifo within_s=0.1 duration_s=4
router-fairness queue=codel within_s=0.1 duration_s=4
router-fairness queue=cake within_s=0.1 duration_s=3
dumbbell-load variant=tahoe cbr_mbit=8 order=cbr-first window=large profile=ns2 duration_s=4
dumbbell-load variant=newreno-impatient cbr_mbit=6 order=cbr-first window=large profile=ns2 \
duration_s=4
dumbbell-load variant=reno cbr_mbit=9 order=cbr-first window=small profile=ns2 duration_s=4
dumbbell-load variant=vegas cbr_mbit=10 order=tcp-first window=small profile=ns2 duration_s=4
dumbbell-load variant=cubic cbr_mbit=7 order=cbr-first window=large profile=ns2 duration_s=4
dumbbell-load variant=sack cbr_mbit=5 order=cbr-first window=large profile=modern duration_s=4
dumbbell-pairs pair=newreno/reno cbr_mbit=8 window=small profile=ns2 duration_s=4
dumbbell-pairs pair=vegas/vegas cbr_mbit=2 window=large profile=ns2 second=n5-n6 duration_s=4
dumbbell-pairs pair=cubic/bbr cbr_mbit=5 window=large profile=ns2 duration_s=4
dumbbell-pairs pair=newreno/vegas cbr_mbit=5 window=large profile=modern duration_s=4
dumbbell-queues variant=reno queue=droptail profile=ns2 cbr_stop=at-60 duration_s=4
dumbbell-queues variant=sack queue=red profile=ns2 cbr_stop=at-60 duration_s=6
dumbbell-queues variant=reno queue=codel profile=modern duration_s=4
dumbbell-queues variant=sack queue=fq_codel profile=ns2 duration_s=4
dumbbell-queues variant=reno queue=pie profile=ns2 duration_s=4
dumbbell-queues variant=sack queue=cake profile=modern duration_s=4
fall-floyd variant=tahoe lost=1
fall-floyd variant=reno lost=3
fall-floyd variant=newreno lost=4
fall-floyd variant=newreno-impatient lost=4
fall-floyd variant=sack lost=2
fall-floyd variant=sack lost=4 profile=modern
variants variant=tahoe duration_s=3
variants variant=reno duration_s=3
variants variant=newreno duration_s=3
variants variant=newreno-impatient duration_s=3
variants variant=sack duration_s=3
variants variant=vegas duration_s=3
variants variant=veno duration_s=3
variants variant=cubic duration_s=3
variants variant=bbr duration_s=3
variants variant=linux-reno duration_s=3
variants variant=vegas profile=ns2 duration_s=3
"""

# On the host's own kernel: no delays, so that it need not have netem.
ON_THE_HOST = """
router-bottleneck variant=linux-reno queue=bfifo path=receiver delay_ms=0 duration_s=3
router-bottleneck variant=cubic queue=pfifo path=receiver delay_ms=0 duration_s=3
router-bottleneck variant=bbr queue=bfifo path=receiver delay_ms=0 duration_s=3
variants variant=cubic packets=40 rtt_ms=0 rate_mbit=2 duration_s=3
variants variant=sack packets=40 rtt_ms=0 rate_mbit=2 duration_s=3
variants variant=tahoe packets=40 rtt_ms=0 rate_mbit=2 duration_s=1
"""


@dataclass(frozen=True)
class Recipe:
    """A trial to be run: of an experiment with its settings, or a scenario of its own."""

    name: str
    target: str | Json
    settings: tuple[str, ...] = ()
    engine: str = "guest"
    options: tuple[str, ...] = ()  # more words for `testbed run`


def experiments(text: str, engine: str) -> Iterator[Recipe]:
    """A table's trials."""
    for line in text.strip().splitlines():
        name, *settings = line.split()
        values = " ".join(setting.partition("=")[2] for setting in settings)
        prefix = "" if engine == "guest" else f"{engine} "
        yield Recipe(f"{prefix}{name} {values}", name, tuple(settings), engine)


def tcp(variant: str = "cubic", name: str = "tcp", **more: Any) -> Json:
    """A flow through the router, unless other ends are named."""
    ends = {"src": "sender1", "dst": "receiver"}
    return {"name": name, "kind": "tcp", **ends, "variant": variant, **more}


def cbr(rate_mbit: float, **more: Any) -> Json:
    """UDP from router to router of the dumbbell, unless other ends are named."""
    ends = {"src": "left", "dst": "right"}
    flow = {"name": "cbr", "kind": "cbr", **ends, "rate_mbit": rate_mbit, "packet_bytes": 1000}
    return {**flow, **more}


def limited(
    discipline: str, *, ecn: bool = False, options: Json | None = None, **size: float
) -> Json:
    """A queue with its limit."""
    return {"discipline": discipline, "ecn": ecn, "options": options or {}, **size}


PACKETS_20 = limited("pfifo", limit_packets=20)


def made(topology: Json, flows: Sequence[Json], duration_s: float, more: Json) -> Json:
    """A scenario of no experiment."""
    whole = {"experiment": "same-bytes", "topology": topology, "flows": list(flows)}
    return {**whole, "duration_s": duration_s, **more}


def router(
    queue: Json,
    *flows: Json,
    duration_s: float = 3,
    delay_ms: float = 10,
    bottleneck: Json | None = None,
    **more: Any,
) -> Json:
    """Senders, a router with 4 Mbit/s, a receiver; as many senders as the flows name."""
    topology = {
        "kind": "router-bottleneck",
        "bottleneck": {"rate_mbit": 4, "queue": queue, **(bottleneck or {})},
        "hosts": len({flow["src"] for flow in flows}),
        "access": {"delay_ms": delay_ms},
    }
    return made(topology, flows, duration_s, more)


def dumbbell(*flows: Json, hosts: int = 1, duration_s: float = 4, **more: Any) -> Json:
    """Five links of 10 Mbit/s and 10 ms, each with 20 packets."""
    topology = {
        "kind": "dumbbell",
        "bottleneck": {"rate_mbit": 10, "queue": PACKETS_20, "delay_ms": 10},
        "hosts": hosts,
        "access": {"delay_ms": 10, "rate_mbit": 10, "queue": PACKETS_20},
    }
    return made(topology, flows, duration_s, more)


def access(radio: Json, *flows: Json, duration_s: float = 3, **more: Any) -> Json:
    """A server, a line of 2 and 1 Mbit/s, a home; `radio` is its last link."""
    line = {"rate_mbit": 2, "back_rate_mbit": 1, "delay_ms": 2}
    queues = {"queue": limited("pfifo", limit_packets=32), "back_queue": PACKETS_20}
    topology = {
        "kind": "access-link",
        "bottleneck": {**line, **queues},
        "links": {"server-isp": {"delay_ms": 10}, "ap-station": radio},
    }
    return made(topology, flows, duration_s, more)


def queues() -> Iterator[Recipe]:
    """Every discipline, with and without marks, with options of its own."""
    one, two = tcp("linux-reno"), tcp("linux-reno", "other", src="sender2")
    red = {"min_bytes": 5000, "max_bytes": 20_000, "burst_packets": 8, "probability": 0.1}
    times = {"target_ms": 5, "interval_ms": 50}
    flows = {"target_ms": 5, "flows": 64, "quantum_bytes": 300}
    asked = {
        "bfifo": limited("bfifo", limit_bytes=20_000),
        "bfifo bdp": limited("bfifo", limit_bdp=1.5),
        "pfifo": PACKETS_20,
        "red": limited("red", limit_bytes=60_000, options=red),
        "red ecn": limited("red", ecn=True, limit_bytes=60_000, options=red),
        "codel": limited("codel", limit_packets=100),
        "codel ecn": limited("codel", ecn=True, limit_packets=100, options=times),
        "fq_codel ecn": limited("fq_codel", ecn=True, limit_packets=1000, options=flows),
        "pie": limited("pie", limit_packets=200),
        "pie ecn": limited(
            "pie", ecn=True, limit_packets=200, options={"target_ms": 10, "tupdate_ms": 8}
        ),
        "cake": limited("cake", limit_bytes=200_000, options={"rtt_ms": 20}),
        "cake ecn": limited("cake", ecn=True, limit_bytes=200_000),
    }
    for name, queue in asked.items():
        yield Recipe(f"queue {name}", router(queue, one, two))


def losses() -> Iterator[Recipe]:
    """Exact ones, and by chance in every way that it is asked for."""
    pair = {"src": "sender1", "dst": "receiver1"}
    events = {"rate": 0.01, "losses": 3, "spacing": 2, "one_at_a_time": False}
    channel = {"to_bad": 0.005, "to_good": 0.3, "loss_in_bad": 0.9}
    kinds = {
        "events": {"events": {"rate": 0.01, "losses": 3}},
        "events any time": {"events": events, "spare_retransmissions": False},
        "channel": {"gilbert_elliott": channel, "spare_retransmissions": False, "dice": "shared"},
    }
    for name, loss in kinds.items():
        yield Recipe(f"loss {name}", dumbbell(tcp("sack", loss=loss, **pair)))
    exact = tcp("newreno", drops=[15, 25, 27, 29], **pair)
    yield Recipe("loss exact", dumbbell(exact, profile="ns2", sample_interval_ms=1))
    small = tcp("linux-reno", mss=88, loss={"events": {"rate": 0.001}}, window_bytes=60_000)
    roomy = limited("bfifo", limit_bytes=200_000)
    yield Recipe("loss small segments", router(roomy, small, duration_s=2, delay_ms=1))


def flows() -> Iterator[Recipe]:
    """What a flow can be told, and several kinds side by side."""
    first = {"src": "sender1", "dst": "receiver1"}
    second = {"src": "sender2", "dst": "receiver2"}
    yield Recipe("flows parallel", router(PACKETS_20, tcp(parallel=4)))
    yield Recipe("flows bytes", dumbbell(tcp("vegas", bytes=300_000, **first), cbr(2)))
    own = tcp("linux-reno", mss=536, window_bytes=30_000, rto_min_ms=400, **first)
    late = tcp("veno", "late", start_s=1, duration_s=1.5, **second)
    both = (own, late, cbr(3, jitter=0))
    yield Recipe("flows of their own", dumbbell(*both, hosts=2, start_jitter_ms=50, seed=7))
    marking = limited("codel", limit_packets=50, ecn=True)
    yield Recipe("flows of DCTCP", router(marking, tcp("dctcp")))
    uneven = cbr(9, jitter=1, packet_bytes=1500)
    yield Recipe("flows cbr jitter", dumbbell(tcp("bbr", **first), uneven, seed=3))
    slow = cbr(12, jitter=0.5, packet_bytes=64, duration_s=0.5)
    yield Recipe("flows cbr alone", dumbbell(slow, duration_s=2))
    names = ("westwood", "htcp", "illinois", "scalable")
    many = (
        tcp(name, name, src=f"sender{number}", dst=f"receiver{number}")
        for number, name in enumerate(names, start=1)
    )
    yield Recipe("flows of the kernel's controls", dumbbell(*many, hosts=len(names)))


def background() -> Iterator[Recipe]:
    """Sessions beside a flow, and a late beginning of the metrics.

    With the modern profile the sessions' window is not the one that was asked for, so that the
    verdict is invalid each time: that is what `--retry-invalid` needs.
    """
    ends = {"src": "sender2", "dst": "receiver2"}
    sessions = {**ends, "sessions": 12, "variant": "cubic", "rtt_min_ms": 100, "think_ms": 100}
    flow = tcp("sack", src="sender1", dst="receiver1")
    retry = ("--retry-invalid", "1")
    for profile, options in (("ns2", ()), ("modern", retry)):
        scenario = dumbbell(flow, hosts=2, background=sessions, measure_from_s=1, profile=profile)
        # the receiving host's link carries the sessions' delays, and no queue
        scenario["topology"]["links"] = {"receiver2-right": {}, "sender2-left": {}}
        yield Recipe(f"background {profile}", scenario, options=options)


def homes() -> Iterator[Recipe]:
    """The access link with other traffic than the experiments' videos, and video by HTTP."""
    down = tcp(src="server", dst="station")
    up = tcp("bbr", "up", src="station", dst="server")
    queue = limited("pfifo", limit_packets=50)
    losing = {"to_bad": 0.01, "to_good": 0.25, "loss_in_bad": 0.5}
    netem = {"delay_ms": 10, "jitter_ms": 8, "rate_mbit": 5, "queue": queue, "loss": losing}
    yield Recipe("access both ways", access({}, down, up))
    yield Recipe("access netem", access(netem, down, seed=5))
    radio = {"queue": queue, "radio": {"signal_dbm": -80, "busy": 0.3}}
    yield Recipe("access radio", access(radio, up, seed=2))
    watched = {"transport": "http", "rule": "throughput", "length_s": 6}
    video = {**down, "name": "video", "kind": "video", "video": watched}
    yield Recipe("access video http", access({}, video, duration_s=20))


def recordings() -> Iterator[Recipe]:
    """What is captured and sampled, and the link's two ways."""
    little = router(
        PACKETS_20, tcp(), captures=["bottleneck"], snaplen_bytes=60, sample_interval_ms=0
    )
    yield Recipe("recording little", little)
    often = router(PACKETS_20, tcp("bbr"), duration_s=2, sample_interval_ms=1)
    yield Recipe("recording often", often)
    dropped = router(PACKETS_20, tcp("vegas"), duration_s=2)
    yield Recipe("recording captures drop", dropped, options=("--captures", "drop"))
    one_way = router(PACKETS_20, tcp("sack"), bottleneck={"both_directions": False, "delay_ms": 5})
    yield Recipe("bottleneck one way", one_way, options=("--captures", "zstd"))
    slow_back = {"back_rate_mbit": 0.05, "back_queue": limited("bfifo", limit_bytes=3000)}
    yield Recipe("bottleneck slow way back", router(PACKETS_20, tcp(), bottleneck=slow_back))


def all_recipes() -> list[Recipe]:
    """In the order in which they run; the host's last, so that nothing runs beside them."""
    makers = (queues, losses, flows, background, homes, recordings)
    own = [recipe for maker in makers for recipe in maker()]
    on_host = experiments(ON_THE_HOST, "host") if os.geteuid() == 0 else ()
    return [*experiments(EXPERIMENTS, "guest"), *own, *on_host]
