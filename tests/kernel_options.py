"""A discipline's options as the kernel would report them, made from the plan's settings."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.machine.netlink import attribute
from testbed.plan.traffic_control import TcObject
from testbed.scenario.discipline import Field, Setting
from testbed.trial.parts.snapshot import TcReport

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
