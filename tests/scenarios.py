"""Scenarios that the tests share."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from experiments.parvez_mahanti_williamson import newreno_background
from experiments.rajore_gupta_sikka_jain import video_players
from experiments.rajore_gupta_sikka_jain.access_settings import NETWORKS
from testbed.scenario import named_networks
from testbed.scenario.losses import Loss
from testbed.scenario.model import CapturePoint, Flow, FlowKind, Profile, Scenario
from testbed.scenario.named_networks import LinkSettings, NamedNetwork, NetworkName
from testbed.scenario.network import Direction, Graph, Link, Node, NodeKind, Queue
from testbed.scenario.video import Viewing
from testbed.video_site import Transport


def router(
    *,
    variant: str = "linux-reno",
    rate_mbit: float = 1,
    queue: Queue | None = None,
    delay_ms: float = 0,
    duration_s: float = 5,
    cbr_mbit: float = 0,
    seed: int = 1,
    **settings: object,
) -> Scenario:
    """One TCP flow through the router, with a CBR flow beside it if a rate is given."""
    flows = [Flow("tcp", FlowKind.TCP, "sender1", "receiver", variant=variant)]
    if cbr_mbit:
        flows.append(
            Flow("cbr", FlowKind.CBR, "sender2", "receiver", rate_mbit=cbr_mbit, packet_bytes=1000)
        )
    return Scenario(
        experiment="test",
        label=variant,
        network=named_networks.router_bottleneck(
            LinkSettings(rate_mbit, queue=queue or Queue("bfifo", limit_bytes=100_000)),
            senders=len(flows),
            access=LinkSettings(delay_ms=delay_ms),
        ),
        flows=tuple(flows),
        duration_s=duration_s,
        seed=seed,
        **settings,  # type: ignore[arg-type]
    )


def with_network(
    scenario: Scenario,
    *,
    kind: str | None = None,
    hosts: int | None = None,
    access: Mapping[str, object] | None = None,
    links: Mapping[str, LinkSettings] | None = None,
    rtts_ms: tuple[float, ...] = (),
    **bottleneck: object,
) -> Scenario:
    """Return the scenario with other settings of its named network; both directions are alike
    unless `reverse` is given."""
    graph = scenario.network
    other = next((each.forward for each in graph.links if not each.observed), Direction())
    size = {"router-bottleneck": len(graph.nodes) - 2, "dumbbell": len(graph.nodes) // 2 - 1}
    named = NamedNetwork(
        NetworkName(kind or graph.name),
        LinkSettings(**{**vars(graph.bottleneck), **bottleneck}),
        hosts or size.get(graph.name, 1),
        LinkSettings(**{**vars(other), **(access or {})}),
        links or {},
        rtts_ms,
    )
    return dataclasses.replace(scenario, network=named.graph())


def with_link(scenario: Scenario, name: str, **changes: object) -> Scenario:
    """Return the scenario with a link that has other settings, in its forward direction unless
    both are the same."""
    links = (
        dataclasses.replace(link, forward=dataclasses.replace(link.forward, **changes))  # type: ignore[arg-type]
        if link.name == name
        else link
        for link in scenario.network.links
    )
    network = dataclasses.replace(scenario.network, links=tuple(links))
    return dataclasses.replace(scenario, network=network)


def dumbbell() -> Scenario:
    """Two pairs and a CBR flow from router to router, 10 ms and 10 Mbit/s a link."""
    return Scenario(
        experiment="test",
        network=named_networks.dumbbell(
            LinkSettings(10, queue=Queue("pfifo", limit_packets=10), delay_ms=10),
            pairs=2,
            access=LinkSettings(delay_ms=10, rate_mbit=10, queue=Queue("pfifo", limit_packets=10)),
        ),
        flows=(
            Flow("one", FlowKind.TCP, "sender1", "receiver1", variant="linux-reno"),
            Flow(
                "two",
                FlowKind.TCP,
                "sender2",
                "receiver2",
                variant="vegas",
                start_s=1,
                duration_s=2,
            ),
            Flow("cbr", FlowKind.CBR, "left", "right", rate_mbit=2, packet_bytes=1000, jitter=0),
        ),
        duration_s=5,
    )


def access(network: str = "shaped", duration_s: float = 5, **settings: object) -> Scenario:
    """One TCP flow down to a home's station."""
    return Scenario(
        experiment="test",
        network=NETWORKS[network],
        flows=(Flow("tcp", FlowKind.TCP, "server", "station", variant="cubic"),),
        duration_s=duration_s,
        **settings,  # type: ignore[arg-type]
    )


