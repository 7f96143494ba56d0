"""A station, a line and a server: `python -m tests.video_lab TRANSPORT …`, inside the guest.

Plays one video over a line of a given rate and delay, and leaves result.json and st.pcap.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from testbed.machine.process import Place, Process, end, run, start
from testbed.machine.timer import wake_exactly
from testbed.plan.video_commands import CERTIFICATE, Serving, Site, Watching
from testbed.scenario.video import Transport, Video
from testbed.traffic.video.video_flow import VideoServer, Viewer, write_files

ADDRESSES = {"station": "10.0.0.1", "server": "10.0.0.2"}
MACS = {"station": "02:00:00:00:00:01", "server": "02:00:00:00:00:02"}
PORT = 443


def node(name: str) -> Place:
    """A network namespace, held by a process of its own."""
    holder: Process = start(["unshare", "--net", "sleep", "infinity"])
    ours = Path("/proc/self/ns/net").readlink()
    while Path(f"/proc/{holder.pid}/ns/net").readlink() == ours:
        time.sleep(0.001)
    return Place(name, holder.pid)


def join(station: Place, server: Place, rate_mbit: float, loss: float) -> None:
    """The line: 20 ms each way, as fast as said towards the station, with losses at random."""
    pids = (str(station.pid), str(server.pid))
    run(["ip", "link", "add", "line", "netns", pids[0], "type", "veth", "peer", "line"])
    run(["ip", "link", "set", "line", "netns", pids[1]])
    for place, other in ((station, server), (server, station)):
        words = f"netem delay 20ms rate {rate_mbit}mbit limit 50"
        words += f" loss {loss}%" if place is server else ""
        tell(place, f"ip address add {ADDRESSES[place.name]}/24 dev line")
        tell(place, f"ip link set line address {MACS[place.name]} up")
        # as in the testbed's networks: no ARP between the packets
        tell(place, f"ip neighbour add {ADDRESSES[other.name]} lladdr {MACS[other.name]} dev line")
        tell(place, "ethtool -K line tso off gso off gro off")
        tell(place, f"tc qdisc add dev line root {words}")


def tell(place: Place, command: str) -> None:
    """Run a command there."""
    run(command.split(), place=place)


def play(options: argparse.Namespace, folder: Path) -> None:
    """One playback, from the first packet to the last."""
    transport = Transport(options.transport)
    station, server = node("station"), node("server")
    join(station, server, options.rate_mbit, options.loss)
    write_files(folder, Video(options.duration_s))
    serving = VideoServer(folder, server, Serving(transport, PORT, options.control))
    authority = "" if transport is Transport.HTTP else f"{folder / CERTIFICATE}"
    site = Site(ADDRESSES["server"], PORT, authority)
    watching = Watching(transport, site, options.rule, deadline_s=options.deadline_s)
    viewer = Viewer(watching, station, Path("result.json"), folder)
    words = ["tcpdump", "-Z", "root", "-n", "-s", "120", "-i", "line", "-w", "st.pcap"]
    capture = start(words, place=station)
    serving.wait_until_ready()
    viewer.wait_until_ready()
    time.sleep(0.5)
    Path("begun").write_text(f"{time.time_ns()}")
    viewer.begin()
    while not viewer.ended and not options.stop_s:
        time.sleep(0.5)
    time.sleep(options.stop_s)
    viewer.collect()
    serving.stop()
    end(capture)


def main(argv: list[str]) -> int:
    """Play as the words say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("transport")
    parser.add_argument("--rule", default="480p")
    parser.add_argument("--control", default="reno")
    parser.add_argument("--rate-mbit", type=float, default=2.0)
    parser.add_argument("--loss", type=float, default=0.0)
    parser.add_argument("--duration-s", type=float, default=10.0)
    parser.add_argument("--deadline-s", type=float, default=3600.0)
    parser.add_argument("--stop-s", type=float, default=0.0, help="SIGTERM after so long")
    wake_exactly()
    with tempfile.TemporaryDirectory() as folder:
        play(parser.parse_args(argv), Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
