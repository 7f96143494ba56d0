"""Whole programs in the guest: `testbed exec` and `testbed mininet`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from analysis.captures.tcp import read_capture
from testbed.guest.machine import MachineProgram, machine_kernel, root_environment
from testbed.programs.program_runs import ProgramRun, copy_in_place, run_in_folder
from testbed.store.names import (
    CAPTURES_FOLDER,
    MACHINE_ERRORS,
    MACHINE_FILES,
    MACHINE_FLOWS,
    MACHINE_OBSERVED,
    MACHINE_OUTPUT,
    MACHINE_RECORD,
)

TESTBED = (sys.executable, "-m", "experiments")
HAS_SWITCH = shutil.which("ovs-vswitchd", path="/usr/sbin") and shutil.which("ovs-testcontroller")
LAB = """
from mininet.cli import CLI
from mininet.link import TCLink
from mininet.net import Mininet

net = Mininet(link=TCLink, controller=None)
h1, h2 = net.addHost("h1"), net.addHost("h2")
net.addLink(h1, h2, bw=10, delay="10ms")
net.start()
print(h1.cmd("ping -c 3", h2.IP()))
print(net.iperf((h1, h2), seconds=5))
CLI(net)
net.stop()
"""
SYN = 2  # of TCP's flags
TWO_NETWORKS = """
from mininet.net import Mininet

for _ in range(2):
    net = Mininet(controller=None)
    h1, h2 = net.addHost("h1"), net.addHost("h2")
    net.addLink(h1, h2)
    net.start()
    server = h2.popen("iperf3 -s -1")
    h1.cmd("sleep 0.1; iperf3 -b 1M -l 1K -t 1 -c", h2.IP())
    net.stop()
"""


@dataclass(frozen=True)
class Done:
    """A program's run with what it printed."""

    run: ProgramRun
    out: Path
    printed: str

    @property
    def status(self) -> int:
        return self.run.end.status

    def file(self, name: str) -> str:
        return (self.out / MACHINE_FILES / name).read_text()


def execute(
    tmp_path: Path,
    *words: str,
    seed: int = 1,
    limit_s: int = 3600,
    text: str = "",
    captured: Sequence[str] = (),
) -> Done:
    """Run a command in a folder of its own."""
    folder, out = tmp_path / "work", tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
    folder.mkdir(exist_ok=True)
    (tmp_path / "input").write_text(text)
    program = MachineProgram(
        words,
        folder,
        root_environment(tmp_path, {}, ()),
        input=tmp_path / "input",
        seed=seed,
        limit_s=limit_s,
        patience_s=300,
        captured=captured,
    )
    kernel = machine_kernel("", lambda _line: None)
    printed = io.BytesIO()
    run = run_in_folder(program, kernel, out, printed, io.BytesIO())
    assert (out / MACHINE_OUTPUT).read_bytes() == printed.getvalue()
    return Done(run, out, printed.getvalue().decode())


def test_output_status_and_virtual_time(tmp_path: Path) -> None:
    script = "echo out; echo err >&2; sleep 3000; read word; echo $word $(id -u); exit 3"
    done = execute(tmp_path, "sh", "-c", script, text="typed before\n")
    assert (done.status, done.printed) == (3, "out\ntyped before 0\n")
    assert (done.out / MACHINE_ERRORS).read_text() == "err\n"
    assert 3000 <= done.run.end.took_s < 3001
    record = json.loads((done.out / MACHINE_RECORD).read_text())
    assert record["status"] == 3 and record["deterministic"]


