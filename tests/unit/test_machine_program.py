"""Whole programs in the guest: what is said of them, without a guest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.engine import ProcessOutcome
from testbed.errors import TestbedError
from testbed.guest import machine
from testbed.guest.boot import guest_hung
from testbed.store.names import GUEST_REPORT


def test_a_program_that_takes_too_long_is_not_said_to_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot_in_vain(*_arguments: object, strict: bool) -> None:
        raise guest_hung(7)

    monkeypatch.setattr(machine, "run_in_guest", boot_in_vain)
    program = machine.MachineProgram(["make"], tmp_path, {}, patience_s=7)
    with pytest.raises(TestbedError) as caught:
        machine.run_on_machine(program, Path("kernel"), tmp_path, lambda: False)
    assert caught.value.message == "it had not ended after 7 s of wall time"
    assert "--timeout" in caught.value.hint


@pytest.mark.parametrize(
    "text", ["", "took_ns x", "took_ns", "\x00" * 100, "took_ns " + "9" * 5000, None]
)
def test_a_report_that_the_program_has_changed_is_a_line(tmp_path: Path, text: str | None) -> None:
    """A program that took over the guest writes there what it likes; None is a terabyte's hole."""
    report = tmp_path / GUEST_REPORT
    report.write_text(text or "")
    if text is None:
        os.truncate(report, 1 << 40)
    with pytest.raises((TestbedError, OSError), match=r"changed the machine's report|larger than"):
        machine._end(tmp_path, ProcessOutcome(0, 1.0, ""))
