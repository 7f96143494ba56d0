"""The verdict on a laboratory: the lines of an observation, and the rules that need no guest."""

from __future__ import annotations

import random
import re
import shlex
import socket
import subprocess
from pathlib import Path

import pytest

from analysis.laboratory.observation import Observation, ObservationReader, read_observation
from analysis.laboratory.observed_network import built_networks
from analysis.laboratory.paths import Device, Paths
from analysis.laboratory.rules import (
    LABORATORY_RULES,
    MAX_FINDINGS,
    MORE_PLACES,
    LaboratoryFinding,
    laboratory_findings,
)
from analysis.laboratory.settings import rate_mbit, time_ms
from testbed.cli.parser import build_parser
from testbed.programs.program_runs import JUDGE

FOLDER = Path("/home/user/lab")
PAGE = (Path(__file__).parents[2] / "docs" / "mininet.md").read_text()
HERE, H1 = 1, 2  # namespaces: the machine's own, and a host's


def observed(tmp_path: Path, *lines: str) -> Observation:
    path = tmp_path / "observed.txt"
    path.write_text("".join(f"{line}\n" for line in ("controls reno cubic", *lines)))
    return read_observation(path, FOLDER)


def findings(tmp_path: Path, *lines: str) -> list[LaboratoryFinding]:
    return laboratory_findings(observed(tmp_path, *lines))


def executed(words: str, status: int = 0, process: int = 7, namespace: int = HERE) -> list[str]:
    return [
        f"command {process}000 {process} {namespace} cubic {words}",
        f"exit {process}500 {process} {status}",
    ]


def script_line(place: int, text: str, time_ns: int = 0) -> str:
    return f"line {time_ns} {FOLDER}/lab.py:{place} {text.replace(' ', '%20')}"


def rules(found: list[LaboratoryFinding]) -> list[str]:
    return [each.rule for each in found]


def test_words_of_commands_are_as_they_were(tmp_path: Path) -> None:
    commands = observed(
        tmp_path, "command 5 7 1 cubic /sbin/tc a%20b %25 %00", "exit 6 7 2"
    ).commands
    assert [list(each.words) for each in commands] == [["/sbin/tc", "a b", "%", ""]]
    assert (commands[0].program, commands[0].status, commands[0].ended_ns) == ("tc", 2, 6)


def test_the_search_for_a_program_is_one_command(tmp_path: Path) -> None:
    lines = ["command 5 7 1 cubic /bin/ping h2", "command 5 7 1 cubic /usr/bin/ping h2"]
    commands = observed(tmp_path, *lines).commands
    assert [each.words[0] for each in commands] == ["/usr/bin/ping"]


@pytest.mark.parametrize(
    "line",
    [
        "command",
        "command x y z",
        "namespace 1",
        "device 1 x",
        "qdisc",
        "exit",
        "line",
        "line 5",
        "%",
    ],
)
def test_lines_that_a_program_has_damaged_are_left_out(tmp_path: Path, line: str) -> None:
    whole = executed("ping 10.0.0.9", status=1)
    assert rules(findings(tmp_path, line, *whole, line)) == ["a ping without an answer"]


@pytest.mark.parametrize(
    "words",
    [
        "tc qdisc add dev e root netem delay 5ms %00",
        "tc qdisc add dev e root pfifo limit %C2%B2",
        "tc qdisc add dev",
        "iperf -s -p x",
        "sysctl -w net.ipv4.tcp_congestion_control=",
        "ethtool",
    ],
)
def test_odd_commands_are_no_error(tmp_path: Path, words: str) -> None:
    assert findings(tmp_path, *executed(words)) == []


def test_a_port_that_is_no_number_has_no_server(tmp_path: Path) -> None:
    found = findings(tmp_path, *executed("iperf -c h -p x"))
    assert rules(found) == ["a client without a server"]


def test_a_finding_has_the_last_line_that_executed_the_command(tmp_path: Path) -> None:
    lines = executed("ping -c 1 10.0.0.9", status=1)
    found = findings(
        tmp_path,
        *lines,
        script_line(3, "ping -c 1 10.0.0.9"),
        script_line(4, "ping -c 1 10.0.0.9"),
        script_line(5, "ping -c 1 10.0.0.8"),
        script_line(6, "ping -c 1 10.0.0.9", time_ns=8000),
    )
    assert [each.place for each in found] == ["lab.py:4"]