def video(
    transport: Transport = Transport.HTTPS,
    network: str = "shaped",
    length_s: float = 12,
    duration_s: float = 40,
    **viewing: object,
) -> Scenario:
    """Somebody at home watches a short video, over TCP (cubic) or QUIC (reno)."""
    quic = transport is Transport.QUIC
    wanted = {"rule": "240p", "control": "reno" if quic else None, **viewing}
    flow = Flow(
        "video",
        FlowKind.VIDEO,
        "server",
        "station",
        variant=None if quic else "cubic",
        video=Viewing(transport, length_s=length_s, **wanted),  # type: ignore[arg-type]
    )
    return dataclasses.replace(access(network, duration_s), flows=(flow,))


def with_loss(scenario: Scenario, loss: Loss, **changes: object) -> Scenario:
    """The scenario, whose first flow loses."""
    flow = dataclasses.replace(scenario.flows[0], loss=loss, **changes)  # type: ignore[arg-type]
    return dataclasses.replace(scenario, flows=(flow, *scenario.flows[1:]))


def background(sessions: int = 16, duration_s: float = 10, **settings: object) -> Scenario:
    """One flow through 15 Mbit/s, beside sessions of the other pair (profile ns2)."""
    return Scenario(
        experiment="test",
        network=named_networks.dumbbell(
            LinkSettings(15, queue=Queue("pfifo", limit_packets=150), delay_ms=5),
            pairs=2,
            access=LinkSettings(delay_ms=1),
            links={"receiver1-right": LinkSettings(delay_ms=19)},
        ),
        flows=(
            Flow("tcp", FlowKind.TCP, "sender1", "receiver1", variant="newreno"),
            newreno_background.background(sessions, "sender2", "receiver2"),
        ),
        duration_s=duration_s,
        profile=Profile.NS2,
        **settings,  # type: ignore[arg-type]
    )


def with_sessions(scenario: Scenario, **changes: object) -> Scenario:
    """The scenario, whose last flow's sessions are others."""
    *others, flow = scenario.flows
    workload = flow.workload
    assert workload is not None and workload.arrivals.sessions is not None
    sessions = dataclasses.replace(workload.arrivals.sessions, **changes)  # type: ignore[arg-type]
    arrivals = dataclasses.replace(workload.arrivals, sessions=sessions)
    flow = dataclasses.replace(flow, workload=dataclasses.replace(workload, arrivals=arrivals))
    return dataclasses.replace(scenario, flows=(*others, flow))


def near_video(transport: str, player: str, length_s: float = 6) -> Scenario:
    """A line without delays, fast enough for the video: in real time nobody waits for stalls."""
    made = video_players.scenario(
        network="shaped-near",
        rule="1080p",
        transport=transport,
        player=player,
        length_s=length_s,
        seed=1,
    )
    return with_link(made, "isp-ap", rate_mbit=8)


def fat_tree(ports: int) -> Scenario:
    """A tree of switches with that many ports: ports³/4 hosts, of which each has a flow."""
    half = ports // 2
    slow = Direction(rate_mbit=100, delay_ms=1, queue=Queue("pfifo", limit_packets=1000))

    def links() -> Iterator[Link]:
        for pod in range(ports):
            for edge in range(half):
                for other in range(half):
                    yield Link((f"a{pod}x{edge}", f"c{edge * half + other}"), slow, observed=False)
                    yield Link((f"a{pod}x{edge}", f"e{pod}x{other}"), slow, observed=False)
                    host = (pod * half + edge) * half + other + 1
                    yield Link((f"h{host}", f"e{pod}x{edge}"), slow, observed=host == 1)

    made = tuple(links())
    names = dict.fromkeys(end for link in made for end in link.ends)
    kinds = (NodeKind.HOST if name.startswith("h") else NodeKind.ROUTER for name in names)
    hosts = ports**3 // 4
    flows = (
        Flow(f"f{n}", FlowKind.TCP, f"h{n}", f"h{hosts + 1 - n}", variant="cubic")
        for n in range(1, hosts // 2 + 1)
    )
    return dataclasses.replace(
        router(duration_s=2),
        network=Graph(tuple(map(Node, names, kinds)), made),
        flows=tuple(flows),
        start_jitter_ms=5,
        captures=(CapturePoint.BOTTLENECK,),
    )
