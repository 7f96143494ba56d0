"""Coverage of the kernel's TCP: what gcov says of several runs, and the page's tables."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.coverage import COVERAGE, COVERAGE_BENCHMARK, coverage, coverage_lines
from benchmarks.harness import with_tables

SOURCE = """#include <stdlib.h>
static int doubled(int n)
{
    return 2 * n;
}
static int never(int n)
{
    return n;
}
int main(int count, char **words)
{
    if (count > 1)
        return doubled(atoi(words[1]));
    return count > 9 ? never(count) : 0;
}
"""


def test_counts_of_several_runs_are_added(tmp_path: Path) -> None:
    source = tmp_path / "net" / "ipv4" / "tcp_x.c"
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE)
    words = ["gcc", "--coverage", "-c", "-o", "tcp_x.o", "net/ipv4/tcp_x.c"]
    subprocess.run(words, cwd=tmp_path, check=True)
    subprocess.run(["gcc", "--coverage", "-o", "x", "tcp_x.o"], cwd=tmp_path, check=True)
    folders = []
    for name, arguments in (("first", []), ("second", ["3"])):
        subprocess.run([tmp_path / "x", *arguments], cwd=tmp_path, check=False)
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        (tmp_path / "tcp_x.gcda").rename(folders[-1] / "tcp_x.gcda")
    once, both = coverage(folders[:1], tmp_path), coverage(folders, tmp_path)
    assert once["tcp_x.c"].never_called == ["doubled", "never"]
    assert both["tcp_x.c"].never_called == ["never"]
    assert both["tcp_x.c"].functions["main"] == 2
    lines = list(coverage_lines(both, 2))
    assert "| `tcp_x.c` | 8 | 75 % | 3 | 1 |" in lines
    assert lines[-1] == "- `tcp_x.c`: `never`"


def test_the_page_has_a_place_for_the_tables() -> None:
    assert "\n\n## A\n\n" in with_tables(COVERAGE.read_text(), COVERAGE_BENCHMARK, "## A")
