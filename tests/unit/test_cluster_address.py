"""Addresses of clusters at which nobody answers: one line each, whatever dask makes of them."""

from __future__ import annotations

import pytest

from testbed.errors import TestbedError
from testbed.runs import cluster


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tls://127.0.0.1:9", "dask knows no certificates"),
        ("foo://x", "unknown address scheme"),
        ("127.0.0.1", "missing port number"),
    ],
)
def test_no_scheduler(address: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT_S", 1)
    with pytest.raises(TestbedError) as caught, cluster._client(address):
        pass
    assert address in caught.value.message and said in caught.value.message
    assert caught.value.hint
