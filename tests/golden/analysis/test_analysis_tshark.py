"""tshark's text becomes packets and flows; `REGENERATE=1 pytest …` writes the tables anew.

lossy-flow.tshark is what tshark 4.0 printed for sender1's capture of tests/trial_writer.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from analysis.flows import flow_table
from analysis.tshark import Packets, parse_fields

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def packets() -> Packets:
    with (HERE / "lossy-flow.tshark").open() as text:
        return parse_fields(text)


def compare(table: pd.DataFrame, name: str) -> None:
    text = table.to_csv(index=False, float_format="%.9g")
    if os.environ.get("REGENERATE"):
        (HERE / name).write_text(text)
    assert text == (HERE / name).read_text()


def test_packets(packets: Packets) -> None:
    compare(packets.rows, "lossy-flow.packets.csv")


def test_flows(packets: Packets) -> None:
    compare(flow_table(packets, "lossy-flow").T.reset_index(), "lossy-flow.flows.csv")
