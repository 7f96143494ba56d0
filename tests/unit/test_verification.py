"""What the kernel reports is compared with the plan; what differs ends the trial, by name."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.machine.netlink import attribute
from testbed.plan.host_settings import Parameter, RoutePlan
from testbed.plan.plan import Plan, make_plan
from testbed.plan.traffic_control import TcObject
from testbed.runner.programme import Programme
from testbed.runner.recorded_netlink import netlink_of
from testbed.scenario.discipline import Field, Setting
from testbed.scenario.model import Scenario
from testbed.scenario.network import Queue, Shaping
from testbed.scenario.queues import DISCIPLINES, DUALPI2_PACKETS
from testbed.trial.parts import kernel_state as verification
from testbed.trial.parts import snapshot
from testbed.trial.parts.snapshot import (
    ConfigurationReading,
    InterfaceReport,
    NodeReport,
    TcReport,
    differences,
)
from tests.obeyed import NEEDS_ROOT, obeyed
from tests.scenarios import access, background, router, with_network

RED = Queue("red", limit_bytes=100_000, ecn=True)


# What the kernel would report, made from the plan's settings.

Changes = Mapping[Setting, int | None]  # numbers that differ from the plan's


def as_planned(each: TcObject) -> TcReport:
    """The report of a kernel that does what it was told."""
    parent = each.handle.number if each.is_filter else 0
    return TcReport(each.kind, each.handle.number, parent, pack(each.settings))


def kernel_number(setting: Setting) -> int | None:
    """The plan's number in the kernel's unit."""
    return None if setting.value is None else setting.stored(setting.value * setting.per_unit)


def bent(setting: Setting) -> int:
    """A number that differs from the plan's by the least that must be noticed."""
    planned = kernel_number(setting)
    field = setting.at[-1]
    if planned is None:
        return 7000
    if field.mask != -1:
        return planned ^ field.mask
    step = setting.slack + 1
    return (
        planned + step if planned + step < 1 << 8 * struct.calcsize(field.form) else planned - step
    )


def pack(settings: Sequence[Setting], changes: Changes | None = None) -> bytes:
    """All numbers where the kernel has them."""
    head = max((setting.at[-1].head for setting in settings), default=0)
    structures: dict[tuple[int, ...], bytearray] = {(): bytearray(head)}
    for setting in settings:
        value = (changes or {}).get(setting, kernel_number(setting))
        if value is not None:
            _place(structures, setting.at[-1], value)
    options = bytes(structures.pop(()))
    tree: dict[int, Any] = {}
    for path, data in structures.items():
        _graft(tree, path, bytes(data))
    return options + _packed(tree)


def _place(structures: dict[tuple[int, ...], bytearray], field: Field, value: int) -> None:
    data = structures.setdefault(field.path, bytearray())
    end = field.offset + struct.calcsize(f"={field.form}")
    data.extend(bytes(max(0, end - len(data))))
    (there,) = struct.unpack_from(f"={field.form}", data, field.offset)
    number = value if field.mask == -1 else there & ~field.mask | value
    struct.pack_into(f"={field.form}", data, field.offset, number)


def _graft(tree: dict[int, Any], path: tuple[int, ...], data: bytes) -> None:
    for number in path[:-1]:
        tree = tree.setdefault(number, {})
    tree[path[-1]] = data


def _packed(tree: Mapping[int, Any]) -> bytes:
    return b"".join(
        attribute(number, each if isinstance(each, bytes) else _packed(each))
        for number, each in tree.items()
    )


def bare(scenario: Scenario) -> Plan:
    """Its queues and plain interfaces alone."""
    return dataclasses.replace(make_plan(scenario), sysctls=(), parameters=(), routes=())


@pytest.fixture
def plan() -> Plan:
    """RED with ECN before a link, on the router."""
    return bare(router(rate_mbit=10, queue=RED, delay_ms=10))


@pytest.fixture
def kernel(plan: Plan) -> SimpleNamespace:
    """A kernel that has what was planned; tests change one answer."""
    found = SimpleNamespace(objects={each: as_planned(each) for each in plan.tc_objects})
    found.segments, found.on = 1, []
    found.sysctls, found.parameters, found.routes = {}, {}, []
    return found


