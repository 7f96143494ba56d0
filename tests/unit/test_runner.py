"""Instructions, obeyed by the runner on this machine: answers, log, failures, clock, namespaces."""

from __future__ import annotations

import json
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from testbed.machine.netlink import NETLINK_SOCK_DIAG
from testbed.plan.commands import Command, Veth
from testbed.runner.programme import HOME, NS, Programme
from testbed.runner.recorded_netlink import netlink_of
from testbed.store.names import COMMANDS
from testbed.traffic.iperf3.iperf3_flow import PRELOAD
from testbed.trial.make import add_veth
from testbed.trial.parts.sampling import Rows, SocketProbe, TableKind
from tests.lab import PATIENCE_S, alive, wait_until
from tests.obeyed import NEEDS_ROOT, obeyed

PATIENCE_NS = round(PATIENCE_S * NS)
VEILED = "a tab\t, a line\n, a backslash \\ and \\t, \\n, \\\\"
NOWHERE = ("/dev/null", "/dev/null")


@pytest.fixture
def programme() -> Programme:
    return Programme()


def test_words_arrive_as_they_were_written(programme: Programme, tmp_path: Path) -> None:
    number = programme.run(HOME, ("sh", "-c", 'cat; printf %s "$1" >&2', "-", VEILED), VEILED)
    answers = obeyed(tmp_path, programme)
    assert answers.output(number) == (0, VEILED, VEILED)
    assert number in answers and answers.failure is None
    assert programme.fault(answers, tmp_path) is None


def test_the_log_has_every_command_that_was_run(programme: Programme, tmp_path: Path) -> None:
    programme.run(HOME, ("cat",), stdin="in\n")
    programme.run(HOME, ("sh", "-c", "echo out; echo err >&2; exit 3"), tries=0)
    programme.add("write", HOME, "setting", "1", fault="no command")
    (tmp_path / "setting").touch()
    programme.run(HOME, ("sh", "-c", "echo wrong >&2; exit 4"))
    programme.run(HOME, ("echo", "never"))
    answers = obeyed(tmp_path, programme)
    programme.log(tmp_path, answers)
    assert (tmp_path / COMMANDS).read_text().splitlines() == [
        *("[host] cat  → 0", "    < in", "    | in"),
        *("[host] sh -c 'echo out; echo err >&2; exit 3'  → 3", "    | out", "    | err"),
        *("[host] sh -c 'echo wrong >&2; exit 4'  → 4", "    | wrong"),
    ]
    fault = programme.fault(answers, tmp_path)
    assert fault and fault.message == ("host: sh -c 'echo wrong >&2; exit 4': exit status 4: wrong")
    assert COMMANDS in fault.hint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("dance",), "there is no instruction dance"),
        (("write", HOME, "file"), "write: too few words"),
        (("at", "soon"), "soon is no number"),
        (("run", "elsewhere", 1, "", "true"), "there is no node elsewhere"),
        (("write", HOME, "/no/such/file", "1"), "No such file or directory"),
        (("end", "nobody", 15, NS, "alone"), "no program nobody was started"),
        (("ended", 0, 0, "it"), "ended: there is no line 0 behind this one"),
        (("send", HOME, 16, 0, "zz"), "zz is not hexadecimal"),
        (("send", HOME, 16, 0, "00" * 16, "index", 4, "no-such"), "there is no interface no-such"),
        (("send", HOME, 16, 0, "00" * 16, "zero", 12, ""), "the message has no room at 12"),
        (("send", HOME, 16, 0, "00" * 16, "luck", 4, ""), "luck cannot be filled in"),
        (("change", "unkept", 40), "no object unkept was kept"),
        (("counters", "unmade"), "there is no array unmade"),
        (("capture", HOME, "lo", 96, "file", "zz"), "zz is not hexadecimal"),
        (("captured", "file"), "there is no capture file"),
    ],
)
def test_what_cannot_be_obeyed_ends_the_programme(
    programme: Programme, tmp_path: Path, words: tuple[object, ...], said: str
) -> None:
    number = programme.add(*words, fault="a fault")
    programme.add("touch", "later")
    answers = obeyed(tmp_path, programme)
    assert answers.failure == (number, said)
    assert str(programme.fault(answers, tmp_path)) == f"a fault: {said}"
    assert not (tmp_path / "later").exists()