def test_what_is_written_in_the_folder_comes_back_and_nothing_else_changes(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "deep").mkdir(parents=True)
    (folder / "old").write_text("old\n")
    (folder / "deleted").write_text("still here\n")
    script = """
        echo new >>old; rm deleted; mkdir -p a/b; echo "a b" >"a/b/with blank"
        ln -s /etc/passwd link; mkfifo pipe; echo x >/etc/testbed-was-here; ls -d deep
        cat /etc/testbed-was-here
    """
    done = execute(tmp_path, "sh", "-e", "-c", script)
    assert (done.status, done.printed) == (0, "deep\nx\n")
    files = done.out / MACHINE_FILES
    assert sorted(str(p.relative_to(files)) for p in files.rglob("*") if p.is_file()) == [
        "a/b/with blank",
        "old",
    ]
    assert done.file("old") == "old\nnew\n"
    assert done.run.end.skipped == 2 and any("links" in note for note in done.run.notes)
    assert not Path("/etc/testbed-was-here").exists()
    assert (folder / "old").read_text() == "old\n" and (folder / "deleted").exists()


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    words = ("sh", "-c", "date +%N; head -c 20 /dev/urandom | od -x; echo $$; mktemp -u")
    said = [execute(tmp_path, *words, seed=seed).printed for seed in (5, 5, 6)]
    assert said[0] == said[1] != said[2]


@pytest.mark.slow
def test_where_a_script_lies_moves_nothing(tmp_path: Path) -> None:
    """Python makes thousands of calls to load modules, and more of them for a longer path."""
    said = []
    for folder in (tmp_path / "a", tmp_path / "a-folder-with-a-long-name" / "deeper"):
        script = folder / "work" / "when.py"
        script.parent.mkdir(parents=True)
        script.write_text("import mininet.net, time; print(time.time_ns())")
        said.append(execute(folder, "/usr/bin/python3", str(script)).printed)
    assert said[0] == said[1]


def test_a_missing_file_of_the_hosts_tmp_is_explained(tmp_path: Path) -> None:
    done = execute(tmp_path, "sh", "-c", "cat /tmp/mine; exec /dev/shm/prog")
    assert [note for note in done.run.notes if "the host's /tmp is not in the guest" in note]
    assert not execute(tmp_path, "sh", "-c", "cat mine").run.notes


def test_a_terminal_that_a_program_opens_is_not_its_own(tmp_path: Path) -> None:
    """It would be sent SIGHUP when the other side of that terminal closes."""
    program = """
        import os, pty, signal
        ours, its = pty.openpty()
        os.open(os.ttyname(its), os.O_RDWR)
        os.close(ours)
        print("lives")
    """
    done = execute(tmp_path, "/usr/bin/python3", "-c", textwrap.dedent(program))
    assert (done.status, done.printed) == (0, "lives\n")


def test_a_program_that_waits_for_ever_ends_at_the_limit(tmp_path: Path) -> None:
    done = execute(tmp_path, "sh", "-c", "echo 1 >kept; sleep infinity", limit_s=7200)
    assert (done.status, done.run.end.at_limit) == (124, True)
    assert 7200 <= done.run.end.took_s < 7200.001
    assert done.file("kept") == "1\n"


@pytest.mark.slow
def test_closing_descriptors_takes_no_time(tmp_path: Path) -> None:
    """Before it runs a command, mnexec closes each of the 8192 that could be open."""
    close = "import os\nfor n in range(50000):\n try: os.close(n + 10)\n except OSError: pass"
    assert execute(tmp_path, "/usr/bin/python3", "-c", close).run.end.took_s < 0.01


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(
    ("waiting", "printed"),
    [
        pytest.param("while ! test -e done; do x=$(date); done; echo done", "done", id="processes"),
        pytest.param("while [ $(date +%s) -lt $end ]; do :; done; echo done", "done", id="clock"),
        pytest.param("(while :; do ip link show >now; done) & sleep 3; echo $?", "0", id="beside"),
    ],
)
def test_who_waits_by_starting_programs_gets_on(tmp_path: Path, waiting: str, printed: str) -> None:
    """Each sleeps until the next has ended, so that nobody is sleepless, and nobody rests."""
    script = f"end=$(($(date +%s) + 3)); (sleep 3; touch done) & {waiting}"
    done = execute(tmp_path, "sh", "-c", script, limit_s=60)
    assert done.printed == f"{printed}\n"
    assert 2 <= done.run.end.took_s < 4


