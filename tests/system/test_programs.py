"""Programs of one's own as flows, in the guest: curl, wget and a script, and those that fail."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from analysis.results.tables import write_metrics
from analysis.trials.packets import TrialPackets
from analysis.verdict.checks import Grade
from analysis.verdict.verdict import judge
from testbed.own_files.scenario_file import document_from_options
from testbed.runs.engine_choice import choose
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.programs import Programs
from testbed.scenario.reading import read_document
from testbed.store.names import SCENARIO
from testbed.store.reading import Trial, open_trial
from testbed.store.records import Status
from tests.lab import capture_hashes, ended_in_the_guest, ended_trials, run_trials
from tests.scenarios import access
from tests.sealing import seal

SERVE = ("python3", "-m", "http.server", "{port}")
BYTES = 40_000
FILES = 10
SINK = """
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
while True:
    with listener.accept()[0] as peer:
        while peer.recv(65536):
            pass
"""
SEND = """
import socket, sys, time
for _ in range(3):
    with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as peer:
        peer.sendall(bytes(50_000))
    time.sleep(0.2)
"""


def scenario(*flows: Flow) -> Scenario:
    found = read_document(
        document_from_options("single,4", "bw=10,delay=2ms,max_queue_size=40", ["h1,h2"], 3.0).data
    ).scenario
    return dataclasses.replace(found, flows=flows)


def flow(name: str, src: str, dst: str, command: Programs) -> Flow:
    return Flow(name, FlowKind.COMMAND, src, dst, variant="cubic", command=command)


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("site")
    return tuple(written(folder, f"f{n}", "x" * BYTES) for n in range(1, FILES + 1))


def test_curl_wget_and_a_script_are_flows(tmp_path: Path, served: tuple[str, ...]) -> None:
    """Each of ten files is a connection of its own, found by the server's port alone."""
    curl = ("curl", "-sSf", "--remote-name-all", "http://{server_ip}:{port}/f[1-10]")
    wget = ("wget", "-q", "http://{server_ip}:{port}/f1", "-O", "got")
    files = tuple(
        written(tmp_path, name, text) for name, text in (("sink.py", SINK), ("send.py", SEND))
    )
    up = Programs(
        ("python3", "send.py", "{server_ip}", "{port}"),
        ("python3", "sink.py", "{port}"),
        files,
        upload=True,
    )
    flows = (
        flow("curl", "h1", "h2", Programs(curl, SERVE, served)),
        flow("wget", "h3", "h2", Programs(wget, SERVE, served[:1])),
        flow("up", "h4", "h1", up),
        Flow("turns", FlowKind.CBR, "h3", "h4", rate_mbit=2, packet_bytes=500, on_s=0.5, off_s=0.4),
    )
    out = tmp_path / "out"
    (trial,) = run_trials([scenario(*flows)], out)
    rows = write_metrics(out).set_index("flow")
    received = rows["goodput_mbps"] * rows["duration_s"] * 1e6 / 8
    for name, size in (("curl", FILES * BYTES), ("wget", BYTES), ("up", 150_000)):
        assert size <= received[name] < size * 1.02 + 1000, (name, received[name])
    assert connections(trial) == {"curl": FILES, "wget": 1, "up": 3}
    assert (rows.drop("turns")["duration_s"] < 2).all()  # each ends with its client
    _are_turns(trial, out)
    kept = {path.name for path in (trial.path / "flows").iterdir()}
    assert {"curl.client.out", "curl.programs.json"} <= kept
    assert not any(name.endswith(".files") for name in kept)
    assert trial.record.versions["/usr/bin/curl"].startswith("sha256 ")


def test_a_program_that_reads_slowly_is_suspect(tmp_path: Path) -> None:
    """Its sockets are not sampled: the windows in the capture tell."""
    sink = "import time\n" + SINK.replace("pass", "time.sleep(0.2)")
    send = SEND.replace("50_000", "500_000")
    files = (written(tmp_path, "sink.py", sink), written(tmp_path, "send.py", send))
    up = Programs(
        ("python3", "send.py", "{server_ip}", "{port}"),
        ("python3", "sink.py", "{port}"),
        files,
        upload=True,
    )
    trial = ended_in_the_guest(scenario(flow("up", "h1", "h2", up)), tmp_path / "out")
    verdict = judge(trial)
    assert verdict is not None and verdict.verdict is Grade.SUSPECT
    assert verdict.why.startswith("receive window of up: ")


def upload(folder: Path, name: str, call: str) -> Flow:
    """A flow whose program sends for two seconds over a socket that it makes so."""
    send = f"""
import socket, sys
with socket.socket() as peer:
    {call}
    peer.connect((sys.argv[1], int(sys.argv[2])))
    peer.sendall(bytes(500_000))
"""
    files = (written(folder, f"{name}-sink.py", SINK), written(folder, f"{name}.py", send))
    client, server = (("python3", Path(each).name) for each in reversed(files))
    up = Programs((*client, "{server_ip}", "{port}"), (*server, "{port}"), files, upload=True)
    return flow(name, "h1", "h2", up)


