#!/usr/bin/env -S sh -c 'exec "${0%/*}/../../.venv/bin/python" "$0" "$@"'
"""Rajore, Gupta, Sikka, Jain: a video of 4:30 min at home, over TCP variants and over QUIC.

    server ───── isp ══════════ ap ─ ─ ─ station
         internet      line        radio (or a cable)

The networks are those of `access_settings.py`; a seed draws their delays and buffers within 5 %,
and when the viewer clicks. The crowded hall is both the kernel's own 802.11 and netem's radio, with
the paper's 0.01 Mbit/s up. The paper set the variant on the laptop, which receives the data
(`setting=receiver`, with the server at its default). The sender's variant is the one that matters
(`setting=sender`). `rule=240p` has the bitrate of the paper's captures.
"""

from __future__ import annotations

import sys

from experiments.rajore_gupta_sikka_jain.access_settings import NETWORKS
from testbed.scenario.experiment import Experiment, on_demand
from testbed.scenario.model import CapturePoint, Flow, FlowKind, Profile, Scenario
from testbed.scenario.video import PLAYER_RULES, Viewing
from testbed.video_site import Transport

LENGTH_S = 270.0
# How long a viewer waits: on the slowest network a video takes up to eight minutes, and a trial
# costs little once its player has ended.
VIEWER_PATIENCE_S = 900.0
# The effect of a seed on a network where nothing is random: the start between the kernel's ticks.
VIDEO_JITTER_MS = 100.0
# Every packet of the video passes both hosts; with more captures a trial takes longer.
VIDEO_CAPTURES = (CapturePoint.SENDERS, CapturePoint.RECEIVERS)
VIDEO_SAMPLE_MS = 100.0

PAPERS_VARIANTS = ("veno", "cubic", "vegas")
TCP_DEFAULT, QUIC_DEFAULT = "cubic", "reno"  # the server's defaults
# over TCP: Linux's own Reno, which is close to what aioquic calls Reno
KERNELS = {name: name for name in (*PAPERS_VARIANTS, "bbr")} | {"reno": "linux-reno"}
HALLS = ("netem-congested", "wifi-congested")  # the first as the paper's speed test had it
PAPERS_NETWORKS = ("ethernet", "shaped", "wifi-good", "wifi-weak", *HALLS)
# Of buffers and of delays, so that an answer is of networks like the paper's
VIDEO_DRAWN_SHARE = 0.05


def scenario(
    *,
    network: str,
    variant: str,
    transport: str,
    setting: str,
    rule: str,
    profile: str,
    duration_s: float,
    seed: int,
) -> Scenario:
    """Return one trial: one viewer watches one video."""
    parts = [network, transport, variant]
    parts += ["receiver"] if setting == "receiver" else []
    parts += [rule] if rule in PLAYER_RULES else []
    return Scenario(
        experiment="video-access",
        label="-".join(parts),
        network=NETWORKS[network],
        flows=(_video(Transport(transport), variant, setting == "receiver", rule),),
        duration_s=duration_s,
        seed=seed,
        start_jitter_ms=VIDEO_JITTER_MS,
        drawn_service_times=1.0,
        drawn_share=VIDEO_DRAWN_SHARE,
        profile=Profile(profile),
        captures=VIDEO_CAPTURES,
        sample_interval_ms=VIDEO_SAMPLE_MS,
    )


def _video(transport: Transport, variant: str, receivers: bool, rule: str) -> Flow:
    """Return the flow from the server to the station, one of which has the variant set."""
    kernel = KERNELS.get(variant, variant)
    quic = transport is Transport.QUIC
    control = QUIC_DEFAULT if receivers else variant
    return Flow(
        "video",
        FlowKind.VIDEO,
        "server",
        "station",
        variant=None if quic else TCP_DEFAULT if receivers else kernel,
        video=Viewing(
            transport,
            rule,
            LENGTH_S,
            control=control if quic else None,
            viewer_variant=kernel if receivers else None,
        ),
    )


EXPERIMENT = Experiment(
    name="video-access",
    paper="Rajore, Gupta, Sikka, Jain",
    about="a video at home: six networks, TCP variants at either end, QUIC",
    axes={
        "network": PAPERS_NETWORKS,
        "variant": PAPERS_VARIANTS,
        "transport": ("https",),
        "setting": ("receiver", "sender"),
        "rule": ("240p",),
        "profile": ("modern",),
        "duration_s": (VIEWER_PATIENCE_S,),
    },
    parts=(
        {},
        {"network": HALLS, "transport": ("quic",), "variant": ("cubic",), "setting": ("sender",)},
    ),
    build=scenario,
    quick={
        "network": ("shaped", "wifi-congested"),
        "variant": PAPERS_VARIANTS,
        "rule": ("240p",),
        "setting": ("sender",),
    },
    metric="loaded_s",
    figures=on_demand("experiments.rajore_gupta_sikka_jain.figures", "draw"),
    claims=on_demand("experiments.rajore_gupta_sikka_jain.claims", "papers"),
)

if __name__ == "__main__":
    from testbed.cli.entry import main

    sys.exit(main(["run", EXPERIMENT.name, *sys.argv[1:]], {EXPERIMENT.name: EXPERIMENT}))
