"""Linux's own tests in guests, with scripts in place of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.guest.machine import machine_kernel
from testbed.kernels.selftest_builds import TEST_LIST, Selftest, built_tests, source_of_tree
from testbed.kernels.selftest_runs import SelftestEnd, SelftestLimits, SelftestRuns
from testbed.kernels.selftests import SELFTESTS

SCRIPTS = {
    "pass.sh": "modprobe netdevsim && sleep 300; echo 'TEST: waits   [ OK ]'",
    "skip.sh": "echo 'SKIP: no such tool'; exit 4",
    "limit.sh": "echo waiting; sleep 1000",
    "plain.sh": "echo 'XFAIL: as expected'; exit 2",
    "splat.sh": "echo 'WARNING: at net/core/dev.c' >/dev/kmsg",
    "fail.sh": """ip netns add one
ip -n one link set lo up
sleep 0.5
ip netns exec one ping -c 2 -i 0.1 127.0.0.1 >/dev/null
sleep 0.5
echo 'TEST: pings   [FAIL]'
exit 1""",
}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SelftestEnd]:
    folder = tmp_path_factory.mktemp("kselftest")
    (folder / "net").mkdir()
    for name, text in SCRIPTS.items():
        (folder / "net" / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / "net" / name).chmod(0o644 if name == "plain.sh" else 0o755)
    tests = [Selftest("net", name, folder) for name in SCRIPTS]
    runs = SelftestRuns(
        Path("/"),
        "6.1",
        machine_kernel("6.1", print),
        SelftestLimits(400, 300.0),
        folder / "out",
        captured=True,
        lacks={"net:lacking.sh": "it is a module"},
    )
    items = [(test, 1) for test in (*tests, Selftest("net", "lacking.sh", folder))]
    return {end.test.name: end for end in runs.run(items, 1)}


def test_each_ends_as_it_says(ends: dict[str, SelftestEnd]) -> None:
    assert {name: str(end.status) for name, end in ends.items()} == {
        "pass.sh": "pass",
        "skip.sh": "skip",
        "limit.sh": "limit",
        "plain.sh": "xfail",
        "splat.sh": "pass",
        "fail.sh": "fail",
        "lacking.sh": "skip",
    }
    assert ends["pass.sh"].virtual_s >= 300 and dict(ends["pass.sh"].outcomes) == {
        "waits": "passed"
    }
    assert ends["skip.sh"].reason == "no such tool"
    assert ends["lacking.sh"].reason == "it is a module"
    assert ends["splat.sh"].report == "WARNING: at net/core/dev.c"


def test_a_failed_one_leaves_its_packets(ends: dict[str, SelftestEnd]) -> None:
    results = ends["fail.sh"].results
    assert results is not None
    assert (results / "captures" / "one.pcap").stat().st_size > 4 * 84
    assert ends["fail.sh"].reason == "pings (exit status 1)"
    assert ends["pass.sh"].results is not None
    assert not (ends["pass.sh"].results / "captures").exists()


def test_tests_are_compiled_in_a_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = machine_kernel("6.1", print)  # from the usual cache
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tree = tmp_path / "tree"
    suites = tree / SELFTESTS
    (suites / "net").mkdir(parents=True)
    (suites / "net" / "Makefile").touch()
    installing = "\n".join(
        ("install:", "\tmkdir $(INSTALL_PATH)", f"\techo net:one.sh >$(INSTALL_PATH)/{TEST_LIST}")
    )
    (suites / "Makefile").write_text(f"{installing}\n")
    for headers in ("false", "test -e MAINTAINERS"):
        (tree / "Makefile").write_text(f"headers:\n\t{headers}\n")
        if headers == "false":
            with pytest.raises(TestbedError, match="the tests of Linux tree were not compiled"):
                built_tests(source_of_tree(tree), Path("/"), kernel, print)
    tests = built_tests(source_of_tree(tree), Path("/"), kernel, print)
    assert [test.full_name for test in tests] == ["net:one.sh"]
    assert not (tree / "MAINTAINERS").exists()
