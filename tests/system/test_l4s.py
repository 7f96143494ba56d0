"""L4S on Linux 7.3: DualPI2 marks, DCTCP answers, and hosts negotiate accurate ECN (RFC 9768)."""

from __future__ import annotations

import os
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.results.reduction import reduce_trial
from experiments.evaluation.l4s import l4s_trial
from testbed.engine import Job
from testbed.guest import kernels
from testbed.guest.engine import GuestEngine
from tests.lab import packets, run_trials

KERNEL = "7.3"
ASKED, AGREED = 0x1C2, 0x112  # AE, CWR, ECE, SYN; AE, SYN, ACK: the SYN was ECT(0)
CONGESTION_EXPERIENCED = "3"
# tc may not know the discipline's options yet, so that these are the kernel's
SCRIPT = """
set -e
sysctl -qw net.ipv4.tcp_allowed_congestion_control='reno cubic dctcp'
for node in a r b; do ip netns add $node; done
ip link add a0 netns a type veth peer name r0 netns r
ip link add b0 netns b type veth peer name r1 netns r
ip -n a addr add 10.0.1.1/24 dev a0; ip -n r addr add 10.0.1.2/24 dev r0
ip -n b addr add 10.0.2.1/24 dev b0; ip -n r addr add 10.0.2.2/24 dev r1
ip -n a link set a0 up; ip -n r link set r0 up; ip -n r link set r1 up; ip -n b link set b0 up
ip -n a route add default via 10.0.1.2; ip -n b route add default via 10.0.2.2
ip netns exec r sysctl -qw net.ipv4.ip_forward=1
for node in a b; do
    ip netns exec $node sysctl -qw net.ipv4.tcp_ecn=3 net.ipv4.tcp_congestion_control=dctcp
done
tc -n a qdisc add dev a0 root netem delay 10ms limit 10000
tc -n r qdisc add dev r1 root handle 1: htb default 1
tc -n r class add dev r1 parent 1: classid 1:1 htb rate 10mbit burst 1514 cburst 1514
tc -n r qdisc add dev r1 parent 1:1 dualpi2
ip netns exec r tcpdump -i r1 -s 96 -w flows/l4s.pcap -Z root 2>tcpdump.log &
tcpdump=$!
sleep 0.1
ip netns exec b iperf3 -s -1 >server.log &
sleep 0.1
ip netns exec a iperf3 -c 10.0.2.1 -t 5 >client.log
kill $tcpdump
wait $tcpdump || true
"""


def fields(capture: Path, chosen: str, field: str) -> list[str]:
    """One field of the chosen packets, as tshark has it."""
    argv = ["tshark", "-r", str(capture), "-Y", chosen, "-T", "fields", "-e", field]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()


needs_kernel = pytest.mark.skipif(
    kernels.built_folder(KERNEL) is None, reason=f"testbed kernel build {KERNEL}"
)


@needs_kernel
def test_a_scenarios_scalable_flow_has_ect1_and_a_shorter_queue_than_cubic(tmp_path: Path) -> None:
    scenario = l4s_trial(variant="dctcp-l4s", path="beside-marks", seed=1)
    (trial,) = run_trials([replace(scenario, duration_s=4.0, measure_from_s=1.0)], tmp_path)
    assert packets(trial, "sender:scalable1", "tcp.len > 0 && ip.dsfield.ecn != 1") == []
    assert packets(trial, "sender:classic", "ip.dsfield.ecn == 1") == []
    flows = reduce_trial(trial).flows.set_index("flow")
    scalable, classic = flows.loc["scalable1"], flows.loc["classic"]
    assert scalable["queue_mean_ms"] < 1 and classic["queue_mean_ms"] > 5
    assert scalable["mark_rate"] > 0 and scalable["drop_rate"] == 0


@needs_kernel
def test_accurate_ecn_is_negotiated_and_marks_are_answered(tmp_path: Path) -> None:
    (tmp_path / "l4s.sh").write_text(SCRIPT)
    (tmp_path / "flows").mkdir()
    job = Job(1, min(os.sched_getaffinity(0)), threading.Event())
    assert GuestEngine(KERNEL).boot(tmp_path, ["/bin/sh", "l4s.sh"], job, patience_s=60).status == 0
    capture = tmp_path / "flows" / "l4s.pcap"
    flags = [int(each, 16) for each in fields(capture, "tcp.flags.syn == 1", "tcp.flags")]
    assert flags == [ASKED, AGREED] * 2  # of iperf3's two connections
    ecn = fields(capture, "ip.src == 10.0.1.1", "ip.dsfield.ecn")
    assert ecn.count(CONGESTION_EXPERIENCED) > 100