def reading(plan: Plan, kernel: SimpleNamespace) -> ConfigurationReading:
    """What the kernel reports."""
    return ConfigurationReading(
        sysctls=kernel.sysctls,
        parameters=kernel.parameters,
        nodes={
            node: NodeReport(interfaces(kernel, node), {"10.9.0.0": kernel.routes})
            for node in plan.nodes
        },
        offloads=dict.fromkeys(plan.plain_interfaces, kernel.on),
        names={},
    )


def interfaces(kernel: SimpleNamespace, node: str) -> dict[str, InterfaceReport]:
    here = [(each, report) for each, report in kernel.objects.items() if each.node == node]
    return {
        name: InterfaceReport(
            [r for w, r in here if w.interface == name and not w.is_class and not w.is_filter],
            [r for w, r in here if w.interface == name and w.is_class],
            [r for w, r in here if w.interface == name and w.is_filter],
            1500,
            kernel.segments,
        )
        for name in {each.interface for each, _ in here}
    }


def verify(plan: Plan, kernel: SimpleNamespace) -> None:
    verification.verify(plan, reading(plan, kernel))


def leaf(kernel: SimpleNamespace) -> TcObject:
    objects: dict[TcObject, TcReport] = kernel.objects
    return next(each for each in objects if each.kind == "red")


def replace_leaf(kernel: SimpleNamespace, **changes: Any) -> None:
    each = leaf(kernel)
    kernel.objects[each] = dataclasses.replace(kernel.objects[each], **changes)


def test_what_is_as_planned_passes(plan: Plan, kernel: SimpleNamespace) -> None:
    verify(plan, kernel)


@pytest.mark.parametrize(
    ("bend", "said"),
    [
        (lambda k: k.objects.update({leaf(k): TcReport("pfifo", 0x100000, 0, b"")}), "no red at"),
        (lambda k: replace_leaf(k, kind="pfifo"), "no red at 30:, but .*pfifo"),
        (lambda k: k.on.extend(("tso", "gso")), "still has tso, gso on"),
    ],
)
def test_what_differs_is_named(
    plan: Plan, kernel: SimpleNamespace, bend: Callable[[Any], object], said: str
) -> None:
    bend(kernel)
    with pytest.raises(TestbedError, match=said):
        verify(plan, kernel)


def test_segments_that_TCP_may_join_are_named(plan: Plan, kernel: SimpleNamespace) -> None:
    kernel.segments = 44
    verify(plan, kernel)  # the guest's kernel cuts them
    queue = plan.queues[0]
    on_the_host = dataclasses.replace(plan, one_segment=((queue.node, queue.interface),))
    with pytest.raises(TestbedError, match="44 segments as one packet"):
        verify(on_the_host, kernel)


PACKETS = {**dict.fromkeys(DISCIPLINES, 100), "dualpi2": DUALPI2_PACKETS}


def queue(name: str) -> Queue:
    """Of each discipline one that sets every option that it has."""
    row = DISCIPLINES[name]
    values: dict[str, float] = {"probability": 0.05, "flows": 64, "quantum_bytes": 300}
    values |= {"min_bytes": 5000, "max_bytes": 15_000, "avpkt_bytes": 900, "burst_packets": 12}
    values |= {"target_ms": 7, "interval_ms": 90, "ce_threshold_ms": 2, "tupdate_ms": 20}
    values |= {"rtt_ms": 40, "diffserv": 4, "triple_isolate": 1, "ack_filter": 2}
    options = {option: values[option] for option in row.options}
    return Queue(name, limit_packets=PACKETS[name], ecn=row.ecn and name != "cake", options=options)


SCENARIOS = {
    **{name: router(rate_mbit=10, queue=queue(name), delay_ms=10) for name in DISCIPLINES},
    **{
        f"{name} by default": router(queue=Queue(name, limit_packets=PACKETS[name]))
        for name in DISCIPLINES
    },
    "a channel with jitter": access("netem-congested"),
    "htb": with_network(router(rate_mbit=10), shaping=Shaping.HTB),
    "a radio": access("wifi-congested"),
    "many delays": background(),
}
OBJECTS = {
    f"{name}: {each.kind}{' class' * each.is_class}": each
    for name, scenario in SCENARIOS.items()
    for each in make_plan(scenario).tc_objects
}
NUMBERS = [
    pytest.param(each, number, id=f"{name}'s {each.settings[number].name}")
    for name, each in OBJECTS.items()
    for number in range(len(each.settings))
]


@pytest.mark.parametrize("name", OBJECTS)
def test_the_planned_numbers_pass(name: str) -> None:
    each = OBJECTS[name]
    assert list(differences(each.settings, as_planned(each).options)) == []