def test_a_program_that_is_not_ready_says_why(programme: Programme, tmp_path: Path) -> None:
    argv = ("sh", "-c", "echo first >&2; echo the reason >&2; exit 3")
    programme.start("p", HOME, argv, "out", "errors")
    programme.await_program("p", 5, "exists", "ready", fault="it did not start")
    answers = obeyed(tmp_path, programme)
    fault = programme.fault(answers, tmp_path)
    assert fault and fault.message == "it did not start: ended with status 3: the reason"


@pytest.mark.parametrize(("tries", "fails"), [(2, True), (3, False), (9, False)])
def test_a_command_may_have_several_tries(
    programme: Programme, tmp_path: Path, tries: int, fails: bool
) -> None:
    """It reads its input each time."""
    script = "cat >>tries; test $(wc -l <tries) = 3"
    number = programme.run(HOME, ("sh", "-c", script), "once\n", tries=tries, fault="it")
    answers = obeyed(tmp_path, programme)
    assert answers.failure == ((number, "exit status 1") if fails else None)
    assert (tmp_path / "tries").read_text() == min(tries, 3) * "once\n"


def test_files_are_read_and_written(programme: Programme, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).write_text("before")
    programme.add("write", HOME, "one", "after!")
    number = programme.add("read", HOME, "o*", "missing", "/proc/{pid:runner}/comm")
    files = obeyed(tmp_path, programme).files(number)
    assert (files.pop("one"), files.pop("other")) == ("after!", "before")
    ((path, text),) = files.items()
    assert path.startswith("/proc/") and text == "testbed-runner\n"


