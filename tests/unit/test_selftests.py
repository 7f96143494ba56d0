"""`testbed kernel test KERNEL selftests`: the kernel's configuration, and what tests say."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from testbed.cli.entry import main
from testbed.cli.kernel_selftests import junit, kernel_of, nipa_result, summary
from testbed.errors import UsageError
from testbed.guest import kernels
from testbed.guest.machine import MachineEnd
from testbed.kernels import selftest_builds
from testbed.kernels.selftest_builds import (
    FLAVOUR_FOLDER,
    Selftest,
    SelftestSource,
    built_tests,
    chosen_suites,
    chosen_tests,
    data_lines,
    source_of_tree,
    suite_names,
)
from testbed.kernels.selftest_runs import (
    SelftestEnd,
    SelftestStatus,
    missing_symbols,
    status_of,
)
from testbed.kernels.selftests import SELFTESTS
from testbed.runs.suite_results import TEST_FAILED, TEST_PASSED, printed_outcomes

MPTCP = Selftest("net/mptcp", "simult_flows.sh", Path())
BPF = Selftest("net", "test_bpf.sh", Path())
PASSED = MachineEnd(0, 1.5, False, False, False, 0.0, 0, 0, 0, (), ())


def laid_out(tmp_path: Path, config: str) -> list[str]:
    """Return the lines that a tree's tests add to the configuration of the flavour."""
    suite = tmp_path / SELFTESTS / "net"
    suite.mkdir(parents=True)
    (suite / "config").write_text(config)
    script = f". {kernels.SOURCE_FOLDER}/recipe.sh; lay_out 7.3 selftests {tmp_path}; "
    script += "cat $recipe/guest.config"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_configuration_has_what_the_tests_ask_for(tmp_path: Path) -> None:
    asked = "# tests\nCONFIG_NETDEVSIM=m\nCONFIG_VLAN_8021Q=m # two\nCONFIG_HZ=100\nCONFIG_NUMA=y\n"
    asked += "CONFIG_LOG_BUF_SHIFT=18\nCONFIG_MODULES=n\n"
    lines = laid_out(tmp_path, asked)
    assert "CONFIG_NETDEVSIM=y" in lines and "CONFIG_LOG_BUF_SHIFT=18" in lines
    assert "CONFIG_HZ=1000" in lines and "CONFIG_HZ=100" not in lines  # the flavour's own holds
    assert lines.count("CONFIG_VLAN_8021Q=y") == 1
    assert not [line for line in lines if "NUMA" in line or "CONFIG_MODULES" in line]


def test_a_tree_without_tests_is_no_source_of_them(tmp_path: Path) -> None:
    script = f". {kernels.SOURCE_FOLDER}/recipe.sh; lay_out 7.3 selftests {tmp_path}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"{tmp_path} has no tests of the network" in done.stderr


def test_each_symbol_that_a_test_needs_has_a_reason_why_it_is_missing(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("CONFIG_NET=y\n")
    missing = missing_symbols(config)
    assert missing["net:test_bpf.sh"] == "it needs CONFIG_TEST_BPF: it is a module"
    symbols = {line.split()[1] for line in data_lines(FLAVOUR_FOLDER / "needs")}
    config.write_text("".join(f"CONFIG_{symbol}=y\n" for symbol in symbols))
    assert missing_symbols(config) == {}
    suites = {line.partition(":")[0] for line in data_lines(FLAVOUR_FOLDER / "needs")}
    assert suites <= {*suite_names()}


def test_tests_are_chosen_by_suite_and_name(tmp_path: Path) -> None:
    tests = [MPTCP, BPF]
    assert chosen_tests(tests, []) == tests
    assert chosen_tests(tests, ["test_bpf"]) == chosen_tests(tests, ["test_bpf.sh"]) == [BPF]
    with pytest.raises(UsageError, match="-t simult_flow: no such test"):
        chosen_tests(tests, ["simult_flow"])
    (tmp_path / SELFTESTS / "net/mptcp").mkdir(parents=True)
    (tmp_path / SELFTESTS / "net/mptcp" / "Makefile").touch()
    source = SelftestSource("7.3", tmp_path, "")
    assert chosen_suites(source, []) == chosen_suites(source, ["net/mptcp"]) == ["net/mptcp"]
    with pytest.raises(UsageError, match="selftests net/mtcp: no such suite") as caught:
        chosen_suites(source, ["net/mtcp"])
    assert "net/mptcp" in caught.value.hint


def test_the_same_tests_in_another_tree_are_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    built: list[str] = []

    def build(source: SelftestSource, _kernel: Path, _userland: Path, folder: Path) -> None:
        built.append(source.name)
        folder.mkdir()
        (folder / "kselftest-list.txt").write_text("net:one.sh\n")

    monkeypatch.setattr(selftest_builds, "_build", build)
    trees = [tmp_path / name for name in ("one", "same", "test", "library", "interface")]
    for tree in trees:
        for name in (f"{SELFTESTS}/net/lib/lib.sh", f"{SELFTESTS}/Makefile", "include/uapi/tcp.h"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text("one\n")
    for tree in trees[2:]:
        changed = {"test": "lib.sh", "library": "Makefile", "interface": "tcp.h"}[tree.name]
        next(tree.rglob(changed)).write_text("two\n")
    for tree in trees:
        tests = built_tests(source_of_tree(tree), tmp_path, tmp_path, print)
        assert [test.full_name for test in tests] == ["net:one.sh"]
    assert built == ["one", "test", "library", "interface"]


SAID = """TEST: ping out - ns-B IP                                       [ OK ]
TEST: ping in                     [FAIL]
ok 1 - mptcp: many # SKIP no tool
"""


@pytest.mark.parametrize(
    ("end", "why", "text", "status", "reason"),
    [
        (PASSED, "", "all well\n", SelftestStatus.PASSED, ""),
        (dataclasses.replace(PASSED, status=4), "", "# SKIP: no nft\n", "skip", "no nft"),
        (dataclasses.replace(PASSED, status=2), "", "XFAIL: no clash\n", "xfail", "no clash"),
        (dataclasses.replace(PASSED, status=1), "", SAID, "fail", "ping in (exit status 1)"),
        (dataclasses.replace(PASSED, status=124, at_limit=True), "", "x\n", "limit", "after: x"),
        (None, "it had not ended after 9 s of wall time", "", "hang", "after 9 s"),
        (None, "the guest died: Kernel panic", "", "crash", "Kernel panic"),
    ],
)
def test_how_a_test_ended(
    end: MachineEnd | None, why: str, text: str, status: str, reason: str
) -> None:
    found, said = status_of(end, text, why)
    assert found == status and reason in said


def test_the_lines_of_linuxs_scripts_name_tests() -> None:
    assert dict(printed_outcomes(SAID)) == {
        "ping out - ns-B IP": TEST_PASSED,
        "ping in": TEST_FAILED,
        "mptcp: many": "skipped",
    }


def ended(test: Selftest, status: SelftestStatus, seed: int = 1, **more: Any) -> SelftestEnd:
    end = SelftestEnd(test, "7.3", seed, status, "why" if status != "pass" else "", 2.0, 1.0)
    return dataclasses.replace(end, **more)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["build", "7.3", "--for-selftests", "--debug"],
            "--debug and --for-selftests: only one of them",
        ),
        (["test", "7.3", "selftests", "--busy"], "--busy is for --repeat"),
    ],
)
def test_wrong_requests(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):
        assert main(["kernel", *words]) == 2
    assert message in capsys.readouterr().err