def test_a_finding_outside_python_has_the_command(tmp_path: Path) -> None:
    found = findings(tmp_path, *executed("ping -c 1 10.0.0.9", status=1), script_line(3, "./setup"))
    assert [each.place for each in found] == ["ping -c 1 10.0.0.9"]


def test_what_a_line_does_again_is_one_finding(tmp_path: Path) -> None:
    lines = [line for process in (7, 8, 9) for line in executed("ping h", 1, process)]
    found = findings(tmp_path, *lines, script_line(3, "ping h"))
    assert [each.times for each in found] == [3] and "(3 times)" in str(found[0])


def test_a_ping_that_is_answered_later_waited_for_the_network(tmp_path: Path) -> None:
    assert findings(tmp_path, *executed("ping h", 1, 7), *executed("ping h", 0, 8)) == []


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        ("root netem delay 5", "write 'delay 5ms'"),
        ("parent 5:1 handle 10: netem delay 5 limit 9", "write delay='5ms'"),
        ("root tbf rate 10 burst 15k latency 5ms", "write 'rate 10mbit'"),
        ("root handle 10: netem delay 5ms 2", "write jitter='2ms'"),
        ("parent 1:1 handle 10: netem delay 5", "write 'delay 5ms'"),
        ("root netem delay 5ms", None),
        ("root netem delay 0", None),
        ("root netem delay 20000", None),  # who writes so many means µs
    ],
)
def test_numbers_without_units(tmp_path: Path, arguments: str, instead: str | None) -> None:
    found = findings(tmp_path, *executed(f"tc qdisc add dev e {arguments}"))
    assert [each.instead for each in found] == ([instead] if instead else [])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tc qdisc add dev e root pfifo", ["a command that failed"]),
        ("sysctl -w net.ipv4.ip_forward=1", ["a command that failed"]),
        ("ethtool -K e tso off", ["a command that failed"]),
        ("tc qdisc del dev e root", []),
        ("ip link del e", []),
        (
            "sysctl -w net.ipv4.tcp_congestion_control=fast",
            ["a congestion control that is not used"],
        ),
    ],
)
def test_only_commands_that_set_something_can_fail(
    tmp_path: Path, words: str, expected: list[str]
) -> None:
    assert rules(findings(tmp_path, *executed(words, status=2))) == expected


def test_a_device_of_another_namespace_is_named(tmp_path: Path) -> None:
    lines = executed("tc qdisc add dev h1-eth0 root pfifo", status=1)
    seen = [f"namespace 9000 {H1} h1", "device 9 h1-eth0 8 0 0 0 0"]
    assert findings(tmp_path, *lines, *seen)[0].instead == "h1-eth0 is in h1: run it there"


def test_a_setting_for_the_hosts_made_after_it_is_used(tmp_path: Path) -> None:
    setting = executed("sysctl -w net.ipv4.tcp_congestion_control=reno")
    client = [line.replace("cubic", "reno") for line in executed("iperf -u -c 10.0.0.2", 0, 8, H1)]
    server = executed("iperf -s -u", 0, 8)[:1]
    assert findings(tmp_path, *setting, *server, *client) == []


@pytest.mark.parametrize(
    ("option", "expected"),
    [("", ["a congestion control that is not used"]), (" -Z cubic", [])],
)
def test_an_option_of_the_client_is_used(tmp_path: Path, option: str, expected: list[str]) -> None:
    setting = executed("sysctl -w net.ipv4.tcp_congestion_control=reno")
    server = executed("iperf -s -u", 0, 8)[:1]
    client = executed(f"iperf -u -c 10.0.0.2{option}", 0, 9, H1)
    assert rules(findings(tmp_path, *setting, *server, *client)) == expected


