"""Judge a laboratory while its program runs, in the guest: with --check it stops at a finding.

Standard input has the observer's lines, standard output is a socket: each byte that comes asks
whether something is wrong by now (`testbed/guest/judge.c`).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from analysis.laboratory.observation import ObservationReader
from analysis.laboratory.rules import laboratory_findings
from analysis.laboratory.settings import SETTERS

OBSERVED_LINES, JUDGE_CALLS = 0, 1  # descriptors
TCP_TRACE = Path("/sys/kernel/tracing/instances/laboratory/trace")
HALT, GO_ON = b"s", b"g"
READ_BYTES = 1 << 16


def main() -> None:
    """Answer until the guest ends."""
    reader, begun = ObservationReader(Path("/")), b""
    while os.read(JUDGE_CALLS, 1):
        while block := os.read(OBSERVED_LINES, READ_BYTES):
            lines, newline, begun = (begun + block).rpartition(b"\n")
            reader.read_text((lines + newline).decode(errors="replace"))
        os.write(JUDGE_CALLS, HALT if _is_faulty(reader) else GO_ON)


def _is_faulty(reader: ObservationReader) -> bool:
    """Tell whether the command that ended last is wrong, or what it sent shows that another is."""
    if reader.ended is None:
        return False
    ended = reader.commands[reader.ended]
    if ended.program in SETTERS:  # it stands for itself: thousands are judged in no time
        observation = replace(reader.observation(), commands=[ended], namespaces=())
    else:
        connected = ObservationReader(Path("/"))
        # not on each kernel, which the observer's lines tell; nor open to users of the host
        if os.access(TCP_TRACE, os.R_OK):
            connected.read_text(TCP_TRACE.read_text(errors="replace"))
        observation = replace(
            reader.observation(),
            sockets=connected.sockets,
            sockets_complete=reader.sockets_complete and connected.sockets_complete,
        )
    return bool(laboratory_findings(observation, at_once=True))


if __name__ == "__main__":
    main()
