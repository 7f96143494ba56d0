"""Metrics tables in which every claim of RGSJ holds, to be bent by tests."""

from __future__ import annotations

import pandas as pd

from experiments.rajore_gupta_sikka_jain import printed
from experiments.rajore_gupta_sikka_jain.printed import STRONG, WEAK
from tests.claims_tables import SEEDS, Numbers, World, metrics_of

NETWORKS = ("ethernet", "shaped", STRONG, WEAK, "wifi-congested")
THREE = ("veno", "cubic", "vegas")
COMMON: dict[str, tuple[str, ...]] = {
    "rule": ("240p",),
    "profile": ("modern",),
    "duration_s": ("900",),
}
PARTS: tuple[dict[str, tuple[str, ...]], ...] = (
    {"network": NETWORKS, "variant": THREE, "transport": ("https",),
     "setting": ("sender", "receiver")},
    {"network": ("wifi-congested",), "variant": ("cubic",), "transport": ("quic",),
     "setting": ("sender",)},
)  # fmt: skip
FEWER_PEAKS = 2.0  # with the weak signal
QUIC: Numbers = {
    "page_s": 40.0,
    "startup_s": 42.0,
    "loaded_s": 118.0,
    "stalls": 0,
    "stall_s": 0,
    "mean_packet_bytes": 900.0,
    "lost_packets_peak": 8.0,
}


def video_world(place: dict[str, str]) -> dict[str, Numbers]:
    """What the paper says of a video, possible or not; the same whoever is set to the variant."""
    if place["transport"] == "quic":
        return {"video": dict(QUIC)}
    network, variant = place["network"], place["variant"]
    wired = network == "ethernet"
    loads = printed.RGSJ_LOAD_S["ethernet" if wired else STRONG]
    cubic = variant == "cubic"
    numbers = {
        "page_s": 85.0,
        "startup_s": 90.0,
        "loaded_s": loads[variant],
        "stalls": 1.5 if variant == "veno" else 4.0,
        "stall_s": 9.0 if variant == "veno" else 20.0,
        "throughput_mbps": printed.RGSJ_MBIT_PER_S[variant],
        "sent_packets": 8000.0 if cubic else 7900.0,
        "mean_packet_bytes": printed.RGSJ_TCP_BYTES[variant],
        "error_packets": 900.0 if cubic else 500.0,
        "error_packets_peak": 100.0 if cubic else 80.0,
        "lost_packets_peak": 20.0,
        "retransmitted_bytes": printed.RGSJ_SHAPED_BYTES[variant],
        "duplicate_acks": printed.RGSJ_SHAPED_DUPLICATES[variant],
        "out_of_order": 0.0,
        "out_of_order_sent": 0.4,
        "spikes": printed.RGSJ_SPIKES["ethernet" if wired else STRONG][variant],
        "largest_spike_pps": printed.RGSJ_LARGEST_SPIKE[variant],
    }
    if network == "shaped":
        numbers["throughput_mbps"] = 0.328
    if network in printed.RGSJ_DUPLICATES:
        numbers["duplicate_acks"] = printed.RGSJ_DUPLICATES[network][variant]
    if network == WEAK:
        numbers["spikes"] -= FEWER_PEAKS
    return {"video": numbers}


def video_mirrored(place: dict[str, str]) -> dict[str, Numbers]:
    """Nothing of it: variants are alike where they should differ, and differ where they should be
    alike; QUIC is the worse one."""
    if place["transport"] == "quic":
        worse = {"page_s": 95.0, "stalls": 3.0, "stall_s": 30.0, "lost_packets_peak": 50.0}
        return {"video": QUIC | worse | {"mean_packet_bytes": 1000.0}}
    numbers = video_world(place | {"variant": "veno"})["video"]
    numbers |= {
        "startup_s": 20.0,
        "stalls": 0.2,
        "stall_s": 1.0,
        "mean_packet_bytes": 990.0,
        "out_of_order": 12.0,
        "out_of_order_sent": 12.0,
    }
    if place["network"] == "shaped":
        numbers["throughput_mbps"] = {"veno": 0.30, "cubic": 0.32, "vegas": 0.34}[place["variant"]]
    if place["network"] == WEAK:
        fewer = place["variant"] in ("cubic", "vegas")
        more = {"throughput_mbps": 0.20, "spikes": 30.0}
        numbers |= more | {"duplicate_acks": 50.0 if fewer else 150.0}
    return {"video": numbers}


def video_metrics(world: World = video_world, seeds: int = SEEDS) -> pd.DataFrame:
    """video-access, what the claims ask for of it."""
    parts = [metrics_of("video-access", part | COMMON, world, seeds) for part in PARTS]
    return pd.concat(parts, ignore_index=True)


def as_alike(table: pd.DataFrame) -> pd.DataFrame:
    """Give trials on the laptop one course: what they are named changes nothing."""
    first = table["axes"].str.contains("setting=receiver")
    for _, rows in table[first].groupby([table["axes"].str.split(";").str[0], "seed"]):
        numbers = rows.select_dtypes("number").columns
        table.loc[rows.index, numbers] = rows[numbers].iloc[0].to_numpy()
    return table