def test_a_look_at_the_clock_takes_a_nanosecond(tmp_path: Path) -> None:
    """Also one past the vDSO, and in a process that only looks; but a sleep is as long as asked."""
    looks = """
        import ctypes, time
        seen = [time.monotonic_ns() for _ in range(1000)]
        raw = ctypes.CDLL(None).syscall
        now = (ctypes.c_long * 2)()
        for _ in range(100):
            raw(228, 1, now)
            seen += [now[0] * 10**9 + now[1], time.monotonic_ns()]
        assert all(b > a for a, b in zip(seen, seen[1:]))
        assert seen[-1] - seen[0] < 10_000
        for _ in range(10):
            begin = time.monotonic_ns()
            time.sleep(0.01)
            assert 10_000_000 <= time.monotonic_ns() - begin < 10_001_000
    """
    done = execute(tmp_path, "/usr/bin/python3", "-c", textwrap.dedent(looks))
    assert done.status == 0, (done.out / MACHINE_ERRORS).read_text()


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("import time\nwhile time.process_time() < 1: pass", 0),
        ("import time\nwhile time.thread_time() < 1: pass", 0),
        (
            "import signal, time\nsignal.setitimer(signal.ITIMER_VIRTUAL, 1)\n"
            "while True: time.time()",
            128 + signal.SIGVTALRM,
        ),
        (
            "import resource, time\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n"
            "while True: time.time()",
            128 + signal.SIGKILL,
        ),
    ],
    ids=["process", "thread", "timer", "limit"],
)
def test_processor_time_is_what_a_program_is_charged(
    tmp_path: Path, program: str, status: int
) -> None:
    """Whatever waits for it, or is limited by it, comes to its end."""
    done = execute(tmp_path, "/usr/bin/python3", "-c", program, limit_s=60)
    assert done.status == status and 0.99 <= done.run.end.took_s < 5


def test_two_programs_that_talk_without_a_rest_take_time(tmp_path: Path) -> None:
    """Over loopback each sleeps until the other has answered, and neither waits for a clock."""
    talk = """
        import socket, threading, time
        one, other = socket.socketpair()
        def answer():
            while data := other.recv(1):
                other.send(data)
        threading.Thread(target=answer, daemon=True).start()
        end, count = time.monotonic() + 0.1, 0
        while time.monotonic() < end:
            one.send(b"x")
            count += len(one.recv(1))
        print(count)
    """
    done = execute(tmp_path, "/usr/bin/python3", "-c", textwrap.dedent(talk), limit_s=60)
    assert 4_000 < int(done.printed) < 200_000
    assert 0.1 <= done.run.end.took_s < 0.2


@pytest.mark.slow
def test_a_loop_without_calls_ends_and_says_so(tmp_path: Path) -> None:
    loop = "timeout 2 /usr/bin/python3 -c 'while True: pass'; echo $?"
    done = execute(tmp_path, "sh", "-c", loop)
    assert done.printed == "124\n"
    assert 2 <= done.run.end.took_s < 2.2 and done.run.end.charged_s > 1
    assert any("not the same for the same seed" in note for note in done.run.notes)