@pytest.mark.parametrize("option", ["-p 5002", "-p5002", "--port 5002", "--port=5002"])
def test_an_option_and_its_value_may_be_one_word(tmp_path: Path, option: str) -> None:
    server = executed("iperf -s -u -p 5002", 0, 8)[:1]
    client = executed(f"iperf --udp -c10.0.0.2 {option}", 0, 9, H1)
    assert findings(tmp_path, *server, *client) == []
    elsewhere = executed("iperf --udp -c10.0.0.2", 0, 9, H1)
    assert rules(findings(tmp_path, *server, *elsewhere)) == ["a client without a server"]


def test_connections_that_were_not_seen_are_no_reason(tmp_path: Path) -> None:
    client = executed("iperf -c 10.0.0.2")
    assert rules(findings(tmp_path, *client)) == ["a client without a server"]
    for line in ("# entries-in-buffer/entries-written: 10/20   #P:1", "unconnected"):
        assert findings(tmp_path, *client, line) == []


def test_what_may_still_change_is_not_judged_at_once(tmp_path: Path) -> None:
    ended, lost = executed("iperf -c 10.0.0.2"), executed("ping 10.0.0.9", 1, 8)
    running = executed("iperf -c 10.0.0.3", 0, 9)[:1]
    observation = observed(tmp_path, *ended, *lost, *running)
    assert len(laboratory_findings(observation)) == 3
    (only,) = laboratory_findings(observation, at_once=True)
    assert only.place == "iperf -c 10.0.0.2"


def test_the_judge_stops_a_run_at_the_command_that_is_wrong(tmp_path: Path) -> None:
    lines, (ours, its) = tmp_path / "lines", socket.socketpair()
    lines.write_text("controls reno cubic\n")
    with lines.open() as file, subprocess.Popen(JUDGE, stdin=file, stdout=its.fileno()) as judge:
        its.close()  # if the judge ends, we hear it
        answers = []
        for words in ("tc qdisc add dev e root pfifo", "ping h", "tc qdisc add dev e root x"):
            ours.send(b"?")
            answers.append(ours.recv(1))
            with lines.open("a") as more:
                more.writelines(f"{line}\n" for line in executed(words, int(words[-1] == "x")))
        ours.send(b"?")
        answers.append(ours.recv(1))
        ours.close()
        assert judge.wait() == 0
    assert answers == [b"g", b"g", b"g", b"s"]


def test_the_judge_reads_a_line_that_begins_in_one_block_and_ends_in_the_next(
    tmp_path: Path,
) -> None:
    """It reads blocks of 65,536 bytes; here the first ends within the command's process id."""
    lines, (ours, its) = tmp_path / "lines", socket.socketpair()
    filler = "x" * (65536 - 1 - len("command 70"))
    wrong = executed("tc qdisc add dev e root x", 1)
    lines.write_text("".join(f"{line}\n" for line in (filler, *wrong)))
    with lines.open() as file, subprocess.Popen(JUDGE, stdin=file, stdout=its.fileno()) as judge:
        its.close()
        ours.send(b"?")
        answer = ours.recv(1)
        ours.close()
        assert judge.wait() == 0
    assert answer == b"s"


def pair(time_ns: int, *queues: str) -> list[str]:
    """Return how a host and another look at an instant, with the host's queues."""
    return [
        f"namespace {time_ns} {H1} h1",
        "device 9 h1-eth0 8 500 500 5 0",
        "address 9 10.0.0.1",
        *(f"qdisc 9 {queue} 500 5 0 -1 0" for queue in queues),
        f"namespace {time_ns} 3 h2",
        "device 8 h2-eth0 9 500 500 5 0",
        "address 8 10.0.0.2",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("netem delay 20ms limit 500", []),
        ("netem delay 20ms limit 100000", []),
        ("netem delay 20ms rate 5mbit", ["a queue in the other direction"]),
        ("netem limit 500", ["a queue in the other direction"]),
        ("pfifo limit 500", ["a queue in the other direction"]),
        ("fq limit 500", []),
        ("prio bands 3", []),
        ("fq maxrate 5mbit", ["a queue in the other direction"]),
        ("fq_codel limit 500", ["a queue in the other direction"]),
    ],
)
def test_a_delay_of_acknowledgements_limits_nothing(
    tmp_path: Path, arguments: str, expected: list[str]
) -> None:
    setting = executed(f"tc qdisc add dev h2-eth0 root {arguments}")
    seen = [
        f"namespace 9000 {HERE} h2",
        "device 8 h2-eth0 9 1000000 6000 100 0",
        f"qdisc 8 {arguments.split()[0]} 6000 100 0 500 0",
    ]
    assert rules(findings(tmp_path, *setting, *seen)) == expected


