"""What a kernel that looks for its own errors reports, and KUnit's results in its log."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.guest import kernels
from testbed.guest.debug_kernel import first_report, looks_for_errors, reports_raised
from testbed.kernels.kernel_tests import ktap_plan, ktap_suite, read_suites
from testbed.store.names import GUEST_CONSOLE, KERNEL_LOG

LOG = """[    0.000000] Linux version 6.1.192-testbed
[    0.000000] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
[    0.010000] kmemleak: Kernel memory leak detector initialized (mem pool available: 15678)
"""
KASAN = """[   12.520000] ==================================================================
[   12.520000] BUG: KASAN: use-after-free in tcp_ack+0x11c/0x2280
[   12.520000] Read of size 8 at addr 000000006a3f2e40 by task iperf3/41
"""
LOCKDEP = """[    1.000000] ======================================================
[    1.000000] WARNING: possible circular locking dependency detected
[    1.000000] INFO: lockdep is turned off.
"""
LEAK = """unreferenced object 0x000000006b1c9a00 (size 64):
  comm "iperf3", pid 41, jiffies 4294938221 (age 7.120s)
"""
KUNIT_LOG = """Run /init as init process
KTAP version 1
1..2
    KTAP version 1
    # Subtest: dev-addr-list-test
    1..2
    ok 1 dev_addr_test_basic
    # dev_addr_test_sync_one: EXPECTATION FAILED at net/core/dev_addr_lists_test.c:71
    Expected 1 == datp->addr_synced, but
        datp->addr_synced == 0 (0x0)
    not ok 2 dev_addr_test_sync_one
# dev-addr-list-test: pass:1 fail:1 skip:0 total:2
not ok 1 dev-addr-list-test
    KTAP version 1
    # Subtest: mptcp-token
    1..3
BUG: KASAN: slab-out-of-bounds in mptcp_token_test_accept+0x1/0x2
    ok 1 mptcp_token_test_req_basic
        KTAP version 1
        # Subtest: mptcp_token_test_msk_basic
        ok 1 first
    ok 2 mptcp_token_test_msk_basic
    ok 3 mptcp_token_test_accept # SKIP no memory
ok 2 mptcp-token
"""


def test_the_first_report_of_a_log() -> None:
    assert not first_report(LOG)
    assert first_report(LOG + KASAN) == "BUG: KASAN: use-after-free in tcp_ack+0x11c/0x2280"
    lockdep = "WARNING: possible circular locking dependency detected"
    assert first_report(LOG + LOCKDEP + KASAN) == lockdep
    assert first_report(LOG + LEAK) == "unreferenced object 0x000000006b1c9a00 (size 64):"
    assert first_report("Kernel panic - not syncing: x\n") == "Kernel panic - not syncing: x"


def test_which_kernels_are_asked() -> None:
    assert looks_for_errors({"CONFIG_NET", "CONFIG_KASAN"})
    assert not looks_for_errors({"CONFIG_NET"})


def test_a_kernel_that_died_has_said_why_on_its_console(tmp_path: Path) -> None:
    (tmp_path / GUEST_CONSOLE).write_text(KASAN)
    with (
        pytest.raises(TestbedError, match=r"^the kernel reported: BUG: KASAN: .* tcp_ack"),
        reports_raised(tmp_path),
    ):
        raise TestbedError("the guest died")
    assert [path.name for path in tmp_path.iterdir()] == [KERNEL_LOG]


def test_a_guest_that_died_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="the guest died"), reports_raised(tmp_path):
        raise TestbedError("the guest died")


def test_the_name_of_the_image_that_looks_for_errors() -> None:
    assert "6.1-debug" in kernels.debian_names() and "6.1-debug" not in kernels.versions()
    assert kernels._image("6.1-debug") == ["--flavour", "debug", "6.1"]
    assert kernels._image("6.1", "machine") == ["--flavour", "machine", "6.1"]
    assert kernels._image("6.1") == ["6.1"]
    assert kernels.not_built("6.1-debug").hint == "testbed kernel build 6.1-debug"


def test_the_results_of_kunit() -> None:
    lists, token = read_suites("6.1", KUNIT_LOG)
    assert (lists.suite, lists.passed) == ("kunit dev-addr-list-test", False)
    assert [(each.name, each.passed) for each in lists.tests] == [
        ("dev_addr_test_basic", True),
        ("dev_addr_test_sync_one", False),
    ]
    assert "EXPECTATION FAILED at net/core/dev_addr_lists_test.c:71" in lists.tests[1].said[0]
    assert [(each.passed, each.skipped) for each in token.tests] == [
        (False, False),  # the kernel reported an error while it ran
        (True, False),
        (True, True),
    ]
    assert not list(read_suites("6.1", "kunit: disabled\n"))


def test_what_we_print_of_kernel_tests_is_ktap() -> None:
    """Read as KUnit's own output is, it says the same again."""
    lists, token = ends = list(read_suites("6.1", KUNIT_LOG))
    suites = itertools.chain(*(ktap_suite(number, end) for number, end in enumerate(ends, 1)))
    printed = [*ktap_plan(2), *suites]
    again = list(read_suites("6.1", "\n".join(printed)))
    assert [each.suite for each in again] == [f"kunit 6.1 {each.suite}" for each in ends]
    assert [each.name for each in again[0].tests] == [each.name for each in lists.tests]
    results = [[(each.passed, each.skipped) for each in end.tests] for end in again]
    assert results[0] == [(True, False), (False, False)]
    assert results[1] == [(each.passed, each.skipped) for each in token.tests]
    assert printed[:3] == ["KTAP version 1", "1..2", "    KTAP version 1"]
    assert printed[-1] == "not ok 2 6.1 kunit mptcp-token"