def test_the_kernel_has_what_scripts_use(tmp_path: Path) -> None:
    script = """
        for kind in dummy dummy bond bridge veth ifb wireguard "vrf table 5" \\
            "vxlan id 7 dstport 4789" "geneve id 7 remote 10.0.0.1" \\
            "gre remote 10.0.0.1 local 10.0.0.2"; do
            ip link add type $kind
        done
        for kind in macvlan "vlan id 7"; do ip link add link dummy0 type $kind; done
        ip link add link dummy1 type ipvlan
        ip tuntap add tap0 mode tap
        ip netns add a
        ip netns exec a ip link set lo up
        ip netns exec a ping -q -c 1 ::1 >/dev/null
        sysctl -q net.mptcp.enabled=1 net.ipv4.tcp_fastopen=3
        test -e /sys/kernel/tracing/events/tcp/tcp_probe/enable
        test -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us -a -e /sys/fs/cgroup/unified/cgroup.procs
        unshare -Ur true
    """
    done = execute(tmp_path, "sh", "-e", "-c", script)
    assert done.status == 0, (done.out / MACHINE_ERRORS).read_text()


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("quota", "said"), [("50000", True), ("-1", False)])
def test_a_limit_of_processor_time_is_said_to_mean_nothing(
    tmp_path: Path, quota: str, said: bool
) -> None:
    group = "/sys/fs/cgroup/cpu/x"
    script = f"mkdir {group}; echo {quota} >{group}/cpu.cfs_quota_us"
    done = execute(tmp_path, "sh", "-c", script)
    noted = [note for note in done.run.notes if "limits of processor time mean nothing" in note]
    assert (done.status, bool(noted)) == (0, said)


def test_a_vlan_is_no_end_of_a_link(tmp_path: Path) -> None:
    """The index of the device below it may be that of any other in another namespace."""
    script = """
    ip link add v1 type veth peer name v2
    ip link add link v1 name v10 type vlan id 10
    for name in v1 v2 v10; do ip link set $name up; done
    """
    done = execute(tmp_path, "sh", "-c", script)
    seen = re.findall(
        r"^device (\d+) (\w+) (\d+) ", (done.out / MACHINE_OBSERVED).read_text(), re.M
    )
    indices = {name: index for index, name, _peer in seen}
    peers = {name: peer for _index, name, peer in seen}
    assert peers == {"v1": indices["v2"], "v2": indices["v1"], "v10": "0"}


def test_a_mininet_script_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lab.py").write_text(LAB)
    done = execute(tmp_path, "/usr/bin/python3", "lab.py", text="h1 echo from the CLI\n")
    errors = (done.out / MACHINE_ERRORS).read_text()
    assert done.status == 0, errors
    assert "3 received" in done.printed and "from the CLI" in done.printed + errors
    mean = re.search(r"= [\d.]+/([\d.]+)/", done.printed)
    assert mean and 20 <= float(mean[1]) < 31
    rate = re.search(r"\['([\d.]+) Mbits/sec'", done.printed)
    assert rate and 9 < float(rate[1]) <= 10.5
    assert any("Mininet 2.3.0 waits" in note for note in done.run.notes)
    # a node's shell starts without a close of each descriptor that could be open
    starts = set(re.findall("mnexec%20(-[cdn]+)%20env", (done.out / MACHINE_OBSERVED).read_text()))
    assert starts and "c" not in "".join(starts)


