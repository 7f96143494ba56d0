"""A capture's flows over time."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from analysis.captures.flow_tables import flow_bins, parse_width
from analysis.captures.tcp import Arrays, read_arrays
from testbed.errors import UsageError
from tests.trial_writer import write_trial


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> Arrays:
    """The sender's capture of the trial made by hand: its flow lasts from 0 to 9.97 s."""
    folder = write_trial(tmp_path_factory.mktemp("bins") / "trial")
    return read_arrays(folder / "captures" / "sender1-eth0.pcap")


def test_a_row_a_second(packets: Arrays) -> None:
    table = flow_bins(packets, "x.pcap", 1.0).to_pandas()
    assert list(table["start_s"]) == list(range(10))
    assert set(table["src"]) == {"10.0.1.2:40001"}
    # SYN and ACK; ten packets and a repeated one; a superfluous one; a last one
    assert list(table["packets"]) == [2, 11, 1, 0, 0, 0, 0, 0, 0, 1]
    assert table["throughput_mbps"][1] == pytest.approx(11 * 1054 * 8e-6)
    assert list(table["duplicate_acks"]) == [0, 6, 1, 0, 0, 0, 0, 0, 0, 0]
    assert list(table["wireshark_retransmissions"]) == [0, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert math.isnan(table["rtt_mean_ms"][5])


@pytest.mark.parametrize("width_s", [0.001, 0.01, 0.37, 100])
def test_nothing_is_lost_between_bins(packets: Arrays, width_s: float) -> None:
    table = flow_bins(packets, "x.pcap", width_s).to_pandas()
    assert table["packets"].sum() == 15
    bits = (table["throughput_mbps"] * width_s).sum()
    assert bits == pytest.approx((2 * 54 + 13 * 1054) * 8e-6)


def test_a_width_that_makes_too_many_bins(packets: Arrays) -> None:
    with pytest.raises(UsageError, match="99700001 rows of 1e-07 s"):
        flow_bins(packets, "x.pcap", 1e-7)


def test_no_packets(packets: Arrays) -> None:
    columns = {name: column[:0] for name, column in packets.columns.items()}
    assert not len(flow_bins(replace(packets, columns=columns), "x.pcap", 1))


@pytest.mark.parametrize(
    ("text", "width_s"), [("1s", 1), ("100ms", 0.1), ("0.5", 0.5), ("250us", 250e-6), ("2min", 120)]
)
def test_widths(text: str, width_s: float) -> None:
    assert parse_width(text) == pytest.approx(width_s)


@pytest.mark.parametrize("text", ["", "0", "-1s", "1h", "s", "one", "1e3"])
def test_no_widths(text: str) -> None:
    with pytest.raises(UsageError, match="is not a bin width"):
        parse_width(text)
