"""Writes the captures that the fuzzer damages: python -m tests.fuzz.seeds FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

from tests import tunnels
from tests.conversations import conversations
from tests.pcap_writer import write_pcap
from tests.wrappings import write_all


def main() -> None:
    """A few small captures of every kind."""
    folder = Path(sys.argv[1])
    for path in write_all(folder, seed=1):
        if path.suffix == ".gz":
            path.unlink()
    for number, name in enumerate((*tunnels.READ, *tunnels.OPTIONAL)):
        (folder / f"tunnel-{number}.pcap").write_bytes(tunnels.whole_variety(name, number))
    for seed in range(4):
        write_pcap(folder / f"conversations-{seed}.pcap", conversations(seed, 8))


if __name__ == "__main__":
    main()
