"""Tests that only hold for one version of an installed program."""

from __future__ import annotations

import pytest

from analysis.captures import tshark

followed_wireshark = pytest.mark.skipif(
    not tshark.version().startswith(f"{tshark.FOLLOWED}."),
    reason=f"tshark has other rules than Wireshark {tshark.FOLLOWED}",
)
