"""`testbed kernel check`: which tests a change can reach, and which of them it breaks."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from testbed.cli.entry import main
from testbed.cli.kernel_check import check_text
from testbed.errors import UsageError
from testbed.kernels.kernel_check import CheckedTests, changed_files, checked, reached
from testbed.kernels.kernel_comparison import KernelComparison
from testbed.kernels.selftest_builds import FLAVOUR_FOLDER, Selftest, data_lines, suite_names

TESTS = [
    Selftest(suite, name, Path())
    for suite, name in (
        ("net", "udpgso.sh"),
        ("net/mptcp", "diag.sh"),
        ("net/forwarding", "sch_ets.sh"),
        ("net/forwarding", "router.sh"),
        ("net/af_unix", "msg_oob"),
    )
]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["net/mptcp/pm.c"], ["diag.sh"]),
        (["net/sched/sch_ets.c"], ["sch_ets.sh"]),
        (["net/sched/sch_ets.c", "net/unix/garbage.c"], ["sch_ets.sh", "msg_oob"]),
        (["net/core/dev.c"], [test.name for test in TESTS]),
    ],
)
def test_a_change_reaches_tests(files: list[str], names: list[str]) -> None:
    assert [test.name for test in reached(files, TESTS)] == names


def test_what_is_reached_are_suites_of_ours() -> None:
    patterns = {each for line in data_lines(FLAVOUR_FOLDER / "reach") for each in line.split()[1:]}
    assert {pattern.partition(":")[0] for pattern in patterns} <= {*suite_names()}


def test_a_test_that_failed_before_in_the_same_way_is_not_broken() -> None:
    ends = {
        "before": {"one": "", "two": "x failed", "three": "x failed"},
        "after": {"zero": "", "one": "y failed", "two": "x failed", "three": "z failed"},
    }
    asked: list[Collection[str]] = []

    def tests(kernel: str, names: Collection[str]) -> Mapping[str, str]:
        asked.append(list(names))
        return ends[kernel]

    end = checked("kind", tests, "before", "after")
    assert end == CheckedTests("kind", 4, {"one": "y failed", "three": "z failed"}, ["two"])
    assert asked == [[], ["one", "two", "three"]]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("arch/um/Kconfig", "net/a.c", "tools/b.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    return tmp_path


def test_the_kernels_files_that_a_tree_has_changed(tree: Path) -> None:
    (tree / "tools" / "b.c").write_text("two\n")
    with pytest.raises(UsageError, match="no file of the kernel differs from HEAD"):
        changed_files(tree, "HEAD")
    (tree / "net" / "a.c").write_text("two\n")
    assert changed_files(tree, "HEAD") == ["net/a.c"]


@pytest.mark.parametrize("form", ["mail", "md"])
def test_the_answer_names_what_is_broken(form: str) -> None:
    ends = [
        CheckedTests("kunit", 46, {}, []),
        CheckedTests("selftests", 9, {"net/mptcp:diag.sh": "many sockets"}, ["net:tls"]),
    ]
    same = KernelComparison(300, ("pfifo",), (), (), ())
    text = check_text(form, ends, same, ["net/mptcp/pm.c"], ("linux@a", "linux"))
    begin = "Subject: " if form == "mail" else "### "
    assert text.startswith(f"{begin}1 of 55 tests are broken; the same packets in all 300 trials\n")
    assert "- selftests net/mptcp:diag.sh: many sockets\n" in text
    assert "- selftests: 7 of 9 pass, 1 fail as before\n" in text and "A: " in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a source tree, and --since COMMIT"),
        (["."], "a source tree, and --since COMMIT"),
        ([".", "--since", "nosuch"], "no commit 'nosuch'"),
        (["net", "--since", "HEAD"], "net is no source tree of Linux"),
        ([".", "--since", "HEAD"], "no file of the kernel differs from"),
        ([".", "--since", "HEAD", "--only", "nosuch"], "--only nosuch: no such trial"),
    ],
)
def test_wrong_requests(
    arguments: list[str],
    message: str,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tree)
    if "--only" in arguments:
        (tree / "net" / "a.c").write_text("two\n")
    assert main(["kernel", "check", *arguments]) == 2
    said, hint = capsys.readouterr().err.splitlines()
    assert message in said and hint.strip().startswith("hint: ")