@pytest.mark.slow
def test_captures_and_their_flows(tmp_path: Path) -> None:
    """They begin before the first packet, and two networks have each its own."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lab.py").write_text(TWO_NETWORKS)
    captures, flows, samples = [], [], []
    for seed in (1, 1):
        done = execute(
            tmp_path, "/usr/bin/python3", "lab.py", seed=seed, captured=("h1:0", "h2", "h3")
        )
        assert done.status == 0, (done.out / MACHINE_ERRORS).read_text()
        assert "--capture h3: no such interface: there were h1-eth0, h2-eth0" in done.run.notes
        files = sorted((done.out / CAPTURES_FOLDER).iterdir())
        captures.append({path.name: path.read_bytes() for path in files})
        flows.append((done.out / MACHINE_FLOWS).read_text().splitlines())
        samples.append([path.read_text() for path in sorted((done.out / "samples").iterdir())])
    assert captures[0] == captures[1] and samples[0] == samples[1]
    assert "h1,10.0.0.1:" in samples[0][1]
    names = [f"h{host}-eth0{again}.pcapng" for host in (1, 2) for again in ("-2", "")]
    assert list(captures[0]) == names
    rows = [tuple(line.split(",")[:3]) for line in flows[0]]  # of iperf3's two connections
    assert rows[1:] == [(name, number, "tcp") for name in names for number in "01"]
    for file in files:
        packets = read_capture(file)
        assert packets.rows["flags"].iloc[0] == SYN and not packets.warnings


@pytest.mark.slow
@pytest.mark.skipif(not HAS_SWITCH, reason="needs openvswitch-switch, openvswitch-testcontroller")
def test_open_vswitch_and_its_controller_run_inside(tmp_path: Path) -> None:
    done = execute(tmp_path, "mn", "--topo", "tree,2", "--test", "pingall")
    errors = (done.out / MACHINE_ERRORS).read_text()
    assert done.status == 0 and "0% dropped (12/12 received)" in errors


OWN_CONTROLLERS = """
import subprocess
from mininet.net import Mininet
from mininet.node import Node, OVSSwitch, RemoteController
from mininet.topo import SingleSwitchTopo

def remote(name):
    return RemoteController(name, ip="127.0.0.1", port=6699)

