#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Our model of a player compared with a real browser: one video, both transports.

    server ───── isp ══════════ ap ─ ─ ─ station
         internet      line        radio, or a cable

Chromium and the model play the video in the guest, in virtual time, on the paper's networks. They
can also do so in real time on a host, as root, on a machine that does nothing else; where its
kernel has no netem, over the lines without delays, whose names end in `-near`. The bitrates are
chosen for their effect: 240p is the paper's, and 720p is twice what the shaped line carries, so
playback stalls repeatedly.
"""

from __future__ import annotations

import dataclasses
import sys

from experiments.rajore_gupta_sikka_jain.access_settings import ACCESS_LINKS, NETWORKS
from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.named_networks import access_link
from testbed.scenario.network import Graph
from testbed.scenario.video import LADDER, PAGE_BYTES, PlayerKind, Viewing
from testbed.video_site import Transport

NEAR = "-near"
# In addition to the bytes of page and video: headers, the handshake, the browser's start-up
OVERHEAD, BEGINNING_S = 1.12, 6.0
# On a radio, losses cost more than that; in virtual time, waiting costs little.
ON_A_RADIO, LONGER_S = 3.0, 60.0


def line(name: str) -> Graph:
    """One of the paper's networks, or one without its delays, and therefore without a radio."""
    if not name.endswith(NEAR):
        return NETWORKS[name]
    line, _ = ACCESS_LINKS[name.removesuffix(NEAR)]
    reverse = line.reverse and dataclasses.replace(line.reverse, delay_ms=0)
    return access_link(dataclasses.replace(line, delay_ms=0, reverse=reverse))


def scenario(
    *, network: str, rule: str, transport: str, player: str, length_s: float, seed: int
) -> Scenario:
    """One trial."""
    quic = transport == Transport.QUIC
    watched = Viewing(
        Transport(transport),
        rule,
        length_s,
        control="reno" if quic else None,
        player=PlayerKind(player),
    )
    return Scenario(
        experiment="video-players",
        label=f"{network}-{rule}-{transport}-{player}-{length_s:g}s",
        network=line(network),
        flows=(
            Flow(
                "video",
                FlowKind.VIDEO,
                "server",
                "station",
                variant=None if quic else "cubic",
                video=watched,
            ),
        ),
        duration_s=watched_s(network, rule, length_s),
        seed=seed,
        drawn_service_times=1.0,
    )


def watched_s(network: str, rule: str, length_s: float) -> float:
    """Return how long the viewer stays: long enough for the whole video."""
    rates = [link.forward.rate_mbit for link in line(network).links]
    bit_per_s = 1e6 * min(rate for rate in rates if rate is not None)
    wanted = {rung.name: rung.bit_per_s for rung in LADDER}.get(rule, 0)
    seconds = PAGE_BYTES * 8 / bit_per_s + length_s * max(1.0, wanted / bit_per_s)
    if not network.endswith(NEAR):
        return round(ON_A_RADIO * seconds + LONGER_S, 1)
    return round(OVERHEAD * seconds + BEGINNING_S, 1)


EXPERIMENT = Experiment(
    name="video-players",
    paper="Rajore, Gupta, Sikka, Jain",
    about="our model of a player against Chromium: the same video, played by both",
    axes={
        "network": ("shaped",),
        "rule": ("240p", "720p"),
        "transport": ("https", "quic"),
        "player": ("model", "chromium"),
        "length_s": (30.0,),
    },
    parts=(
        {},
        {"network": ("wifi-good",), "rule": ("1080p",)},
        {"network": ("wifi-weak",), "rule": ("720p",)},
        {"network": ("wifi-congested",), "rule": ("240p",)},
    ),
    build=scenario,
    quick={"network": ("shaped",), "length_s": (12.0,)},
    figures=on_demand("experiments.rajore_gupta_sikka_jain.video_players_figures", "draw"),
    summary=on_demand("experiments.rajore_gupta_sikka_jain.video_players_figures", "table"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
