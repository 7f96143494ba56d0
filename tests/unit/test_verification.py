"""What the kernel reports is compared with the plan; what differs ends the trial, by name."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.errors import TestbedError
from testbed.machine import netns
from testbed.machine.netlink import attribute
from testbed.machine.process import Place
from testbed.plan.plan import Plan, make_plan
from testbed.plan.traffic_control import TcObject
from testbed.scenario.discipline import Field, Setting
from testbed.scenario.model import Scenario
from testbed.scenario.network import Queue
from testbed.scenario.queues import DISCIPLINES
from testbed.trial import verify as verification
from testbed.trial.parts import snapshot
from testbed.trial.parts.snapshot import InterfaceReport, TcReport, differences
from tests.scenarios import access, background, router

RED = Queue("red", limit_bytes=100_000, ecn=True)


# What the kernel would report, made from the plan's settings.

Changes = Mapping[Setting, int | None]  # numbers that differ from the plan's


def as_planned(each: TcObject) -> TcReport:
    """The report of a kernel that does what it was told."""
    return TcReport(each.kind, each.handle.number, 0, pack(each.settings))


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
    """RED with ECN below an htb, on the router."""
    return bare(router(rate_mbit=10, queue=RED, delay_ms=10))


@pytest.fixture
def kernel(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A kernel that has what was planned; tests change one answer."""
    found = SimpleNamespace(objects={each: as_planned(each) for each in plan.tc_objects})
    found.segments, found.on = 1, []
    monkeypatch.setattr(verification, "interface_reports", lambda _pid: reports(found))
    monkeypatch.setattr(verification, "offloads_on", lambda _interface: found.on)
    return found


def reports(kernel: SimpleNamespace) -> dict[str, InterfaceReport]:
    names = {each.interface for each in kernel.objects}
    return {
        name: InterfaceReport(
            tuple(r for w, r in kernel.objects.items() if w.interface == name and not w.is_class),
            tuple(r for w, r in kernel.objects.items() if w.interface == name and w.is_class),
            kernel.segments,
        )
        for name in names
    }


def verify(plan: Plan) -> None:
    verification.verify(plan, {node: Place(node) for node in plan.nodes})


def leaf(kernel: SimpleNamespace) -> TcObject:
    objects: dict[TcObject, TcReport] = kernel.objects
    return next(each for each in objects if each.kind == "red")


def replace_leaf(kernel: SimpleNamespace, **changes: Any) -> None:
    each = leaf(kernel)
    kernel.objects[each] = dataclasses.replace(kernel.objects[each], **changes)


def test_what_is_as_planned_passes(plan: Plan, kernel: SimpleNamespace) -> None:
    verify(plan)


@pytest.mark.parametrize(
    ("bend", "said"),
    [
        (lambda k: k.objects.update({leaf(k): TcReport("pfifo", 0x100000, 0, b"")}), "no red at"),
        (lambda k: replace_leaf(k, kind="pfifo"), "no red at 30:, but .*pfifo"),
        (lambda k: setattr(k, "segments", 44), "44 segments as one packet"),
        (lambda k: k.on.extend(("tso", "gso")), "still has tso, gso on"),
    ],
)
def test_what_differs_is_named(
    plan: Plan, kernel: SimpleNamespace, bend: Callable[[Any], object], said: str
) -> None:
    bend(kernel)
    with pytest.raises(TestbedError, match=said):
        verify(plan)


def queue(name: str) -> Queue:
    """Of each discipline one that sets every option that it has."""
    row = DISCIPLINES[name]
    values: dict[str, float] = {"probability": 0.05, "flows": 64, "quantum_bytes": 300}
    values |= {"min_bytes": 5000, "max_bytes": 15_000, "avpkt_bytes": 900, "burst_packets": 12}
    values |= {"target_ms": 7, "interval_ms": 90, "ce_threshold_ms": 2, "tupdate_ms": 20}
    values |= {"rtt_ms": 40}
    options = {option: values[option] for option in row.options}
    return Queue(name, limit_packets=100, ecn=row.ecn and name != "cake", options=options)


SCENARIOS = {
    **{name: router(rate_mbit=10, queue=queue(name), delay_ms=10) for name in DISCIPLINES},
    **{f"{name} by default": router(queue=Queue(name, limit_packets=100)) for name in DISCIPLINES},
    "a channel with jitter": access("netem-congested"),
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
        verify(plan)


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
    htb = {setting.name: setting for setting in OBJECTS["codel: htb class"].settings}
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


def test_only_offloads_that_are_on_are_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A radio has none, and refuses even to switch them off."""
    on, told = {netns._GET_OFFLOAD["tso"], netns._GET_OFFLOAD["gro"]}, []

    def call(_control: object, interface: str, command: int) -> bool:
        told.append((interface, command))
        return command in on

    monkeypatch.setattr(netns, "_ethtool", call)
    netns.switch_offloads_off("eth9")
    asked = [("eth9", command) for command in netns._GET_OFFLOAD.values()]
    assert [each for each in told if each not in asked] == [("eth9", 0x1F), ("eth9", 0x2C)]


def test_a_route_is_the_same_before_its_carrier_is_noticed() -> None:
    """As a host's kernel gave it, to 10.0.1.0/24, once before and once after."""
    early, late = (
        bytes.fromhex(f"02180000 fe02fd01 {flags} 08000f00 fe000000")
        for flags in ("10000000", "00000000")
    )
    assert snapshot._as_set(early) == snapshot._as_set(late) == late
    moved = late.replace(bytes.fromhex("fe02"), bytes.fromhex("fd02"))
    assert snapshot._as_set(moved) != late
