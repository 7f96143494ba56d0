"""What the columns of a video flow mean: its player's, and those of the packets at its viewer."""

from __future__ import annotations

from analysis.metrics.metric import Metric

PLAYER = (
    Metric(
        "page_s",
        "s",
        "of a video flow, as all columns from here on: from the viewer's click until the page and "
        "all that is on it had come; none if they never had",
    ),
    Metric("startup_s", "s", "from the click until the picture moved, if it did"),
    Metric("loaded_s", "s", "from the click until the last of the video had come, if it did"),
    Metric("ended_s", "s", "from the click until all of the video had been shown, if it was"),
    Metric(
        "stalls",
        "",
        "how often the picture, once it had begun to move, stood still for want of video: the "
        "paper's re-buffering",
        count=True,
    ),
    Metric("stall_s", "s", "how long it stood still so, in sum, to the end of the playback"),
    Metric(
        "video_mbps",
        "Mbit/s",
        "mean of the bitrates that the player chose, over the length of the video that came",
    ),
    Metric(
        "switches",
        "",
        "segments of another bitrate than the one before them",
        count=True,
    ),
)
PACKETS = (
    Metric(
        "mean_packet_bytes",
        "B",
        "mean length of the flow's frames, both ways, at the receiver's capture",
    ),
    Metric(
        "error_packets",
        "packets",
        "the flow's packets, both ways, at the receiver's capture on which Wireshark puts one of "
        "tcp.analysis.flags other than window_update (which its graph of TCP errors counts too); a "
        "packet with several counts once. None over QUIC, whose captures are encrypted",
        count=True,
    ),
    Metric(
        "error_packets_peak",
        "packets/s",
        "the most of them in a second; seconds are counted from the first packet, as an I/O "
        "graph of Wireshark's has them",
        count=True,
    ),
    Metric(
        "lost_packets",
        "packets",
        "packets with data in the video's direction that were seen at the sender's capture and "
        "never at the receiver's: TCP's segments and QUIC's datagrams alike, whichever queue or "
        "radio lost them; what may be on its way when the captures end is not lost",
        count=True,
    ),
    Metric(
        "lost_packets_peak",
        "packets/s",
        "the most of them in a second, by when they were sent; seconds as above",
        count=True,
    ),
    Metric(
        "quic_lost_packets",
        "packets",
        "what QUIC's server took for lost, by its own count: three packets sent later were "
        "acknowledged, or 9/8 of a round trip had passed (RFC 9002). Not among them are packets "
        "of acknowledgements alone, and what a probe timeout sends again. Over TCP that is "
        "retransmitted",
        count=True,
    ),
    Metric(
        "retransmitted_bytes",
        "B",
        "bytes of the frames in the data's direction at the sender's capture that bring again what "
        "was sent before: Wireshark's tcp.analysis.retransmission, fast and spurious ones "
        "included, and out_of_order, which is its word there for a repair between new segments. "
        "That capture has what the line's queue dropped, as the paper's had, which was taken "
        "before the queue",
        count=True,
    ),
    Metric(
        "spikes",
        "",
        "seconds with 50 or more of the flow's packets, both ways, above either of their "
        "neighbours, at the receiver's capture; seconds as above",
        count=True,
    ),
    Metric(
        "largest_spike_pps",
        "packets/s",
        "how far the largest of them is above the higher of its neighbours; nought without any",
        count=True,
    ),
)
VIDEO = (*PLAYER, *PACKETS)
