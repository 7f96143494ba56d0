"""Commands of ip and tc as messages: the kernel ends up as if the programs had sent them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.plan.plan import make_plan
from testbed.runner.programme import Programme
from testbed.runner.recorded_netlink import netlink_of
from tests.obeyed import NEEDS_ROOT, obeyed
from tests.scenarios import access, dumbbell, router

LINK_LINES = (
    "link add name d0 type veth peer name d1",
    "link set dev d1 up",
    "link set dev d0 mtu 1400 up",
    "addr add 10.9.0.1/24 dev d0",
    "addr add 10.9.1.1/24 dev lo",
    "link set dev lo up",
    "route add 10.8.0.0/16 via 10.9.0.2 dev d0 initcwnd 4 rto_min 300ms quickack 1",
    "route add default dev d0",
)
QUEUE_LINES = (
    "qdisc add dev d0 root handle 30: pfifo limit 17",
    "qdisc replace dev lo root handle 31: bfifo limit 5000",
)
LINKWATCH = ("sleep", "1.1")  # the kernel tells a link's operstate at most once a second
SHOWN = (("ip", "-json", "addr"), ("ip", "-json", "route"), ("tc", "-json", "qdisc"))
PASSING = ("valid_life_time", "preferred_life_time", "link_index", "address", "ifindex")


def shown(spoken_to: bool, folder: Path) -> list[Any]:
    """What a node has after the lines, sent by the runner or by the programs themselves."""
    programme = Programme()
    programme.add("node", "it")
    for tool, lines in (("ip", LINK_LINES), ("tc", QUEUE_LINES)):
        if not spoken_to:
            programme.run("it", (tool, "-batch", "-"), "".join(f"{line}\n" for line in lines))
            continue
        for message in netlink_of(tool, lines):
            places = (("index", offset, name) for offset, name in message.indexes)
            programme.send("it", message.kind, message.flags, message.content, *places)
    programme.run("it", LINKWATCH)
    numbers = [programme.run("it", argv) for argv in SHOWN]
    answers = obeyed(folder, programme)
    assert answers.failure is None
    return [json.loads(answers.output(number)[1], object_hook=lasting) for number in numbers]


def lasting(part: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is another one each time, such as a drawn MAC address."""
    if part.get("family") == "inet6":  # made of the MAC address
        return {}
    return {name: value for name, value in part.items() if name not in PASSING}


@NEEDS_ROOT
def test_the_kernel_has_what_the_programs_would_have_set(tmp_path: Path) -> None:
    found = shown(True, tmp_path)
    assert found == shown(False, tmp_path)
    links, routes, queues = found
    assert [link["mtu"] for link in links if link["ifname"] == "d0"] == [1400]
    assert {route["dst"] for route in routes} >= {"10.8.0.0/16", "default"}
    assert {"pfifo", "bfifo"} <= {queue["kind"] for queue in queues}


@pytest.mark.parametrize("scenario", [router(), dumbbell(), access("netem-congested")])
def test_every_planned_command_is_one_message(scenario: Any) -> None:
    """All indexes are filled in: those of the interfaces that the command names."""
    for command in make_plan(scenario).setup:
        tool, *words = command.argv
        if tool != "ethtool":
            (message,) = netlink_of(tool, (" ".join(words),))
            named = [word for before, word in pairwise(words) if before == "dev"]
            named += words[2:3] if words[:2] == ["link", "set"] else []
            assert [name for _, name in message.indexes] == named


@pytest.mark.parametrize(
    ("tool", "line", "said"),
    [
        ("tc", "qdisc add dev a root pfifo limit plenty", "limit"),
        ("tc", "qdisc add dev a root netem delay soon", "latency"),
        ("ip", "link set dev a mtu large", "mtu"),
        ("ip", "no such command", "no"),
    ],
)
def test_words_that_a_program_does_not_understand(tool: str, line: str, said: str) -> None:
    with pytest.raises(TestbedError, match=f"^{tool} does not understand a command: .*{said}"):
        netlink_of(tool, (line,))


def test_a_command_that_only_asks_has_no_message() -> None:
    with pytest.raises(TestbedError, match=r"^tc (made|does)"):
        netlink_of("tc", ("qdisc show",))