@pytest.mark.parametrize(("sent", "is_found"), [(49_000, True), (60_000, False)])
def test_small_packets_beside_few_data_are_no_acknowledgements(
    tmp_path: Path, sent: int, is_found: bool
) -> None:
    """What comes in has to be twenty times as much."""
    packets = sent // 60
    seen = [
        f"namespace 9000 {HERE} h2",
        f"device 8 h2-eth0 9 1000000 {sent} {packets} 0",
        f"qdisc 8 pfifo {sent} {packets} 0 500 0",
    ]
    setting = executed("tc qdisc add dev h2-eth0 root pfifo limit 500")
    found = rules(findings(tmp_path, *setting, *seen))
    assert found == (["a queue in the other direction"] if is_found else [])


@pytest.mark.parametrize(
    ("limit", "drops", "is_found"),
    [
        (1, 3, True),  # netem's whole limit, and more, is on its way
        (132, 3, True),  # half of it: what waits finds only the other half free
        (133, 3, False),
        (132, 0, False),
    ],
)
def test_a_delay_whose_limit_drops(tmp_path: Path, limit: int, drops: int, is_found: bool) -> None:
    """At 10 Mbit/s 66 frames of 1514 bytes are sent in 80 ms."""
    setting = executed(f"tc qdisc add dev h1-eth0 root netem delay 80ms rate 10mbit limit {limit}")
    seen = [
        f"namespace 9000 {HERE} h1",
        "device 8 h1-eth0 9 6000 1000000 700 0",
        f"qdisc 8 netem 1000000 700 {drops} {limit} 0",
    ]
    found = findings(tmp_path, *setting, *seen)
    assert rules(found) == (["a delay whose limit drops"] if is_found else [])
    if found:
        assert found[0].instead.startswith(f"write 'limit {66 + limit}'")


def test_a_queue_that_all_hosts_have_is_not_in_the_other_direction(tmp_path: Path) -> None:
    receiver = executed("tc qdisc add dev h2-eth0 root fq_codel limit 500")
    sender = executed("tc qdisc add dev h1-eth0 root fq_codel limit 500", 0, 8, H1)
    seen = [
        f"namespace 9000 {HERE} h2",
        "device 8 h2-eth0 9 1000000 6000 100 0",
        "qdisc 8 fq_codel 6000 100 0 -1 0",
        f"namespace 9000 {H1} h1",
        "device 7 h1-eth0 5 6000 1000000 700 0",
        "qdisc 7 fq_codel 1000000 700 0 -1 0",
    ]
    assert findings(tmp_path, *receiver, *sender, *seen) == []
    assert rules(findings(tmp_path, *receiver, *seen)) == ["a queue in the other direction"]


@pytest.mark.parametrize(
    ("took_ms", "waiting", "expected"),
    [
        (70, 500, ["an RTT above that of the links"]),
        (70, 1500, []),  # a queue explains it
        (43, 500, []),  # the answer to ARP does
        (1045, 500, []),  # a SYN that was lost does
    ],
)
def test_an_rtt_that_no_queue_explains(
    tmp_path: Path, took_ms: int, waiting: int, expected: list[str]
) -> None:
    delay = executed("tc qdisc add dev h1-eth0 root netem delay 20ms", 0, 7, H1)
    look = pair(9000, "netem")
    look[3] += f" {waiting} 20000000 1"
    client = [
        f"command 9000 9 {H1} cubic iperf -c 10.0.0.2",
        *connection("9000e-9", f"{took_ms}e-3"),
    ]
    found = findings(tmp_path, *delay, *look, *client)
    assert [r for r in rules(found) if "RTT" in r] == expected


