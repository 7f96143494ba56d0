"""Networks for whole programs: the script that makes them, and lines of what starts where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.programs.network_script import (
    StartedCommand,
    captured_interfaces,
    network_script,
    read_network,
    started_commands,
)

QUEUE = {"discipline": "pfifo", "limit_packets": 50}


def network(tmp_path: Path, **forward: Any) -> Path:
    """Write two hosts with a link, and no flows."""
    shaped = {"rate_mbit": 10, "delay_ms": 10, "queue": QUEUE}
    link = {"ends": ["a", "b"], "forward": {**shaped, **forward}, "reverse": {"delay_ms": 10}}
    path = tmp_path / "net.json"
    nodes = [{"name": "a"}, {"name": "b"}]
    path.write_text(json.dumps({"network": {"nodes": nodes, "links": [link]}}))
    return path


def test_a_network_needs_no_flows(tmp_path: Path) -> None:
    plan = read_network(network(tmp_path))
    lines = network_script(plan, ["make", "a test"]).splitlines()
    assert "ip netns add a" in lines and "echo 10.0.0.1 a >>/etc/hosts" in lines
    shaped = [line for line in lines if " htb " in line and " class " in line]
    assert len(shaped) == 1 and "rate 10000000bit" in shaped[0]
    assert any("pfifo limit 50" in line for line in lines)
    assert sum("netem delay 10000.000us" in line for line in lines) == 2
    assert not any("-ctl" in line for line in lines)  # the control network of trials
    assert lines[-2:] == ["trap - ERR", "exec make 'a test'"]


def test_captures_are_open_before_anything_starts(tmp_path: Path) -> None:
    plan = read_network(network(tmp_path))
    lines = network_script(plan, ["make"], ["a", "b:0"]).splitlines()
    places = [n for n, line in enumerate(lines) if line == "exec {capture}<>/proc/capture"]
    assert [lines[n + 1].split("printf")[0] for n in places] == [
        f"ip netns exec {node} " for node in "ab"
    ]
    assert lines[-2:] == ["trap - ERR", "make; exit"]  # the shell stays, and holds them open
    assert all(place < lines.index("trap - ERR") for place in places)


@pytest.mark.parametrize(
    ("captured", "names"),
    [("all", ["a-eth0", "b-eth0"]), ("b", ["b-eth0"]), ("a-eth0", ["a-eth0"]), ("b:0", ["b-eth0"])],
)
def test_interfaces_are_named_by_node_port_or_name(
    tmp_path: Path, captured: str, names: list[str]
) -> None:
    plan = read_network(network(tmp_path))
    assert [each.name for each in captured_interfaces([captured, captured], plan)] == names


def test_an_interface_that_the_network_has_not_is_one_line(tmp_path: Path) -> None:
    plan = read_network(network(tmp_path))
    with pytest.raises(UsageError, match="--capture 'b:7': the network has no such interface"):
        network_script(plan, ["make"], ["b:7"])


def test_lines_of_what_starts_where_and_when(tmp_path: Path) -> None:
    plan = read_network(network(tmp_path))
    words = ["b: nc -l 80 &", "a@1.5: nc b 80\na: ping -c 1 b"]
    assert started_commands(words, ["a", "b"]) == [
        StartedCommand("b", "0", "nc -l 80", is_server=True),
        StartedCommand("a", "1.5", "nc b 80", is_server=False),
        StartedCommand("a", "0", "ping -c 1 b", is_server=False),
    ]
    lines = network_script(plan, words).splitlines()
    start = lines.index("trap - ERR") + 1
    assert lines[start] == "(exec ip netns exec b sh -c 'nc -l 80') &"
    assert lines[start + 1] == "(sleep 1.5; exec ip netns exec a sh -c 'nc b 80') &"
    assert lines.count("waited+=($!)") == 2


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["c: true"], "the network has no node 'c'"),
        (["a: true", "b true"], "'b true': expected NODE: COMMAND"),
    ],
)
def test_lines_that_cannot_be(tmp_path: Path, words: list[str], fault: str) -> None:
    with pytest.raises(UsageError) as caught:
        network_script(read_network(network(tmp_path)), words)
    assert caught.value.message == fault


@pytest.mark.parametrize(
    ("forward", "fault"),
    [
        ({"aggregate_packets": 8}, "not for whole programs: aggregate_packets"),
        ({"delay_ms": -1}, "network.links[0].forward.delay_ms: -1 is not between 0 and"),
        ({"delay": 1}, "network.links[0].forward.delay: unknown field"),
    ],
)
def test_networks_that_cannot_be(tmp_path: Path, forward: dict[str, Any], fault: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_network(network(tmp_path, **forward))
    assert fault in caught.value.message


@pytest.mark.parametrize("field", ["realistic", "network_jitter", "drawn_service_times"])
def test_a_trials_own_network_cannot_be(tmp_path: Path, field: str) -> None:
    path = network(tmp_path)
    value = True if field == "realistic" else 0.01
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(UsageError) as caught:
        read_network(path)
    assert caught.value.message == f"not for whole programs: {field}"


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_network(tmp_path / "none.json")