@pytest.mark.parametrize(
    ("call", "grade", "why"),
    [
        ("pass", Grade.VALID, ""),
        (
            'peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")',
            Grade.INVALID,
            "variant of up: 'bbr', not 'cubic'; its program chose it",
        ),
        (
            "peer.setsockopt(socket.SOL_SOCKET, 47, 100_000)",  # SO_MAX_PACING_RATE
            Grade.SUSPECT,
            "options of up: its program paces by itself",
        ),
    ],
    ids=("plain", "control", "paced"),
)
def test_what_a_program_sets_is_seen(call: str, grade: Grade, why: str, tmp_path: Path) -> None:
    trial = ended_in_the_guest(scenario(upload(tmp_path, "up", call)), tmp_path / "out")
    verdict = judge(trial)
    assert verdict is not None and verdict.verdict is grade and verdict.why.startswith(why)


def test_connections_between_two_samples_are_unknown(tmp_path: Path) -> None:
    far = dataclasses.replace(scenario(upload(tmp_path, "up", "pass")), sample_interval_ms=0)
    verdict = judge(ended_in_the_guest(far, tmp_path / "out"))
    assert verdict is not None and verdict.why == (
        "variant of up is not known: the program's sockets came and went between the samples"
    )


def test_how_long_a_server_takes_to_load_changes_no_packet(tmp_path: Path) -> None:
    """Over netem's jitter, beyond the instant at which the kernel takes its next random key."""
    send = SEND.replace("range(3)", "range(120)").replace("50_000", "5_000")
    hashes = []
    for loads_s in (0.01, 2.31):  # the latter longer than all that is set up meanwhile
        folder = tmp_path / f"{loads_s}"
        folder.mkdir()
        sink = f"import time\ntime.sleep({loads_s})\n{SINK}"
        files = (written(folder, "sink.py", sink), written(folder, "send.py", send))
        server = ("python3", "sink.py", "{port}")
        up = Programs(("python3", "send.py", "{server_ip}", "{port}"), server, files, upload=True)
        far = access("netem-weak", 40, seed=1)
        far = dataclasses.replace(far, flows=(flow("up", "server", "station", up),))
        (trial,) = run_trials([far], folder / "out")
        hashes.append(capture_hashes(trial))
    assert hashes[0] == hashes[1]


def _are_turns(trial: Trial, out: Path) -> None:
    """A flow that is on and off by turns; a scenario that says other turns is caught."""
    record = next(each for each in trial.record.flows if each.name == "turns")
    sent = TrialPackets(trial).flow("sender", record)
    assert sent is not None
    since_s = (sent.data["time_ns"] - sent.data["time_ns"].iloc[0]) / 1e9
    assert sorted(set((since_s // 0.9).astype(int))) == [0, 1, 2, 3]
    assert (since_s % 0.9).max() < 0.5 + 1e-6
    doctored = Path(shutil.copytree(trial.path, out.with_name("doctored")))
    text = (doctored / SCENARIO).read_text()
    (doctored / SCENARIO).write_text(text.replace('"on_s": 0.5', '"on_s": 0.4'))
    found = judge(open_trial(seal(doctored)))
    assert found is not None and found.why.startswith("pauses of turns")


def connections(trial: Trial) -> dict[str, int]:
    packets = TrialPackets(trial)
    tcp = (each for each in trial.record.flows if each.protocol == "tcp")
    return {each.name: len(packets.connections(each) or ()) for each in tcp}


BOTH = """
import http.server, sys, threading
serve = lambda port: http.server.HTTPServer(
    ("", port), http.server.SimpleHTTPRequestHandler).serve_forever()
threading.Thread(target=serve, args=(9999,), daemon=True).start()
serve(int(sys.argv[1]))
"""


def test_programs_that_fail_or_talk_elsewhere_are_caught(
    tmp_path: Path, served: tuple[str, ...]
) -> None:
    """The second also by the counters of the queues that its other connection crosses."""
    both = written(tmp_path, "both.py", BOTH)
    absent = ("curl", "-sSf", "http://{server_ip}:{port}/absent")
    serve_both = ("python3", "both.py", "{port}")
    other = ("curl", "-sS", "http://{server_ip}:{port}/f1", "http://{server_ip}:9999/f1")
    flows = (
        flow("absent", "h1", "h2", Programs(absent, SERVE)),
        flow("other", "h3", "h2", Programs(other, serve_both, (*served, both))),
        flow("long", "h4", "h1", Programs(("sleep", "60"), SERVE)),
    )
    (trial,) = ended_trials([scenario(*flows)], tmp_path / "out", choose("guest", ()))
    assert trial.record.status is Status.OK, trial.record.reason
    found = judge(trial)
    assert found is not None
    bad = {check.why for check in found.checks if check.verdict is Grade.INVALID}
    assert any("absent client ended with status 22" in why for why in bad), bad
    assert any("other connections of captures: 1" in why for why in bad), bad
    rows = write_metrics(tmp_path / "out").set_index("flow")
    assert rows["retransmitted"].isna()["long"]  # it made no connection
    ended = json.loads((trial.path / "flows" / "long.programs.json").read_text())
    assert ended["client"]["was_ended"]
    assert any("long: its client" in warning for warning in trial.record.warnings)
