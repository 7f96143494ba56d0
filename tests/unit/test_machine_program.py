"""Whole programs in the guest: what is said of them, without a guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.guest import machine
from testbed.guest.boot import guest_hung


def test_a_program_that_takes_too_long_is_not_said_to_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot_in_vain(*_arguments: object) -> None:
        raise guest_hung(7)

    monkeypatch.setattr(machine, "run_in_guest", boot_in_vain)
    program = machine.MachineProgram(["make"], tmp_path, {}, patience_s=7)
    with pytest.raises(TestbedError) as caught:
        machine.run_on_machine(program, Path("kernel"), tmp_path, lambda: False)
    assert caught.value.message == "it had not ended after 7 s of wall time"
    assert "--timeout" in caught.value.hint
