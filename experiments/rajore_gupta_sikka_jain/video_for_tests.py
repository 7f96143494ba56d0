"""Metrics tables in which every claim of RGSJ holds, to be bent by tests."""

from __future__ import annotations

import pandas as pd

from experiments.rajore_gupta_sikka_jain.printed import (
    RGSJ_LOAD_S,
    RGSJ_PACKET_BYTES,
    RGSJ_SHAPED,
    RGSJ_SIGNAL,
)
from tests.claims_tables import SEEDS, Numbers, World, metrics_of

NETWORKS = ("ethernet", "shaped", "wifi-good", "wifi-congested", "wifi-weak", "wifi-strong")
THREE = ("veno", "cubic", "vegas")
COMMON: dict[str, tuple[str, ...]] = {
    "rule": ("240p",),
    "profile": ("modern",),
    "duration_s": ("900",),
}
PARTS: tuple[dict[str, tuple[str, ...]], ...] = (
    {"network": NETWORKS, "variant": (*THREE, "bbr"), "transport": ("https",),
     "setting": ("sender",)},
    {"network": NETWORKS, "variant": THREE, "transport": ("https",), "setting": ("receiver",)},
    {"network": NETWORKS, "variant": ("reno", "cubic"), "transport": ("quic",),
     "setting": ("sender",)},
    {"network": ("wifi-good",), "variant": THREE, "transport": ("quic",),
     "setting": ("receiver",)},
)  # fmt: skip
SPIKES = {"veno": (5.0, 288.0), "cubic": (8.0, 147.0), "vegas": (7.0, 179.0)}  # good WiFi
WIRED_SPIKES = {"veno": (8.0, 288.0), "cubic": (5.0, 147.0), "vegas": (3.0, 179.0)}
QUIC: Numbers = {
    "page_s": 40.0,
    "startup_s": 42.0,
    "loaded_s": 118.0,
    "ended_s": 312.0,
    "stalls": 0,
    "stall_s": 0,
    "throughput_mbps": 0.33,
    "goodput_mbps": 0.32,
    "sent_packets": 9000.0,
    "mean_packet_bytes": 900.0,
    "lost_packets": 30.0,
    "lost_packets_peak": 8.0,
    "spikes": 4.0,
    "largest_spike_pps": 120.0,
}


def video_world(place: dict[str, str]) -> dict[str, Numbers]:
    """What the paper says of a video, possible or not; the same whoever is set to the variant."""
    if place["transport"] == "quic":
        return {"video": dict(QUIC)}
    network = place["network"]
    own = "veno" if place["variant"] == "bbr" else place["variant"]
    spikes, largest = (WIRED_SPIKES if network == "ethernet" else SPIKES)[own]
    shaped = {what: float(sorted(runs[own])[2]) for what, runs in RGSJ_SHAPED.items()}
    cubic = own == "cubic"
    numbers = {
        "page_s": 85.0,
        "startup_s": 90.0,
        "loaded_s": float(RGSJ_LOAD_S.get(network, RGSJ_LOAD_S["wifi-good"])[own])
        + 3.0 * (place["variant"] == "bbr"),
        "ended_s": 370.0,
        "stalls": 1.5 if own == "veno" else 4.0,
        "stall_s": 9.0 if own == "veno" else 20.0,
        "throughput_mbps": {"veno": 0.319, "vegas": 0.333, "cubic": 0.342}[own],
        "goodput_mbps": 0.31,
        "sent_packets": 8000.0,
        "mean_packet_bytes": RGSJ_PACKET_BYTES["https"][own],
        "error_packets": 900.0 if cubic else 500.0,
        "error_packets_peak": 100.0 if cubic else 80.0,
        "lost_packets": 60.0,
        "lost_packets_peak": 20.0,
        "wireshark_retransmissions": 40.0,
        "retransmitted_bytes": shaped["retransmitted bytes"],
        "duplicate_acks": shaped["duplicate ACKs"],
        "out_of_order": shaped["out of order"],
        "out_of_order_sent": shaped["out of order"],
        "spikes": spikes,
        "largest_spike_pps": largest,
    }
    if network == "shaped":
        numbers["throughput_mbps"] = 0.328
    if network in RGSJ_SIGNAL:
        rate, peaks, duplicates = RGSJ_SIGNAL[network][own]
        numbers |= {
            "throughput_mbps": rate * 8e-3,
            "spikes": float(peaks),
            "duplicate_acks": float(duplicates),
        }
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
    rates = {"veno": 0.30, "cubic": 0.32, "vegas": 0.34, "bbr": 0.34}
    if place["network"] == "shaped":
        numbers["throughput_mbps"] = rates[place["variant"]]
    if place["network"] == "wifi-weak":
        more = {"throughput_mbps": 0.20, "spikes": 30.0}
        fewer = place["variant"] in ("cubic", "vegas")
        numbers |= more | {"duplicate_acks": 50.0 if fewer else 150.0}
    return {"video": numbers}


def video_metrics(world: World = video_world, seeds: int = SEEDS) -> pd.DataFrame:
    """video-access, what the claims ask for of it."""
    parts = [metrics_of("video-access", part | COMMON, world, seeds) for part in PARTS]
    return pd.concat(parts, ignore_index=True)