@pytest.mark.parametrize(("each", "number"), NUMBERS)
def test_every_wrong_number_is_named(each: TcObject, number: int) -> None:
    setting = each.settings[number]
    options = pack(each.settings, {setting: bent(setting)})
    (said,) = differences(each.settings, options)
    assert said.startswith(f"{setting.name} is ")
    found, _, planned = said.removeprefix(f"{setting.name} is ").partition(", not ")
    assert planned and found != planned


def test_a_wrong_number_ends_the_trial(plan: Plan, kernel: SimpleNamespace) -> None:
    numbers = {setting.name: setting for setting in leaf(kernel).settings}
    options = pack(leaf(kernel).settings, {numbers["max"]: 9000})
    replace_leaf(kernel, options=options)
    with pytest.raises(TestbedError, match=r"^router: router-eth1: red's max is 9000, not 25000$"):
        verify(plan, kernel)


def test_numbers_are_shown_in_the_plans_unit() -> None:
    codel = {setting.name: setting for setting in OBJECTS["codel: codel"].settings}
    assert codel["target"].difference(4999) == "target is 5 ms, not 7 ms"
    assert codel["target"].difference(705_032_704) == "target is 705032.704 ms, not 7 ms"
    assert codel["target"].difference(None) == "target is not set, not 7 ms"
    assert codel["target"].difference(7000) == "target is 7000, not 6999, in the kernel's unit"
    assert codel["ecn"].difference(0) == "ecn is off, not on"
    default = {setting.name: setting for setting in OBJECTS["codel by default: codel"].settings}
    assert default["ce_threshold"].difference(1000) == "ce_threshold is 1 ms, not not set"
    netem = {setting.name: setting for setting in OBJECTS["codel: netem"].settings}
    assert netem["delay"].difference(10_000_000 - 40) == ""  # a tick has 64 ns
    assert netem["delay"].difference(9_999_900) == "delay is 9.9999 ms, not 10 ms"
    htb = {setting.name: setting for setting in OBJECTS["htb: htb class"].settings}
    assert htb["burst"].difference(25_000) == "burst is 2000 bytes, not 1514 bytes"
    assert htb["rate"].difference(1_212_500) == "rate is 9700000 bit/s, not 10000000 bit/s"


# What the guest's kernel and tc 6.1 answer to `tc qdisc add … red limit 60000 min 5000 max 15000
# avpkt 1000 burst 9 probability 0.02 bandwidth 1000000bit ecn`, and to the like of the others.
ANSWERS = (
    (
        Queue("red", limit_bytes=60_000, ecn=True),
        {1: "60ea000088130000983a000003131001", 3: "51b81e05"},
    ),
    (
        Queue("codel", limit_packets=100, ecn=True, options={"target_ms": 10}),
        {1: "0f270000", 2: "64000000", 3: "9f860100", 4: "01000000"},
    ),
    (
        Queue("fq_codel", limit_packets=100),
        {1: "87130000", 2: "64000000", 3: "9f860100", 4: "00000000", 5: "00040000"}
        | {6: "ea050000", 8: "40000000", 9: "00000002"},
    ),
    (
        Queue("cake", limit_bytes=60_000, options={"rtt_ms": 50}),
        {2: "0000000000000000", 3: "03000000", 5: "04000000", 6: "00000000", 7: "50c30000"}
        | {8: "c4090000", 10: "60ea0000", 16: "00000000"},
    ),
)