def connection(began: str, ended: str) -> list[str]:
    """Return the states of a client's socket."""
    begin, end = (
        f" p-9 [000] ... {float(when):.9f}: inet_sock_set_state:" for when in (began, ended)
    )
    ends = "sport=99 dport=5001 saddr=10.0.0.1 daddr=10.0.0.2 x"
    return [
        f"{begin} {ends} oldstate=TCP_CLOSE newstate=TCP_SYN_SENT",
        f"{end} {ends} oldstate=TCP_SYN_SENT newstate=TCP_ESTABLISHED",
    ]


def controlled(time_ns: int, namespace: int, control: str) -> str:
    """Return how a namespace looks."""
    return f"namespace {time_ns} {namespace} {'-' if namespace == HERE else 'h1'} {control}"


@pytest.mark.parametrize(
    ("by_sysctl", "of_h1", "expected"),
    [
        (False, "cubic", "bbr in the machine itself, set without a command in the first 3.0 s"),
        (True, "cubic", "sysctl -w net.ipv4.tcp_congestion_control=bbr"),
        (False, "bbr", ""),
    ],
)
def test_a_control_that_no_command_set(
    tmp_path: Path, by_sysctl: bool, of_h1: str, expected: str
) -> None:
    setting = executed("sysctl -w net.ipv4.tcp_congestion_control=bbr") if by_sysctl else []
    client = [f"command {4 * 10**9} 9 {H1} {of_h1} iperf -c 10.0.0.2", "unconnected"]
    looks = [controlled(3 * 10**9, HERE, "bbr"), controlled(3 * 10**9, H1, of_h1)]
    lines = ["controls cubic bbr", controlled(0, HERE, "cubic"), *setting, *looks, *client]
    assert [each.place for each in findings(tmp_path, *lines)] == ([expected] if expected else [])


def test_a_control_written_into_a_file_has_the_line_that_opened_it(tmp_path: Path) -> None:
    looks = [controlled(0, HERE, "cubic"), controlled(9000, HERE, "bbr")]
    client = [f"command 9500 9 {H1} cubic iperf -c 10.0.0.2", "unconnected"]
    line = script_line(3, "/proc/sys/net/ipv4/tcp_congestion_control")
    found = findings(tmp_path, "controls cubic bbr", *looks, *client, line)
    assert [each.place for each in found] == ["lab.py:3"]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([], "pfifo at h1-eth0 of h1, set without a command in the first 0.0 s"),
        (executed("tc qdisc add dev h1-eth0 root pfifo limit 20", 0, 7, H1), None),
    ],
)
def test_a_queue_that_no_command_made(
    tmp_path: Path, made: list[str], expected: str | None
) -> None:
    seen = [
        f"namespace 9000 {H1} h1 cubic",
        "device 9 h1-eth0 8 0 0 0 0",
        "qdisc 9 pfifo 0 0 0 20 0 0 0 1",
        "device 10 h1-eth1 8 0 1000000 700 0",
    ]
    (finding,) = findings(tmp_path, *made, *seen)
    assert finding.rule == "a queue that nothing passes"
    assert finding.place == (expected or "tc qdisc add dev h1-eth0 root pfifo limit 20")


@pytest.mark.parametrize("option", ["-u", "--udp"])
def test_a_client_over_udp_has_a_rate_of_its_own(tmp_path: Path, option: str) -> None:
    client = executed(f"iperf3 {option} -c 10.0.0.2", 0, 9, H1)
    assert findings(tmp_path, *client, *pair(9600), "unconnected") == []


@pytest.mark.parametrize(
    ("queues", "expected"), [(["htb"], []), ([], ["a throughput without a rate"])]
)
def test_a_link_is_judged_as_it_was_when_a_client_used_it(
    tmp_path: Path, queues: list[str], expected: list[str]
) -> None:
    client = executed("iperf -c 10.0.0.2", 0, 9, H1)
    then, later = pair(9600, *queues), pair(12000)
    found = findings(tmp_path, *client, *then, *later, "unconnected")
    assert rules(found) == expected


