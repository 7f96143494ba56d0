"""Faulty laboratories in the guest: each fault is named with the script's line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.store.names import LABORATORY_FINDINGS, MACHINE_FILES

TESTBED = (sys.executable, "-m", "experiments")
# A script's two hosts behind a switch. The line that a finding has to name ends with its rule.
LAB = """
import os
import subprocess

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
from mininet.topo import Topo


class Pair(Topo):
    def build(self):
        s1 = self.addSwitch("s1")
        self.addLink(self.addHost("h1"), s1, bw=100)
        self.addLink(s1, self.addHost("h2"){link}


net = Mininet(Pair(), link=TCLink, switch=LinuxBridge, controller=None)
net.start()
h1, h2, s1 = net["h1"], net["h2"], net["s1"]
{before}
h2.cmd("iperf -s &")
h1.cmd("sleep 1")
h1.cmd("iperf -c 10.0.0.2 -t 2"){client}
{after}
net.stop()
"""
NO_OFFLOADS = 'h1.cmd("ethtool -K h1-eth0 tso off gso off")\n'
SOUND = ', bw=10, delay="10ms")'


def lab(link: str = SOUND, before: str = "", client: str = "", after: str = "") -> str:
    return LAB.format(link=link, before=before, client=client, after=after)


FAULTY = {
    "delay": lab(", bw=10, delay=5)  # a number without a unit"),
    "limit": lab(
        ', bw=50, delay="50ms", max_queue_size=99)  # a delay whose limit drops', NO_OFFLOADS
    ),
    "failed": lab(  # by os.system, as students do: its commands are found, too
        before='os.system("tc qdisc add dev h1-eth0 root netem loss 1%")  # a command that failed'
    ),
    "idle": lab(
        before='h2.cmd("ip link add d7 type dummy; ip link set d7 up")\n'
        'h2.cmd("tc qdisc add dev d7 root tbf rate 5mbit burst 15k limit 30k")'
        "  # a queue that nothing passes"
    ),
    "direction": lab(
        ")",
        'h2.cmd("tc qdisc add dev h2-eth0 root tbf rate 5mbit burst 15k limit 30k")'
        "  # a queue in the other direction",
    ),
    "segments": lab(', bw=10, delay="2ms", max_queue_size=20)  # segments counted as packets'),
    "small": lab(
        ", bw=10)",
        NO_OFFLOADS + 'h2.cmd("tc qdisc add dev h2-eth0 parent 5:1 netem delay 80ms")\n'
        's1.cmd("tc qdisc add dev s1-eth2 parent 5:1 handle 20: pfifo limit 20")'
        "  # a queue below the bandwidth-delay product",
    ),
    "rtt": lab(
        before='s1.cmd("tc qdisc replace dev s1-eth2 root tbf rate 10mbit burst 15k limit 90k")'
        "  # an RTT below that of the links"
    ),
    "long": lab(
        before='s1.cmd("tc qdisc change dev s1-eth2 handle 10: netem delay 10ms slot 90ms")'
        "  # an RTT above that of the links"
    ),
    "rate": lab(
        ", bw=10)",
        's1.cmd("tc qdisc replace dev s1-eth2 root pfifo limit 1000")  # a rate that was removed',
    ),
    "namespace": lab(
        before='subprocess.run(["sysctl", "-w", "net.ipv4.tcp_congestion_control=bbr"])'
        "  # a congestion control that is not used"
    ),
    "written": lab(
        before='open("/proc/sys/net/ipv4/tcp_congestion_control", "w").write("bbr")'
        "  # a congestion control that is not used"
    ),
    "control": lab(
        after='h1.cmd("iperf -c 10.0.0.2 -t 1 -Z fast")  # a congestion control that is not used'
    ),
    "server": lab(after='h1.cmd("iperf -c 10.0.0.2 -t 1 -p 99")  # a client without a server'),
    "unlimited": lab(")", client="  # a throughput without a rate").replace(
        "bw=100", "jitter=None"
    ),
    "ping": lab(after='h1.cmd("ping -c 2 10.0.0.9")  # a ping without an answer'),
}
# RTM_NEWQDISC: a pfifo of 20 packets at the root of d7
BY_NETLINK = lab(
    before="""
import socket, struct
s1.cmd("ip link add d7 type dummy; ip link set d7 up")
body = struct.pack("BxxxiIIIHH8sHHI", 0, socket.if_nametoindex("d7"), 0, 2**32 - 1, 0,
                   10, 1, b"pfifo", 8, 2, 20)
asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
asked.send(struct.pack("IHHII", 16 + len(body), 36, 0x405, 1, 0) + body)
assert struct.unpack("i", asked.recv(4096)[16:20]) == (0,)
"""
)
SOUND_LABS = {
    "plain": lab(),
    "delay behind": lab(
        ")", 'h2.cmd("tc qdisc add dev h2-eth0 root netem delay 20ms limit 100000")'
    ),
    "limited delay behind": lab(
        ")", 'h2.cmd("tc qdisc add dev h2-eth0 root netem delay 20ms limit 500")'
    ),
    "pacing at both ends": lab(
        ")",
        'h1.cmd("tc qdisc add dev h1-eth0 parent 5:1 fq")\n'
        'h2.cmd("tc qdisc add dev h2-eth0 root fq")',
    ),
    "priorities of the receiver": lab(
        ")", 'h2.cmd("tc qdisc add dev h2-eth0 root handle 1: prio")'
    ),
    "codel at both ends": lab(
        ")",
        'h1.cmd("tc qdisc add dev h1-eth0 parent 5:1 fq_codel limit 600")\n'
        'h2.cmd("tc qdisc add dev h2-eth0 root fq_codel limit 600")',
    ),
    "queue": lab(', bw=10, delay="10ms", max_queue_size=100)', NO_OFFLOADS),
}


def found(tmp_path: Path, script: str) -> tuple[int, list[tuple[str, str]]]:
    """Run a laboratory; return the status, and the rules and places of the findings."""
    (tmp_path / "lab.py").write_text(script)
    command = (*TESTBED, "mininet", "--check", "--out", f"{tmp_path}/out", "lab.py")
    done = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    findings = json.loads((tmp_path / "out" / LABORATORY_FINDINGS).read_text())
    for each in findings:
        assert f"testbed: {each['place']}: {each['happened']}" in done.stderr.decode()
    return done.returncode, [(each["rule"], each["place"]) for each in findings]


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_laboratory_is_named_with_its_line(tmp_path: Path, name: str) -> None:
    lines = FAULTY[name].splitlines()
    expected = [
        (line.rpartition("  # ")[2], f"lab.py:{number}")
        for number, line in enumerate(lines, 1)
        if "  # " in line
    ]
    assert len(expected) == 1
    assert found(tmp_path, FAULTY[name]) == (3, expected)


def test_a_queue_that_no_command_made_is_named_with_its_device(tmp_path: Path) -> None:
    status, ((rule, place),) = found(tmp_path, BY_NETLINK)
    assert (status, rule) == (3, "a queue that nothing passes")
    assert place.startswith("pfifo at d7 of the machine itself, set without a command in the ")


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", SOUND_LABS)
def test_a_sound_laboratory_has_no_finding(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, SOUND_LABS[name]) == (0, [])


def test_the_run_stops_at_a_finding_of_a_shell_script(tmp_path: Path) -> None:
    words = "echo 1 >before; ip link add d7 type dummy; tc qdisc add dev d7 root netem delay 20; "
    words += "sleep 99; echo 2 >after"
    command = (*TESTBED, "exec", "--check", "--out", f"{tmp_path}/out", "--", "sh", "-c", words)
    done = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    said = done.stderr.decode()
    assert done.returncode == 3
    assert "testbed: tc qdisc add dev d7 root netem delay 20: 'delay 20' has no unit" in said
    assert "testbed: ended by --check after 0.0 s, at a finding" in said
    assert [path.name for path in (tmp_path / "out" / MACHINE_FILES).iterdir()] == ["before"]


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("signal", ["KILL", "STOP"])
def test_a_laboratory_whose_judge_was_ended_is_judged_at_its_end(
    tmp_path: Path, signal: str
) -> None:
    words = "for each in /proc/[0-9]*; do grep -qs laboratory[.]judge $each/cmdline && "
    words += f"kill -{signal} ${{each#/proc/}} && echo ${{each#/proc/}} >>ended; done; "
    words += "ip link add d7 type dummy; tc qdisc add dev d7 root netem delay 20; echo 2 >after"
    command = (*TESTBED, "exec", "--check", "--out", f"{tmp_path}/out", "--", "sh", "-c", words)
    done = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    written = tmp_path / "out" / MACHINE_FILES
    assert done.returncode == 3 and (written / "after").exists()
    assert len((written / "ended").read_text().split()) == 1