@pytest.mark.parametrize(("queue", "answer"), ANSWERS)
def test_a_real_kernels_answers_pass(queue: Queue, answer: dict[int, str]) -> None:
    options = b"".join(
        struct.pack("=HH", 4 + len(text) // 2, number) + bytes.fromhex(text)
        for number, text in answer.items()
    )
    plan = make_plan(router(rate_mbit=1, queue=queue))
    (settings,) = {each.settings for each in plan.tc_objects if each.kind == queue.discipline}
    assert list(differences(settings, options)) == []


def test_a_setting_that_is_another(plan: Plan, kernel: SimpleNamespace) -> None:
    plan = dataclasses.replace(plan, sysctls=(("router", (("net.a.b", "4096\t1"),)),))
    kernel.sysctls = {("router", "net.a.b"): "4096 1"}
    verify(plan, kernel)
    kernel.sysctls["router", "net.a.b"] = "4096 2"
    with pytest.raises(TestbedError, match=r"router: net\.a\.b is '4096 2', not '4096\\t1'"):
        verify(plan, kernel)


def test_a_parameter_that_is_not_what_it_should_be(plan: Plan, kernel: SimpleNamespace) -> None:
    parameter = Parameter("vegas", "alpha", 2)
    plan = dataclasses.replace(plan, parameters=(parameter,))
    kernel.parameters = {parameter.file: "2"}
    verify(plan, kernel)
    kernel.parameters = {parameter.file: "1"}
    with pytest.raises(TestbedError, match="vegas: alpha is 1, not 2"):
        verify(plan, kernel)


def route(**metrics: int | str) -> bytes:
    """A route's message with these metrics."""
    numbers = {"window": 3, "initcwnd": 11, "congctl": 16}
    inner = b"".join(
        attribute(
            numbers[name],
            f"{value}\0".encode() if isinstance(value, str) else struct.pack("=I", value),
        )
        for name, value in metrics.items()
    )
    return bytes(12) + attribute(8, inner)


def test_a_route_with_other_metrics(plan: Plan, kernel: SimpleNamespace) -> None:
    wanted = RoutePlan("router", "10.9.0.0", "", "eth", (("initcwnd", 4), ("congctl", "reno")))
    plan = dataclasses.replace(plan, routes=(wanted,))
    kernel.routes = [route(initcwnd=4, congctl="reno")]
    verify(plan, kernel)
    for routes in ([], [route(initcwnd=4)], [route(initcwnd=4, congctl="reno", window=9)]):
        kernel.routes = routes
        with pytest.raises(TestbedError, match=r"router: the route to 10\.9\.0\.0 has"):
            verify(plan, kernel)


@NEEDS_ROOT
def test_a_node_is_read_from_its_kernel(tmp_path: Path) -> None:
    """The instructions of a reading, obeyed on this machine: numbers, queues, routes, offloads."""
    programme = Programme()
    programme.add("node", "it")
    for tool, line in (
        ("ip", "link add name d0 type veth peer name d1"),
        ("ip", "link set dev d0 mtu 1400 up"),
        ("ip", "addr add 10.9.0.1/24 dev d0"),
        ("ip", "route add 10.8.0.0/16 dev d0 initcwnd 4"),
        ("tc", "qdisc add dev d0 root handle 30: pfifo limit 17"),
    ):
        (message,) = netlink_of(tool, (line,))
        places = (("index", offset, name) for offset, name in message.indexes)
        programme.send("it", message.kind, message.flags, message.content, *places)
    name = "net.ipv4.tcp_rmem"
    plan: Any = SimpleNamespace(
        network=SimpleNamespace(graph=SimpleNamespace(ip=4)),
        sysctls=(("it", ((name, ""),)),),
        parameters=(),
        nodes=("it",),
        tc_objects=(),
        plain_interfaces=(("it", "d0"),),
        flows=(),
    )
    taken = snapshot.Snapshot(plan, programme)
    found = taken.read(obeyed(tmp_path, programme))
    assert len(found.sysctls["it", name].split()) == 3
    node = found.nodes["it"]
    assert node.interfaces.keys() == {"lo", "d0", "d1"} and node.interfaces["d0"].mtu == 1400
    (queue,) = node.interfaces["d0"].disciplines
    assert (queue.kind, queue.handle) == ("pfifo", 0x30_0000)
    assert queue.options == (17).to_bytes(4, "little")
    (way,) = node.routes["10.8.0.0"]
    assert snapshot.route_metrics(way) == {11: (4).to_bytes(4, "little")}
    assert {"tso", "gso"} <= set(found.offloads["it", "d0"])
    texts = found.texts
    assert texts["it: mtu of d0"] == "1400" and texts["it: qdiscs of d0"].startswith("pfifo")


def test_a_route_is_the_same_before_its_carrier_is_noticed() -> None:
    """As a host's kernel gave it, to 10.0.1.0/24, once before and once after."""
    early, late = (
        bytes.fromhex(f"02180000 fe02fd01 {flags} 08000f00 fe000000")
        for flags in ("10000000", "00000000")
    )
    assert snapshot._as_set(early) == snapshot._as_set(late) == late
    moved = late.replace(bytes.fromhex("fe02"), bytes.fromhex("fd02"))
    assert snapshot._as_set(moved) != late