def test_a_program_has_its_folder_environment_and_files(
    programme: Programme, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    programme.add("environment", "USUAL=1", "PATH=/usr/bin:/bin")
    script = 'pwd; echo "$USUAL $MORE"; echo err >&2; exit 7'
    more = {"MORE": "2", "USUAL": "0"}
    programme.start("it", HOME, ("sh", "-c", script), "out", "err", "inner", more)
    number = programme.add("end", "it", 0, NS, "alone")
    ended = obeyed(tmp_path, programme).ended(number)
    assert ended and (ended.status, ended.was_ended) == (7, False)
    assert (tmp_path / "out").read_text() == f"{tmp_path / 'inner'}\n0 2\n"
    assert (tmp_path / "err").read_text() == "err\n"


def test_a_program_is_signalled_once_it_is_ready_and_ended(
    programme: Programme, tmp_path: Path
) -> None:
    script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    programme.start("it", HOME, ("sh", "-c", script), "out", "/dev/null")
    programme.add("await", "it", PATIENCE_NS, "says", "out", "ready")
    looked = programme.add("signal", "it", 0)
    signalled = programme.add("signal", "it", int(signal.SIGTERM))
    end = programme.add("end", "it", 0, PATIENCE_NS, "alone")
    late = programme.add("signal", "it", int(signal.SIGTERM))
    answers = obeyed(tmp_path, programme)
    assert [answers.numbers(each)[0] for each in (looked, signalled, late)] == [1, 1, 0]
    ended = answers.ended(end)
    assert ended and (ended.status, ended.was_ended) == (5, True)
    assert (tmp_path / "out").read_text() == "ready\nbye\n"


def test_who_does_not_react_is_killed(programme: Programme, tmp_path: Path) -> None:
    programme.start("it", HOME, ("sh", "-c", "trap '' TERM; echo 1; sleep 60"), "out", "/dev/null")
    programme.add("await", "it", PATIENCE_NS, "says", "out", "1")
    number = programme.add("end", "it", int(signal.SIGTERM), NS // 10, "alone")
    ended = obeyed(tmp_path, programme).ended(number)
    assert ended and (ended.status, ended.was_ended) == (-signal.SIGKILL, True)


@pytest.mark.parametrize(
    ("argv", "max_ns", "said"),
    [(("false",), 60 * NS, "ended with status 1"), (("sleep", "60"), NS // 10, "is not ready")],
)
def test_what_is_never_ready(
    programme: Programme, tmp_path: Path, argv: tuple[str, ...], max_ns: int, said: str
) -> None:
    programme.start("it", HOME, argv, *NOWHERE)
    number = programme.add("await", "it", max_ns, "exists", "never", fault="it")
    assert obeyed(tmp_path, programme).failure == (number, said)


def test_nothing_outlives_the_programme(programme: Programme, tmp_path: Path) -> None:
    script = "sleep 300 & echo $! $$; exec sleep 300"
    programme.start("it", HOME, ("sh", "-c", script), "pids", "/dev/null")
    programme.add("await", "it", PATIENCE_NS, "says", "pids", "\n")
    obeyed(tmp_path, programme)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    wait_until(lambda: not any(map(alive, pids)))


def test_the_clock_and_a_due_time(programme: Programme, tmp_path: Path) -> None:
    zero = programme.add("zero", 0, NS // 20)
    times = [programme.add("at", round(time_s * NS)) for time_s in (0, 0.1, 0.05)]
    before = time.time()
    answers = obeyed(tmp_path, programme, zero)
    assert before < answers.epoch_s < time.time()
    first, second, late = (answers.time_s(number) for number in times)
    assert first is not None and second is not None and late is not None
    assert 0 <= first < second <= late and second >= 0.1


def test_the_end_comes_early_where_all_have_ended(programme: Programme, tmp_path: Path) -> None:
    """Behind `ended`, the planned second 100 is now; without it the programme would wait."""
    programme.start("it", HOME, ("true",), *NOWHERE)
    programme.add("end", "it", 0, PATIENCE_NS, "alone")
    zero = programme.add("zero", 0, 0)
    check = programme.add("ended")
    skipped = programme.add("at", round(50 * NS))
    programme.replace(check, "ended", programme.length, 100 * NS, "it")
    last = programme.add("at", round(100.1 * NS))
    answers = obeyed(tmp_path, programme, zero)
    assert check in answers and answers.time_s(skipped) is None
    time_s = answers.time_s(last)
    assert time_s is not None and 0.1 <= time_s < 50


def test_the_end_does_not_come_early_while_one_runs(programme: Programme, tmp_path: Path) -> None:
    for name, argv in (("one", ("true",)), ("other", ("sleep", "60"))):
        programme.start(name, HOME, argv, *NOWHERE)
    programme.add("end", "one", 0, PATIENCE_NS, "alone")
    zero = programme.add("zero", 0, 0)
    programme.add("ended", 6, 100 * NS, "one", "other")
    passed = programme.add("at", round(0.01 * NS))
    programme.add("touch", "end")
    assert passed in obeyed(tmp_path, programme, zero)


NODES = ("left", "right")
PAIR = Veth("left", "l0", "02:00:00:00:00:01", "right", "r0", "02:00:00:00:00:02")
COMMANDS_OF = {
    node: (
        Command(node, ("ip", "link", "set", "dev", interface, "up")),
        Command(node, ("ip", "addr", "add", f"10.0.0.{host}/24", "dev", interface)),
    )
    for host, (node, interface) in enumerate(zip(NODES, ("l0", "r0"), strict=True), start=1)
}


def connected(programme: Programme) -> None:
    """Make two nodes with a link between them."""
    for node in NODES:
        programme.add("node", node)
    add_veth(programme, PAIR)
    for node, commands in COMMANDS_OF.items():
        say(programme, node, "ip", *(" ".join(each.argv[1:]) for each in commands))


def say(programme: Programme, node: str, tool: str, *lines: str) -> None:
    for message in netlink_of(tool, lines):
        places = (("index", offset, name) for offset, name in message.indexes)
        programme.send(node, message.kind, message.flags, message.content, *places)


@NEEDS_ROOT
def test_nodes_links_and_echoes(programme: Programme, tmp_path: Path) -> None:
    connected(programme)
    shown = {node: programme.run(node, ("ip", "-json", "addr")) for node in (*NODES, HOME)}
    replies = programme.add("echo", "left", "10.0.0.1", "10.0.0.2", 3, NS)
    lost = programme.add("echo", "left", "10.0.0.1", "10.0.0.9", 1, NS // 20)
    answers = obeyed(tmp_path, programme)
    assert answers.failure is None
    names = {
        node: {link["ifname"]: link for link in json.loads(answers.output(number)[1])}
        for node, number in shown.items()
    }
    assert names["left"].keys() == {"lo", "l0"} and names["right"].keys() == {"lo", "r0"}
    assert not {"l0", "r0"} & names[HOME].keys()
    assert names["right"]["r0"]["address"] == PAIR.mac2
    assert names["left"]["l0"]["addr_info"][0]["local"] == "10.0.0.1"
    assert len(answers.numbers(replies)) == 3 and answers.numbers(lost) == (-1,)
    assert all(0 < rtt < 500e6 for rtt in answers.numbers(replies))


@NEEDS_ROOT
def test_copies_of_a_template_are_as_programs_that_were_started(
    programme: Programme, tmp_path: Path
) -> None:
    """Each has its arguments, environment, files and node, and ends by itself or when it must."""
    connected(programme)
    serve = ("iperf3", "--server", "--one-off", "--json", "--port", "5201")
    ask = ("iperf3", "--client", "10.0.0.2", "--port", "5201", "--json", "--bytes", "300000")
    listens = ("listens", "right", 5201)
    programme.add("environment", "PATH=/usr/bin:/bin")
    for name, node, argv in (("server", "right", serve), ("client", "left", ask)):
        programme.copy(name, node, argv, name, f"{name}-errors", str(PRELOAD), {"ONE": name})
        if name == "server":
            programme.await_program(name, 10, *listens, fault="no server")
    ends = [programme.end(name, 0, 10) for name in ("client", "server")]
    programme.copy("idle", "right", serve, *NOWHERE, str(PRELOAD), {})
    programme.await_program("idle", 10, *listens, fault="no server")
    environment = programme.add("read", HOME, "/proc/{pid:idle}/comm", "/proc/{pid:idle}/status")
    killed = programme.end("idle", signal.SIGTERM, 10)
    answers = obeyed(tmp_path, programme)
    assert programme.text.count("template\t") == 1
    assert [answers.ended(number).status for number in ends] == [0, 0]  # type: ignore[union-attr]
    assert json.loads((tmp_path / "client").read_text())["end"]["sum_received"]["bytes"] > 0
    assert json.loads((tmp_path / "server").read_text())["end"]["sum_received"]["bytes"] > 0
    assert not (tmp_path / "client-errors").read_text()
    assert "iperf3\n" in answers.files(environment).values()
    assert answers.ended(killed).was_ended  # type: ignore[union-attr]


def test_a_program_that_cannot_be_a_template(programme: Programme, tmp_path: Path) -> None:
    programme.add("environment", "PATH=/usr/bin:/bin")
    programme.add("node", "here", "/proc/self/ns/net")
    programme.copy("copy", "here", ("true",), *NOWHERE, "", {})
    failure = obeyed(tmp_path, programme).failure
    assert failure is not None and "the template has ended" in failure[1]


@NEEDS_ROOT
def test_offloads_are_switched_off(programme: Programme, tmp_path: Path) -> None:
    connected(programme)
    before = programme.add("offloads", "left", "read", "l0", "lo")
    programme.add("offloads", "left", "off", "l0")
    after = programme.add("offloads", "left", "read", "l0", "lo")
    answers = obeyed(tmp_path, programme)
    assert answers.of(before)[0] & 3 == 3  # TSO and GSO
    assert answers.of(after) == bytes([0, answers.of(before)[1]])


@NEEDS_ROOT
def test_the_kernels_words_are_in_the_fault(programme: Programme, tmp_path: Path) -> None:
    programme.add("node", "left")
    number = programme.length
    say(programme, "left", "tc", "qdisc add dev lo root nonsense")
    answers = obeyed(tmp_path, programme)
    assert answers.failure
    assert answers.failure[0] == number and "qdisc" in answers.failure[1].lower()


@NEEDS_ROOT
def test_who_listens_and_what_samples_show(programme: Programme, tmp_path: Path) -> None:
    """A round for the rehearsal, then one for each interval; a connection has its answer."""
    programme.add("node", "left")
    say(programme, "left", "ip", "link set dev lo up")
    script = (
        "import socket, time\n"
        "server = socket.create_server(('127.0.0.1', 5201))\n"
        "ends = ('127.0.0.1', 5201), 1, ('127.0.0.1', 4001)\n"
        "client = socket.create_connection(*ends)\n"
        "open('connected', 'w').close()\n"
        "time.sleep(60)"
    )
    programme.start("it", "left", ("python3", "-c", script), *NOWHERE)
    programme.add("await", "it", PATIENCE_NS, "listens", "left", 5201)
    programme.add("await", "it", PATIENCE_NS, "exists", "connected")
    probes = [
        SocketProbe("tcp", "left", "127.0.0.1", port, "127.0.0.1", 5201) for port in (4001, 4002)
    ]
    programme.add("samples", "raw")
    for probe in probes:
        programme.add("probe", "left", NETLINK_SOCK_DIAG, probe.request.hex())
    programme.add("rehearse")
    zero = programme.add("zero", 0, NS // 100)
    programme.add("interval", NS // 100)
    programme.add("at", round(0.0951 * NS))
    programme.add("sample")
    assert obeyed(tmp_path, programme, zero).failure is None
    with closing(Rows(["tcp", "nowhere"], [])) as rows:
        rows.read((tmp_path / "raw").read_bytes())
        assert b",tcp,established,open," in rows.text(TableKind.SOCKETS).splitlines()[-1]
        assert b"nowhere" not in rows.text(TableKind.SOCKETS)
        there, nowhere = (rows.socket_state(number) for number in range(2))
        assert there.cookie and there.variant and there.options >= 0 and not nowhere.cookie
    rounds = list(in_rounds((tmp_path / "raw").read_bytes(), len(probes)))
    times = [time_ns for time_ns, _ in rounds]
    assert times[0] == -1 and times[1:] == sorted(times[1:])
    assert 2 <= len(rounds) <= 12 and times[1] >= 0 and times[-1] >= 0.0951 * NS
    assert rounds[0][1][0] > 200
    # a round that comes late meets the same tick as the one before it: nothing new, size 0
    assert all((there > 200 or not there) and nowhere < 200 for _, (there, nowhere) in rounds)


def in_rounds(raw: bytes, probes: int) -> list[tuple[int, list[int]]]:
    """Each round's time, and the sizes of its answers."""
    rounds, place = [], 0
    while place < len(raw):
        time_ns = int.from_bytes(raw[place : place + 8], "little", signed=True)
        place += 8
        sizes = []
        for _ in range(probes):
            sizes.append(int.from_bytes(raw[place : place + 4], "little"))
            place += 4
            new = raw[place : place + (sizes[-1] + 63) // 64]  # a bit for each word of 8 bytes
            place += len(new) + 8 * int.from_bytes(new, "little").bit_count()
        rounds.append((time_ns, sizes))
    assert place == len(raw)
    return rounds


@NEEDS_ROOT
def test_an_object_is_changed_with_the_rest_as_it_was(programme: Programme, tmp_path: Path) -> None:
    programme.add("node", "left")
    say(programme, "left", "tc", "qdisc add dev lo root handle 30: pfifo limit 7")
    where = ("left", 38, f"{'00' * 8}{'00003000'}{'00' * 8}", "index", 4, "lo")
    programme.add("keep", "it", *where)
    programme.add("change", "it", 36, "", 0, 0, 4, 9)
    shown = programme.run("left", ("tc", "qdisc", "show", "dev", "lo"))
    asked = programme.add("ask", *where)
    answers = obeyed(tmp_path, programme)
    assert "pfifo 30: root refcnt 2 limit 9p" in answers.output(shown)[1]
    assert (9).to_bytes(4, "little") in answers.of(asked)
