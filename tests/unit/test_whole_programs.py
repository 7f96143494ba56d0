"""The comparison of whole programs' runs: with plain Mininet, and with another run in the guest."""

from __future__ import annotations

import pytest

from benchmarks.plain_mininet import ProgramOutput, compared


@pytest.mark.parametrize(
    ("guest", "plain", "answer"),
    [
        ("sent 3\n", "sent 3\n", "the same"),
        ("rtt 1.5 ms\nfe80::1\n", "rtt  27 ms\nfe80::2:3\n", "the same but for numbers"),
        ("h1 -> h2\n", "h1 -> X\n", "'h1 -> h2', plain 'h1 -> X'"),
        ("one\ntwo\n", "one\n", "'two', plain ''"),
    ],
)
def test_outputs_are_compared_line_by_line(guest: str, plain: str, answer: str) -> None:
    assert compared(ProgramOutput(guest), ProgramOutput(plain)) == answer
    assert compared(ProgramOutput("", guest), ProgramOutput("", plain)) == answer


def test_a_host_without_the_queues_is_named() -> None:
    refused = ProgramOutput("", "Error: Specified qdisc kind is unknown.\n")
    assert compared(ProgramOutput("done\n"), refused) == "this host's kernel lacks its queues"
