"""Outcomes of tests as runners print them, and what is said of repeats."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.runs.suite_results import (
    TEST_FAILED,
    TEST_PASSED,
    TEST_SKIPPED,
    SuiteRun,
    junit_outcomes,
    printed_outcomes,
    unlike,
)

GO = """
=== RUN   TestDial
    --- PASS: TestDial/udp (0.00s)
--- FAIL: TestDial (0.00s)
--- SKIP: TestSlow (0.00s)
ok  \tnet\t0.1s
"""
CARGO = """
running 3 tests
test net::dial ... ok
test net::close ... FAILED
test net::slow ... ignored, takes long
test result: FAILED. 1 passed; 1 failed
"""
PYTEST = """
tests/test_a.py::test_one PASSED                                 [ 25%]
tests/test_a.py::test_two[a b] FAILED                            [ 50%]
tests/test_a.py::test_three SKIPPED (no such thing)              [ 75%]
tests/test_a.py::test_four XFAIL                                 [100%]
"""
UNITTEST = """
test_one (test_a.Case.test_one) ... ok
test_two (test_a.Case.test_two) ... FAIL
test_three (test_a.Case.test_three) ... skipped 'not here'
"""
KTAP = """
KTAP version 1
1..2
    ok 1 - inner one
    not ok 2 - inner two # time=3ms
# a remark
ok 1 outer # SKIP no module
"""


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        (GO, {"TestDial/udp": TEST_PASSED, "TestDial": TEST_FAILED, "TestSlow": TEST_SKIPPED}),
        (CARGO, {"net::dial": TEST_PASSED, "net::close": TEST_FAILED, "net::slow": TEST_SKIPPED}),
        (
            PYTEST,
            {
                "tests/test_a.py::test_one": TEST_PASSED,
                "tests/test_a.py::test_two[a b]": TEST_FAILED,
                "tests/test_a.py::test_three": TEST_SKIPPED,
                "tests/test_a.py::test_four": TEST_PASSED,
            },
        ),
        (
            UNITTEST,
            {
                "test_one (test_a.Case.test_one)": TEST_PASSED,
                "test_two (test_a.Case.test_two)": TEST_FAILED,
                "test_three (test_a.Case.test_three)": TEST_SKIPPED,
            },
        ),
        (KTAP, {"inner one": TEST_PASSED, "inner two": TEST_FAILED, "outer": TEST_SKIPPED}),
        ("ok then\nnot ok 3\n--- PASS: " + "x" * 2000 + " (0s)\n", {}),
    ],
    ids=["go", "cargo", "pytest", "unittest", "ktap", "none"],
)
def test_outcomes_are_read_from_what_runners_print(text: str, outcomes: dict[str, str]) -> None:
    assert dict(printed_outcomes(text)) == outcomes


def test_outcomes_are_read_from_files_of_junit(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(
        '<testsuites><testsuite><testcase classname="a.B" name="one"/>'
        '<testcase classname="a.B" name="two"><failure message="no"/></testcase>'
        '<testcase name="three"><skipped/></testcase></testsuite></testsuites>'
    )
    read = dict(junit_outcomes(tmp_path / "a.xml"))
    assert read == {"a.B.one": TEST_PASSED, "a.B.two": TEST_FAILED, "three": TEST_SKIPPED}


@pytest.mark.parametrize(
    "text",
    [
        "<testsuite><testcase name='one'>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><testsuite><testcase name='&b;'/></testsuite>",
        "no xml",
    ],
)
def test_a_file_that_is_damaged_or_declares_entities_has_no_tests(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "a.xml").write_text(text)
    assert not dict(junit_outcomes(tmp_path / "a.xml"))


def test_repeats_name_what_differs_and_what_always_fails() -> None:
    first = SuiteRun(
        1, 1, 2.0, 0.5, {"a": TEST_PASSED, "b": TEST_FAILED, "c": TEST_PASSED, "d": TEST_PASSED}
    )
    second = SuiteRun(2, 1, 2.0, 0.5, {"a": TEST_PASSED, "b": TEST_FAILED, "c": TEST_FAILED})
    assert list(unlike([first, second])) == [
        "fails with every seed: b",
        "differs: c: passed with seed 1; failed with seed 2",
        "differs: d: passed with seed 1; not run with seed 2",
    ]
