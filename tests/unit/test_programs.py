"""Command flows: their words, ports and files, what is planned of them, and their faults."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from analysis.trials.packets import FlowTables, ports_of, select
from testbed.engine import missing_programs
from testbed.errors import UsageError
from testbed.plan.check import validate
from testbed.plan.plan import make_plan
from testbed.runs.provenance import programs as versions
from testbed.scenario.model import Flow, FlowKind, Scenario
from testbed.scenario.programs import Programs, filled
from testbed.scenario.reading import read_scenario
from testbed.store.names import program_folder
from testbed.store.records import FlowRecord
from testbed.traffic.command_flow import prepare_folders, require_files
from tests.scenarios import router

SERVE = ("python3", "-m", "http.server", "{port}")
GET = ("curl", "http://{server_ip}:{port}/a")


def scenario(*commands: Programs) -> Scenario:
    flows = (
        Flow(f"f{n}", FlowKind.COMMAND, "sender1", "receiver", variant="cubic", command=each)
        for n, each in enumerate(commands)
    )
    return dataclasses.replace(router(variant="cubic"), flows=tuple(flows), duration_s=5.0, seed=7)


def test_words_in_braces_stand_for_values() -> None:
    words = ("curl", "{server_ip}:{port}/f[1-10]{a,b}", "{{port}}", "{}")
    values = {"server_ip": "10.0.0.1", "port": "8000"}
    assert filled(words, values) == ("curl", "10.0.0.1:8000/f[1-10]{a,b}", "{port}", "{}")


def test_the_server_is_where_the_data_come_from_unless_they_are_uploaded() -> None:
    down, up = (
        make_plan(scenario(Programs(GET, SERVE, upload=upload))).flows[0]
        for upload in (False, True)
    )
    assert (down.server.node, down.client.node) == ("sender1", "receiver")
    assert (up.server.node, up.client.node) == ("receiver", "sender1")
    assert (down.src_ports, down.dst_port) == ((8000,), 0)
    assert (up.src_ports, up.dst_port) == ((), 8000)
    assert down.client.argv == ("curl", f"http://{down.src_address}:8000/a")
    assert up.client.argv == ("curl", f"http://{up.dst_address}:8000/a")


def test_a_command_travels_as_json() -> None:
    made = scenario(Programs(GET, SERVE))
    assert read_scenario(made.to_json()) == made


@pytest.mark.parametrize(
    ("commands", "why"),
    [
        ([Programs(())], "command.client: no program is named"),
        (
            [Programs(("curl", "{sever_ip}"), port=80)],
            "unknown placeholder '{sever_ip}': did you mean '{server_ip}'",
        ),
        ([Programs(GET, ("nginx",))], "command.server: has no {port}"),
        ([Programs(GET)], "command.client: {port} of no server"),
        ([Programs(("ssh",), port=5201)], "command.port: 5201 is one of iperf3's"),
        ([Programs(("ssh",), port=70_000)], "command.port: 70000 is not between 0 and 65535"),
        ([Programs(GET, SERVE, ("a.txt",))], "command.files: 'a.txt' is not an absolute path"),
        ([Programs(GET, SERVE, ("/a/b", "/c/b"))], "command.files: two are called 'b'"),
        ([Programs(("./run",), port=80)], "command.client: './run' is none of its files"),
        ([Programs(GET, SERVE), Programs(("ping",))], "f1 has no port that tells it from others"),
        ([Programs(GET, SERVE, port=80), Programs(GET, port=80)], "f1 has no port"),
    ],
)
def test_bad_commands_are_one_line(commands: list[Programs], why: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(scenario(*commands))
    assert why in caught.value.message
    assert "\n" not in caught.value.message


def test_two_servers_between_two_hosts_have_ports_of_their_own() -> None:
    plan = make_plan(scenario(Programs(GET, SERVE), Programs(GET, SERVE)))
    assert [each.src_ports for each in plan.flows] == [(8000,), (8001,)]


def test_what_belongs_to_other_flows_is_refused() -> None:
    made = scenario(Programs(GET, SERVE))
    for field in ({"variant": None}, {"bytes": 5}, {"rate_mbit": 1.0}, {"command": None}):
        with pytest.raises(UsageError, match=r"flows.0.*(variant|bytes|rate_mbit|command)"):
            validate(
                dataclasses.replace(made, flows=(dataclasses.replace(made.flows[0], **field),))
            )


def test_a_program_or_a_file_that_is_not_there_is_named_before_the_start(tmp_path: Path) -> None:
    made = scenario(Programs(("no-such-program", "{port}"), SERVE, (str(tmp_path / "gone"),)))
    (missing,) = missing_programs(make_plan(made).needs)
    assert str(missing) == "program no-such-program"
    with pytest.raises(UsageError, match=r"flow f0: .*/gone: no such file"):
        require_files(made.flows)


def test_each_program_finds_the_files_in_a_folder_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("A")
    prepare_folders(scenario(Programs(GET, SERVE, (str(file),))).flows, tmp_path)
    for role in ("server", "client"):
        assert (tmp_path / program_folder("f0", role) / "a.txt").read_text() == "A"


def test_a_trial_is_another_when_a_program_or_a_file_is(tmp_path: Path) -> None:
    file = tmp_path / "run.py"
    made = scenario(Programs(("python3", str(file)), SERVE))
    file.write_text("1")
    before = versions(made)
    file.write_text("2")
    assert before[str(file)] != versions(made)[str(file)]
    assert "/usr/bin/python3" in before


HOSTS = {"a": "10.0.0.1", "b": "10.0.0.2"}


def rows(*packets: str) -> pd.DataFrame:
    """`a8000>b51`."""
    found = []
    for text in packets:
        ends = [(HOSTS[end[0]], int(end[1:])) for end in text.split(">")]
        found.append(("tcp", *(end[0] for end in ends), *(end[1] for end in ends)))
    return pd.DataFrame(found, columns=["protocol", "src", "dst", "src_port", "dst_port"])


CAPTURED = rows("b51>a8000", "a8000>b51", "a8000>b52", "a9>b51", "a50>b8000", "b8000>a50")


@pytest.mark.parametrize(
    ("src_ports", "dst_port", "data", "acks", "connections"),
    [
        ((8000,), 0, [1, 2], [0], ((8000, 51), (8000, 52))),
        ((), 8000, [4], [5], ((50, 8000),)),
        ((), 0, [1, 2, 3, 4], [0, 5], ((8000, 51), (8000, 52), (9, 51), (50, 8000))),
        ((8000,), 51, [1], [0], ((8000, 51),)),
    ],
)
def test_connections_are_found_by_the_ports_that_are_known(
    src_ports: tuple[int, ...],
    dst_port: int,
    data: list[int],
    acks: list[int],
    connections: tuple[tuple[int, int], ...],
) -> None:
    flow = FlowRecord("f", "tcp", HOSTS["a"], HOSTS["b"], src_ports, dst_port, 0, 1)
    found: FlowTables = select(CAPTURED, flow)
    assert (list(found.data.index), list(found.acks.index)) == (data, acks)
    assert ports_of(found, flow) == connections


def turns(**others: object) -> Scenario:
    cbr = {"rate_mbit": 2.0, "packet_bytes": 500, "on_s": 0.5, "off_s": 0.25} | others
    flow = Flow("turns", FlowKind.CBR, "sender1", "receiver", **cbr)  # type: ignore[arg-type]
    return dataclasses.replace(router(variant="cubic"), flows=(flow,))


def test_turns_are_kept_by_the_library_in_front_of_the_pacing_one() -> None:
    env = dict(make_plan(turns()).flows[0].client_env)
    assert (env["ON_NS"], env["OFF_NS"]) == ("500000000", "250000000")
    assert (env["ON_OFF_GAP_NS"], env["PACE_GAP_NS"]) == ("2056000", "0")
    steady = dict(make_plan(turns(on_s=None, off_s=None)).flows[0].client_env)
    assert steady["PACE_GAP_NS"] == "2056000" and "ON_NS" not in steady


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({"off_s": None}, "on_s and off_s belong together"),
        ({"off_s": 90.0}, "off_s: 90 is not above 0 and at most 60"),
        ({"on_s": 0.0}, "on_s: 0 is not above 0"),
    ],
)
def test_bad_turns_are_one_line(others: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        validate(turns(**others))