def test_results_for_nipa_and_junit() -> None:
    outcomes = (("a", TEST_PASSED), ("b", TEST_FAILED))
    failed = ended(MPTCP, SelftestStatus.HUNG, outcomes=outcomes)
    skipped = ended(BPF, SelftestStatus.SKIPPED)
    for_nipa = json.loads(json.dumps(nipa_result(failed)))
    assert (for_nipa["test"], for_nipa["group"]) == ("simult_flows.sh", "net/mptcp")
    assert for_nipa["result"] == "fail" and for_nipa["status"] == "hang"
    assert for_nipa["results"][1] == {"test": "b", "result": "fail"}
    top = ET.fromstring(junit([failed, skipped]))
    assert [case.get("name") for case in top.iter("testcase")] == ["simult_flows.sh", "test_bpf.sh"]
    assert len(list(top.iter("failure"))) == len(list(top.iter("skipped"))) == 1


def test_a_subtest_that_ends_in_another_way_is_a_flip() -> None:
    def outcomes(one: str) -> tuple[tuple[str, str], ...]:
        return (("a", TEST_PASSED), ("b", one))

    steady = [
        ended(BPF, SelftestStatus.PASSED, seed, outcomes=outcomes(TEST_PASSED)) for seed in (1, 2)
    ]
    flipping = [
        ended(MPTCP, SelftestStatus.PASSED, 1, outcomes=outcomes(TEST_PASSED)),
        ended(MPTCP, SelftestStatus.FAILED, 2, outcomes=outcomes(TEST_FAILED)),
    ]
    lines = list(summary([*steady, *flipping]))
    assert lines[0].startswith("7.3: pass:3 fail:1;")
    assert "7.3 net:test_bpf.sh: 2 seeds, 0 flip" in lines
    assert any(re.search(r"differs: b: passed with seed 1; failed with seed 2", x) for x in lines)
    assert "7.3 net/mptcp:simult_flows.sh: 2 seeds, 2 flip" in lines  # and the test as a whole


def test_the_programs_of_tests_are_looked_for_without_fetching(tmp_path: Path) -> None:
    words = [str(kernels.USERLAND_SCRIPT), "--path"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout.startswith(
        f"{tmp_path}/tcp-testbed/kernel/userland/"
    )
    assert not (tmp_path / "tcp-testbed").exists()


def test_a_tree_is_built_as_the_image_of_these_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    built: list[kernels.CustomKernel] = []

    def build(kernel: kernels.CustomKernel, _progress: kernels.Progress) -> Path:
        built.append(kernel)
        folder = kernels.custom_folder(kernel.name)
        folder.mkdir(parents=True)
        return folder

    monkeypatch.setattr(kernels, "build_custom", build)
    assert kernel_of("7.3", 1) == "7.3" and not built
    assert kernel_of(str(tmp_path), 2) == "tested-2"
    assert [(each.source, each.flavour) for each in built] == [(str(tmp_path), "selftests")]


def test_a_tree_that_does_not_build_is_left_out_of_a_bisection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["kernel", "test", str(tmp_path), "selftests"]) == 125
    assert f"{tmp_path} is no source tree of Linux" in capsys.readouterr().err
