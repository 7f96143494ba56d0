"""A capture becomes packets and flows; `REGENERATE=1 pytest …` writes the tables anew.

The capture is sender1's of tests/trial_writer.py. The packets are those that tshark 4.0 gave.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from analysis.captures.tcp import CONTENT, read_capture
from tests.flow_rows import capture_flows
from tests.pcap_writer import write_pcap
from tests.trial_writer import SNAPLEN, captures

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden") / "lossy-flow"
    return write_pcap(path, captures()["sender1-eth0"], SNAPLEN)


def compare(table: pd.DataFrame, name: str) -> None:
    text = table.to_csv(index=False, float_format="%.9g")
    if os.environ.get("REGENERATE"):
        (HERE / name).write_text(text)
    assert text == (HERE / name).read_text()


def test_packets(capture: Path) -> None:
    compare(read_capture(capture).rows.drop(columns=CONTENT), "lossy-flow.packets.csv")


def test_flows(capture: Path) -> None:
    compare(capture_flows(capture).T.reset_index(), "lossy-flow.flows.csv")