subprocess.Popen(["ovs-testcontroller", "ptcp:6699"])
net = Mininet(SingleSwitchTopo(2), switch=OVSSwitch, controller=remote, waitConnected=True)
net.start()
print("lost", net.pingAll())
net.stop()
node = Node("c0", inNamespace=False)
node.cmd("controller -v ptcp: &")
node.cmd("ovs-vsctl add-br dp0 -- set-controller dp0 tcp:127.0.0.1:6633")
node.cmd("sleep 9")
print("connected", node.cmd("ovs-vsctl get controller dp0 is_connected"))
"""


@pytest.mark.skipif(not HAS_SWITCH, reason="needs openvswitch-switch, openvswitch-testcontroller")
def test_controllers_that_a_script_starts(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lab.py").write_text(OWN_CONTROLLERS)
    done = execute(tmp_path, "/usr/bin/python3", "lab.py")
    assert done.status == 0, (done.out / MACHINE_ERRORS).read_text()
    assert "lost 0.0" in done.printed and "connected true" in done.printed


def test_a_shell_at_a_terminal(tmp_path: Path) -> None:
    """It has the terminal itself, in real time."""
    command = (*TESTBED, "shell", "--out", f"{tmp_path}/out")
    seconds = int(time.time())
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(command[0], command)
    said = b""
    while b"# " not in said:  # what is typed earlier is lost
        said += os.read(terminal, 4096)
    os.write(terminal, b"tty >name; date +%s >time; exit 7\n")
    with contextlib.suppress(OSError):  # which is the terminal's end of file
        while os.read(terminal, 4096):
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    files = tmp_path / "out" / MACHINE_FILES
    assert (files / "name").read_text() == "/dev/tty0\n"
    assert seconds <= int((files / "time").read_text()) <= time.time()


@pytest.mark.slow
def test_more_files_than_the_host_has_descriptors_come_back(tmp_path: Path) -> None:
    """One that is too large is left out, without the others."""
    (tmp_path / "work").mkdir()
    command = "mkdir many; touch $(seq -f many/%g 1000); truncate -s 2G large; find /usr/bin"
    argv = ["prlimit", "--nofile=400:400", *TESTBED, "exec", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [*argv, "--", "sh", "-c", command],
        cwd=tmp_path / "work",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 links, devices or files over 1 GiB were not brought back" in done.stderr
    assert len(list((tmp_path / "out" / MACHINE_FILES / "many").iterdir())) == 1000


def test_files_are_not_copied_in_place_behind_links(tmp_path: Path) -> None:
    files, folder, other = (tmp_path / name for name in ("files", "folder", "other"))
    for path in (files / "sub", folder, other):
        path.mkdir(parents=True)
    for name in ("plain", "to-file", "sub/below", "was-file/below", "was-folder"):
        (files / name).parent.mkdir(exist_ok=True)
        (files / name).write_text(name)
    (folder / "was-file").write_text("older")
    (folder / "was-folder").mkdir()
    (other / "precious").write_text("precious")
    (folder / "to-file").symlink_to(other / "precious")
    (folder / "sub").symlink_to(other)
    (folder / "plain").write_text("older")
    assert copy_in_place(files, folder) == ["to-file", "was-folder", "sub/below", "was-file/below"]
    assert (folder / "was-file").read_text() == "older"
    assert (folder / "plain").read_text() == "plain"
    assert [path.name for path in other.iterdir()] == ["precious"]
    assert (other / "precious").read_text() == "precious"


NETWORK = """
{"network": {
  "nodes": [{"name": "client"}, {"name": "server"}],
  "links": [{
    "ends": ["server", "client"],
    "forward": {
      "rate_mbit": 10, "delay_ms": 20, "queue": {"discipline": "pfifo", "limit_packets": 50}
    },
    "reverse": {"delay_ms": 20}
  }]
}}
"""


def test_a_network_and_what_starts_where_and_when(tmp_path: Path) -> None:
    (tmp_path / "net.json").write_text(NETWORK)
    lines = (
        "server: iperf3 -s >server.txt &",
        "client@2: iperf3 -J -R -t 5 -c server >client.json",
        "client: ping -c 1 server; exit 6",
    )
    options = ("--network", "net.json", f"--out={tmp_path}/out", "--capture", "client")
    command = (*TESTBED, "exec", *options, "--", *lines)
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 6, done.stderr
    mean = re.search(r"= [\d.]+/([\d.]+)/", done.stdout)
    assert mean and 40 <= float(mean[1]) < 40.1
    sent = json.loads((tmp_path / "out" / MACHINE_FILES / "client.json").read_text())["end"]
    assert 9 < sent["sum_received"]["bits_per_second"] / 1e6 < 9.6
    [capture] = (tmp_path / "out" / CAPTURES_FOLDER).iterdir()
    assert capture.name == "client-eth0.pcapng"
    assert "client-eth0.pcapng,1,tcp" in (tmp_path / "out" / MACHINE_FLOWS).read_text()
    record = json.loads((tmp_path / "out" / MACHINE_RECORD).read_text())
    assert 7 < record["took_s"] < 8


def test_the_verb(tmp_path: Path) -> None:
    """The script's output and status are ours, and its files go where they are asked to go."""
    (tmp_path / "lab.sh").write_text('echo "$1 in ${PWD##*/}"; echo made >made; exit 5\n')
    command = (*TESTBED, "mininet", "--in-place", "--out", f"{tmp_path}/out", "lab.sh", "--odd")
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert (done.returncode, done.stdout) == (5, f"--odd in {tmp_path.name}\n"), done.stderr
    assert "exit status 5, " in done.stderr and "1 file in" in done.stderr
    assert (tmp_path / "made").read_text() == "made\n"


def test_repeats_of_a_suite_say_what_differs(tmp_path: Path) -> None:
    """The first seed is run again at the end, beside busy cores, and prints the same."""
    (tmp_path / "suite.sh").write_text(
        "echo ok 1 - steady; sleep 5; head -c 4 /dev/urandom | od -An -tu4\n"
        "drawn=$(($(od -An -N1 -tu1 /dev/urandom) % 2))\n"
        "[ $drawn = 0 ] && echo ok 2 - rare || echo not ok 2 - rare"
    )
    command = (*TESTBED, "exec", "--repeat", "6", "--busy", "--", "sh", "suite.sh")
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 1 and "differs: rare: " in done.stdout, done.stderr
    assert "seed 1 again: the same output" in done.stdout
    assert re.search(r"1 +0 +[12] +[01] +0 +5\.0 ", done.stdout)