def test_the_page_has_each_rule_and_says_which_stop_a_run() -> None:
    table = PAGE.partition("| rule | when |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+) \| (\*at once\*)?", table, re.MULTILINE)
    stops: dict[str, bool] = {}
    for rule in LABORATORY_RULES:
        stops[rule.name] = stops.get(rule.name, False) or rule.at_once
    assert {name: bool(at_once) for name, at_once in rows} == stops


@pytest.mark.parametrize("command", re.findall(r"^    (?:\$ )?testbed (.+)$", PAGE, re.MULTILINE))
def test_a_command_of_the_page_can_be_run(command: str) -> None:
    assert build_parser().parse_args(shlex.split(command, comments=True)).verb


def test_amounts_are_read_as_by_tc() -> None:
    assert [time_ms(text) for text in ("5", "5ms", "2s", "x", "1..2ms")] == [0.005, 5, 2000, 0, 0]
    rates = [rate_mbit(text) for text in ("1000000", "10Mbit", "10.000000Mbit", "1gbit", "1mbps")]
    assert rates == [1, 10, 10, 1000, 8]


def test_thousands_of_findings_are_counted_and_a_hundred_named(tmp_path: Path) -> None:
    """It took minutes when each command looked at all lines, devices and other commands."""
    lines = ["namespace 1 1 -", "device 2 e0 3 0 1000000 100 1"]
    for number in range(4000):
        lines += [
            script_line(number, f"x {number}", number * 1000),
            *executed(f"tc qdisc add dev d{number} root netem delay 5", process=number + 1),
        ]
    found = findings(tmp_path, *lines)
    assert len(found) == MAX_FINDINGS + 1
    assert found[-1].times == 4000 - MAX_FINDINGS
    assert found[-1].place == MORE_PLACES


def test_thousands_of_networks_are_told_apart(tmp_path: Path) -> None:
    """It took minutes when each network looked at all commands."""
    lines = []
    for number in range(4000):
        for end, peer in ((1, 2), (2, 1)):
            lines += [f"namespace {number} {end} h{end}"]
            lines += [f"device {end} e{end} {peer} 1000 1000 {9 - number % 2} 0"]
        lines += executed("tc qdisc add dev e1 root netem delay 5ms", process=number + 1)
    reader = ObservationReader(tmp_path)
    reader.read_text("\n".join(lines))
    assert len(built_networks(reader.observation())) == 2001  # looks two by two, but for the first


def exhaustive_peer(paths: Paths, pairs: set[frozenset[str]], device: Device) -> Device | None:
    here = paths.devices[device]
    there = [
        (
            frozenset((device[1], key[1])) not in pairs,
            abs(here.sent_bytes - each.received_bytes),
            key,
        )
        for key, each in paths.devices.items()
        if (each.index, each.peer) == (here.peer, here.index) and key != device
    ]
    return min(there)[2] if there else None


def test_the_other_end_is_the_one_of_all_that_fits_best(tmp_path: Path) -> None:
    draw = random.Random(1)
    for _network in range(300):
        names, reader = ["e0", "e1", "e2", "e3"], ObservationReader(tmp_path)
        for number in range(draw.randint(1, 12)):
            numbers = " ".join(str(draw.randint(0, 5)) for _ in range(2))
            device = f"{draw.randint(1, 3)} {draw.choice(names)} {draw.randint(0, 3)} {numbers} 1 0"
            reader.read_text(f"namespace 1 {number % 7} h\ndevice {device}")
        pairs = {frozenset(draw.choices(names, k=2)) for _ in range(draw.randint(0, 3))}
        paths = Paths(reader.observation(), pairs)
        for each in paths.devices:
            assert paths.peer(each) == exhaustive_peer(paths, pairs, each)


def test_of_thousands_of_devices_alike_a_few_are_looked_at(tmp_path: Path) -> None:
    """A program that forges namespaces alone could keep the judgement busy for minutes."""
    reader = ObservationReader(tmp_path)
    for number in range(5000):
        reader.read_text(f"namespace 1 {number} h\ndevice 2 e{number} 2 {number // 2} {number} 1 0")
    paths = Paths(reader.observation())
    looked_at = [len([*paths._nearest((2, 2, ""), sent)]) for sent in range(0, 5000, 50)]
    assert max(looked_at) <= 6
